"""Which cases are measured: every bench shape of a kernel, in each data type and direction."""

import json
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

STEMS = ("softmax", "rms_norm", "matmul", "flash_attention", "flash_decode", "attention_ladder")
DTYPES = ("bf16", "fp16")
IN_ONE_DTYPE = ("attention_ladder",)  # whose steps are held against one another, in bf16
DIRECTIONS = {"rms_norm": ("forward", "backward"), "flash_attention": ("forward", "backward")}
QUICK = 3  # shapes of a quick run
COUNTED = 4  # shapes whose traffic is counted, where no list below names them
MODEL = "model_path"  # no kernel, but the steps of a model around one
JOBS = (*STEMS, MODEL)


def _attention(B: int, H: int, N: int, D: int, causal: bool = False) -> dict[str, Any]:
    return {"B": B, "H": H, "H_KV": H, "N_Q": N, "N_K": N, "D": D, "causal": causal}


# from one head, whose scores fit in L2, to tensors of which each is many times larger than it
COUNTED_SHAPES: dict[str, list[dict[str, Any]]] = {
    "attention_ladder": [
        _attention(8, 2048 // D, 4096, D, causal) for D in (64, 128) for causal in (False, True)
    ],
    "flash_attention": [
        _attention(1, 1, 4096, 64),
        _attention(4, 16, 4096, 64),
        _attention(1, 1, 16384, 64),
        _attention(8, 32, 8192, 128),
        _attention(4, 64, 8192, 128),
        _attention(4, 16, 8192, 128, causal=True),
    ],
}
LADDER = (
    "two-loops",
    "descriptors",
    "longest-first",
    "ring",
    "warpgroups",
    "overlap",
    "persistent",
)
TRIAL = "late-wait"  # the last step, changed: measured beside the ladder, and no step of it
LADDER_OURS = (*LADDER, TRIAL, "flash_attention")
COUNTED_NAMES = {
    "softmax": ("ours", "eager", "compile"),
    "rms_norm": ("ours", "eager", "compile"),
    "matmul": ("ours", "cublas"),
    "flash_attention": ("ours", "ours-triton", "eager", "sdpa-cudnn"),
    "flash_decode": ("ours", "sdpa-cudnn"),
    "attention_ladder": (*LADDER_OURS, "sdpa-cudnn"),
}


class Case(NamedTuple):
    stem: str
    direction: str  # forward or backward
    dtype: str
    shape: dict[str, Any]

    @property
    def key(self) -> str:
        return json.dumps([self.direction, self.dtype, sorted(self.shape.items())])

    def fields(self) -> dict[str, Any]:
        """The case as a row of a result file holds it."""
        return {"pass": self.direction, "dtype": self.dtype, "shape": self.shape}

    def label(self) -> str:
        sizes = (k if v is True else f"{k}{v}" for k, v in self.shape.items() if v is not False)
        return " ".join([self.stem, self.direction, self.dtype, *sizes])


def timed(stem: str, module: ModuleType, quick: bool = False) -> list[Case]:
    """Return the cases to time: the widest used data type first, forward before backward."""
    shapes = module.SHAPES["bench"][: QUICK if quick else None]
    return list(_cases(stem, shapes, DTYPES[: 1 if quick or stem in IN_ONE_DTYPE else None]))


def counted(stem: str, module: ModuleType, quick: bool = False) -> list[Case]:
    """Return the cases whose traffic is counted, forward, in the first data type.

    Without a list of its own a kernel's shapes are taken evenly by their bytes, the smallest and
    the largest included.
    """
    shapes = COUNTED_SHAPES.get(stem)
    if shapes is None:
        bench = module.SHAPES["bench"]
        ordered = sorted(bench, key=lambda shape: module.work(shape, 2).model_bytes)
        places = {round(i * (len(ordered) - 1) / (COUNTED - 1)) for i in range(COUNTED)}
        shapes = [ordered[place] for place in sorted(places)]
    return list(_cases(stem, shapes[: 1 if quick else None], DTYPES[:1], ("forward",)))


def _cases(
    stem: str,
    shapes: list[dict[str, Any]],
    dtypes: Iterable[str],
    directions: Iterable[str] | None = None,
) -> Iterator[Case]:
    every = DIRECTIONS.get(stem, ("forward",)) if directions is None else tuple(directions)
    for dtype in dtypes:
        for direction in every:
            for shape in shapes:
                yield Case(stem, direction, dtype, dict(shape))
