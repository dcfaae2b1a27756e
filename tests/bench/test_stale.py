"""`make stale` tells fresh, stale and invalid results apart."""

from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.store import write


@pytest.mark.parametrize(("digest", "word"), [("a" * 64, "fresh"), ("b" * 64, "stale")])
def test_a_result_is_stale_when_its_code_has_changed(
    tmp_path: Path,
    result: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    digest: str,
    word: str,
) -> None:
    monkeypatch.setattr(stale, "source_digest", lambda _module: digest)
    write(tmp_path / "flash_attention.h200.json", result)
    assert stale.main(tmp_path) == 0  # a list, and not a check
    name, verdict = capsys.readouterr().out.split(maxsplit=1)
    assert name == "flash_attention.h200.json"
    assert verdict.startswith(word)


def test_an_invalid_result_is_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "softmax.h200.json").write_text("{}")
    assert stale.main(tmp_path) == 1
    assert "invalid: softmax.h200.json: the file: " in capsys.readouterr().out


def test_no_result_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stale.main(tmp_path) == 0
    assert capsys.readouterr().out == "no result has been captured yet\n"
