"""Launch a kernel again without asking which of its compiled forms the arguments need.

Triton looks at every argument of every launch: its type, whether 16 divides it, whether it is 1.
That is a part of a launch, which takes longer than a short kernel. Where the caller knows what
decides, one look is enough.
"""

from collections.abc import Hashable
from typing import Any

import torch

_launched: dict[tuple[Any, Hashable], Any] = {}


# --8<-- [start:launch]
def launch(kernel: Any, programs: int, key: Hashable, *arguments: Any, **options: Any) -> None:
    """Do `kernel[(programs,)](*arguments, **options)`.

    Parameters
    ----------
    key : what decides how these arguments are compiled: device and data types, constants, options,
        whether 16 divides a pointer, and the values of all integers that the kernel specializes on
    """
    compiled = _launched.get((kernel, key))
    if compiled is not None:
        compiled[programs, 1, 1](*arguments)
        return
    compiled = kernel[(programs,)](*arguments, **options)
    if hasattr(compiled, "__getitem__"):  # not of the interpreter, nor still being compiled
        _launched[kernel, key] = compiled


def starts_fit(*tensors: torch.Tensor) -> tuple[bool, ...]:
    """Whether 16 divides the address of each, for a key."""
    return tuple(x.data_ptr() % 16 == 0 for x in tensors)


# --8<-- [end:launch]
