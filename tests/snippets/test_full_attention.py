"""Full attention on the worked example and against torch."""

import math

import pytest
import torch

from snippets.full_attention import K, Q, V, full, main, score, scores_of


def test_the_worked_scores_are_whole_numbers() -> None:
    rows = scores_of(Q, K, range(4), range(4), causal=False)
    assert rows == [[1, 0, 3, 2], [3, 1, 0, 0], [0, 1, 1, 2], [2, 2, 2, 2]]


def test_a_row_of_equal_scores_gives_the_mean_of_the_values() -> None:
    assert full(Q, K, V)[3] == (3.0, 3.0)


def test_a_score_is_divided_by_the_root_of_the_head_dimension() -> None:
    assert score([1.0] * 9, [2.0] * 9) == 6.0


def test_a_block_of_scores_is_the_same_part_of_all_scores() -> None:
    everything = scores_of(Q, K, range(4), range(4), causal=True)
    block = scores_of(Q, K, range(1, 3), range(1, 4), causal=True)
    assert block == [row[1:4] for row in everything[1:3]]


@pytest.mark.parametrize(("n", "m"), [(4, 4), (2, 5), (5, 2), (1, 3), (3, 1)])
def test_under_a_causal_mask_the_last_query_sees_every_key(n: int, m: int) -> None:
    rows = scores_of([[1.0]] * n, [[1.0]] * m, range(n), range(m), causal=True)
    seen = [sum(s > -math.inf for s in row) for row in rows]
    assert seen == [min(m, max(0, i + 1 + m - n)) for i in range(n)]


@pytest.mark.parametrize("shape", [(5, 7, 3, 2), (1, 9, 8, 8), (6, 1, 4, 4)])
def test_agrees_with_torch_in_float64(shape: tuple[int, int, int, int]) -> None:
    n, m, d, columns = shape
    generator = torch.Generator().manual_seed(n)
    q, k, v = (
        torch.randn(size, dtype=torch.float64, generator=generator)
        for size in ((n, d), (m, d), (m, columns))
    )
    expected = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    found = torch.tensor(full(q.tolist(), k.tolist(), v.tolist()), dtype=torch.float64)
    assert torch.allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("q", "k", "v", "message"),
    [
        ([], K, V, "q, k and v need rows of one length"),
        (Q, [], [], "q, k and v need rows of one length"),
        ([[]], [[]], [[1.0]], "q, k and v need rows of one length"),
        ([[1.0], [1.0, 2.0]], K, V, "q, k and v need rows of one length"),
        ([[1.0]], K, V, "q and k must have rows alike, got 1 and 4"),
        (Q, K, V[:3], "one value a key: got 4 keys, 3 values"),
        ([[math.nan] * 4], K, V, "scores must be finite or -inf"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    q: list[list[float]], k: list[list[float]], v: list[list[float]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        full(q, k, v)


def test_page_shows_scores_and_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows[0] == ["0", "1", "0", "3", "2", "5.500", "2.023"]
    assert rows[3] == ["3", "2", "2", "2", "2", "3.000", "3.000"]
