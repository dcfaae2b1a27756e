"""Statistics and order of timing, on a clock that the test owns."""

from collections import Counter
from collections.abc import Callable
from itertools import chain, pairwise, permutations

import pytest

from kernels.bench.timing import VISITS, in_turn, interleaved, method, quantiles, warm


class FakeTimer:
    """Each run says how long it took; the timer notes who ran."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def batch(self, run: Callable[[], object], n: int) -> list[float]:
        times = [run() for _ in range(n)]
        self.order.append(run.__name__)
        return times  # type: ignore[return-value]

    def graph(self, run: Callable[[], object]) -> Callable[[], object]:
        return run


def named(name: str, us: Callable[[int], float]) -> Callable[[], float]:
    calls = iter(range(10_000))

    def run() -> float:
        return us(next(calls))

    run.__name__ = name
    return run


def broken() -> float:
    raise RuntimeError("no")


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([5.0], [5.0, 5.0, 5.0]),
        ([2.0, 1.0], [1.2, 1.5, 1.8]),
        ([50.0, 10.0, 30.0, 20.0, 40.0, 60.0], [20.0, 35.0, 50.0]),
    ],
)
def test_quantiles_interpolate(times: list[float], expected: list[float]) -> None:
    assert quantiles(times) == pytest.approx(expected)


def test_quantiles_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one time, got none"):
        quantiles([])


def test_warm_up_goes_on_until_two_batches_agree() -> None:
    timer = FakeTimer()
    falling = [100.0, 100.0, *[80.0] * 5, *[60.0] * 5, *[59.5] * 5, *[1.0] * 5]
    assert warm(timer, named("a", lambda i: falling[i])) == 59.5
    assert len(timer.order) == 4


def test_warm_up_ends_even_if_nothing_settles() -> None:
    timer = FakeTimer()
    warm(timer, named("a", lambda i: 2.0 ** (i % 50)))
    assert len(timer.order) == 13


@pytest.mark.parametrize("names", ["ab", "abcd", "abcdefgh"])
def test_each_implementation_follows_every_other_equally_often(names: str) -> None:
    pairs = Counter(pair for order in in_turn(names) for pair in pairwise(order))
    assert set(pairs) == set(permutations(names, 2))
    assert len(set(pairs.values())) == 1


@pytest.mark.parametrize("names", ["a", "abc", "abcde", "abcdefghijk"])
def test_an_odd_number_of_implementations_follow_each_other_nearly_equally_often(
    names: str,
) -> None:
    pairs = Counter(pair for order in in_turn(names) for pair in pairwise(order))
    assert set(pairs) == set(permutations(names, 2))
    rounds = len(in_turn(names)) // (len(names) + 1)
    assert set(pairs.values()) <= {rounds, 2 * rounds}


@pytest.mark.parametrize("names", ["a", "ab", "abc", "abcdefgh", "abcdefghijk"])
def test_every_order_holds_every_implementation_once(names: str) -> None:
    assert all(sorted(order) == sorted(names) for order in in_turn(names))
    assert len(in_turn(names)) >= VISITS


def test_implementations_run_in_these_orders() -> None:
    timer = FakeTimer()
    interleaved(timer, {name: named(name, lambda _: 1000.0) for name in "abcd"})
    assert "".join(timer.order[-32:]) == "".join(chain.from_iterable(in_turn("abcd")))


def test_both_orders_of_two_give_the_same_times_when_the_clock_drifts() -> None:
    class Drifting(FakeTimer):
        now = 0.0

        def batch(self, _run: Callable[[], object], n: int) -> list[float]:
            self.now += 1.0
            return [1000.0 + self.now] * n

    runs = {name: named(name, lambda _: 0.0) for name in "ab"}
    taken = interleaved(Drifting(), runs)
    means = [sum(times) / len(times) for times in taken.values()]  # type: ignore[arg-type]
    assert means[0] == pytest.approx(means[1])


@pytest.mark.parametrize(("us", "total"), [(10.0, 96), (3000.0, 40), (1e6, 16)])
def test_slow_runs_are_repeated_less_but_never_too_little(us: float, total: int) -> None:
    assert len(interleaved(FakeTimer(), {"a": named("a", lambda _: us)})["a"]) == total  # type: ignore[arg-type]


def test_a_run_that_fails_takes_nothing_from_the_others() -> None:
    late = named("late", lambda i: 1000.0 if i < 30 else broken())
    runs = {"good": named("good", lambda _: 1000.0), "broken": broken, "late": late}
    taken = interleaved(FakeTimer(), runs)
    assert isinstance(taken["broken"], RuntimeError)
    assert isinstance(taken["late"], RuntimeError)
    assert len(taken["good"]) == 96  # type: ignore[arg-type]


def test_the_method_says_that_the_cache_is_cold_and_the_data_random() -> None:
    assert (method()["l2"], method()["inputs"]) == ("cold", "normal distribution")
    assert method()["quantiles"] == [0.2, 0.5, 0.8]
