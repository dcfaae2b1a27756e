"""ncu's table is read as it is written, and what it cannot count has a reason."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kernels.bench import counters
from kernels.bench.cases import Case
from kernels.bench.counters import RefusedError, Traffic, command, count, parse, reason, total

CASE = Case("softmax", "forward", "bf16", {"M": 4, "N": 8})
HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)
SPIN = "at::cuda::<unnamed>::spin_kernel(long)"


def line(launch: int, kernel: str, metric: str, value: str, unit: str = "byte") -> str:
    return (
        f'"{launch}","814","python3.12","127.0.0.1","{kernel}","1","7","(128, 1, 1)",'
        f'"(4096, 1, 1)","0","9.0","Command line profiler metrics","{metric}","{unit}","{value}"'
    )


def launch(number: int, kernel: str, read: str, written: str, l2: str) -> list[str]:
    values = (("dram__bytes_read.sum", read), ("dram__bytes_write.sum", written))
    counted = [line(number, kernel, *pair) for pair in (*values, ("lts__t_bytes.sum", l2))]
    busy = ((counters.TENSOR, "61.25"), (counters.XU, "40"))
    return counted + [line(number, kernel, *pair, "%") for pair in busy]


TABLE = "\n".join(
    [
        "==PROF== Connected to process 814 (/usr/bin/python3.12)",
        '==PROF== Profiling "spin_kernel" - 0: 0%....50%....100% - 1 pass',
        HEADER,
        *launch(0, SPIN, "1,024", "0", "2,048"),
        *launch(1, "softmax_kernel", "1,073,745,920", "1,012,334,592", "2,147,483,648"),
        *launch(2, SPIN, "0", "0", "0"),
        *launch(3, "void gemm<float, 3>(Params)", "10", "20", "30"),
        *launch(4, "void gemm<float, 3>(Params)", "1", "2", "3"),
        *launch(5, SPIN, "0", "0", "0"),
        "==PROF== Disconnected from process 814",
    ]
)


def test_kernels_belong_to_the_mark_before_them() -> None:
    assert [len(group) for group in parse(TABLE)] == [1, 2, 0]


def test_bytes_are_read_whole_and_added_up() -> None:
    first, second, _ = parse(TABLE)
    assert total(first)[:4] == (1_073_745_920, 1_012_334_592, 2_147_483_648, 1)
    assert total(second)[:4] == (11, 22, 33, 2)


def test_how_busy_units_were_is_known_of_one_kernel_and_not_of_several() -> None:
    first, second, _ = parse(TABLE)
    assert (total(first).tensor_percent, total(first).xu_percent) == (61.25, 40.0)
    assert (total(second).tensor_percent, total(second).xu_percent) == (None, None)


def test_another_unit_is_refused() -> None:
    table = "\n".join([HEADER, line(0, SPIN, "x", "1"), line(1, "k", counters.READ, "1", "Kbyte")])
    with pytest.raises(ValueError, match="ncu counted in 'Kbyte', not in 'byte'"):
        parse(table)


def test_a_kernel_that_lacks_a_metric_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ncu gave no dram__bytes_write\.sum, lts__t_b"):
        total([{counters.READ: 1}])


def test_kernels_before_the_first_mark_are_nobody_s() -> None:
    table = "\n".join([HEADER, *launch(0, "k", "1", "1", "1"), *launch(1, SPIN, "0", "0", "0")])
    assert parse(table) == [[]]


def test_the_clocks_are_left_alone() -> None:
    call = command("ncu", Path("log"), Path("requests"), Path("done"))
    assert call[call.index("--clock-control") + 1] == "none"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("==PROF== x\n==ERROR== ERR_NVGPUCTRPERM - no\nmore", "ERR_NVGPUCTRPERM - no"),
        ("Traceback\nImportError: no torch\n", "ncu recorded nothing: ImportError: no torch"),
        ("", "ncu recorded nothing"),
    ],
)
def test_the_reason_is_one_line(said: str, why: str) -> None:
    assert reason(said) == why


def test_without_ncu_counting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters.shutil, "which", lambda _: None)
    with pytest.raises(RefusedError, match="ncu is not installed"):
        count([("ours", CASE)])


def play(monkeypatch: pytest.MonkeyPatch, table: str, done: list[str | None]) -> None:
    """Let ncu write this table and the child these outcomes."""

    def fake(call: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        Path(call[call.index("--log-file") + 1]).write_text(table)
        Path(call[-1]).write_text("".join(f"{json.dumps(each)}\n" for each in done))
        return subprocess.CompletedProcess(call, 0, "", "")

    monkeypatch.setattr(counters.shutil, "which", lambda _: "/usr/bin/ncu")
    monkeypatch.setattr(counters.subprocess, "run", fake)


def test_each_request_gets_its_bytes_or_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, TABLE, [None, "OutOfMemoryError: 3 GiB", None])
    assert count([(name, CASE) for name in ("ours", "eager", "compile", "liger")]) == [
        Traffic(1_073_745_920, 1_012_334_592, 2_147_483_648, 1, 61.25, 40.0),
        "OutOfMemoryError: 3 GiB",
        "ncu recorded no kernel",
        "the profiled process ended early",
    ]


def test_a_table_without_kernels_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, "==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n", [])
    with pytest.raises(RefusedError, match="Failed to initialize the profiler: LibraryNotLoaded"):
        count([("ours", CASE)])
