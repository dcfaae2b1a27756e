"""The whole job on a made-up machine: a torch softmax as the kernel, a clock of the test's own."""

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from kernels.bench import cases, counters, job, peers  # noqa: E402
from kernels.bench.counters import RefusedError, Traffic  # noqa: E402
from kernels.bench.exactness import error, relative_rms  # noqa: E402
from kernels.bench.job import Order, joined_clocks, run  # noqa: E402
from kernels.bench.measure import Machine, describe, measure  # noqa: E402
from kernels.bench.schema import faults, read  # noqa: E402
from snippets import captured  # noqa: E402

SHAPES = [{"M": 3, "N": 5}, {"M": 200, "N": 7}]
PATH = "softmax.made_up.json"


class Work(NamedTuple):
    model_bytes: int
    issued_bytes: int
    flops: int


class Timer:
    """Every run takes 100 us of a clock that nobody waits for."""

    us = 100.0

    def batch(self, run: Callable[[], object], n: int) -> list[float]:
        run()
        return [self.us] * n

    def host_us(self, _run: Callable[[], object]) -> float:
        return 50.0

    def graph(self, run: Callable[[], object]) -> Callable[[], object]:
        return run


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "source_digest", lambda _module: "a" * 64)
    monkeypatch.setattr(peers, "names", lambda *_: ("ours", "eager"))


@pytest.fixture
def kernel() -> ModuleType:
    made = ModuleType("made_up")
    made.softmax = lambda x: torch.softmax(x, -1)  # type: ignore[attr-defined]
    made.reference = lambda x: torch.softmax(x.double(), -1)  # type: ignore[attr-defined]
    made.SHAPES = {"bench": SHAPES}  # type: ignore[attr-defined]
    made.work = lambda shape, itemsize, passes="forward": Work(  # type: ignore[attr-defined]  # noqa: ARG005
        2 * shape["M"] * shape["N"] * itemsize, 99, 5 * shape["M"] * shape["N"]
    )

    def inputs(shape: dict[str, int], dtype: Any, device: str, seed: int) -> dict[str, Any]:
        source = torch.Generator(device).manual_seed(seed)
        return {"x": torch.randn(shape["M"], shape["N"], generator=source).to(dtype)}

    made.inputs = inputs  # type: ignore[attr-defined]
    return made


@contextlib.contextmanager
def clocks() -> Iterator[Any]:
    yield type("Clocks", (), {"observed": {"sm_mhz": {"min": 1, "median": 2, "max": 3}}})


@pytest.fixture
def machine() -> Machine:
    return Machine(
        timer=Timer(),
        device="cpu",
        facts={
            "name": "Made up",
            "driver": None,
            "sm_count": 1,
            "l2_bytes": 1,
            "memory_bytes": 1,
            "power_limit_w": None,
        },
        versions=dict.fromkeys(("triton", "cuda", "ptxas", "liger"))
        | {"python": "3.12", "torch": "2.11"},
        ceilings=lambda: {"copy_gb_s": 1.0, "read_gb_s": 1.0, "matmul_tflop_s": 1.0},
        clocks=clocks,
        copy_of=lambda _bytes: lambda: None,
        traffic=lambda wanted: [Traffic(1, 2, 3, 1, 50.0, None) for _ in wanted],
        launches=None,
    )


def test_every_case_is_gated_timed_and_counted(
    tmp_path: Path, kernel: ModuleType, machine: Machine
) -> None:
    assert run("softmax", kernel, machine, Order(tmp_path, commit="c" * 40)) == []
    result = read(tmp_path / PATH)
    ours = [row for row in result["rows"] if row["implementation"] == "ours"]
    assert [(row["dtype"], row["shape"]) for row in ours] == [
        (dtype, shape) for dtype in ("bf16", "fp16") for shape in SHAPES
    ]
    assert ours[0]["us"] == [100.0, 100.0, 100.0]
    assert ours[0]["model_bytes"] == 2 * 3 * 5 * 2
    assert {row["implementation"] for row in result["rows"]} == {"ours", "eager", "copy"}
    assert all(row["passed"] for row in result["exactness"])
    assert result["sessions"][0]["clocks"]["sm_mhz"] == {"min": 1, "median": 2, "max": 3}
    assert [path.name for path in tmp_path.iterdir()] == [PATH]


def test_the_lesson_reads_the_counters(
    tmp_path: Path, kernel: ModuleType, machine: Machine
) -> None:
    run("softmax", kernel, machine, Order(tmp_path, commit="c" * 40))
    first = captured.counters("softmax", tmp_path)[0]
    assert (first.implementation, first.read, first.written) == ("ours", 1, 2)
    assert (first.model_bytes, first.issued_bytes) == (2 * 3 * 5 * 2, 99)


def stopped_at(step: int, machine: Machine) -> Machine:
    """The same machine, interrupted when it starts that step."""
    starts = iter(range(1000))

    @contextlib.contextmanager
    def interrupting() -> Iterator[Any]:
        if next(starts) == step:
            raise KeyboardInterrupt
        with clocks() as observed:
            yield observed

    return machine._replace(clocks=interrupting)


@pytest.mark.parametrize("step", range(6))
def test_an_interrupted_job_keeps_what_was_measured_and_goes_on(
    tmp_path: Path, kernel: ModuleType, machine: Machine, step: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run("softmax", kernel, stopped_at(step, machine), Order(tmp_path))
    assert not (tmp_path / PATH).exists()
    assert run("softmax", kernel, machine, Order(tmp_path)) == []
    result = read(tmp_path / PATH)
    assert len(result["sessions"]) == 2
    assert [row["session"] for row in result["rows"]].count(0) == 3 * min(step, 4)
    assert len(result["rows"]) == 12


def test_an_interrupted_job_leaves_the_old_result_alone(
    tmp_path: Path, kernel: ModuleType, machine: Machine
) -> None:
    run("softmax", kernel, machine, Order(tmp_path))
    old = (tmp_path / PATH).read_bytes()
    with pytest.raises(KeyboardInterrupt):
        run("softmax", kernel, stopped_at(2, machine), Order(tmp_path, again=True))
    assert (tmp_path / PATH).read_bytes() == old
    run("softmax", kernel, machine, Order(tmp_path))  # goes on, though the old result is complete
    assert len(read(tmp_path / PATH)["sessions"]) == 2


def test_what_is_complete_is_measured_again_only_when_asked(
    tmp_path: Path, kernel: ModuleType, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    run("softmax", kernel, machine, Order(tmp_path))
    first = (tmp_path / PATH).stat().st_mtime_ns
    for order in (Order(tmp_path), Order(tmp_path, commit="d" * 40), Order(tmp_path, quick=True)):
        assert run("softmax", kernel, machine, order) == []
        assert (tmp_path / PATH).stat().st_mtime_ns == first
    assert f"{PATH} is complete for this code and machine; --again" in capsys.readouterr().out
    run("softmax", kernel, machine, Order(tmp_path, again=True))
    assert (tmp_path / PATH).stat().st_mtime_ns > first


@pytest.mark.parametrize(
    "what", ["code", "version", "driver", "method", "clean", "whole", "left", "broken"]
)
def test_what_differs_is_measured(
    tmp_path: Path, kernel: ModuleType, machine: Machine, what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    before = Order(tmp_path, dirty=what == "clean", quick=what == "whole")
    if what == "left":
        with pytest.raises(KeyboardInterrupt):
            run("softmax", kernel, stopped_at(1, machine), before)
        run("softmax", kernel, machine, before._replace(deadline=0.0, publish=True))
        next(tmp_path.glob("*.partial")).unlink()
    else:
        run("softmax", kernel, machine, before)
    if what == "code":
        monkeypatch.setattr(job, "source_digest", lambda _module: "b" * 64)
    if what == "version":
        machine = machine._replace(versions={**machine.versions, "torch": "2.12"})
    if what == "driver":
        machine = machine._replace(facts=machine.facts | {"driver": "580"})
    if what == "method":
        changed = job.method() | {"repetitions": "more"}
        monkeypatch.setattr(job, "method", lambda: changed)
    if what == "broken":
        (tmp_path / PATH).write_text("{")
    run("softmax", kernel, machine, Order(tmp_path, dirty=False, commit="e" * 40))
    assert read(tmp_path / PATH)["run"]["commit"] == "e" * 40


def test_a_job_out_of_time_says_what_is_left(
    tmp_path: Path, kernel: ModuleType, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    left = run("softmax", kernel, machine, Order(tmp_path, deadline=0.0))
    assert left[0] == "softmax forward bf16 M3 N5"
    assert left[-1] == "counters of softmax forward bf16 M200 N7"
    assert len(left) == 6
    assert "softmax: 6 of 6 steps are left" in capsys.readouterr().err
    assert not (tmp_path / PATH).exists()


def test_an_unfinished_job_is_published_only_when_asked(
    tmp_path: Path, kernel: ModuleType, machine: Machine
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run("softmax", kernel, stopped_at(1, machine), Order(tmp_path))
    run("softmax", kernel, machine, Order(tmp_path, deadline=0.0))
    assert not (tmp_path / PATH).exists()
    run("softmax", kernel, machine, Order(tmp_path, deadline=0.0, publish=True))
    result = read(tmp_path / PATH)
    assert (len(result["rows"]), result["run"]["left"]) == (3, 5)
    assert len(list(tmp_path.glob("*.partial"))) == 1


def test_refused_counters_leave_their_reason(
    tmp_path: Path, kernel: ModuleType, machine: Machine
) -> None:
    def refuse(_wanted: Any) -> Any:
        raise RefusedError("ncu is not installed")

    assert run("softmax", kernel, machine._replace(traffic=refuse), Order(tmp_path)) == []
    assert read(tmp_path / PATH)["counters"] == "ncu is not installed"


def test_a_kernel_that_is_not_exact_gets_no_time(kernel: ModuleType, machine: Machine) -> None:
    kernel.softmax = lambda x: torch.softmax(x, -1) * 1.1  # type: ignore[attr-defined]
    rows = measure(cases.timed("softmax", kernel)[0], kernel, machine)["rows"]
    assert rows[0]["error"] == "not exact enough: out"
    assert "us" not in rows[0]
    assert rows[1]["us"] == [100.0] * 3


@pytest.mark.parametrize("place", [0, 199])
def test_an_error_in_the_first_or_last_row_is_found(
    kernel: ModuleType, machine: Machine, place: int
) -> None:
    def wrong(x: Any) -> Any:
        out = torch.softmax(x, -1)
        out[place] = 0.0
        return out

    kernel.softmax = wrong  # type: ignore[attr-defined]
    rows = measure(cases.timed("softmax", kernel)[1], kernel, machine)["rows"]
    assert rows[0]["error"] == "not exact enough: out"


def test_nan_is_no_error_but_null_with_its_reason(kernel: ModuleType, machine: Machine) -> None:
    kernel.softmax = lambda x: torch.full_like(x, float("nan"))  # type: ignore[attr-defined]
    first = measure(cases.timed("softmax", kernel)[0], kernel, machine)["exactness"][0]
    assert (first["error"], first["passed"]) == (None, False)
    assert first["reason"] == "not finite where the reference is"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"), "out of memory"),
        (RuntimeError("No available kernel.\nAborting"), "RuntimeError: No available kernel."),
        (ValueError(), "ValueError: no message"),
    ],
)
def test_a_failing_implementation_is_a_row_with_its_error(
    kernel: ModuleType, machine: Machine, fault: Exception, told: str
) -> None:
    def fail(**_: Any) -> Any:
        raise fault

    kernel.softmax = fail  # type: ignore[attr-defined]
    rows = measure(cases.timed("softmax", kernel)[0], kernel, machine)["rows"]
    assert rows[0]["error"] == told == describe(fault)
    assert rows[1]["us"] == [100.0] * 3


def test_a_case_without_a_reference_is_an_error_for_all(
    kernel: ModuleType, machine: Machine
) -> None:
    def fail(**_: Any) -> Any:
        raise torch.OutOfMemoryError

    kernel.reference = fail  # type: ignore[attr-defined]
    rows = measure(cases.timed("softmax", kernel)[0], kernel, machine)["rows"]
    assert [row["error"] for row in rows] == ["out of memory"] * 2


def test_an_impossible_rate_fails_the_row(kernel: ModuleType, machine: Machine) -> None:
    machine = machine._replace(facts=machine.facts | {"name": "NVIDIA H200"})
    machine.timer.us = 0.001  # type: ignore[attr-defined]
    rows = measure(cases.timed("softmax", kernel)[1], kernel, machine)["rows"]
    assert {row["error"] for row in rows} == {"5600 GB/s is above the peak of 4800"}


def test_what_may_wait_for_the_host_is_replayed_from_a_graph_and_a_copy_never(
    kernel: ModuleType, machine: Machine
) -> None:
    case = cases.timed("softmax", kernel)[0]
    machine.timer.us = 101.0  # type: ignore[attr-defined]
    assert not any(row["graph"] for row in measure(case, kernel, machine)["rows"])
    machine.timer.us = 99.0  # type: ignore[attr-defined]
    graphs = {row["implementation"]: row["graph"] for row in measure(case, kernel, machine)["rows"]}
    assert graphs == {"ours": True, "eager": True, "copy": False}


def test_a_result_that_the_schema_refuses_is_not_written(
    tmp_path: Path, kernel: ModuleType, machine: Machine
) -> None:
    broken = machine._replace(ceilings=lambda: {"copy_gb_s": 0.0})
    with pytest.raises(ValueError, match="was not written: sessions/0/ceilings"):
        run("softmax", kernel, broken, Order(tmp_path))
    assert not (tmp_path / PATH).exists()


def test_errors_are_measured_only_where_the_reference_is_finite() -> None:
    inf = float("inf")
    assert error(torch.tensor([1.0, -inf]), torch.tensor([1.5, -inf])) == 0.5
    assert error(torch.tensor([1.0, 0.0]), torch.tensor([1.5, -inf])) is None
    assert error(torch.empty(0, 3), torch.empty(0, 3)) == 0.0
    with pytest.raises(ValueError, match=r"shape \(2,\), not \(3,\)"):
        error(torch.zeros(2), torch.zeros(3))


def test_clocks_of_several_cases_are_joined() -> None:
    one = {"sm_mhz": {"min": 5, "median": 7, "max": 9}, "throttle_reasons": ["0x4"]}
    two = {"sm_mhz": {"min": 6, "median": 8, "max": 8}, "throttle_reasons": ["0x0"]}
    joined = {"sm_mhz": {"min": 5, "median": 7.5, "max": 9}, "throttle_reasons": ["0x0", "0x4"]}
    assert joined_clocks([one, two]) == joined
    assert joined_clocks([{"sm_mhz": None}]) is None


def test_backward_is_gated_on_every_gradient(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "names", lambda *_: ("ours",))
    made = ModuleType("made_up")
    reference = importlib.import_module("kernels.attention_reference")
    made.inputs, made.reference = reference.inputs, reference.reference  # type: ignore[attr-defined]
    made.work = lambda *_: Work(1, 1, 1)  # type: ignore[attr-defined]
    made.flash_attention = lambda **inputs: tuple(  # type: ignore[attr-defined]
        x.to(inputs["q"].dtype)
        for x in reference.reference(**{k: inputs[k] for k in inputs if k != "deterministic"})
    )
    shape = {"B": 2, "H": 4, "H_KV": 2, "N_Q": 6, "N_K": 6, "D": 8, "causal": True}
    record = measure(cases.Case("flash_attention", "backward", "fp16", shape), made, machine)
    assert [row["output"] for row in record["exactness"]] == ["dq", "dk", "dv"]
    assert all(row["passed"] for row in record["exactness"])
    assert record["rows"][0]["us"] == [100.0] * 3


def test_a_row_is_valid_by_the_schema_even_if_it_is_an_error(
    tmp_path: Path, kernel: ModuleType, machine: Machine
) -> None:
    def fail(**_: Any) -> Any:
        raise torch.OutOfMemoryError

    kernel.softmax = fail  # type: ignore[attr-defined]
    run("softmax", kernel, machine, Order(tmp_path))
    assert faults(read(tmp_path / PATH)) == []


def test_requests_of_the_profiled_child_are_named_as_the_child_reads_them() -> None:
    request = ["ours", *cases.Case("softmax", "forward", "bf16", {"M": 1})]
    assert cases.Case(*request[1:]).shape == {"M": 1}
    assert counters.MARK in "void at::cuda::spin_kernel(long)"


@pytest.mark.parametrize(
    ("stem", "shape"),
    [
        ("softmax", {"M": 150, "N": 40}),
        ("matmul", {"M": 70, "N": 24, "K": 40}),
        ("flash_decode", {"B": 2, "H": 4, "H_KV": 2, "N_Q": 1, "N_K": 70, "D": 32}),
    ],
)
def test_the_real_kernels_pass_the_gate(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, stem: str, shape: dict[str, Any]
) -> None:
    pytest.importorskip("triton", reason="needs triton")
    monkeypatch.setattr(peers, "names", lambda *_: ("ours",))
    module = importlib.import_module(f"kernels.{stem}")
    record = measure(cases.Case(stem, "forward", "fp16", shape), module, machine)
    assert all(row["passed"] for row in record["exactness"])
    assert record["rows"][0]["us"] == [100.0] * 3


def test_a_root_mean_square_error_is_relative_and_skips_what_is_not_finite() -> None:
    expected = torch.tensor([3.0, -4.0, -math.inf], dtype=torch.float64)
    seen = torch.tensor([3.0, -3.5, -math.inf])
    assert relative_rms(seen, expected) == pytest.approx(0.1)
    assert relative_rms(torch.zeros(3), torch.zeros(3)) == 0.0
