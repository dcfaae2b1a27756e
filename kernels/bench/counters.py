"""Bytes and busy units as the hardware counted them: `ncu` around a child process, read back.

Profiling changes times, so nothing is timed here. A spin kernel marks where a case begins; all
kernels up to the next mark belong to it, whichever thread of the child launched them. `ncu`
empties the caches before each kernel.
"""

import csv
import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from kernels.bench.cases import Case

READ, WRITE, L2 = "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"
# Share of the kernel's clocks in which the tensor cores work; warpgroup products count as HMMA.
TENSOR = "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed"
XU = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed"  # the unit of the exponentials
UNITS = {READ: "byte", WRITE: "byte", L2: "byte", TENSOR: "%", XU: "%"}
MARK = "spin_kernel"  # what torch.cuda._sleep launches
ROOT = Path(__file__).resolve().parents[2]
TIME_LIMIT_S = 480.0


class Traffic(NamedTuple):
    dram_read: int  # bytes
    dram_write: int
    l2_bytes: int
    kernels: int
    tensor_percent: float | None  # of the clocks of the one kernel; None where there are several
    xu_percent: float | None


class RefusedError(RuntimeError):
    """Counters cannot be read here. The message says why."""


def command(program: str, log: Path, requests: Path, done: Path) -> list[str]:
    """Return the call of ncu; the device's clocks are left alone."""
    return [
        program, "--csv", "--page", "details", "--print-units", "base", "--log-file", str(log),
        "--clock-control", "none", "--profile-from-start", "off",
        "--target-processes", "application-only", "--metrics", ",".join(UNITS),
        sys.executable, "-m", "kernels.bench.counted", str(requests), str(done),
    ]  # fmt: skip


def count(
    wanted: list[tuple[str, Case]], time_limit_s: float = TIME_LIMIT_S
) -> list[Traffic | str]:
    """Count each (implementation, case) in one child process.

    Returns
    -------
    For each the bytes, or the reason why there are none.

    Raises
    ------
    RefusedError
        Where ncu does not exist, may not read counters, or ends before the first case.
    """
    program = shutil.which("ncu")
    if program is None:
        raise RefusedError("ncu is not installed")
    with tempfile.TemporaryDirectory() as folder:
        log, requests, done = (Path(folder) / n for n in ("log.csv", "requests.json", "done"))
        requests.write_text(json.dumps([[name, *case] for name, case in wanted]), "utf-8")
        try:
            child = subprocess.run(
                command(program, log, requests, done),
                cwd=ROOT, capture_output=True, text=True, timeout=time_limit_s,
            )  # fmt: skip
            said = child.stdout + child.stderr
        except subprocess.TimeoutExpired:
            said = f"==ERROR== stopped after {time_limit_s:.0f} s"
        table = log.read_text("utf-8", "replace") if log.exists() else ""
        outcomes = [json.loads(x) for x in done.read_text().splitlines()] if done.exists() else []
    groups = parse(table)
    if wanted and not any(groups):
        raise RefusedError(reason(table + "\n" + said))
    results: list[Traffic | str] = []
    for index in range(len(wanted)):
        failed = outcomes[index] if index < len(outcomes) else "the profiled process ended early"
        if failed or index >= len(groups) or not groups[index]:
            results.append(failed or "ncu recorded no kernel")
        else:
            results.append(total(groups[index]))
    return results


def parse(table: str) -> list[list[dict[str, float]]]:
    """Return, for each mark, the metrics of each kernel after it.

    Parameters
    ----------
    table : what `ncu --csv --page details --print-units base` writes: messages that begin with
        `==`, a header, then one line for each kernel and metric.
    """
    lines = [line for line in table.splitlines() if line.startswith('"')]
    groups: list[list[dict[str, float]]] = []
    last = None
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        name, launch = row["Kernel Name"], row["ID"]
        if launch != last:
            last = launch
            if MARK in name:
                groups.append([])
            elif groups:
                groups[-1].append({})
        if MARK in name or not groups:
            continue
        if unit := UNITS.get(row["Metric Name"]):
            if row["Metric Unit"] != unit:
                raise ValueError(f"ncu counted in {row['Metric Unit']!r}, not in {unit!r}")
            groups[-1][-1][row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return groups


def total(launches: list[dict[str, float]]) -> Traffic:
    """Add up the kernels of one case. Raises ValueError if one lacks a metric."""
    for metrics in launches:
        if missing := UNITS.keys() - metrics.keys():
            raise ValueError(f"ncu gave no {', '.join(sorted(missing))}")
    read, written, l2 = (round(sum(m[name] for m in launches)) for name in (READ, WRITE, L2))
    one = launches[0] if len(launches) == 1 else {}
    return Traffic(read, written, l2, len(launches), one.get(TENSOR), one.get(XU))


def reason(text: str) -> str:
    """Return the first complaint of ncu in one line."""
    complaints = [line for line in text.splitlines() if "==ERROR==" in line]
    if complaints:
        return complaints[0].split("==ERROR==")[1].strip()[:300]
    last = [line for line in text.splitlines() if line.strip()]
    return f"ncu recorded nothing: {last[-1].strip()[:200]}" if last else "ncu recorded nothing"


def row(name: str, case: Case, model_bytes: int, traffic: Traffic) -> dict[str, Any]:
    """Return a row of the result file."""
    fields = {"implementation": name, **case.fields(), "model_bytes": model_bytes}
    return fields | traffic._asdict()
