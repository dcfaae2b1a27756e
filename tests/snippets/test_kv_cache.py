"""The KV cache: bytes a token, sequences that fit, and the intensity of decoding."""

import random

import pytest

from snippets.hardware import fact, ridge
from snippets.kv_cache import (
    HEADS,
    KV_HEADS,
    PARAMETERS,
    D,
    attention_share,
    bytes_per_token,
    decode_intensity,
    main,
    sequences_that_fit,
)

WEIGHTS = 16_060_000_000


def cached_bytes(layers: int, kv_heads: int, d: int, itemsize: int) -> int:
    """Bytes that one token stores, one number at a time."""
    numbers = [
        (layer, head, kind, i)
        for layer in range(layers)
        for head in range(kv_heads)
        for kind in "KV"
        for i in range(d)
    ]
    return len(set(numbers)) * itemsize


def packed(memory: int, weights: int, tokens: int, per_token: int) -> int:
    """Put sequences into memory until the next does not fit."""
    used, count = weights, 0
    while used + tokens * per_token <= memory:
        used, count = used + tokens * per_token, count + 1
    return count


def decode_ledger(N: int, d: int, group: int, itemsize: int) -> tuple[int, int]:
    """FLOP and bytes of one new token on one KV head, one query head after the other."""
    flops = sum(2 * d + 2 * d for _ in range(group) for _ in range(N))  # q.k, then p v
    keys_and_values = 2 * N * d * itemsize  # read once for the whole group
    queries_and_outputs = sum(2 * d * itemsize for _ in range(group))
    return flops, keys_and_values + queries_and_outputs


def prefill_flops(N: int, layers: int, heads: int, d: int, parameters: int) -> tuple[float, int]:
    """FLOP of causal attention by the half convention, and of the weights, token by token."""
    attention = sum(2 * d + 2 * d for _ in range(N) for _ in range(N)) * heads * layers / 2
    return attention, sum(2 * parameters for _ in range(N))


def test_a_token_of_the_model_takes_131072_bytes() -> None:
    assert bytes_per_token(32, 8, 128) == 131_072


def test_128k_tokens_take_17_2_gb() -> None:
    assert f"{2**17 * bytes_per_token(32, 8, 128) / 1e9:.1f}" == "17.2"


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 2, 5, 2), (4, 8, 16, 4), (2, 1, 7, 1)])
def test_bytes_a_token_are_those_counted_one_by_one(sizes: tuple[int, int, int, int]) -> None:
    assert bytes_per_token(*sizes) == cached_bytes(*sizes)


@pytest.mark.parametrize(
    ("device", "count"), [("A100-40", 1), ("A100-80", 3), ("H100", 3), ("H200", 7), ("B200", 9)]
)
def test_conversations_of_128k_that_fit(device: str, count: int) -> None:
    memory = int(fact(device, "hbm").value)
    assert sequences_that_fit(memory, WEIGHTS, 2**17, 131_072) == count


@pytest.mark.parametrize("seed", range(30))
def test_as_many_fit_as_can_be_packed(seed: int) -> None:
    draw = random.Random(seed)
    memory, weights = draw.randint(1, 10_000), draw.randint(1, 10_000)
    tokens, per_token = draw.randint(1, 30), draw.randint(1, 30)
    expected = packed(memory, weights, tokens, per_token)
    assert sequences_that_fit(memory, weights, tokens, per_token) == expected


def test_the_last_byte_counts() -> None:
    assert sequences_that_fit(100, 40, 6, 10) == 1
    assert sequences_that_fit(99, 40, 6, 10) == 0


def test_nothing_fits_where_the_weights_do_not() -> None:
    assert sequences_that_fit(10, 1000, 1, 1) == 0


@pytest.mark.parametrize(("group", "expected"), [(1, "1.0"), (4, "4.0"), (8, "8.0")])
def test_decoding_does_about_one_flop_a_byte_for_each_head_of_the_group(
    group: int, expected: str
) -> None:
    assert f"{decode_intensity(4096, 128, group):.1f}" == expected


@pytest.mark.parametrize("sizes", [(1, 1, 1, 2), (7, 3, 5, 2), (300, 64, 8, 1), (33, 16, 4, 4)])
def test_decode_intensity_is_that_of_the_ledger(sizes: tuple[int, int, int, int]) -> None:
    flops, moved = decode_ledger(*sizes)
    assert decode_intensity(*sizes) == pytest.approx(flops / moved)


@pytest.mark.parametrize("itemsize", [1, 2, 4])
@pytest.mark.parametrize("group", [1, 4, 8])
def test_decode_intensity_stays_below_its_limit_and_comes_near(group: int, itemsize: int) -> None:
    limit = 2 * group / itemsize
    assert 0.999 * limit < decode_intensity(2**17, 128, group, itemsize) < limit


def test_decoding_stays_memory_bound_on_every_data_type_of_an_h200() -> None:
    assert decode_intensity(2**17, 128, 8) < ridge("H200") / 20


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1), (16, 2, 3, 4, 500), (50, 4, 2, 8, 10_000)])
def test_attention_share_is_that_of_the_counted_flop(sizes: tuple[int, ...]) -> None:
    attention, weights = prefill_flops(*sizes)
    assert attention_share(*sizes) == pytest.approx(attention / (attention + weights))


@pytest.mark.parametrize(("tokens", "share"), [(2**13, "12%"), (2**15, "35%"), (2**17, "68%")])
def test_attention_takes_over_prefill_as_the_context_grows(tokens: int, share: str) -> None:
    assert f"{attention_share(tokens, 32, HEADS, D, PARAMETERS):.0%}" == share


@pytest.mark.parametrize("bad", [0, -1, True, 1.5])
def test_sizes_that_are_not_whole_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match=f"kv_heads must be an integer of at least 1, got {bad}"):
        bytes_per_token(32, bad, 128)
    with pytest.raises(ValueError, match=f"group must be an integer of at least 1, got {bad}"):
        decode_intensity(4096, 128, bad)
    with pytest.raises(ValueError, match=f"tokens must be an integer of at least 1, got {bad}"):
        sequences_that_fit(100, 10, bad, 1)
    with pytest.raises(ValueError, match=f"N must be an integer of at least 1, got {bad}"):
        attention_share(bad, 1, 1, 1, 1)


def test_memory_must_be_bytes_and_not_a_float() -> None:
    with pytest.raises(ValueError, match=r"memory must be an integer of at least 1, got 1410*\.0"):
        sequences_that_fit(fact("H200", "hbm").value, WEIGHTS, 1, 1)  # type: ignore[arg-type]


def test_prints_capacity_share_and_intensity(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert out.startswith("a token: 2 x 32 layers x 8 KV heads x 128 x 2 B = 131,072 B\n")
    assert "131,072 17.2 68% 1 3 3 7 9" in lines
    assert "4 query heads a KV head 4.0 1.9%" in lines
    assert f"one sequence is {KV_HEADS} programs" in out
    assert "6% of an H200's 132 SMs" in out
    assert max(map(len, out.splitlines())) <= 72
