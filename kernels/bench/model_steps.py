"""The steps of the complete model path: every implementation gated and timed, launches counted.

Gated means: logits or gradients against a copy of the model in float32, on the very tokens that
are then timed. What attention costs follows from times alone, with and without it.
"""

import copy
import gc
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import torch

from kernels.bench.cases import Case
from kernels.bench.exactness import DTYPES, error
from kernels.bench.measure import SEED, Fields, Machine, describe
from kernels.bench.timing import Run, Timer, interleaved, quantiles

DTYPE = "bf16"
ALONE = ("ours", "sdpa-cudnn", "sdpa-flash")  # whose attention is timed by itself too
# `eager` takes a number from the host for its mask, which a capture forbids
AS_GRAPH = ("ours", "sdpa-cudnn", "sdpa-flash", "none")
Step = tuple[str, str, Callable[[], Fields]]  # what the journal knows it by, label, function


def steps(stem: str, module: ModuleType, machine: Machine, quick: bool) -> Iterator[Step]:
    """Yield what is to be done: all times first, since a profiler stays in its process."""
    cases = [Case(stem, phase, DTYPE, dict(shape)) for phase, shape in module.CASES]
    counted = [case for case in cases if case.shape["N"] == module.COUNTED]
    for case in counted if quick else cases:
        yield f"time {case.key}", case.label(), partial(measure, case, module, machine)
    for case in counted if machine.launched else []:
        label = f"launches of {case.label()}"
        yield f"count {case.key}", label, partial(count, case, module, machine)


def measure(case: Case, module: ModuleType, machine: Machine) -> Fields:
    """Gate and time every implementation of attention in one step; return the journal record."""
    exact: list[Fields] = []
    faults: dict[str, str] = {}
    facts: dict[str, Fields] = {name: {} for name in module.TIMED}
    release()
    try:
        model, step = _begin(case, module, machine)
        runs = _gated(case, module, model, step, exact, faults)
        for name, times in _timed(machine.timer, runs, faults).items():
            facts[name] = {"us": _spread(times), "repetitions": len(times)}
            facts[name] |= {"peak_bytes": machine.peak(runs[name])} if machine.peak else {}
        timed = {name: run for name, run in runs.items() if name not in faults}
        if case.direction == "decode":
            for name, times in _timed(machine.timer, _graphs(machine.timer, timed), {}).items():
                facts[name] |= {"graph_us": _spread(times)}
        seen = module.seen_by_attention(model, step)
        facts["ours"] |= {"path": module.kernel_of(*seen)._asdict()}
        backward = case.direction == "train"
        if backward:
            facts["ours"] |= {"gradients_path": module.kernel_of(*seen, True)._asdict()}
        names = [name for name in ALONE if name in timed]
        alone = {name: module.attention_alone(model, name, seen, backward) for name in names}
        graphs = _graphs(machine.timer, alone)  # else the host's time would be in short ones
        same = graphs if graphs.keys() == alone.keys() else alone
        for name, times in _timed(machine.timer, same, {}).items():
            facts[name] |= {"alone_us": _spread(times)}
    except Exception as fault:  # no model, no reference: then there is no case
        faults = dict.fromkeys(module.TIMED, describe(fault)) | faults
    rows = []
    for name in module.TIMED:
        row = {"error": faults[name]} if name in faults else facts[name]
        rows.append({"implementation": name, **case.fields(), **row})
    return {"step": f"time {case.key}", "exactness": exact, "rows": rows}


def count(case: Case, module: ModuleType, machine: Machine) -> Fields:
    """Count what every implementation launches in one step; return the journal record."""
    assert machine.launched is not None
    rows: list[Fields] = []
    rest: Mapping[str, int] = {}
    release()
    model, step = _begin(case, module, machine)
    for name in sorted(module.TIMED, key="none".__ne__):  # first what is not attention's
        row: Fields = {"implementation": name, **case.fields()}
        try:
            run = partial(_by, module, model, name, step)
            run()
            found = machine.launched(run)
            names = found.pop("names")
            rest = names if name == "none" else rest
            more = {kernel: n - rest.get(kernel, 0) for kernel, n in names.items()}
            row |= found | {"attention": {kernel: n for kernel, n in more.items() if n > 0}}
        except Exception as fault:
            row |= {"error": describe(fault)}
        release()
        rows.append(row)
    return {"step": f"count {case.key}", "launches": rows}


@lru_cache(maxsize=1)  # the next model takes the place of the last
def loaded(module: ModuleType, name: str, dtype: torch.dtype, device: str) -> Any:
    return module.build(name, dtype, device, SEED)


def _begin(case: Case, module: ModuleType, machine: Machine) -> tuple[Any, Any]:
    """Return the model of a case and the step that is measured, whatever the attention."""
    name = next(name for name, size in case.shape.items() if size is True)
    model = loaded(module, name, DTYPES[case.dtype], machine.device)
    model.zero_grad(set_to_none=True)
    return model, _step(case, module, model)


def _step(case: Case, module: ModuleType, model: Any) -> Any:
    return module.step_of(model, case.direction, case.shape["B"], case.shape["N"], SEED)


def _by(module: ModuleType, model: Any, name: str, step: Any) -> Any:
    """Do a step with one implementation of attention."""
    with module.attention(model, name):
        return step()


def _gated(
    case: Case, module: ModuleType, model: Any, step: Any, exact: list[Fields],
    faults: dict[str, str],
) -> dict[str, Run]:  # fmt: skip
    """Return a run for each implementation that is exact enough; the rest goes to `faults`."""
    expected = _reference(case, module, model)
    runs: dict[str, Run] = {name: partial(_by, module, model, name, step) for name in module.TIMED}
    errors: dict[str, dict[str, float | None]] = {}
    for name in runs:
        try:
            outputs = _by(module, model, name, step)
            errors[name] = {output: error(x, expected[output]) for output, x in outputs.items()}
            del outputs
        except Exception as fault:
            faults[name] = describe(fault)
        release()
    errors.pop("none", None)
    ordinary = errors.get("eager") or errors.get("sdpa-flash") or {}
    for name, found in errors.items():
        rows = [_verdict(case, name, output, found, ordinary, expected) for output in found]
        exact += rows
        if failed := [row["output"] for row in rows if not row["passed"]]:
            faults[name] = f"not exact enough: {', '.join(failed)}"
    return {name: run for name, run in runs.items() if name not in faults}


def _reference(case: Case, module: ModuleType, model: Any) -> dict[str, torch.Tensor]:
    """Return what a step gives in float32, weights and tokens being the same."""
    exact = copy.deepcopy(model).float()
    outputs = _by(module, exact, "exact", _step(case, module, exact))
    return {name: output.detach().clone() for name, output in outputs.items()}


def _verdict(
    case: Case, name: str, output: str, found: Mapping[str, float | None],
    ordinary: Mapping[str, float | None], expected: Mapping[str, torch.Tensor],
) -> Fields:  # fmt: skip
    """Return a row of exactness: at most twice the ordinary error, and one ulp."""
    ulp = torch.finfo(DTYPES[case.dtype]).eps * float(expected[output].abs().max())
    tolerance = 2 * (ordinary.get(output) or 0.0) + ulp
    seen = found[output]
    row = {"implementation": name, **case.fields(), "output": output, "error": seen}
    row |= {"eager_error": ordinary.get(output), "tolerance": tolerance}
    row |= {"passed": seen is not None and seen <= tolerance}
    return row | ({"reason": "not finite where the reference is"} if seen is None else {})


def _timed(timer: Timer, runs: Mapping[str, Run], faults: dict[str, str]) -> dict[str, list[float]]:
    times = {}
    for name, taken in interleaved(timer, runs).items():
        if isinstance(taken, Exception):
            faults[name] = describe(taken)
        else:
            times[name] = taken
    return times


def _graphs(timer: Timer, runs: Mapping[str, Run]) -> dict[str, Run]:
    """Return replays, which launch a whole step at once; what cannot be captured is left out."""
    graphs = {}
    for name in [name for name in AS_GRAPH if name in runs]:
        try:
            runs[name]()  # nothing may be compiled or planned during the capture
            graphs[name] = timer.graph(runs[name])
        except Exception:  # its row then has the time of single launches alone
            continue
    return graphs


def _spread(times: list[float]) -> list[float]:
    return [round(us, 3) for us in quantiles(times)]


def release() -> None:
    """Give back the memory of what nobody holds any more, an exception's frames included."""
    gc.collect()
    torch.cuda.empty_cache()
