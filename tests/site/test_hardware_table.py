"""The hardware page shows every fact with its unit and its source, and leaves none out."""

import re

import pytest

from sitebuild import hardware_table
from sitebuild.references import sources
from snippets.hardware import DEVICES, FACTS


@pytest.fixture
def page(capsys: pytest.CaptureFixture[str]) -> str:
    hardware_table.main()
    return capsys.readouterr().out


def test_every_quantity_has_a_row_with_a_cell_for_each_device(page: str) -> None:
    rows = [line for line in page.splitlines() if line.startswith("| ") and "(" in line]
    assert {row.count("|") for row in rows} == {len(DEVICES) + 2}
    assert len(rows) == len({quantity for _, quantity in FACTS}) + len(hardware_table.derived())


@pytest.mark.parametrize(
    "row",
    [
        "| Shared memory of one program, at most (KiB) | 163 | 163 | 227 | 227 | 227 |",
        "| HBM bandwidth (TB/s) | 1.555 | 2.039 | 3.35 | 4.8 | 8 |",
        "| bf16, dense (TFLOP/s) | 312 | 312 | 989.4 | 989.4 | 2,250 |",
        "| fp8, with 2:4 sparsity (TFLOP/s) | – | – | 3,958 | 3,958 | 9,000 |",
        "| Ridge, bf16, dense (FLOP/B) | 200.6 | 153.0 | 295.3 | 206.1 | 281.2 |",
    ],
)
def test_a_row_shows_value_unit_and_whether_it_is_dense(page: str, row: str) -> None:
    assert row in page.splitlines()


def test_every_source_of_a_fact_is_linked_by_its_title(page: str) -> None:
    links = dict(re.findall(r"\[([^\]]+)\]\[([\w-]+)\]", page))
    titles = {title: key for key, (title, _) in sources().items()}
    assert set(links.values()) == {value.source for value in FACTS.values()}
    assert links.items() <= titles.items()


def test_a_row_with_several_sources_says_which_device_each_is_for(page: str) -> None:
    assert "[NVIDIA A100][nvidia-a100] for A100-40, A100-80; [NVIDIA H100][nvidia-h100]" in page


def test_a_quantity_that_no_group_shows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(hardware_table.GROUPS["The whole device"], "l2")
    with pytest.raises(ValueError, match="no group shows l2"):
        hardware_table.main()


def test_a_unit_that_does_not_fit_the_stored_one_is_refused() -> None:
    with pytest.raises(ValueError, match="hbm_rate is stored in B/s and cannot be shown in GB"):
        hardware_table.shown("H200", "hbm_rate", hardware_table.GB)
