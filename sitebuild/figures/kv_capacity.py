"""What fits in each device's HBM: the weights, and beside them conversations of 131,072 tokens."""

from sitebuild.svg import WIDTH, figure, line, rect, text
from snippets.hardware import DEVICES, fact
from snippets.kv_cache import (
    ITEMSIZE,
    KV_HEADS,
    LAYERS,
    PARAMETERS,
    D,
    bytes_per_token,
    sequences_that_fit,
)

TOKENS = 2**17
LEFT, TOP, ROW, BAR = 66.0, 40.0, 38.0, 24.0
SCALE = (WIDTH - LEFT - 10) / fact("B200", "hbm").value  # user units for one byte


def main() -> None:
    per_token, weights = bytes_per_token(LAYERS, KV_HEADS, D, ITEMSIZE), PARAMETERS * ITEMSIZE
    sequence = TOKENS * per_token
    body = [
        rect(LEFT, 8, 14, 14, "wash-strong"),
        text(LEFT + 20, 20, f"weights, {weights / 1e9:.1f} GB"),
        rect(LEFT + 150, 8, 14, 14, "lvl-hbm"),
        text(LEFT + 170, 20, f"one conversation, {sequence / 1e9:.1f} GB"),
    ]
    rows = []
    for index, device in enumerate(DEVICES):
        memory, y = int(fact(device, "hbm").value), TOP + ROW * index
        count = sequences_that_fit(memory, weights, TOKENS, per_token)
        left = memory - weights - count * sequence
        body += [
            text(LEFT - 8, y + 16, device, anchor="end", classes="ink strong"),
            rect(LEFT, y, memory * SCALE, BAR, "wash", f"{device}: {memory / 1e9:.0f} GB"),
            rect(LEFT, y, weights * SCALE, BAR, "wash-strong", "weights"),
        ]
        for slot in range(count):
            x = LEFT + (weights + slot * sequence) * SCALE
            body += [
                rect(x + 1, y + 1, sequence * SCALE - 2, BAR - 2, "lvl-hbm", f"number {slot + 1}"),
                text(x + sequence * SCALE / 2, y + 16, f"{slot + 1}", "middle", "on-level strong"),
            ]
        rows.append((device, f"{memory / 1e9:.0f}", f"{count}", f"{left / 1e9:.1f}"))
    bottom = TOP + ROW * len(DEVICES)
    body.append(line(LEFT, bottom, WIDTH - 10, bottom))
    for gigabytes in (0, 40, 80, 120, 160):
        x = LEFT + gigabytes * 1e9 * SCALE
        body += [line(x, bottom, x, bottom + 5), text(x, bottom + 18, f"{gigabytes}", "middle")]
    body.append(text(WIDTH - 10, bottom + 34, "GB of HBM", anchor="end", classes="soft"))
    print(
        figure(
            "kv-capacity",
            f"Conversations of {TOKENS:,} tokens that fit beside the weights",
            "One bar for each device, as long as its HBM: first the weights, then one block for "
            "each conversation whose KV cache fits; the rest stays empty.",
            bottom + 42,
            body,
            ("Device", "HBM, GB", "Conversations", "Left over, GB"),
            rows,
            f"Each bar is one device's HBM, true to scale. A block is the KV cache of one "
            f"conversation of {TOKENS:,} tokens with Llama 3 8B in bf16. Activations and the "
            "allocator need room too, so these are upper bounds.",
        )
    )


if __name__ == "__main__":
    main()
