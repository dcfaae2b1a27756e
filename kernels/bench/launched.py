"""What one step allocated and launched: peak memory, kernels by name, and those that only copy.

Names and counts come from here, times never do. The profiler stays in a process once it has been
used, so a job profiles after all that it times.
"""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from kernels.bench.timing import FLUSH_BYTES, Run

# PyTorch's copies between layouts and data types, its concatenation, and copies by the driver
COPY = re.compile(r"copy_kernel|CatArrayBatchedCopy|^Memcpy DtoD")
TEMPLATE = re.compile(r"<[^<>]*>|\([^()]*\)")


class UnseenError(RuntimeError):
    """The profiler saw no kernel. The message says so."""


def launched(run: Run) -> dict[str, Any]:
    """Run once under the profiler and return what `read` makes of its trace."""
    import torch

    cuda: Any = torch.cuda
    cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        run()
        cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        return read(trace.read_text("utf-8", "replace"))


def peak_bytes(run: Run) -> int:
    """Return the most memory that was allocated at a time during a run, the timer's left out."""
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - FLUSH_BYTES


def read(trace: str) -> dict[str, Any]:
    """Return the number of kernels and of copies, and how often each short name was launched.

    Parameters
    ----------
    trace : what the profiler exports, JSON with an event a launch: its category is `kernel`, or
        `gpu_memcpy` for a copy by the driver.

    Raises
    ------
    UnseenError
        If there is no kernel in it.
    """
    events = [event for event in json.loads(trace)["traceEvents"] if event.get("ph") == "X"]
    kernels = [event["name"] for event in events if event.get("cat") == "kernel"]
    if not kernels:
        raise UnseenError("the profiler saw no kernel")
    driver = [event["name"] for event in events if event.get("cat") == "gpu_memcpy"]
    names: dict[str, int] = {}
    for name in map(short, kernels):
        names[name] = names.get(name, 0) + 1
    copies = sum(COPY.search(name) is not None for name in (*kernels, *driver))
    return {"kernels": len(kernels), "copies": copies, "names": dict(sorted(names.items()))}


def short(name: str) -> str:
    """Return a kernel's name without return type, namespaces' arguments and template arguments."""
    while name != (bare := TEMPLATE.sub("", name)):
        name = bare
    return name.strip().removeprefix("void ").strip()
