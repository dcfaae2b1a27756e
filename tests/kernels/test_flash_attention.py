"""Forward attention against float64: masks, shapes, strides, extremes, refusals and byte counts."""

import math
import re
from typing import Any

import pytest
import torch

from kernels import attention_launch, attention_reference
from kernels.attention_work import keys_visited, visible_pairs
from kernels.flash_attention import SHAPES, flash_attention, forward, inputs, reference, work
from kernels.flash_attention_work import queries_visited
from tests.kernels.compiling import compiled_attention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA GPU")
# Triton's interpreter multiplies bfloat16 wrongly.
DTYPES = [torch.float16, torch.float32, pytest.param(torch.bfloat16, marks=needs_gpu)]


def tensors(*sizes: int, dtype: torch.dtype = torch.float16, **options: Any) -> dict[str, Any]:
    """Arguments for sizes B, H, H_KV, N_Q, N_K, D."""
    return inputs(attention_reference.sizes(*sizes, **options), dtype, DEVICE)


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return (found.double() - exact).abs().max().item()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES["test"], ids=lambda s: "-".join(map(str, s.values())))
def test_out_and_lse_are_as_exact_as_eager(
    shape: dict[str, Any], dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(shape, dtype, DEVICE)
    found, ordinary = flash_attention(**arguments), attention_reference.eager(**arguments)
    exact = reference(**arguments)
    assert_as_exact_as_eager(found[0], ordinary[0], exact[0], arguments)
    assert_as_exact_as_eager(found[1], ordinary[1], exact[1], arguments)


@pytest.mark.parametrize("mask", ["none", "causal", "window"])
@pytest.mark.parametrize("D", [64, 80, 128])
def test_weights_and_queries_stay_while_a_product_reads_them(D: int, mask: str) -> None:
    config = attention_launch.config("forward", 2, D, torch.device("cpu"))
    found = compiled_attention("forward", 90, 2, D, config, mask)
    assert found["from_registers"] > D // 16  # the queries' alone are as many
    assert found["early"] == []


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES["test"], ids=lambda s: "-".join(map(str, s.values())))
def test_the_kernel_for_every_gpu_is_as_exact_where_a_faster_one_would_run(
    shape: dict[str, Any], dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(shape, dtype, DEVICE)
    ordinary, exact = attention_reference.eager(**arguments), reference(**arguments)
    q, causal, window = arguments["q"], shape["causal"], shape.get("window") or 0
    found = forward(q, arguments["k"], arguments["v"], causal, window, q.shape[3] ** -0.5, True)
    assert_as_exact_as_eager(found[0], ordinary[0], exact[0])
    assert_as_exact_as_eager(found[1], ordinary[1], exact[1])


@pytest.mark.parametrize("D", [16, 17, 32, 40, 64, 80, 96, 100, 128, 192, 255, 256])
def test_every_column_of_every_head_dim_counts(D: int, assert_as_exact_as_eager: Any) -> None:
    arguments = tensors(1, 2, 2, 70, 70, D)
    exact, ordinary = reference(**arguments), attention_reference.eager(**arguments)
    assert_as_exact_as_eager(flash_attention(**arguments)[0], ordinary[0], exact[0])


@pytest.mark.parametrize(
    ("N_Q", "N_K", "window", "counts"),
    [
        (2, 5, None, [4, 5]),
        (5, 2, None, [0, 0, 0, 1, 2]),
        (5, 5, 2, [1, 2, 2, 2, 2]),
        (3, 6, 1, [1, 1, 1]),
        (4, 2, 9, [0, 0, 1, 2]),
        (130, 300, 70, [70] * 130),
        (1, 129, 64, [64]),
        (257, 257, 65, [min(i + 1, 65) for i in range(257)]),
        (200, 137, 64, [max(0, min(i - 62, 64)) for i in range(200)]),
        (65, 64, None, range(65)),
        (128, 192, 128, [min(i + 65, 128) for i in range(128)]),
    ],
)
def test_each_query_sees_as_many_keys_as_the_convention_says(
    N_Q: int, N_K: int, window: int | None, counts: list[int]
) -> None:
    arguments = tensors(1, 1, 1, N_Q, N_K, 64, causal=True, window=window)
    arguments["q"].zero_()  # equal weights: the sum is the number of keys, out their mean
    arguments["v"].copy_(torch.arange(N_K, device=DEVICE)[:, None] / 8)
    out, lse = flash_attention(**arguments)
    expected = torch.tensor(list(counts), device=DEVICE).double()
    last = torch.arange(N_Q, device=DEVICE) + N_K - N_Q
    middle = torch.where(expected > 0, (last - (expected - 1) / 2) / 8, 0.0)
    assert torch.allclose(lse.double(), expected.log(), rtol=0, atol=1e-6)
    assert torch.allclose(out[0, 0].double(), middle[:, None].expand(-1, 64), rtol=2e-3, atol=0)


def test_queries_before_the_first_key_give_exactly_zero_and_lse_minus_infinity() -> None:
    out, lse = flash_attention(**tensors(2, 2, 1, 200, 70, 40, causal=True))
    assert torch.equal(out[:, :, :130], torch.zeros_like(out[:, :, :130]))
    assert (lse[:, :, :130] == -math.inf).all()
    assert lse[:, :, 130:].isfinite().all()
    assert out.isfinite().all()


def test_tiles_that_a_row_does_not_see_leave_its_maximum_alone() -> None:
    arguments = tensors(1, 14, 2, 88, 448, 64, causal=True)
    arguments["q"].abs_()
    arguments["k"].abs_().neg_()  # every score far below 0
    arguments["v"].fill_(1.0)
    out, lse = flash_attention(**arguments, scale=20.0)
    assert (out - 1).abs().max() <= 2**-11  # the weights sum to 1
    assert error(lse, reference(**arguments, scale=20.0)[1]) < 2e-3  # of some -800


@pytest.mark.parametrize("factor", [1e-4, 50.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_scores_from_nothing_to_thousands_stay_exact(
    factor: float, dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    arguments = tensors(1, 2, 2, 100, 150, 64, dtype=dtype, causal=True)
    arguments["q"] *= factor
    exact, ordinary = reference(**arguments), attention_reference.eager(**arguments)
    assert_as_exact_as_eager(flash_attention(**arguments)[0], ordinary[0], exact[0])


def test_the_scale_is_the_one_given(assert_as_exact_as_eager: Any) -> None:
    arguments = tensors(1, 1, 1, 50, 60, 32) | {"scale": 0.7}
    exact, ordinary = reference(**arguments), attention_reference.eager(**arguments)
    assert_as_exact_as_eager(flash_attention(**arguments)[0], ordinary[0], exact[0])


@pytest.mark.parametrize(("H", "H_KV"), [(8, 2), (6, 2), (4, 1)])
def test_heads_of_a_group_share_the_keys_in_order(H: int, H_KV: int) -> None:
    arguments = tensors(2, H, H_KV, 33, 65, 16, causal=True)
    repeated = {x: arguments[x].repeat_interleave(H // H_KV, 1) for x in ("k", "v")}
    assert torch.equal(
        flash_attention(**arguments)[0], flash_attention(**(arguments | repeated))[0]
    )


def test_one_query_of_many_heads_with_fewer_keys_than_a_tile(
    assert_as_exact_as_eager: Any,
) -> None:
    arguments = tensors(4, 32, 32, 1, 20, 128)
    exact, ordinary = reference(**arguments), attention_reference.eager(**arguments)
    assert_as_exact_as_eager(flash_attention(**arguments)[0], ordinary[0], exact[0])


STRIDES = {
    "transposed": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "every second row": lambda x: x.repeat_interleave(2, 2)[:, :, ::2],
    "part of a wider row": lambda x: torch.nn.functional.pad(x, (0, 16))[..., :-16],
    "unaligned start": lambda x: torch.nn.functional.pad(x, (1, 15))[..., 1:-15],
    "odd row": lambda x: torch.nn.functional.pad(x, (0, 1))[..., :-1],
    "expanded batch": lambda x: x[:1].expand(2, -1, -1, -1),
    "expanded heads": lambda x: x[:, :1].expand(-1, 2, -1, -1),
}


@pytest.mark.parametrize("name", ["q", "k", "v"])
@pytest.mark.parametrize("layout", STRIDES)
def test_strides_change_where_the_numbers_lie_and_not_the_result(layout: str, name: str) -> None:
    arguments = tensors(2, 2, 2, 70, 90, 32, causal=True)
    arguments[name] = STRIDES[layout](arguments[name])
    dense = arguments | {name: arguments[name].contiguous()}
    for found, expected in zip(flash_attention(**arguments), flash_attention(**dense), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize(
    ("B", "H", "N_Q", "N_K"), [(0, 2, 4, 4), (2, 0, 4, 4), (2, 2, 0, 4), (2, 2, 4, 0), (1, 1, 0, 0)]
)
@pytest.mark.parametrize("causal", [False, True])
def test_empty_inputs_give_empty_or_zero_outputs(
    B: int, H: int, N_Q: int, N_K: int, causal: bool
) -> None:
    out, lse = flash_attention(**tensors(B, H, H, N_Q, N_K, 16, causal=causal))
    assert out.shape == (B, H, N_Q, 16)
    assert lse.shape == (B, H, N_Q)
    assert not out.any()
    assert (lse == -math.inf).all()


@pytest.mark.parametrize("N", [1024, 1025])
def test_one_token_beyond_whole_tiles_is_exact_too(N: int, assert_as_exact_as_eager: Any) -> None:
    arguments = tensors(1, 1, 1, N, N, 64, causal=True)
    exact, ordinary = reference(**arguments), attention_reference.eager(**arguments)
    assert_as_exact_as_eager(flash_attention(**arguments)[0], ordinary[0], exact[0])


@needs_gpu
@pytest.mark.parametrize("B", [10922, 10923])
def test_batch_times_heads_may_pass_65535(B: int, assert_as_exact_as_eager: Any) -> None:
    arguments = tensors(B, 6, 6, 32, 32, 16, dtype=torch.bfloat16)
    exact, ordinary = reference(**arguments), attention_reference.eager(**arguments)
    assert_as_exact_as_eager(flash_attention(**arguments)[0], ordinary[0], exact[0])


@needs_gpu
@pytest.mark.parametrize("columns", [16, 17])  # fetched by TMA, and by pointers
def test_offsets_may_pass_two_to_the_31_elements(columns: int) -> None:
    far = torch.empty(2**31 + 2**21, dtype=torch.float16, device=DEVICE)
    k = far.as_strided((2, 1, 100, 16), (2**31 // columns * columns, 0, columns, 1))
    k = far.as_strided((2, 1, 100, 16), (k.stride(0), columns * 100, columns, 1))
    k.normal_()
    q = torch.randn(2, 1, 70, 16, dtype=torch.float16, device=DEVICE)
    assert torch.equal(flash_attention(q, k, k)[0][1:], flash_attention(q[1:], k[1:], k[1:])[0])


REFUSALS = [
    ({"q": (1, 33, 4, 16), "k": (1, 2, 4, 16)}, "q has 33 heads and k has 2"),
    ({"q": (1, 3, 4, 16), "k": (1, 2, 4, 16)}, "q has 3 heads and k has 2"),
    ({"q": (1, 2, 4, 15), "k": (1, 2, 4, 15)}, "q has head dim 15; allowed: 16 to 256"),
    ({"q": (1, 2, 4, 257), "k": (1, 2, 4, 257)}, "q has head dim 257; allowed: 16 to 256"),
    ({"q": (2, 4, 16), "k": (1, 2, 4, 16)}, "q has 3 dimensions; allowed: 4"),
    ({"q": (1, 2, 4, 32), "k": (1, 2, 4, 16)}, "k is (1, 2, 4, 16) and v is (1, 2, 4, 16)"),
    ({"q": (2, 2, 4, 16), "k": (1, 2, 4, 16)}, "allowed: both (B=2, H_KV, N_K, D=16)"),
    ({"v": (1, 2, 5, 16)}, "v is (1, 2, 5, 16)"),
]


@pytest.mark.parametrize(("shapes", "message"), REFUSALS)
def test_shapes_that_do_not_fit_are_refused(shapes: dict[str, Any], message: str) -> None:
    k = shapes.get("k", (1, 2, 4, 16))
    sizes = {"q": (1, 2, 4, 16), "k": k, "v": k} | shapes
    with pytest.raises(ValueError, match=re.escape(message)):
        flash_attention(**{n: torch.zeros(s, dtype=torch.float16) for n, s in sizes.items()})


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_a_length_that_32_bit_positions_cannot_hold_is_refused(name: str) -> None:
    small = torch.zeros(1, 1, 1, 16, dtype=torch.float16)
    arguments = dict.fromkeys("qkv", small) | {name: small.expand(1, 1, 2**31 - 255, 16)}
    with pytest.raises(ValueError, match=f"{name} has length 2147483393; allowed: up to 21474"):
        flash_attention(**arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window": 0, "causal": True}, "window is 0 with causal=True; allowed: >= 1"),
        ({"window": 3}, "window is 3 with causal=False; allowed: >= 1 with causal=True"),
        ({"scale": 0.0}, "scale is 0.0; allowed: finite and above 0"),
        ({"scale": -1.0}, "scale is -1.0; allowed: finite and above 0"),
        ({"scale": math.nan}, "scale is nan; allowed: finite and above 0"),
        ({"q": torch.zeros(1, 2, 4, 16, dtype=torch.float64)}, "q is torch.float64; allowed: "),
        ({"k": torch.zeros(1, 2, 4, 16, dtype=torch.float32)}, "k is torch.float32 on cpu"),
        ({"v": torch.zeros(1, 2, 4, 16, dtype=torch.float16, device="meta")}, "v is torch.float16"),
        ({"k": torch.zeros(1, 2, 4, 32, dtype=torch.float16)[..., ::2]}, "k has stride 2"),
    ],
)
def test_arguments_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    arguments = {n: torch.zeros(1, 2, 4, 16, dtype=torch.float16) for n in ("q", "k", "v")}
    with pytest.raises(ValueError, match=re.escape(message)):
        flash_attention(**(arguments | changes))


def test_the_out_tensor_has_the_layout_of_q() -> None:
    arguments = tensors(2, 3, 3, 5, 5, 16)
    arguments["q"] = STRIDES["transposed"](arguments["q"])
    assert flash_attention(**arguments)[0].transpose(1, 2).is_contiguous()


@pytest.mark.parametrize(("causal", "megabytes"), [(False, 541.13), (True, 274.79)])
def test_issued_bytes_reproduce_the_table_of_the_lesson(causal: bool, megabytes: float) -> None:
    N, d = 16384, 64
    shape = attention_reference.sizes(1, 1, 1, N, N, d, causal=causal)
    loaded = 2 * keys_visited(shape, 128, 128) * d * 2
    assert round((2 * N * d * 2 + 4 * N + loaded) / 1e6, 2) == megabytes


@pytest.mark.parametrize(("N_Q", "N_K"), [(70, 150), (130, 65), (129, 129), (1, 20)])
@pytest.mark.parametrize("window", [None, 1, 40])
def test_visited_rows_agree_with_a_mask_cut_into_tiles(
    N_Q: int, N_K: int, window: int | None
) -> None:
    shape = attention_reference.sizes(1, 1, 1, N_Q, N_K, 16, causal=True, window=window)
    seen = torch.ones(N_Q, N_K).tril(N_K - N_Q).triu(N_K - N_Q - (window or N_K) + 1)
    padded = torch.nn.functional.pad(seen, (0, -N_K % 32, 0, -N_Q % 16))
    tiles = padded.unflatten(0, (-1, 16)).unflatten(2, (-1, 32)).amax((1, 3))
    keys = torch.full((tiles.shape[1],), 32.0)
    keys[-1] -= -N_K % 32
    queries = torch.full((tiles.shape[0],), 16.0)
    queries[-1] -= -N_Q % 16
    assert keys_visited(shape, 16, 32) == (tiles @ keys).sum()
    assert queries_visited(shape, 16, 32) == (queries @ tiles).sum()
    pairs = visible_pairs(N_Q, N_K, True, window)
    assert abs(pairs - seen.sum().item()) <= min(N_Q, N_K) / 2 + 0.5


def test_work_counts_each_tensor_once_and_half_a_square_when_causal() -> None:
    shape = attention_reference.sizes(2, 8, 2, 256, 256, 64, causal=True)
    forward, backward = work(shape, 2), work(shape, 2, "backward")
    rows, keys = 2 * 8 * 256, 2 * 2 * 256
    assert forward.model_bytes == rows * (2 * 64 * 2 + 4) + keys * 2 * 64 * 2
    assert forward.flops == 4 * 2 * 8 * 256 * 256 * 64 / 2
    assert backward.model_bytes == rows * (4 * 64 * 2 + 4) + keys * 4 * 64 * 2
    assert backward.flops == 2.5 * forward.flops
    assert backward.issued_bytes > forward.issued_bytes > forward.model_bytes


@pytest.mark.parametrize("shape", SHAPES["bench"][:2] + SHAPES["test"][3:5])
def test_bytes_and_flops_are_whole_numbers(shape: dict[str, Any]) -> None:
    assert {type(x) for x in (*work(shape, 2), *work(shape, 4, "backward"))} == {int}


def test_every_dtype_and_head_dim_has_tiles_in_the_table() -> None:
    found = {
        attention_launch.config(kernel, itemsize, D, torch.device("cpu"))
        for kernel in ("forward", "keys", "queries")
        for itemsize in (2, 4)
        for D in (16, 40, 128, 256)
    }
    assert all(size & (size - 1) == 0 for M, N, *_ in found for size in (M, N))
