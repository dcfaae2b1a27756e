"""The backward ledger against torch's gradients, published counts and a count by elements."""

import math

import pytest
import torch

from snippets.backward_ledger import FORWARD_PRODUCTS, FUSED, STANDARD, Kernel, bytes_of, flop, main

N, D = 5, 3


def gradients_by_the_kernels(kernels: tuple[Kernel, ...]) -> dict[str, torch.Tensor]:
    """Do what each kernel says, seeing only the tensors that it says it reads."""
    have = forward()
    for kernel in kernels:
        seen = {name: have[name] for name in kernel.reads.split()}
        made = PRODUCE[kernel.name](**seen)
        have |= dict(zip(kernel.writes.split(), made, strict=True))
    return {name: have[name] for name in ("dQ", "dK", "dV")}


def forward() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    q, k, v, do = torch.randn(4, N, D, dtype=torch.float64, generator=generator)
    s = q @ k.T / math.sqrt(D)
    p = s.softmax(1)
    return {"Q": q, "K": k, "V": v, "dO": do, "P": p, "O": p @ v, "LSE": s.logsumexp(1)}


def fused(Q, K, V, dO, LSE, delta):
    p = torch.exp(Q @ K.T / math.sqrt(D) - LSE[:, None])
    ds = p * (dO @ V.T - delta[:, None])
    return ds @ K / math.sqrt(D), ds.T @ Q / math.sqrt(D), p.T @ dO


PRODUCE = {
    "dV = P^T dO": lambda P, dO: [P.T @ dO],
    "dP = dO V^T": lambda dO, V: [dO @ V.T],
    "dS from P and dP": lambda P, dP: [P * (dP - (P * dP).sum(1, keepdim=True))],
    "dQ = dS K": lambda dS, K: [dS @ K / math.sqrt(D)],
    "dK = dS^T Q": lambda dS, Q: [dS.T @ Q / math.sqrt(D)],
    "delta = rowsum(dO * O)": lambda dO, O: [(dO * O).sum(1)],  # noqa: E741
    "P again, dV dP dQ dK": fused,
}


def gradients_by_autograd() -> dict[str, torch.Tensor]:
    have = forward()
    q, k, v = (have[name].requires_grad_() for name in "QKV")
    out = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    found = torch.autograd.grad(out, (q, k, v), have["dO"])
    return dict(zip(("dQ", "dK", "dV"), found, strict=True))


@pytest.mark.parametrize("kernels", [STANDARD, FUSED], ids=["P kept", "P again"])
def test_what_the_kernels_read_is_enough_for_the_gradients(kernels: tuple[Kernel, ...]) -> None:
    found, expected = gradients_by_the_kernels(kernels), gradients_by_autograd()
    assert all(torch.allclose(found[x], expected[x], rtol=0, atol=1e-13) for x in expected)


def products_counted(kernels: tuple[Kernel, ...]) -> int:
    return sum(kernel.products for kernel in kernels)


def flop_counted(products: int, n: int, d: int) -> int:
    return sum(2 for _ in range(products) for _ in range(n) for _ in range(n) for _ in range(d))


def test_backward_is_two_and_a_half_times_forward_and_two_with_p_kept() -> None:
    assert products_counted(FUSED) / FORWARD_PRODUCTS == 2.5
    assert products_counted(STANDARD) / FORWARD_PRODUCTS == 2.0


def test_the_counts_are_those_of_published_benchmarks() -> None:
    heads = 64 * 16
    forward_flop = heads * flop(FORWARD_PRODUCTS, 1024, 64)
    both = [forward_flop + heads * flop(products_counted(x), 1024, 64) for x in (STANDARD, FUSED)]
    assert f"{forward_flop / 1e9:.1f}" == "274.9"
    assert [f"{x / 1e9:.1f}" for x in both] == ["824.6", "962.1"]


@pytest.mark.parametrize(("n", "d"), [(5, 3), (8, 4), (1, 1)])
def test_flop_are_those_of_three_nested_loops(n: int, d: int) -> None:
    assert flop(5, n, d) == flop_counted(5, n, d)


@pytest.mark.parametrize(
    ("name", "shape", "e"),
    [
        ("P", (7, 7), 2),
        ("dP", (7, 7), 2),
        ("dS", (7, 7), 2),
        ("LSE", (7,), 4),
        ("delta", (7,), 4),
        ("Q", (7, 3), 2),
        ("K", (7, 3), 2),
        ("V", (7, 3), 2),
        ("O", (7, 3), 2),
        ("dO", (7, 3), 2),
        ("dQ", (7, 3), 2),
        ("dK", (7, 3), 2),
        ("dV", (7, 3), 2),
    ],
)
def test_each_tensor_has_the_bytes_of_its_shape(name: str, shape: tuple[int, ...], e: int) -> None:
    assert bytes_of(name, 7, 3) == math.prod(shape) * e


def test_bytes_of_several_tensors_are_added_and_repeats_count_again() -> None:
    assert bytes_of("P P Q LSE", 10, 4, 4) == 2 * 400 + 160 + 40


@pytest.mark.parametrize("n", [1024, 4096])
def test_fused_moves_nothing_that_grows_with_the_square_of_the_length(n: int) -> None:
    moved = [sum(bytes_of(k.reads + " " + k.writes, m, 64) for k in FUSED) for m in (n, 2 * n)]
    kept = [sum(bytes_of(k.reads + " " + k.writes, m, 64) for k in STANDARD) for m in (n, 2 * n)]
    assert moved[1] == 2 * moved[0]
    assert kept[1] > 3.5 * kept[0]


def test_an_unknown_tensor_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown tensor 'X'; allowed: P, dP, dS"):
        bytes_of("Q X", 4, 4)


@pytest.mark.parametrize("bad", [0, -4, True, 2.0])
def test_sizes_that_are_no_positive_integers_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match="n must be an integer of at least 1, got"):
        bytes_of("Q", bad, 4)
    with pytest.raises(ValueError, match="d must be an integer of at least 1, got"):
        flop(5, 4, bad)
    with pytest.raises(ValueError, match="e must be an integer of at least 1, got"):
        bytes_of("Q", 4, 4, bad)


def test_page_shows_both_ledgers_with_their_ratio_to_forward(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main()
    lines = [x for x in capsys.readouterr().out.splitlines() if "total" in x]
    assert [line.split()[-1] for line in lines] == ["2.0x", "2.5x"]
    assert [line.split()[-4] for line in lines] == ["170.39", "3.18"]


@pytest.mark.parametrize("products", [-1, 1.0, True])
def test_a_count_of_products_is_a_whole_number(products: int) -> None:
    with pytest.raises(ValueError, match="products must be an integer of at least 0, got"):
        flop(products, 8, 4)
