"""How many conversations fit on a GPU, and what decoding one more token of them costs.

What to notice: the cache grows with the context, prefill with its square, and decoding does so
few FLOP a byte that no device comes near its peak.

Run it: `python -m snippets.kv_cache`
"""

from snippets.hardware import DEVICES, fact, ridge
from snippets.hbm_traffic import attention_flops
from snippets.naive_attention import check_sizes

# Llama 3 8B (source llama3): bf16 weights and cache, 32 query heads on 8 KV heads
LAYERS, HEADS, KV_HEADS, D, PARAMETERS, ITEMSIZE = 32, 32, 8, 128, 8_030_000_000, 2


# --8<-- [start:cache]
def bytes_per_token(layers: int, kv_heads: int, d: int, itemsize: int = 2) -> int:
    """Bytes of keys and values that one token leaves behind in all layers."""
    check_sizes(layers=layers, kv_heads=kv_heads, d=d, itemsize=itemsize)
    return 2 * layers * kv_heads * d * itemsize


def sequences_that_fit(memory: int, weights: int, tokens: int, per_token: int) -> int:
    """Sequences of `tokens` tokens beside the weights, sizes in bytes; an upper bound."""
    check_sizes(memory=memory, weights=weights, tokens=tokens, per_token=per_token)
    return max(0, (memory - weights) // (tokens * per_token))


def decode_intensity(N: int, d: int, group: int, itemsize: int = 2) -> float:
    """FLOP per byte of one new token, its `group` query heads reading the same N keys, values."""
    check_sizes(N=N, d=d, group=group, itemsize=itemsize)
    return 4 * N * d * group / ((2 * N * d + 2 * d * group) * itemsize)


def attention_share(N: int, layers: int, heads: int, d: int, parameters: int) -> float:
    """Attention's share of the FLOP of prefill, causal; each weight does 2 FLOP a token."""
    check_sizes(N=N, layers=layers, heads=heads, d=d, parameters=parameters)
    attention = layers * heads * attention_flops(N, d) / 2  # half by convention when causal
    return attention / (attention + 2 * parameters * N)


# --8<-- [end:cache]


def main() -> None:
    per_token, weights = bytes_per_token(LAYERS, KV_HEADS, D, ITEMSIZE), PARAMETERS * ITEMSIZE
    print(f"a token: 2 x {LAYERS} layers x {KV_HEADS} KV heads x {D} x {ITEMSIZE} B", end=" ")
    print(f"= {per_token:,} B\n")
    print(f"         cache  attention's  sequences beside {weights / 1e9:.1f} GB of weights")
    print(" tokens     GB  prefill FLOP" + "".join(f"{device:>8}" for device in DEVICES))
    for tokens in (2**13, 2**15, 2**17):
        share = attention_share(tokens, LAYERS, HEADS, D, PARAMETERS)
        fits = [
            sequences_that_fit(int(fact(device, "hbm").value), weights, tokens, per_token)
            for device in DEVICES
        ]
        print(f"{tokens:7,} {tokens * per_token / 1e9:6.1f} {share:13.0%}", end="")
        print("".join(f"{count:8}" for count in fits))
    device, keys, sms = "H200", 4096, int(fact("H200", "sms").value)
    print(f"\ndecoding over {keys:,} keys           FLOP/B  of the ridge, {device}")
    for group in (1, 4, 8):
        intensity = decode_intensity(keys, D, group)
        label = f"{group} query heads a KV head" if group > 1 else "1 query head a KV head"
        print(f"  {label:28} {intensity:10.1f} {intensity / ridge(device):14.1%}")
    print(f"\none sequence is {KV_HEADS} programs, one a KV head: {KV_HEADS / sms:.0%}", end=" ")
    print(f"of an {device}'s {sms} SMs")


if __name__ == "__main__":
    main()
