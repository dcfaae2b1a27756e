"""Commit and device facts, with and without git and nvidia-smi."""

from pathlib import Path

import pytest

from kernels.bench import provenance
from kernels.bench.provenance import clocks_of, commit, dirty

SMI = "1980, 101.25, 34, 0x0000000000000000\n1500, 699.50, 61, 0x0000000000000004\n1755, 650.00, 60, 0x0000000000000004\n"  # noqa: E501


def test_a_bare_copy_knows_its_commit_only_when_told(tmp_path: Path) -> None:
    assert commit("abc", tmp_path) == "abc"
    assert commit(None, tmp_path) == "unknown"
    assert dirty(tmp_path) is None


def test_samples_become_minimum_median_and_maximum() -> None:
    observed = clocks_of(SMI + "17")  # the last line was cut off
    assert observed["sm_mhz"] == {"min": 1500.0, "median": 1755.0, "max": 1980.0}
    assert observed["power_w"] == {"min": 101.25, "median": 650.0, "max": 699.5}
    assert observed["temperature_c"]["max"] == 61.0
    assert observed["throttle_reasons"] == ["0x0000000000000000", "0x0000000000000004"]


def test_what_a_device_does_not_tell_is_null() -> None:
    observed = clocks_of("1980, [N/A], 34, [N/A]\n")
    assert observed["power_w"] is None
    assert observed["sm_mhz"]["median"] == 1980.0


@pytest.mark.parametrize("text", ["", "Field x is not a valid field to query.\n"])
def test_no_samples_have_a_reason(text: str) -> None:
    assert clocks_of(text)["reason"] == "nvidia-smi gave no samples"


def test_clocks_without_nvidia_smi_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance.shutil, "which", lambda _: None)
    with provenance.Clocks() as clocks:
        pass
    assert clocks.observed["sm_mhz"] is None
