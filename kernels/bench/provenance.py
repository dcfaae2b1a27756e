"""Where a result comes from: commit, versions and facts of the device.

A machine that measures may hold a bare copy of the tree. Then the commit is what the command line
says, and the source digest is what binds the result to the code.
"""

import importlib.metadata
import platform
import re
import shutil
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = "clocks.sm,power.draw,temperature.gpu,clocks_event_reasons.active"
PERIOD_MS = 200


def commit(given: str | None, root: Path = ROOT) -> str:
    """Return the commit that was passed in, else the one that git knows, else `unknown`."""
    return given or _output(["git", "-C", str(root), "rev-parse", "HEAD"]) or "unknown"


def dirty(root: Path = ROOT) -> bool | None:
    """Return whether code differs from the commit, or None where there is no git history."""
    if _output(["git", "-C", str(root), "rev-parse", "HEAD"]) is None:
        return None
    code = ["*.py", ":!tests"]
    return bool(_output(["git", "-C", str(root), "status", "--porcelain", "--", *code]))


def versions() -> dict[str, str | None]:
    """Return the versions that can change a time or a rounding."""
    import torch

    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "triton": _package("triton"),
        "cuda": torch.version.cuda,
        "ptxas": ptxas(),
        "liger": _package("liger-kernel"),
        "transformers": _package("transformers"),
    }


def ptxas() -> str | None:
    """Return the version of the assembler that triton uses, or None where it does not say."""
    try:
        from triton import knobs

        return str(knobs.nvidia.ptxas.version)
    except Exception:  # no triton, no such knob, no such program: a version is missing, no more
        return None


def device_facts() -> dict[str, Any]:
    """Return name, sizes and limits of the CUDA device in use."""
    import torch

    facts = torch.cuda.get_device_properties(torch.cuda.current_device())
    asked = _query("driver_version,power.limit")
    return {
        "name": facts.name,
        "driver": asked[0] if asked else None,
        "sm_count": facts.multi_processor_count,
        "l2_bytes": facts.L2_cache_size,
        "memory_bytes": facts.total_memory,
        "power_limit_w": _number(asked[1]) if asked else None,
    }


class Clocks:
    """Samples clock, power, temperature and throttle reasons while the block runs."""

    def __enter__(self) -> "Clocks":
        self.child: subprocess.Popen[str] | None = None
        if program := shutil.which("nvidia-smi"):
            self.child = subprocess.Popen(
                [program, f"--query-gpu={SAMPLES}", "--format=csv,noheader,nounits",
                 f"--loop-ms={PERIOD_MS}", *_index()],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        text = ""
        if self.child:
            self.child.terminate()
            text = self.child.communicate()[0]
        self.observed = clocks_of(text)


def clocks_of(text: str) -> dict[str, Any]:
    """Return minimum and median of the samples, or nulls with the reason."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    good = [row for row in rows if len(row) == 4 and _number(row[0]) is not None]
    if not good:
        reason = "nvidia-smi gave no samples"
        return {"sm_mhz": None, "power_w": None, "temperature_c": None, "throttle_reasons": None,
                "reason": reason}  # fmt: skip
    observed: dict[str, Any] = {}
    for column, name in enumerate(("sm_mhz", "power_w", "temperature_c")):
        values = [value for row in good if (value := _number(row[column])) is not None]
        observed[name] = {"min": min(values), "median": median(values), "max": max(values)} if values else None  # fmt: skip  # noqa: E501
    observed["throttle_reasons"] = sorted({row[3] for row in good})
    return observed


def _query(fields: str) -> list[str] | None:
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", *_index()]
    line = _output(command)
    return [cell.strip() for cell in line.split(",")] if line else None


def _index() -> list[str]:
    """The device in use as nvidia-smi counts it: by its UUID, which no variable renumbers."""
    try:
        import torch

        return [f"--id=GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"]
    except Exception:  # an older torch does not know the UUID; then the first device it is
        return ["--id=0"]


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None


def _package(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
