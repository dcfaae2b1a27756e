"""The job of the model path on a made-up machine: tiny models, a clock of the test's own."""

import contextlib
import importlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

from kernels.bench import job, model_steps  # noqa: E402
from kernels.bench.job import Order, run  # noqa: E402
from kernels.bench.measure import Machine  # noqa: E402
from kernels.bench.schema import read  # noqa: E402

SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_layer": 1, "n_head": 2, "n_embd": 32, "vocab_size": 32, "n_positions": 99,
             "bos_token_id": None, "eos_token_id": None},
    "llama": {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
              "hidden_size": 32, "intermediate_size": 32, "vocab_size": 32},
}  # fmt: skip
CASES = [
    ("prefill", {"gpt2": True, "B": 1, "N": 20}),
    ("prefill", {"gpt2": True, "B": 1, "N": 24}),
    ("decode", {"llama": True, "B": 2, "N": 24}),
    ("train", {"llama": True, "B": 1, "N": 24}),
]
PATH = "model_path.made_up.json"
TIMED = ("ours", "sdpa-flash", "eager", "none")  # the CPU has no cuDNN
NAMES = {"ours": {"gemm": 5, "mine": 1}, "none": {"gemm": 4}}


class Timer:
    """Every run takes 100 us of a clock that nobody waits for."""

    def batch(self, run: Callable[[], object], n: int) -> list[float]:
        run()
        return [100.0] * n

    def graph(self, run: Callable[[], object]) -> Callable[[], object]:
        return run


@contextlib.contextmanager
def clocks() -> Iterator[Any]:
    yield type("Clocks", (), {"observed": None})


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    """The real module, with models that the interpreter can take."""
    made = importlib.import_module("kernels.model_path")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "source_digest", lambda _module: "a" * 64)
        patch.setattr(model_steps, "DTYPE", "fp16")  # the interpreter multiplies bf16 wrongly
        patch.setattr(importlib.import_module("kernels.model_path_models"), "SIZES", SIZES)
        patch.setattr(made, "CASES", CASES)
        patch.setattr(made, "COUNTED", 24)
        patch.setattr(made, "TIMED", TIMED)
        model_steps.loaded.cache_clear()
        yield made
        model_steps.loaded.cache_clear()


@pytest.fixture(scope="module")
def machine() -> Machine:
    facts = {"driver": None, "sm_count": 1, "l2_bytes": 1, "memory_bytes": 1, "power_limit_w": None}
    names = iter(["none", *TIMED[:-1]] * 9)

    def launched(run: Callable[[], object]) -> dict[str, Any]:
        run()
        return {"kernels": 6, "copies": 2, "names": dict(NAMES.get(next(names), {"gemm": 4}))}

    return Machine(
        timer=Timer(),
        device="cpu",
        facts=facts | {"name": "Made up"},
        versions=dict.fromkeys(("triton", "cuda", "ptxas", "liger", "transformers"))
        | {"python": "3.12", "torch": "2.11"},
        ceilings=lambda: {"copy_gb_s": 1.0, "read_gb_s": 1.0, "matmul_tflop_s": 1.0},
        clocks=clocks,
        copy_of=lambda _bytes: lambda: None,
        traffic=lambda _wanted: [],
        launches=None,
        peak=lambda _run: 1234,
        launched=launched,
    )


@pytest.fixture(scope="module")
def result(
    tmp_path_factory: pytest.TempPathFactory, module: ModuleType, machine: Machine
) -> dict[str, Any]:
    """What the whole job wrote, valid by the schema."""
    folder = tmp_path_factory.mktemp("results")
    assert run("model_path", module, machine, Order(folder, commit="c" * 40)) == []
    return read(folder / PATH)


def rows_of(result: dict[str, Any], kind: str, name: str) -> list[dict[str, Any]]:
    return [row for row in result[kind] if row["implementation"] == name]


def test_every_step_is_timed_with_its_peak_and_the_kernel_that_ran(result: dict[str, Any]) -> None:
    assert [row["implementation"] for row in result["rows"]] == list(TIMED) * len(CASES)
    ours = rows_of(result, "rows", "ours")
    assert [(row["pass"], row["shape"]) for row in ours] == CASES
    assert all(row["us"] == [100.0] * 3 and row["peak_bytes"] == 1234 for row in result["rows"])
    prompts = ["flash_attention_kernel"] * 2
    expected = [*prompts, "flash_decode_kernel", "flash_attention_kernel"]
    assert [row["path"]["kernel"] for row in ours] == expected
    backward = [row["gradients_path"]["kernel"] for row in ours if "gradients_path" in row]
    assert backward == ["key_gradients_kernel"]
    assert result["counters"] == "not counted"


def test_only_decoding_is_replayed_and_only_fused_attention_timed_alone(
    result: dict[str, Any],
) -> None:
    rows = result["rows"]
    replayed = {(row["pass"], row["implementation"]) for row in rows if "graph_us" in row}
    assert replayed == {("decode", name) for name in ("ours", "sdpa-flash", "none")}
    assert {row["implementation"] for row in rows if "alone_us" in row} == {"ours", "sdpa-flash"}


def test_outputs_are_held_against_float32_and_the_ordinary_error(result: dict[str, Any]) -> None:
    exact = result["exactness"]
    outputs = {(row["pass"] == "train", row["output"]) for row in exact}
    assert outputs == {(False, "logits")} | {(True, f"d{x}_proj.weight") for x in "qkvo"}
    assert all(row["passed"] for row in exact)
    assert {row["implementation"] for row in exact} == {"ours", "sdpa-flash", "eager"}
    eager = rows_of(result, "exactness", "eager")[0]
    assert eager["error"] == eager["eager_error"]
    assert eager["tolerance"] > 2 * eager["error"] > 0


def test_what_attention_launches_is_what_the_rest_does_not(result: dict[str, Any]) -> None:
    launches = result["launches"]
    assert [row["implementation"] for row in launches[:4]] == ["none", *TIMED[:-1]]
    assert rows_of(result, "launches", "ours")[0]["attention"] == {"gemm": 1, "mine": 1}
    assert rows_of(result, "launches", "none")[0]["attention"] == {}
    assert len(launches) == 3 * 4  # at one length


def test_an_attention_that_is_wrong_gets_no_time(
    module: ModuleType, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    interface = importlib.import_module("kernels.model_path_attention")
    real = interface.flash_attention

    def wrong(*tensors: Any, **options: Any) -> Any:
        out, lse = real(*tensors, **options)
        return out * 1.5, lse

    monkeypatch.setattr(interface, "flash_attention", wrong)
    (_, _, step), *_ = model_steps.steps("model_path", module, machine, False)
    rows = step()["rows"]
    assert rows[0]["error"] == "not exact enough: logits"
    assert "us" not in rows[0]
    assert rows[1]["us"] == [100.0] * 3


def test_where_memory_ends_the_row_says_so_and_the_others_go_on(
    module: ModuleType, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.attention

    @contextlib.contextmanager
    def small(model: Any, name: str) -> Iterator[None]:
        if name == "eager":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
        with real(model, name):
            yield

    monkeypatch.setattr(module, "attention", small)
    (_, _, step), *_ = model_steps.steps("model_path", module, machine, False)
    record = step()
    errors = {row["implementation"]: row.get("error") for row in record["rows"]}
    assert errors == dict.fromkeys(TIMED) | {"eager": "out of memory"}
    # then the library's kernel says which error is ordinary
    flash = next(r for r in record["exactness"] if r["implementation"] == "sdpa-flash")
    assert flash["eager_error"] == flash["error"]


def test_a_case_without_a_reference_is_an_error_for_all(
    module: ModuleType, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(module, "step_of", fail)
    (_, _, step), *_ = model_steps.steps("model_path", module, machine, False)
    assert [row["error"] for row in step()["rows"]] == ["out of memory"] * len(TIMED)


def test_a_quick_run_takes_the_length_at_which_launches_are_counted(
    module: ModuleType, machine: Machine
) -> None:
    quick = [name for name, _, _ in model_steps.steps("model_path", module, machine, True)]
    whole = [name for name, _, _ in model_steps.steps("model_path", module, machine, False)]
    assert [name.split()[0] for name in quick] == ["time"] * 3 + ["count"] * 3
    assert [name for name in whole if name not in quick] == [whole[0]]


def test_nothing_is_counted_where_there_is_no_profiler(
    module: ModuleType, machine: Machine
) -> None:
    without = machine._replace(launched=None)
    names = [name for name, _, _ in model_steps.steps("model_path", module, without, False)]
    assert [name.split()[0] for name in names] == ["time"] * 4
