"""One case of one kernel: every implementation gated and timed, or its traffic counted."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from statistics import median
from types import ModuleType
from typing import Any, NamedTuple

import torch

from kernels.bench import cases, counters, exactness, peers
from kernels.bench.cases import Case
from kernels.bench.rates import impossible
from kernels.bench.timing import Run, Timer, interleaved, quantiles

SEED = 0
FIRST_RUNS = 3  # that tell how long the GPU takes, roughly
BESIDE_A_COPY = ("softmax", "rms_norm", "flash_decode")  # a copy of the same bytes is timed too
ITEMSIZE = {"bf16": 2, "fp16": 2, "fp32": 4}
Fields = dict[str, Any]


class Machine(NamedTuple):
    """What the job needs from the device; tests give a made-up one."""

    timer: Timer
    device: str  # as torch names it
    facts: Fields
    versions: Mapping[str, str | None]
    ceilings: Callable[[], Fields]
    clocks: Callable[[], AbstractContextManager[Any]]
    copy_of: Callable[[int], Run]
    traffic: Callable[[list[tuple[str, Case]]], list[counters.Traffic | str]]
    launches: Callable[[ModuleType], list[Fields]] | None
    peak: Callable[[Run], int] | None = None
    launched: Callable[[Run], Fields] | None = None


def measure(case: Case, module: ModuleType, machine: Machine) -> Fields:
    """Gate and time every implementation of one case, and return its journal record."""
    names = peers.names(case.stem, case.direction, case.dtype)
    paths: dict[str, Fields] = {}
    exact: list[Fields] = []
    faults: dict[str, str] = {}
    times: dict[str, list[float]] = {}
    by_graph: set[str] = set()
    try:
        runs = _gated(case, module, machine, names, exact, faults, paths)
        if case.stem in BESIDE_A_COPY and runs:
            runs["copy"] = machine.copy_of(work_of("copy", case, module).model_bytes)
        if _host_bound(machine.timer, runs, faults):
            # In a graph a copy would go through a slower engine; its launch is short as it is.
            graphs = _graphs(machine.timer, {n: run for n, run in runs.items() if n != "copy"})
            runs |= graphs
            by_graph = set(graphs)
        times = _settle(interleaved(machine.timer, runs), faults)
    except Exception as fault:  # no inputs, no reference: then there is no case
        faults = {name: describe(fault) for name in names} | faults
        times = {}
    finally:
        if machine.device == "cuda":
            torch.cuda.empty_cache()
    rows = []
    for name in (*names, *(["copy"] if "copy" in times else [])):
        row = _row(name, case, module, machine, times, faults, name in by_graph)
        rows.append(row | paths.get(name, {}))
    return {"step": f"time {case.key}", "exactness": exact, "rows": rows}


def _gated(
    case: Case,
    module: ModuleType,
    machine: Machine,
    names: tuple[str, ...],
    exact: list[Fields],
    faults: dict[str, str],
    paths: dict[str, Fields],
) -> dict[str, Run]:
    """Return a run for each implementation that passed the gate; the rest goes to `faults`."""
    inputs = inputs_of(case, module, machine.device)
    if hasattr(module, "chosen"):
        path = module.chosen(**inputs, gradients=case.direction == "backward")
        paths["ours"] = {"path": path._asdict()}
    gradients = gradients_of(case, module, inputs)
    expected = exactness.expectations(case, module, inputs, gradients)
    runs: dict[str, Run] = {}
    for name in names:
        try:
            call = peers.prepared(name, case.stem, module, inputs, case.direction, gradients)
            checked = exactness.check(case, name, call(), expected)
        except Exception as fault:
            faults[name] = describe(fault)
            continue
        exact += checked
        failed = [row["output"] for row in checked if not row["passed"]]
        if failed:
            faults[name] = f"not exact enough: {', '.join(failed)}"
        else:
            runs[name] = peers.ready(call)
    return runs


def _settle(
    outcome: Mapping[str, list[float] | Exception], faults: dict[str, str]
) -> dict[str, list[float]]:
    times = {}
    for name, taken in outcome.items():
        if isinstance(taken, Exception):
            faults[name] = describe(taken)
        else:
            times[name] = taken
    return times


def _host_bound(timer: Timer, runs: dict[str, Run], faults: dict[str, str]) -> bool:
    """Return whether one may wait for the host; what fails goes from runs to faults.

    What does wait takes about as long as the host, so only twice that is far enough.
    """
    bound = False
    for name, each in list(runs.items()):
        try:
            bound |= median(timer.batch(each, FIRST_RUNS)) < 2 * timer.host_us(each)
        except Exception as fault:
            faults[name] = describe(fault)
            del runs[name]
    return bound


def _graphs(timer: Timer, runs: dict[str, Run]) -> dict[str, Run]:
    """Return a replay for each run that can be captured; the others are launched each time."""
    graphs = {}
    for name, each in runs.items():
        try:
            graphs[name] = timer.graph(each)
        except Exception:  # many libraries synchronise, which a capture forbids
            continue
    return graphs


def _row(
    name: str,
    case: Case,
    module: ModuleType,
    machine: Machine,
    times: Mapping[str, list[float]],
    faults: Mapping[str, str],
    graph: bool,
) -> Fields:
    work = work_of(name, case, module)
    row: Fields = {"implementation": name, **case.fields(), **work._asdict()}
    if name != "ours":  # only known for loops that stand in this project
        row["issued_bytes"] = None
    if name in faults or name not in times:
        return row | {"error": faults.get(name, "not timed")}
    spread = [round(us, 3) for us in quantiles(times[name])]
    least = module.work(case.shape, ITEMSIZE[case.dtype], case.direction)
    flops = 0 if name == "copy" else least.flops
    if fault := impossible(machine.facts["name"], case.dtype, least.model_bytes, flops, spread[1]):
        return row | {"error": fault}
    return row | {"us": spread, "repetitions": len(times[name]), "graph": graph}


def count(case: Case, module: ModuleType, machine: Machine) -> Fields:
    """Count the traffic of one case, and return its journal record."""
    names = cases.COUNTED_NAMES.get(case.stem, ("ours",))
    if case.shape.get("causal"):  # three kernels with a mask have no model of their bytes
        names = tuple(name for name in names if name != "eager")
    counted, uncounted = [], []
    for name, traffic in zip(names, machine.traffic([(n, case) for n in names]), strict=True):
        if isinstance(traffic, str):
            uncounted.append({"implementation": name, **case.fields(), "reason": traffic})
        else:
            work = work_of(name, case, module)
            row = counters.row(name, case, work.model_bytes, traffic)
            counted.append(row | {"issued_bytes": work.issued_bytes if name == "ours" else None})
    return {"step": f"count {case.key}", "counted": counted, "uncounted": uncounted}


def work_of(name: str, case: Case, module: ModuleType) -> Any:
    """Return bytes and FLOP of one implementation.

    All have the operation's own, except unmasked eager attention, which writes the scores and has
    the bytes of three kernels.
    """
    source: Any = module
    whole = case.direction == "forward" and not case.shape.get("causal")
    if name == "eager" and case.stem == "flash_attention" and whole:
        from kernels import naive_attention as source
    return source.work(case.shape, ITEMSIZE[case.dtype], case.direction)


def inputs_of(case: Case, module: ModuleType, device: str) -> Fields:
    """Return the launcher's keyword arguments, random normal with the seed of every run."""
    made: Fields = module.inputs(case.shape, exactness.DTYPES[case.dtype], device, SEED)
    return made


def gradients_of(case: Case, module: ModuleType, inputs: Fields) -> tuple[torch.Tensor, ...] | None:  # noqa: ARG001
    """Return random gradients of the outputs, or None where only forward runs."""
    if case.direction == "forward":
        return None
    like = inputs[peers.input_names(case.stem)[0]]
    source = torch.Generator(like.device).manual_seed(SEED + 1)
    count = len(peers.WITH_GRADIENT.get(case.stem, ("out",)))
    sizes = {"device": like.device, "dtype": like.dtype, "generator": source}
    return tuple(torch.randn(like.shape, **sizes) for _ in range(count))


def describe(fault: Exception) -> str:
    """Return an exception in one line of a result."""
    if isinstance(fault, torch.OutOfMemoryError):
        return "out of memory"
    if isinstance(fault, peers.AbsentError):
        return str(fault)
    lines = str(fault).strip().splitlines()
    return f"{type(fault).__name__}: {lines[0][:200] if lines else 'no message'}"
