"""A paged cache: the solution against the lab, and answers that must be refused."""

import pytest

from snippets.kv_cache import bytes_per_token, sequences_that_fit
from snippets.practice.paged_cache import admitted


@pytest.mark.parametrize("tokens", [2**13, 2**15, 2**17])
def test_the_solution_agrees_with_the_lab_where_pages_are_full(tokens: int) -> None:
    memory, weights = 141 * 10**9, 16 * 10**9
    expected = sequences_that_fit(memory, weights, tokens, bytes_per_token(32, 8, 128))
    assert admitted([tokens] * 1000, memory - weights, 256, 32, 32, 8, 128) == expected
    assert expected >= 1


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        pytest.param(
            [
                ("page * 2 * layers", "page * layers"),
            ],
            ["free=8, page=1", "gave      4\nexpected  2", "a key and a value"],
            id="keys-without-values",
        ),
        pytest.param(
            [
                ("2 * layers * kv", "2 * kv"),
            ],
            ["layers=2", "gave      4\nexpected  2", "Each layer"],
            id="one-layer",
        ),
        pytest.param(
            [
                ("layers * kv_heads", "layers * heads"),
            ],
            ["heads=8, kv_heads=2", "gave      0\nexpected  2", "not query heads"],
            id="query-heads",
        ),
        pytest.param(
            [
                ("-(-tokens // page)", "tokens // page"),
            ],
            ["lengths=[5, 1]", "gave      2\nexpected  1", "share none"],
            id="pages-rounded-down",
        ),
        pytest.param(
            [
                ("free // (page * 2", "free // (2"),
                ("-(-tokens // page)", "tokens"),
            ],
            ["lengths=[5, 1]", "gave      2\nexpected  1"],
            id="no-pages-at-all",
        ),
        pytest.param(
            [
                ("pages < 0", "pages <= 0"),
            ],
            ["gave      1\nexpected  2"],
            id="the-full-page-refused",
        ),
        pytest.param(
            [
                (
                    "            return count\n",
                    "            pages += -(-tokens // page)\n            skipped += 1\n",
                ),
                ("    for count", "    skipped = 0\n    for count"),
                ("return len(lengths)", "return len(lengths) - skipped"),
            ],
            ["lengths=[4, 40, 4]", "gave      2\nexpected  1", "waits behind it"],
            id="later-ones-go-first",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_came_and_what_was_expected(refuse, edits, says) -> None:
    found = refuse("paged_cache", edits)
    assert [part for part in says if part not in found] == []


def test_pages_subtracted_in_bytes_are_accepted(judge) -> None:
    answer = """
def admitted(lengths, free, page, layers, heads, kv_heads, d):
    count = 0
    for tokens in lengths:
        free -= (tokens + page - 1) // page * page * 4 * layers * kv_heads * d
        if free < 0:
            break
        count += 1
    return count
"""
    assert judge("paged_cache", answer) == ""
