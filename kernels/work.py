"""What one call of a kernel has to do, counted and not measured."""

from typing import NamedTuple


class Work(NamedTuple):
    """Bytes and FLOP of one call."""

    model_bytes: int  # compulsory: each input read once, each output written once
    issued_bytes: int  # what the kernel's own loads and stores ask for
    flops: int
