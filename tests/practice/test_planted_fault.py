"""The planted faults: each alone, all but one, and what other slips give."""

import pytest

from sitebuild.exercises import read

NEGATIVE = "x = [[-3.0, -1.0, -4.0, -1.0, -5.0]]"
# of the second loop, which has y_offs
MASK = """        mask = [off < columns for off in offs]
        x_offs = [pid * stride_xm + off for off in offs]
        y_offs"""


def test_the_start_has_each_of_the_three_faults() -> None:
    start = read("planted_fault").skeleton
    planted = ["other=0.0", "off <= columns", "y_offs = [pid * stride_xm"]
    assert [fault for fault in planted if start.count(fault) != 1] == []


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        pytest.param(
            [
                ("other=-math.inf", "other=0.0"),
            ],
            [
                NEGATIVE,
                "gave      [[-3.0, -1.0, -4.0, -1.0, -5.0]]\n",
                "expected  [[-2.0, 0.0, -3.0, 0.0, -4.0]]",
                "must lose every maximum",
            ],
            id="a-masked-lane-that-wins",
        ),
        pytest.param(
            [
                ("other=-math.inf", "other=-1e9"),
            ],
            ["x = [[-1e+30, -1e+30, -1e+30]]", "expected  [[0.0, 0.0, 0.0]]"],
            id="a-large-number-for-minus-infinity",
        ),
        pytest.param(
            [
                (MASK, MASK.replace("<", "<=")),
            ],
            [
                "offsets touched outside the rows",
                NEGATIVE,
                "gave      [[5], [5]]\nexpected  [[], []]",
                "belongs to someone else",
            ],
            id="one-column-too-many",
        ),
        pytest.param(
            [
                ("y.store(y_offs, below, mask)", "y.store(y_offs, below)"),
            ],
            ["gave      [[], [5, 6, 7]]\nexpected  [[], []]"],
            id="a-store-without-a-mask",
        ),
        pytest.param(
            [
                ("y_offs = [pid * stride_ym", "y_offs = [pid * stride_xm"),
            ],
            [
                "stride_xm = 8, stride_ym = 5",
                "[777.0, 777.0, 777.0, 0.0, -7.0]]\nexpected  ",
                "strides of their own",
            ],
            id="the-stride-of-x-for-y",
        ),
        pytest.param(
            [
                ("y_offs = [pid * stride_ym", "y_offs = [pid * columns"),
            ],
            ["stride_xm = 5, stride_ym = 7", "program order [2, 0, 1]"],
            id="rows-taken-for-contiguous",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_came_and_what_was_expected(refuse, edits, says) -> None:
    found = refuse("planted_fault", edits)
    assert [part for part in says if part not in found] == []


def test_a_kernel_that_holds_its_row_is_accepted(judge) -> None:
    answer = """
def below_largest_kernel(pid, x, y, stride_xm, stride_ym, columns, BLOCK):
    row = x.load(range(pid * stride_xm, pid * stride_xm + columns))
    y.store(range(pid * stride_ym, pid * stride_ym + columns), [n - max(row) for n in row])
"""
    assert judge("planted_fault", answer) == ""
