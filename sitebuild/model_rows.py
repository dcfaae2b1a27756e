"""The captured steps of the model path by model, phase and length, and what they say by Amdahl."""

from typing import NamedTuple

from kernels.bench.cases import MODEL
from sitebuild.kernel_results import Result, Row
from snippets.adoption import speedup_of_step

STEM = MODEL
MODELS = {"gpt2": "GPT-2-like", "llama": "Llama-like"}
PHASES = {"prefill": "prefill", "decode": "decoding", "train": "training step"}
RIVALS = ("sdpa-cudnn", "sdpa-flash")
Steps = dict[int, dict[str, Row]]  # by length, then by implementation, errors included


class Worth(NamedTuple):
    """What our kernel is worth to one step, beside what Amdahl's law expects of it."""

    share: float  # attention's, of the step with the best library kernel
    kernel: float  # how many times as fast our attention is by itself
    predicted: float  # from these two
    measured: float  # the step with the best library kernel over the step with ours
    most: float  # the step with the best library kernel over the step without attention


def by_step(result: Result) -> dict[tuple[str, str], Steps]:
    """Return the rows of each model and phase, short lengths first."""
    found: dict[tuple[str, str], Steps] = {}
    for row in sorted(result["rows"], key=length):
        steps = found.setdefault((model(row), row["pass"]), {})
        steps.setdefault(length(row), {})[row["implementation"]] = row
    order = [(name, phase) for name in MODELS for phase in PHASES]
    return {key: found[key] for key in order if key in found}


def model(row: Row) -> str:
    shape: dict[str, int] = row["shape"]
    return next(name for name, size in shape.items() if size is True)


def length(row: Row) -> int:
    return int(row["shape"]["N"])


def title(name: str, phase: str) -> str:
    return f"{MODELS[name]}, {PHASES[phase]}"


def tokens(row: Row) -> int:
    """Return the tokens of one step: those of the prompt, or one a sequence."""
    return int(row["shape"]["B"]) * (1 if row["pass"] == "decode" else length(row))


def rate(row: Row, us: float) -> float:
    """Return tokens a second at a time of one step."""
    return tokens(row) / us * 1e6


def best_rival(rows: dict[str, Row], clock: str = "us") -> Row | None:
    """Return the library's fastest row by this clock, `us` or `graph_us`."""
    timed = [rows[name] for name in RIVALS if clock in rows.get(name, {})]
    return min(timed, key=lambda row: float(row[clock][1]), default=None)


def clock_of(rows: dict[str, Row]) -> str:
    """Return `graph_us` where ours, a rival and the rest were replayed as graphs, else `us`.

    Launched one by one, short steps wait for the host, whatever the kernels do.
    """
    replayed = all("graph_us" in rows.get(name, {}) for name in ("ours", "none"))
    return "graph_us" if replayed and best_rival(rows, "graph_us") else "us"


def worth(rows: dict[str, Row]) -> Worth | None:
    """Return what our kernel is worth to this step, or None where a time is missing."""
    clock = clock_of(rows)
    best, ours, rest = best_rival(rows, clock), rows.get("ours", {}), rows.get("none", {})
    if best is None or clock not in ours or clock not in rest:
        return None
    if not ("alone_us" in ours and "alone_us" in best):
        return None
    share = max(0.0, 1 - rest[clock][1] / best[clock][1])
    kernel = best["alone_us"][1] / ours["alone_us"][1]
    return Worth(
        share,
        kernel,
        speedup_of_step(share, kernel),
        best[clock][1] / ours[clock][1],
        best[clock][1] / rest[clock][1],
    )


def no_slower(ours: Row, best: Row) -> bool:
    """Return whether ours is as fast, as far as the 20 and 80 % quantiles can tell."""
    return bool(ours["us"][0] <= best["us"][2])
