"""A number that is none, or no number at all, is refused by a ValueError that names what came.

One table of good calls; every argument that is declared as a number is spoiled in turn.
"""

import ast
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from sitebuild.labs import ROOT
from snippets.online_softmax import empty

ROW = [1.0, 2.0]
COLUMN = [[1.0], [2.0]]
QKV = {"q": COLUMN, "k": COLUMN, "v": COLUMN}
GOOD: dict[str, dict[str, Any]] = {
    "adoption.months_to_break_even": {"gain": 1.5, "gpus": 8, "build": 6, "upkeep": 0.5},
    "adoption.share_afterwards": {"share": 0.4, "speedup": 2},
    "adoption.speedup_of_step": {"share": 0.4, "speedup": 2},
    "backward_ledger.bytes_of": {"tensors": "Q K", "n": 4, "d": 2, "e": 2},
    "backward_ledger.flop": {"products": 2, "n": 4, "d": 2},
    "banks.padded": {"row": 1, "column": 2},
    "banks.plain": {"row": 1, "column": 2},
    "banks.swizzled": {"row": 1, "column": 2},
    "batch_softmax.batch": {"scores": ROW, "values": COLUMN},
    "bytes_in_flight.bytes_needed": {"rate": 1e12, "latency_s": 1e-6},
    "bytes_in_flight.sustained_rate": {"in_flight": 1e6, "rate": 1e12, "latency_s": 1e-6},
    "exactness.compare": {"scores": ROW, "values": ROW, "tile": 1},
    "exactness.exact": {"scores": ROW, "values": ROW},
    "exactness.random_rows": {"n": 3, "rows": 1, "tile": 2},
    "flash_attention.attend": {**QKV, "query_tile": 1, "key_tile": 1},
    "flash_attention.tiles": {"n": 4, "size": 2},
    "flash_attention.walk": {**QKV, "query_tile": 1, "key_tile": 1},
    "full_attention.full": QKV,
    "fusion.chain": {"operations": 3},
    "gpu_model.flops_per_element_loaded": {"device": "H200", "bytes_per_element": 2},
    "hbm_traffic.attention_flops": {"N": 4, "d": 2},
    "hbm_traffic.compulsory_bytes": {"N": 4, "d": 2, "itemsize": 2},
    "hbm_traffic.issued_bytes": {"N": 4, "d": 2, "tile": 2, "itemsize": 2},
    "hbm_traffic.naive_bytes": {"N": 4, "d": 2, "itemsize": 2},
    "kv_cache.attention_share": {"N": 4, "layers": 2, "heads": 2, "d": 2, "parameters": 9},
    "kv_cache.bytes_per_token": {"layers": 2, "kv_heads": 2, "d": 2, "itemsize": 2},
    "kv_cache.decode_intensity": {"N": 4, "d": 2, "group": 2, "itemsize": 2},
    "kv_cache.sequences_that_fit": {"memory": 99, "weights": 9, "tokens": 4, "per_token": 2},
    "ladder_model.flop_per_byte": {"queries": 64, "keys": 128, "d": 64},
    "ladder_model.last_end": {"lengths": [3, 1, 2], "places": 2},
    "ladder_model.longest_first": {"heads": 3, "tiles": 2, "together": 2},
    "ladder_model.registers": {"queries": 64, "keys": 128, "d": 64},
    "loop_order.causal_bytes": {"N": 4, "d": 2, "tile": 2, "key_tile": 2, "itemsize": 2},
    "loop_order.key_outer_bytes": {"N": 4, "d": 2, "key_tile": 2, "itemsize": 2, "o_itemsize": 4},
    "memory_wall.fusion_bytes": {"elements": 4, "operations": 2, "itemsize": 2},
    "memory_wall.passes_bytes": {"N": 4, "passes": 2, "itemsize": 2},
    "memory_wall.row_tile": {"N": 4, "memory": 99, "itemsize": 4},
    "model_memory.Tensor": {"memory": [1.0, 2.0], "start": 0, "size": 2},
    "naive_attention.ledger": {"queries": 4, "keys": 4, "d": 2, "itemsize": 2},
    "online_softmax.empty": {"d": 2},
    "online_softmax.online": {"scores": ROW, "values": COLUMN, "tile": 1},
    "online_softmax.update": {"state": empty(1), "scores": ROW, "values": COLUMN},
    "overlap.clocks": {"device": "H200", "d": 64, "br": 128, "bc": 128},
    "overlap.timeline": {"tiles": 3, "product": 2.0, "softmax": 1.0, "ahead": True},
    "roofline.attainable": {"flop_per_byte": 2.0, "peak": 9.0, "rate": 3.0},
    "roofline.bound": {"flop_per_byte": 2.0, "peak": 9.0, "rate": 3.0},
    "roofline.intensity": {"flops": 4.0, "bytes_moved": 2.0},
    "roofline.points": {"N": 64, "d": 64},
    "roofline.ridge_point": {"peak": 9.0, "rate": 3.0},
    "roofs.busy": {"device": "H200", "N": 64, "d": 64},
    "score_matrix.largest_in_l2": {"device": "H200", "heads": 2, "itemsize": 2},
    "score_matrix.score_bytes": {"N": 4, "heads": 2, "itemsize": 2},
    "sectors.sectors_touched": {"stride": 2, "itemsize": 2, "offset": 0},
    "sectors.share_used": {"stride": 2, "itemsize": 2, "offset": 0},
    "tile_budget.programs_per_sm": {"device": "H200", "shared": 9, "registers": 9, "warps": 4},
    "tile_budget.registers_per_thread": {"registers": 9, "warps": 4},
    "tile_budget.split": {"br": 16, "bc": 16, "d": 16, "stages": 1, "e": 2},
    "tile_budget.tile_bytes": {"br": 16, "bc": 16, "d": 16, "e": 2},
    "tile_loop.run": {"kernel": lambda *_: None, "rows": 2, "columns": 3, "BLOCK": 4},
    "triton_kernels.launch": {"order": [0, 1], "stride_xm": 6, "BLOCK": 8},
    "waves.attention_programs": {"heads": 2, "queries": 4, "tile": 2},
    "waves.efficiency": {"programs": 3, "places": 2},
    "waves.waves": {"programs": 3, "places": 2},
}
# take no number of a reader: kernels that a launch calls, printers, a stand-in for math.exp, and
# the product of two rows that its callers have checked
INNER = {
    "exactness.exp",
    "full_attention.score",
    "hbm_traffic.mb",
    "roofline.show",
    "tile_loop.streamed_softmax_kernel",
    "triton_kernels.softmax_kernel",
}
NUMBERS = {"int", "float", "int | None"}
ROWS = {"scores", "values", "q", "k", "v"}


def call_of(name: str) -> Callable[..., Any]:
    stem, attribute = name.split(".")
    found: Callable[..., Any] = getattr(importlib.import_module(f"snippets.{stem}"), attribute)
    return found


def call(name: str, arguments: dict[str, Any]) -> None:
    """Call a function of a lab and, where it yields, draw all of it."""
    found = call_of(name)(**arguments)
    if inspect.isgenerator(found):
        list(found)


def numbers(name: str) -> list[str]:
    """The arguments of a good call that are declared as numbers."""
    parameters = inspect.signature(call_of(name)).parameters
    kinds = {a: inspect.formatannotation(parameters[a].annotation) for a in GOOD[name]}
    return [argument for argument, kind in kinds.items() if kind in NUMBERS]


def takers() -> set[str]:
    """Every public function of a lab that is declared to take a number."""
    found = set()
    for path in (ROOT / "snippets").glob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith(("_", "check")):
                kinds = [ast.unparse(a.annotation) for a in node.args.args if a.annotation]
                found |= {f"{path.stem}.{node.name}"} if NUMBERS & set(kinds) else set()
    return found


SPOILED = [(name, argument) for name in GOOD for argument in numbers(name)]
BAD: list[Any] = ["4", None, [4], float("nan")]


def test_every_function_that_takes_a_number_is_tried() -> None:
    missing = sorted(takers() - INNER - GOOD.keys())
    assert missing == [], f"add a good call of each to GOOD: {', '.join(missing)}"


@pytest.mark.parametrize("name", GOOD)
def test_the_good_calls_are_good(name: str) -> None:
    call(name, GOOD[name])


@pytest.mark.parametrize("wrong", BAD, ids=repr)
@pytest.mark.parametrize(("name", "argument"), SPOILED)
def test_a_number_that_is_none_is_refused_and_named(name: str, argument: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"got ") as refused:
        call(name, GOOD[name] | {argument: wrong})
    assert repr(wrong) in str(refused.value)


@pytest.mark.parametrize("wrong", ["4", None, True], ids=repr)
@pytest.mark.parametrize(
    ("name", "argument"),
    [(name, argument) for name in GOOD for argument in GOOD[name] if argument in ROWS],
)
def test_a_row_with_something_else_than_numbers_is_refused(
    name: str, argument: str, wrong: Any
) -> None:
    spoiled = {id(ROW): [wrong, 2.0], id(COLUMN): [[wrong], [2.0]]}[id(GOOD[name][argument])]
    with pytest.raises(ValueError, match=r"got ") as refused:
        call(name, GOOD[name] | {argument: spoiled})
    assert repr(wrong) in str(refused.value)
