"""Matrix product against float64: odd sizes, strides, tile orders, refusals and byte counts."""

import re
from typing import Any

import pytest
import torch

from kernels import matmul as module
from kernels.matmul import CONFIGS, POINTERS, SHAPES, config, inputs, matmul, reference, work
from kernels.matmul_tiles import operand

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA GPU")
# Triton's interpreter multiplies bfloat16 wrongly.
DTYPES = [torch.float16, pytest.param(torch.bfloat16, marks=needs_gpu)]


def normal(*size: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator).to(DEVICE, torch.float16)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES["test"], ids=lambda s: "-".join(map(str, s.values())))
def test_is_as_exact_as_eager(
    shape: dict[str, int], dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(shape, dtype, DEVICE)
    found = matmul(**arguments)
    assert found.dtype == dtype
    assert_as_exact_as_eager(found, torch.matmul(*arguments.values()), reference(**arguments))


@pytest.mark.parametrize("tiles", [*CONFIGS.values(), (16, 16, 16, 3, 4, 2), (32, 16, 32, 1, 4, 3)])
def test_every_configuration_computes_the_same(
    tiles: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, assert_as_exact_as_eager: Any
) -> None:
    monkeypatch.setattr(module, "CONFIGS", {0: tiles})
    a, b = normal(200, 136), normal(136, 264, seed=2)
    assert_as_exact_as_eager(matmul(a, b), a @ b, reference(a, b))


def test_one_program_does_tile_after_tile(
    monkeypatch: pytest.MonkeyPatch, assert_as_exact_as_eager: Any
) -> None:
    monkeypatch.setattr(module, "programs_for", lambda *_: 3)
    a, b = normal(200, 72), normal(72, 264, seed=2)
    assert_as_exact_as_eager(matmul(a, b), a @ b, reference(a, b))


LAYOUTS = {
    "plain": lambda m, n, seed: normal(m, n, seed=seed),
    "transposed": lambda m, n, seed: normal(n, m, seed=seed).T,
    "every-second": lambda m, n, seed: normal(m, 2 * n, seed=seed)[:, ::2],
    "sliced": lambda m, n, seed: normal(m + 8, n + 16, seed=seed)[8:, 8:-8],
    "misaligned": lambda m, n, seed: normal(m, n + 3, seed=seed)[:, 1:-2],
    "shifted": lambda m, n, seed: normal(m, n + 8, seed=seed)[:, 1:-7],
    "overlapping": lambda m, n, seed: normal(8 * m + n, 1, seed=seed).as_strided((m, n), (8, 1)),
    "one-row": lambda m, n, seed: normal(1, n, seed=seed).expand(m, n),
    "one-column": lambda m, n, seed: normal(m, 1, seed=seed).expand(m, n),
}


@pytest.mark.parametrize("b_layout", LAYOUTS)
@pytest.mark.parametrize("a_layout", LAYOUTS)
def test_strides_change_where_the_numbers_lie_and_not_the_result(
    a_layout: str, b_layout: str, assert_as_exact_as_eager: Any
) -> None:
    a, b = LAYOUTS[a_layout](72, 40, 1), LAYOUTS[b_layout](40, 88, 2)
    assert_as_exact_as_eager(matmul(a, b), a @ b, reference(a, b))


@pytest.mark.parametrize(
    ("layout", "fetched", "flipped"),
    [
        ("plain", True, False),
        ("transposed", True, True),
        ("sliced", True, False),
        ("every-second", False, False),
        ("misaligned", False, False),
        ("shifted", False, False),
        ("overlapping", False, False),
        ("one-row", False, False),
        ("one-column", False, False),
    ],
)
def test_tma_fetches_what_it_can(layout: str, fetched: bool, flipped: bool) -> None:
    tiles, transpose = operand(LAYOUTS[layout](64, 64, 1), 16, 16)
    assert (tiles is not None, transpose) == (fetched, flipped)


@pytest.mark.parametrize(("M", "N", "K"), [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty_inputs_give_empty_or_zero_outputs(M: int, N: int, K: int) -> None:
    found = matmul(normal(M, K), normal(K, N))
    assert found.shape == (M, N)
    assert not found.any()


def test_large_partial_sums_are_held_in_float32() -> None:
    a = torch.full((8, 64), 200.0, dtype=torch.float16, device=DEVICE)
    b = torch.full((64, 8), 200.0, dtype=torch.float16, device=DEVICE)
    b[32:] *= -1  # halfway the sum is 1.28e6, beyond float16
    assert torch.equal(matmul(a, b), torch.zeros(8, 8, dtype=torch.float16, device=DEVICE))


@pytest.mark.parametrize(
    ("M", "N", "tiles"), [(4096, 4096, 256), (2048, 1024, 128), (64, 8192, 0), (1, 1, 0)]
)
def test_tiles_are_as_large_as_their_number_allows(M: int, N: int, tiles: int) -> None:
    assert config(M, N, torch.device("cpu")) == CONFIGS[tiles]


HALF = torch.zeros(4, 8, dtype=torch.float16)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (HALF[0], HALF.T, "a has 1 dimensions; allowed: 2"),
        (HALF, HALF.T[None], "b has 3 dimensions; allowed: 2"),
        (HALF.float(), HALF.T, "a is torch.float32; allowed: torch.float16, torch.bfloat16"),
        (HALF, HALF.T.bfloat16(), "b is torch.bfloat16 on cpu; allowed: as a, torch.float16 on"),
        (HALF.clone().requires_grad_(), HALF.T, "a requires a gradient; allowed: none, or under "),
        (HALF, HALF, "b has 4 rows; allowed: 8, the columns of a"),
        (HALF[:1].expand(2**31, 8), HALF.T, "a is (2147483648, 8); allowed: sizes up to 21474"),
        (HALF, HALF[:1].T.expand(8, 2**31), "b is (8, 2147483648); allowed: sizes up to 21474"),
    ],
)
def test_what_it_cannot_do_is_refused(a: torch.Tensor, b: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        matmul(a, b)


def test_work_counts_every_tile_that_is_read_again() -> None:
    counted = work({"M": 4096, "N": 4096, "K": 4096}, 2)
    assert counted == (3 * 2**25, (16 + 32 + 1) * 2**25, 2 * 4096**3)
    BLOCK_M, BLOCK_N = POINTERS[:2]
    odd = work({"M": BLOCK_M + 1, "N": BLOCK_N + 1, "K": 3}, 2)
    assert odd.issued_bytes == 2 * (2 * 3 * (BLOCK_M + 1 + BLOCK_N + 1) + 65 * 65)
    with pytest.raises(ValueError, match="passes is 'backward'; allowed: 'forward'"):
        work({"M": 1, "N": 1, "K": 1}, 2, "backward")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("flipped", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("size", [1000, 2048, 4096, 5000])
@needs_gpu
def test_more_tiles_than_programs_are_all_done(
    size: int, flipped: tuple[bool, bool], dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    tensors = inputs({"M": size, "N": size, "K": size}, dtype, DEVICE).values()
    a, b = (x.T if flip else x for x, flip in zip(tensors, flipped, strict=True))
    assert_as_exact_as_eager(matmul(a, b), a @ b, reference(a, b))


@pytest.mark.parametrize("columns", [64, 65])
@needs_gpu
def test_offsets_beyond_32_bits_reach_the_right_row(columns: int) -> None:
    a = torch.zeros(2**31 // columns + 1, columns, dtype=torch.float16, device=DEVICE)
    a[-2:] = normal(2, columns)
    b = normal(columns, 40)
    assert torch.allclose(matmul(a, b)[-2:], matmul(a[-2:], b), atol=2e-2)
