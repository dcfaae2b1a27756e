"""The model of a GPU's memory."""

import pytest

from snippets import model_memory
from snippets.model_memory import Tensor


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    model_memory.main()
    return capsys.readouterr().out.splitlines()


def test_loads_the_elements_at_the_offsets_from_its_own_start() -> None:
    assert Tensor([0.0, 1.0, 2.0, 3.0], 1, 3).load([2, 0]) == [3.0, 1.0]


def test_a_masked_load_returns_the_filler_and_touches_nothing() -> None:
    x = Tensor([1.0, 2.0], 0, 2)
    assert x.load([0, 5], [True, False], other=-1.0) == [1.0, -1.0]
    assert x.loaded == [0]


def test_a_load_without_mask_returns_the_neighbour() -> None:
    x = Tensor([1.0, 2.0, 9.0], 0, 2)
    assert x.load([1, 2]) == [2.0, 9.0]
    assert x.outside(x.loaded) == [2]


def test_a_load_before_the_start_is_outside_too() -> None:
    x = Tensor([7.0, 1.0], 1, 1)
    assert x.load([-1]) == [7.0]
    assert x.outside(x.loaded) == [-1]


def test_a_masked_store_leaves_memory_alone() -> None:
    memory = [1.0, 2.0, 3.0]
    x = Tensor(memory, 0, 3)
    x.store([0, 1, 2], [7.0, 8.0, 9.0], [True, False, True])
    assert memory == [7.0, 2.0, 9.0]
    assert x.stored == [0, 2]


def test_a_store_without_mask_damages_the_neighbour() -> None:
    memory = [1.0, 2.0]
    x = Tensor(memory, 0, 1)
    x.store([0, 1], [7.0, 8.0])
    assert memory == [7.0, 8.0]
    assert x.outside(x.stored) == [1]


def test_a_masked_address_outside_memory_is_no_fault() -> None:
    x = Tensor([1.0], 0, 1)
    assert x.load([0, 100], [True, False], other=0.5) == [1.0, 0.5]


def test_prints_the_neighbour_only_without_a_mask(capsys: pytest.CaptureFixture[str]) -> None:
    out = lines(capsys)
    assert out[1].split()[2:] == ["1", "2", "3", "4", "5", "0", "0", "0", "outside", "[]"]
    assert out[2].split()[2:10] == ["1", "2", "3", "4", "5", "60", "70", "80"]
    assert out[2].endswith("outside [5, 6, 7]")
    assert out[3].split()[-3:] == ["0", "0", "0"]


def test_prints_lines_of_at_most_72_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in lines(capsys)) <= 72


@pytest.mark.parametrize("offset", [2, 10, -2])
def test_refuses_an_address_outside_the_whole_memory(offset: int) -> None:
    x = Tensor([1.0, 2.0, 3.0], 1, 2)
    with pytest.raises(ValueError, match=r"illegal address .*, memory has 3 elements"):
        x.load([offset])
    with pytest.raises(ValueError, match=r"illegal address .*, memory has 3 elements"):
        x.store([offset], [0.0])


@pytest.mark.parametrize("size", [0, -1, True, 1.0])
def test_refuses_a_size_that_is_not_a_positive_integer(size: int) -> None:
    with pytest.raises(ValueError, match="size must be an integer of at least 1, got"):
        Tensor([1.0, 2.0], 0, size)


@pytest.mark.parametrize("start", [-1, 2, 5])
def test_refuses_a_tensor_that_does_not_lie_in_memory(start: int) -> None:
    with pytest.raises(ValueError, match=f"start must be in 0..1, got {start}"):
        Tensor([1.0, 2.0], start, 1)


def test_refuses_a_mask_of_another_length() -> None:
    x = Tensor([1.0, 2.0], 0, 2)
    with pytest.raises(ValueError, match="zip"):
        x.load([0, 1], [True])
    with pytest.raises(ValueError, match="zip"):
        x.store([0, 1], [0.0, 0.0], [True])
