"""One kernel through the whole job: exactness, then time, then traffic, then one result file.

Each finished case goes to the journal at once; `run` may be stopped anywhere and called again. A
kernel whose result is complete is not measured again unless asked.
"""

import datetime
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import NamedTuple

from kernels.bench import cases, counters, model_steps, schema, store
from kernels.bench.digest import source_digest
from kernels.bench.measure import SEED, Fields, Machine, count, measure
from kernels.bench.progress import Progress
from kernels.bench.timing import method

FORMAT = 1


class Order(NamedTuple):
    """What the command line asked for."""

    out: Path
    resume_from: tuple[Path, ...] = ()
    quick: bool = False
    commit: str = "unknown"
    dirty: bool | None = None
    deadline: float = float("inf")  # of time.monotonic()
    publish: bool = False  # write a result even if cases are left
    again: bool = False  # measure what is complete anew


def run(stem: str, module: ModuleType, machine: Machine, order: Order) -> list[str]:
    """Measure what is not measured yet and write the result when nothing is left.

    Returns
    -------
    Labels of what is left; empty when the result was written.
    """
    key = {
        "digest": source_digest(f"kernels.{stem}"),
        "versions": dict(machine.versions),
        "device": machine.facts,
        "method": method(),
        "quick": order.quick,
    }
    path = store.result_path(order.out, stem, machine.facts["name"])
    journal = store.Journal(path, key, order.resume_from)
    if not (order.again or journal.records) and complete(path, key, order):
        print(f"{path.name} is complete for this code and machine; --again measures it anew")
        return []
    steps = _steps(stem, module, machine, order, journal)
    total = len(_steps(stem, module, machine, order, None))
    progress = Progress(total, total - len(steps))
    refused: list[str] = []
    session = None
    for done, (label, step) in enumerate(steps):
        if time.monotonic() >= order.deadline:
            left = [label for label, _ in steps[done:]]
            if order.publish and journal.of("rows"):
                store.write(path, assemble(stem, journal, key, machine, order, refused, len(left)))
            progress.end(f"{stem}: {len(left)} of {total} steps are left")
            return left
        if session is None:
            session = len(journal.of("session"))
            progress.now(f"{stem} ceilings")
            journal.add({"session": {"date": _now(), "ceilings": machine.ceilings()}})
        progress.now(label)
        try:
            with machine.clocks() as clocks:
                record = step()
            observed = getattr(clocks, "observed", None)
            journal.add(record | {"in_session": session, "clocks": observed})
        except counters.RefusedError as fault:
            refused.append(str(fault))
        progress.finished()
    result = assemble(stem, journal, key, machine, order, refused, 0)
    if found := schema.faults(result):
        raise ValueError(f"{path.name} was not written: {found[0]}")
    store.write(path, result)
    journal.close()
    progress.end(f"{stem}: wrote {path.name}")
    return []


def complete(path: Path, key: Fields, order: Order) -> bool:
    """Whether a result holds all that this run would measure, by the same code and machine."""
    try:
        result = schema.read(path)
    except (OSError, schema.InvalidError):
        return False
    run = result["run"]
    return (
        not run["left"]
        and run["dirty"] in (False, order.dirty)
        and (order.quick or "--quick" not in run["command"])
        and run["source_digest"] == key["digest"]
        and all(run.get(name) == version for name, version in key["versions"].items())
        and result["device"] == key["device"]
        and result["method"] == key["method"] | {"seed": SEED}
    )


def _steps(
    stem: str, module: ModuleType, machine: Machine, order: Order, journal: store.Journal | None
) -> list[tuple[str, Callable[[], Fields]]]:
    """What is to be done, in order, without what the journal holds."""
    done = {record["step"] for record in journal.records if "step" in record} if journal else set()
    of_stem = model_steps.steps if stem == cases.MODEL else _kernel_steps
    every = of_stem(stem, module, machine, order.quick)
    return [(label, step) for name, label, step in every if name not in done]


def _kernel_steps(
    stem: str, module: ModuleType, machine: Machine, quick: bool
) -> Iterator[model_steps.Step]:
    for case in cases.timed(stem, module, quick):
        yield f"time {case.key}", case.label(), partial(measure, case, module, machine)
    for case in cases.counted(stem, module, quick):
        label = f"counters of {case.label()}"
        yield f"count {case.key}", label, partial(count, case, module, machine)
    if machine.launches and stem == "flash_attention":
        measured = machine.launches
        label, step = f"{stem} launches", {"step": "launches"}
        yield "launches", label, lambda: step | {"launches": measured(module)}


def assemble(
    stem: str,
    journal: store.Journal,
    key: Fields,
    machine: Machine,
    order: Order,
    refused: list[str],
    left: int,
) -> Fields:
    """Return the result file of all that the journal holds."""
    sessions = [dict(session) for session in journal.of("session")]
    for index, session in enumerate(sessions):
        observed = [r["clocks"] for r in journal.records if r.get("in_session") == index]
        session["clocks"] = joined_clocks([x for x in observed if x])
    rows = [
        row | {"session": record["in_session"]}
        for record in journal.records
        for row in record.get("rows", [])
    ]
    counted = [row for rows_ in journal.of("counted") for row in rows_]
    launches = [row for rows_ in journal.of("launches") for row in rows_]
    command = f"python -m kernels.bench {stem}{' --quick' if order.quick else ''}"
    return {
        "format": FORMAT,
        "kernel": stem,
        "run": {
            "date": sessions[-1]["date"] if sessions else _now(),
            "commit": order.commit,
            "dirty": order.dirty,
            "command": command,
            **machine.versions,
            "source_digest": key["digest"],
            "left": left,
        },
        "device": machine.facts,
        "method": method() | {"seed": SEED},
        "sessions": sessions,
        "exactness": [row for rows_ in journal.of("exactness") for row in rows_],
        "rows": rows,
        "counters": counted or (refused[0] if refused else "not counted"),
        "uncounted": [row for rows_ in journal.of("uncounted") for row in rows_],
        "launches": launches,
    }


def joined_clocks(observed: list[Fields]) -> Fields | None:
    """Join the clocks of several cases: least, median of medians, most, all reasons."""
    joined: Fields = {}
    for name in ("sm_mhz", "power_w", "temperature_c"):
        spans = [x[name] for x in observed if x.get(name)]
        if spans:
            joined[name] = {
                "min": min(s["min"] for s in spans),
                "median": median(s["median"] for s in spans),
                "max": max(s["max"] for s in spans),
            }
    if not joined:
        return None
    reasons = {reason for x in observed for reason in x.get("throttle_reasons") or []}
    return joined | {"throttle_reasons": sorted(reasons)}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
