"""What every launch asks of its device, asked once: PyTorch takes microseconds to answer."""

from functools import cache

import torch


def this_device() -> torch.device:
    """Return the current CUDA device, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


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
