"""Conversations in a paged cache

A server keeps the KV cache in pages of `page` tokens each. A conversation takes whole pages and
shares none. Those of the given `lengths`, in tokens, are admitted in their order until one does
not fit. Return how many are. `free` is the memory for the cache, in bytes. The model has `layers`
layers with `heads` query heads on `kv_heads` KV heads of `d` bf16 numbers each.

Hint: How many bytes does one token leave behind? A key and a value for each KV head of each
layer; queries are not kept.

Hint: The last page of a conversation is rarely full and is taken all the same, so round up, one
conversation at a time. Memory that is too small for a page is no page, so round that down.

Hint: Subtract the pages of one conversation after another, and stop at the first that does not
fit, even if a later one would.

Check it: `python -m snippets.practice.paged_cache answer.py`
"""


def admitted(
    lengths: list[int],
    free: int,
    page: int,
    layers: int,
    heads: int,
    kv_heads: int,
    d: int,
) -> int:
    """Return how many of the conversations fit, in their order."""
    # solution
    pages = free // (page * 2 * layers * kv_heads * d * 2)
    for count, tokens in enumerate(lengths):
        pages -= -(-tokens // page)
        if pages < 0:
            return count
    return len(lengths)
    # end


# check
from collections.abc import Iterator

from snippets.practice.grading import Case, call, main

SIGNATURE = "admitted(lengths, free, page, layers, heads, kv_heads, d)"


def by_writing(
    lengths: list[int], free: int, page: int, layers: int, heads: int, kv_heads: int, d: int
) -> int:
    """Write the cache token by token, and take a page from the free memory when one is full."""
    row = bytes(d * 2)  # one key or value of one KV head, in bf16
    token = len(row) * len([(layer, head) for layer in range(layers) for head in range(kv_heads)])
    for number, tokens in enumerate(lengths):
        room = 0
        for _ in range(tokens):
            if room == 0:
                if free < page * (token + token):
                    return number
                free -= page * (token + token)
                room = page
            room -= 1
    return len(lengths)


def cases() -> Iterator[Case]:
    """Models that fit in the head, whole and ragged pages, edges, and a real model."""
    inputs = [
        (([1, 1, 1, 1], 8, 1, 1, 1, 1, 1), "A token has a key and a value: 4 bytes."),
        (([1, 1, 1, 1], 16, 1, 2, 1, 1, 1), "Each layer has a cache of its own."),
        (([1, 1, 1, 1], 16, 1, 1, 8, 2, 1), "Only KV heads are cached, not query heads."),
        (([4, 4], 32, 4, 1, 1, 1, 1), "Both fill their page, and the memory, to the last byte."),
        (([4, 4], 31, 4, 1, 1, 1, 1), "One byte short of the second page."),
        (([5, 1], 32, 4, 1, 1, 1, 1), "Five tokens take two pages of four, and share none."),
        (([1] * 9, 128, 4, 1, 1, 1, 1), "A page is taken whole for a single token."),
        (
            ([4, 40, 4], 64, 4, 1, 1, 1, 1),
            "The second does not fit, and the third waits behind it.",
        ),
        (([9], 32, 4, 1, 1, 1, 1), "Not even one fits."),
        (([], 32, 4, 1, 1, 1, 1), "Nobody asks."),
        (([4], 0, 4, 1, 1, 1, 1), "There is no memory."),
        (([8192, 3000, 100, 20_000, 1] * 12, 40 * 10**9, 256, 32, 32, 8, 128), "A real model."),
    ]
    for arguments, why in inputs:
        yield call(SIGNATURE, arguments, by_writing(*arguments), why)


if __name__ == "__main__":
    main(cases())
