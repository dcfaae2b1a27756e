"""Tiled attention against torch in float64, its trace, and its peak of live scores."""

import math

import pytest
import torch

from snippets.flash_attention import attend, main, tiles, walk
from snippets.full_attention import K, Q, V

SHAPES = [(4, 4), (5, 7), (7, 5), (1, 6), (6, 1), (1, 1), (8, 3)]


def tensors(n: int, m: int, d: int = 3, columns: int = 2) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(100 * n + m)
    sizes = ((n, d), (m, d), (m, columns))
    return [2 * torch.randn(size, dtype=torch.float64, generator=generator) for size in sizes]


def sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Torch's attention with a bottom-right causal mask; rows without a key are zeros."""
    n, m = len(q), len(k)
    mask = torch.ones(n, m, dtype=torch.bool).tril(m - n) if causal else None
    out = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], mask)[0]
    return out if mask is None else torch.where(mask.any(1, keepdim=True), out, 0.0)


def logsumexp(q: torch.Tensor, k: torch.Tensor, causal: bool) -> torch.Tensor:
    n, m = len(q), len(k)
    scores = q @ k.T / math.sqrt(q.shape[1])
    hidden = ~torch.ones(n, m, dtype=torch.bool).tril(m - n)
    return (scores.masked_fill(hidden, -math.inf) if causal else scores).logsumexp(1)


def all_tilings(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Output and LSE for every pair of tile sizes from 1 to one beyond the length."""
    lists = q.tolist(), k.tolist(), v.tolist()
    found = [
        attend(*lists, query_tile, key_tile, causal)
        for query_tile in range(1, len(q) + 2)
        for key_tile in range(1, len(k) + 2)
    ]
    return [
        (torch.tensor(out, dtype=torch.float64), torch.tensor(lse, dtype=torch.float64))
        for out, lse, _ in found
    ]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_every_tiling_agrees_with_torch(n: int, m: int, causal: bool) -> None:
    q, k, v = tensors(n, m)
    expected, lse = sdpa(q, k, v, causal), logsumexp(q, k, causal)
    found = all_tilings(q, k, v, causal)
    assert all(torch.allclose(o, expected, rtol=0, atol=1e-13) for o, _ in found)
    assert all(torch.allclose(x, lse, rtol=0, atol=1e-13) for _, x in found)


@pytest.mark.parametrize("tile", [1, 2, 3])
def test_queries_before_the_first_key_give_zeros_and_lse_minus_infinity(tile: int) -> None:
    q, k, v = (t.tolist() for t in tensors(5, 2))
    outputs, lses, _ = attend(q, k, v, tile, tile, causal=True)
    assert outputs[:3] == [(0.0, 0.0)] * 3
    assert lses[:3] == [-math.inf] * 3
    assert all(math.isfinite(x) for x in lses[3:])


@pytest.mark.parametrize("factor", [1e4, -1e4])
def test_scores_in_the_tens_of_thousands_agree_with_torch(factor: float) -> None:
    q, k, v = tensors(4, 6)
    q = q * factor
    expected = sdpa(q, k, v, causal=False)
    found = all_tilings(q, k, v, causal=False)
    assert all(torch.allclose(o, expected, rtol=0, atol=1e-9) for o, _ in found)


@pytest.mark.parametrize(
    ("query_tile", "key_tile", "peak"), [(2, 2, 4), (1, 1, 1), (1, 4, 4), (3, 3, 9), (4, 3, 12)]
)
def test_no_more_scores_exist_than_one_tile_holds(
    query_tile: int, key_tile: int, peak: int
) -> None:
    assert attend(Q, K, V, query_tile, key_tile)[2] == peak


def test_the_tiles_cover_every_pair_of_query_and_key_once() -> None:
    q, k, v = (t.tolist() for t in tensors(5, 7))
    pairs = [(i, j) for step in walk(q, k, v, 2, 3) for i in step.queries for j in step.keys]
    assert sorted(pairs) == [(i, j) for i in range(5) for j in range(7)]


def test_the_query_tile_stays_while_the_keys_change() -> None:
    walked = [(s.queries, s.keys) for s in walk(Q, K, V, 2, 2)]
    low, high = range(2), range(2, 4)
    assert walked == [(low, low), (low, high), (high, low), (high, high)]


def test_the_trace_shows_the_state_after_each_tile() -> None:
    steps = list(walk(Q, K, V, 2, 2))
    e = math.exp
    first, second = steps[0].states[0], steps[1].states[0]
    assert steps[0].scores == [[1, 0], [3, 1]]
    assert (first.m, first.l) == pytest.approx((1, 1 + e(-1)))
    assert first.acc == pytest.approx((4, 4 * e(-1)))
    assert second.m == 3
    assert second.l == pytest.approx((1 + e(-1)) * e(-2) + 1 + e(-1))
    assert second.acc == pytest.approx((4 * e(-2) + 8, 4 * e(-3) + 8 * e(-1)))
    assert steps[3].states[1] == (2, 4, (12, 12))


def test_a_step_keeps_its_state_when_the_loop_goes_on() -> None:
    steps = walk(Q, K, V, 2, 2)
    first = next(steps)
    before = list(first.states)
    next(steps)
    assert first.states == before


@pytest.mark.parametrize(
    ("n", "size", "lengths"), [(7, 3, [3, 3, 1]), (4, 9, [4]), (3, 1, [1] * 3)]
)
def test_the_last_tile_may_be_shorter(n: int, size: int, lengths: list[int]) -> None:
    cut = tiles(n, size)
    assert [len(tile) for tile in cut] == lengths
    assert [i for tile in cut for i in tile] == list(range(n))


@pytest.mark.parametrize("bad", [0, -2, True, 1.0])
def test_tiles_that_are_no_positive_integers_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match="query_tile must be an integer of at least 1, got"):
        attend(Q, K, V, bad, 2)
    with pytest.raises(ValueError, match="key_tile must be an integer of at least 1, got"):
        attend(Q, K, V, 2, bad)


def test_shapes_and_scores_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="one value a key: got 4 keys, 3 values"):
        attend(Q, K, V[:3], 2, 2)
    with pytest.raises(ValueError, match="scores must be finite or -inf"):
        attend(Q, [[math.nan] * 4] * 4, V, 2, 2)


def test_page_shows_the_walk_and_that_all_tilings_agree(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[2] == ["1", "0-1", "0-1", "0", "1", "0", "1", "1.368", "4.000", "1.472"]
    assert lines[9] == ["4", "2-3", "2-3", "3", "2", "2", "2", "4.000", "12.000", "12.000"]
    assert [line[3:] for line in lines[-3:]] == [["4", "yes"], ["4", "yes"], ["9", "yes"]]
