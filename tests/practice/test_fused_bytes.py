"""Fused bytes: the solution against the lab, and answers that must be refused."""

import pytest

from snippets.fusion import RMSNORM, Kernel, chain, fuse, traffic
from snippets.practice.fused_bytes import fused_bytes


@pytest.mark.parametrize(
    ("kernels", "wanted"),
    [(chain(1), ["t1"]), (chain(5), ["t5"]), (chain(5), ["t2", "t5"]), (RMSNORM, ["h", "y"])],
)
def test_the_solution_agrees_with_the_lab_where_nothing_is_updated_in_place(
    kernels: list[Kernel], wanted: list[str]
) -> None:
    names = {name for kernel in kernels for name in kernel.reads + kernel.writes}
    sizes = {name: 3**i for i, name in enumerate(sorted(names))}
    pairs = [([*kernel.reads], [*kernel.writes]) for kernel in kernels]
    assert fused_bytes(pairs, sizes, wanted) == traffic([fuse(kernels, wanted)], sizes)


def test_a_tensor_updated_in_place_is_read_and_written() -> None:
    assert fused_bytes([(["x"], ["x"])] * 5, {"x": 100}, ["x"]) == 200


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        pytest.param(
            [
                (
                    "sum(sizes[name] for name in [*fetched, *wanted])",
                    "sum(sizes[n] for r, w in kernels for n in r + w)",
                ),
            ],
            ["(['u'], ['y'])]", "gave      145\nexpected  65", "never leave the chip"],
            id="not-fused",
        ),
        pytest.param(
            [
                ("set(reads) - made", "set(reads) - {n for _, w in kernels for n in w}"),
            ],
            ["[(['x'], ['x']), (['x'], ['x'])]", "gave      1\nexpected  2", "old content read"],
            id="what-no-kernel-writes",
        ),
        pytest.param(
            [
                (
                    "        fetched |= set(reads) - made\n        made |= set(writes)\n",
                    "        made |= set(writes)\n        fetched |= set(reads) - made\n",
                ),
            ],
            ["gave      1\nexpected  2", "In place"],
            id="made-before-it-is-read",
        ),
        pytest.param(
            [
                ("fetched: set[str] = set()", "fetched: list[str] = []"),
                ("fetched |= set(reads) - made", "fetched += [n for n in reads if n not in made]"),
            ],
            ["(['x', 't'], ['y'])]", "gave      66\nexpected  65", "fetched once"],
            id="fetched-by-each-reader",
        ),
        pytest.param(
            [
                ("*wanted]", "*made]"),
            ],
            ["gave      105\nexpected  65"],
            id="everything-made-is-stored",
        ),
        pytest.param(
            [
                ("[*fetched, *wanted]", "fetched"),
            ],
            ["gave      1\nexpected  9", "writes t"],
            id="outputs-forgotten",
        ),
        pytest.param(
            [
                ("[*fetched, *wanted]", "{*fetched, *wanted}"),
            ],
            ["gave      1\nexpected  2"],
            id="read-or-written-but-not-both",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_came_and_what_was_expected(refuse, edits, says) -> None:
    found = refuse("fused_bytes", edits)
    assert [part for part in says if part not in found] == []


def test_a_walk_from_the_end_is_accepted(judge) -> None:
    answer = """
def fused_bytes(kernels, sizes, wanted):
    needed = []
    for reads, writes in reversed(kernels):
        needed = [*dict.fromkeys([n for n in needed if n not in writes] + reads)]
    return sum(map(sizes.get, needed + wanted))
"""
    assert judge("fused_bytes", answer) == ""
