"""The solutions of the exercises on paper, against the labs that a reader would check them with."""

import math
import re

import pytest

from sitebuild.labs import ROOT
from snippets.adoption import months_to_break_even, speedup_of_step
from snippets.bytes_in_flight import bytes_needed, sustained_rate
from snippets.flash_attention import walk
from snippets.full_attention import K, Q, V
from snippets.fusion import chain, fuse, traffic
from snippets.hbm_traffic import issued_bytes, naive_bytes
from snippets.model_memory import Tensor
from snippets.naive_attention import ledger, total
from snippets.online_softmax import empty, finish, update
from snippets.roofline import bound
from snippets.roofs import peaks
from snippets.triton_kernels import softmax_kernel


def solution(stem: str) -> str:
    page = (ROOT / "docs" / "lessons" / f"{stem}.md").read_text("utf-8")
    (found,) = re.findall(r'^\?\?\? success "Solution"\n((?: {4}.*\n|\n)+)', page, re.M)
    return " ".join(found.split())


def missing(stem: str, *expected: str) -> list[str]:
    return [part for part in expected if part not in solution(stem)]


def test_bytes_in_flight() -> None:
    needed = bytes_needed(2e12, 500e-9)
    an_sm = needed / 100
    half = sustained_rate(needed / 2, 2e12, 500e-9)
    figures = (f"{needed:,.0f} bytes", f"{an_sm:,.0f} bytes", f"{an_sm / 1024:.1f} KiB")
    assert missing("gpu_model", *figures, f"{half / 1e12:.0f} TB/s") == []


def test_p_stays_on_the_chip() -> None:
    steps = ledger(4096, 4096, 64)
    all_bytes = total(steps).read + total(steps).written
    left = all_bytes - 2 * steps[1].written
    figures = (f"{left:,}", f"{left / 1e6:.2f} MB", f"{all_bytes / 1e6:.2f} MB")
    assert missing("naive_attention", *figures, f"{total(steps).flops / left:.1f}") == []
    assert missing("naive_attention", f"{4 * 4096**2:,} + {8 * 4096 * 64:,} = {left:,}") == []


def test_a_tile_for_a_quarter_of_the_bytes() -> None:
    naive = naive_bytes(16384, 128)
    ratios = [f"{naive / issued_bytes(16384, 128, tile):.2f}" for tile in (256, 512)]
    assert missing("hbm_traffic", *ratios, f"{512 * 128 * 4 // 1024} KiB") == []


def test_one_query_other_tiles() -> None:
    one, four = ([step.states[0] for step in walk([Q[2]], K, V, 1, size)] for size in (1, 4))
    assert [state.m for state in one] == [0, 1, 1, 2]
    assert one[-1].l == pytest.approx(math.exp(-2) + 2 * math.exp(-1) + 1)
    assert four[-1].l == pytest.approx(one[-1].l)
    assert four[-1].acc == pytest.approx(one[-1].acc)
    assert missing("flash_attention", "goes 0, 1, 1, 2", "$l = e^{-2} + 2e^{-1} + 1$") == []


def test_three_tiles_by_hand() -> None:
    first = update(empty(1), [2.0, 2.0], [[1.0], [3.0]])
    second = update(first, [4.0], [[8.0]])
    masked = update(second, [-math.inf], [[5.0]])
    states = [f"({s.m:.4g}, {s.l:.4g}, {s.acc[0]:.4g})" for s in (first, second)]
    assert missing("online_softmax", *states, f"{finish(second)[0][0]:.3f}") == []
    assert masked == second


def test_a_fused_activation() -> None:
    size = 2 * 4096**2
    sizes = dict.fromkeys(["t0", "t1", "t2"], size)
    apart, fused = traffic(chain(2), sizes), traffic([fuse(chain(2), ["t2"])], sizes)
    figures = [f"{moved / 1e6:.2f} MB" for moved in (size, apart, fused)]
    intensity, peak = 10 * 4096**2 / fused, peaks("H200")["FP32, adds"]
    figures += [f"{intensity:.1f} FLOP/B", f"{peak / 4.8e12:.1f}", bound(intensity, peak, 4.8e12)]
    assert missing("roofline", *figures) == []


def test_loads_without_a_mask() -> None:
    x, y = Tensor([1.0] * 40, 0, 15), Tensor([0.0] * 40, 0, 15)
    softmax_kernel(2, x, y, 5, 5, 5, 8, mask_loads=False)
    assert missing("triton_kernels", f"`{x.outside(x.loaded)}`") == []
    assert (x.loaded[0], x.loaded[-1]) == (10, 17)
    assert y.memory[10:15] == [1 / 8] * 5


def test_when_a_kernel_pays() -> None:
    gain = speedup_of_step(0.25, 1.3)
    freed, months = 256 * (1 - 1 / gain), months_to_break_even(gain, 256, 30, 2.5)
    figures = (f"{gain:.3f}", f"{1 - 1 / gain:.1%}".replace("%", " %"), f"{freed:.1f} of 256")
    assert missing("memory_wall", *figures, f"30 / {freed - 2.5:.1f} gives {months:.1f}") == []
    assert missing("memory_wall", f"Of 40 GPUs {40 * (1 - 1 / gain):.1f}") == []
    assert months_to_break_even(gain, 40, 30, 2.5) == math.inf
