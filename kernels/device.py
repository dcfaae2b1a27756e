"""The device of a launch: Triton launches on the current one, and PyTorch is slow to answer.

What every launch asks is asked once.
"""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


# --8<-- [start:guard]
def on_its_device(launcher: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Make the device of the first argument the current one while the launcher runs.

    Else Triton would launch on another GPU, and on a stream that waits for nothing of this one.
    """
    first = next(iter(inspect.signature(launcher).parameters))

    @wraps(launcher)
    def launched(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        x: Any = args[0] if args else kwargs.get(first)
        if not getattr(x, "is_cuda", False) or x.device.index == torch.cuda.current_device():
            return launcher(*args, **kwargs)
        with torch.cuda.device(x.device):
            return launcher(*args, **kwargs)

    return launched


# --8<-- [end:guard]


def this_device() -> torch.device:
    """Return the current CUDA device, by its number, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


@cache
def generation(device: torch.device) -> int:
    """Return the major compute capability, 9 for Hopper; 0 where there is no CUDA."""
    return torch.cuda.get_device_capability(device)[0] if device.type == "cuda" else 0


@cache
def sm_count(device: torch.device) -> int:
    """Return the number of streaming multiprocessors; 1 where there is no CUDA."""
    if device.type != "cuda":
        return 1
    count: int = torch.cuda.get_device_properties(device).multi_processor_count
    return count


@cache
def shared_memory(device: torch.device) -> int:
    """Return the bytes of shared memory that a block may have; no limit where there is no CUDA."""
    if device.type != "cuda":
        return 2**31
    properties = torch.cuda.get_device_properties(device)
    limit: int = properties.shared_memory_per_block_optin
    return limit
