"""What the explorer's page is given: device figures, captured points, and its table."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from kernels.bench.digest import source_digest
from sitebuild.explorer import LIMITS, captured, dtypes, explore, form, row_of, standard_shapes
from sitebuild.kernel_results import RESULTS
from snippets.hardware import DEVICES, dense_peak, fact

H200 = RESULTS / "flash_attention.h200.json"


def given(html: str) -> Any:
    return json.loads(unescape(re.search(r"data-explorer='([^']*)'", html)[1]))


def test_the_page_gets_the_figures_of_the_hardware_table_unrounded() -> None:
    devices = given(form())["devices"]
    assert {name: device["rate"] for name, device in devices.items()} == {
        name: fact(name, "hbm_rate").value for name in DEVICES
    }
    assert devices["H200"]["peaks"]["bf16"] / devices["H200"]["rate"] == 989.4e12 / 4.8e12
    assert {name: device["peaks"]["fp16"] for name, device in devices.items()} == {
        name: dense_peak(name, "bf16") for name in DEVICES
    }


def test_a_device_has_only_the_data_types_that_its_table_has() -> None:
    assert list(dtypes("A100-80")) == ["bf16", "fp16", "tf32", "fp32"]
    assert list(dtypes("H200")) == ["bf16", "fp16", "fp8", "tf32", "fp32"]


def test_the_counts_of_one_head_at_every_limit_are_exact_in_a_browser() -> None:
    sizes = {name: limit for name, limit in LIMITS.items() if name not in ("B", "H")}
    counts = explore("H200", "fp32", B=1, H=1, **sizes)
    assert max(count.bytes for count in counts) < 2**53
    assert 4 * LIMITS["N"] ** 2 * LIMITS["d"] < 2**53


def test_every_plain_forward_row_that_was_timed_is_a_point() -> None:
    result = json.loads(H200.read_text("utf-8"))
    rows = [
        row
        for row in result["rows"]
        if row["pass"] == "forward"
        and "us" in row
        and not row["shape"]["causal"]
        and row["shape"]["H"] == row["shape"]["H_KV"]
        and row["shape"]["N_Q"] == row["shape"]["N_K"]
    ]
    (found,) = captured()
    assert found["device"] == "H200"
    assert len(found["points"]) == len(rows) > 100
    assert [point[:6] for point in found["points"]] == [
        [row["implementation"], row["dtype"], *(row["shape"][n] for n in ("B", "H", "N_Q", "D"))]
        for row in rows
    ]
    assert [point[7] for point in found["points"]] == pytest.approx(
        [row["flops"] / (row["us"][1] * 1e-6) / 1e12 for row in rows], rel=1e-12
    )
    assert "commit " + result["run"]["commit"][:10] in found["origin"]
    assert not re.search(r"[*`]", found["origin"])


def test_without_a_result_there_is_no_point(tmp_path: Path) -> None:
    assert given(form(tmp_path))["captured"] == []


def test_a_result_of_other_code_is_called_stale(tmp_path: Path) -> None:
    result = json.loads(H200.read_text("utf-8"))
    result["run"]["source_digest"] = "0" * 64
    (tmp_path / H200.name).write_text(json.dumps(result), "utf-8")
    assert captured(tmp_path)[0]["mark"].startswith("Stale: the kernel's code has changed")


def test_a_result_of_this_code_is_not_called_stale(tmp_path: Path) -> None:
    result = json.loads(H200.read_text("utf-8"))
    result["run"]["source_digest"] = source_digest("kernels.flash_attention")
    (tmp_path / H200.name).write_text(json.dumps(result), "utf-8")
    assert captured(tmp_path)[0]["mark"] == ""
    assert captured(tmp_path)[0]["origin"].startswith("Captured on NVIDIA H200, 20")


@pytest.mark.parametrize(
    ("name", "memory", "row"),
    [
        ("NVIDIA H200", 150_109_880_320, "H200"),
        ("NVIDIA A100-SXM4-80GB", 85_000_000_000, "A100-80"),
        ("NVIDIA A100-SXM4-40GB", 42_000_000_000, "A100-40"),
        ("NVIDIA H100 80GB HBM3", 85_000_000_000, "H100"),
        ("NVIDIA H100 PCIe", 85_000_000_000, None),
        ("NVIDIA L4", 24_000_000_000, None),
    ],
)
def test_a_driver_s_name_leads_to_the_row_with_its_memory(
    name: str, memory: int, row: str | None
) -> None:
    assert row_of({"name": name, "memory_bytes": memory}) == row


def test_the_table_shows_the_values_of_the_reference() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in standard_shapes().splitlines()
        if line.startswith("|")
    ]
    megabytes = {(row[0].replace("\xa0", " "), row[1]): row[2] for row in rows[2:]}
    assert megabytes["16,384, 64", "naive"] == "2,155.87"
    assert megabytes["16,384, 64", "tile-issued"] == "541.13"
    assert megabytes["16,384, 64", "compulsory"] == "8.39"
    assert megabytes["16,384, 128", "tile-issued"] == "1,082.20"
    assert "The ridge lies at 206.1 FLOP/B" in standard_shapes()
