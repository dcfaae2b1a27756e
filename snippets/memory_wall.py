"""Five estimates that decide about a kernel, each made from memory and then with care.

What to notice: a binary unit moves the ridge by 5 %, and a kernel near it to the other side; a
guessed intensity answers for whichever way of counting bytes you did not mean.

Run it: `python -m snippets.memory_wall`
"""

from snippets.fusion import chain, fuse, traffic
from snippets.hardware import dense_peak, fact
from snippets.hbm_traffic import attention_flops, compulsory_bytes, issued_bytes, naive_bytes
from snippets.naive_attention import check_sizes
from snippets.roofline import attainable, bound, intensity, ridge_point
from snippets.tile_budget import tile_bytes

GIB, DEVICE = 1024**3, "A100-80"
REMEMBERED = 312e12, 2000.0 * GIB  # FLOP/s, B/s; but data sheets count in powers of ten


# --8<-- [start:estimates]
def passes_bytes(N: int, passes: int, itemsize: int = 2) -> int:
    """Bytes of so many reads or writes of an N x N matrix."""
    check_sizes(N=N, passes=passes, itemsize=itemsize)
    return passes * N * N * itemsize


def fusion_bytes(elements: int, operations: int, itemsize: int = 2) -> tuple[int, int]:
    """Bytes of elementwise operations as one kernel each, and as one kernel for all."""
    check_sizes(elements=elements, operations=operations, itemsize=itemsize)
    kernels = chain(operations)
    sizes = {f"t{i}": elements * itemsize for i in range(operations + 1)}
    return traffic(kernels, sizes), traffic([fuse(kernels, [f"t{operations}"])], sizes)


def row_tile(N: int, memory: int, itemsize: int = 4) -> tuple[int, int]:
    """Largest power of two of a bare row's elements that fits `memory` bytes; tiles in the row."""
    check_sizes(N=N, memory=memory, itemsize=itemsize)
    check_sizes(elements_that_fit=memory // itemsize)
    block = 1 << (min(memory // itemsize, N).bit_length() - 1)
    return block, -(-N // block)


# --8<-- [end:estimates]


def main() -> None:
    peak, rate = dense_peak(DEVICE, "bf16"), fact(DEVICE, "hbm_rate").value
    print("1 side of the ridge        FLOP/B     remembered     data sheet")
    print(f"  bandwidth {REMEMBERED[1] / GIB:31.0f} GiB/s {rate / 1e9:9.0f} GB/s")
    print(f"  the ridge itself {ridge_point(*REMEMBERED):30.1f} {ridge_point(peak, rate):14.1f}")
    for gflop, mb in ((200, 600), (300, 2000), (0.1, 800)):
        x = intensity(gflop * 1e9, mb * 1e6)
        sides = f"{bound(x, *REMEMBERED):>14} {bound(x, peak, rate):>14}"
        print(f"  {f'{gflop} GFLOP over {mb} MB':24} {x:6.1f} {sides}")
    adds = dense_peak(DEVICE, "fp32") / 2  # the peak counts multiply-adds; additions get half
    for dtype, size in (("fp32", 4), ("bf16", 2)):
        x = intensity(1, 3 * size)  # two reads and a write for one addition
        print(f"  {f'c = a + b in {dtype}':24} {x:6.3f} {bound(x, adds, rate):>29}")
    print(f"  the last two against the ridge of fp32 additions, {adds / rate:.1f} FLOP/B")
    print("\n2 N x N, GiB   3 passes   4 passes   naive attention, d=64, MB")
    for N in (1024, 4096, 8192, 16384):
        three, four = passes_bytes(N, 3) / GIB, passes_bytes(N, 4) / GIB
        print(f"  {N:10,} {three:10.2f} {four:10.2f} {naive_bytes(N, 64) / 1e6:28.2f}")
    print("\n3 attainable                        FLOP/B   TFLOP/s")
    for name, x in (("a guess, not fused", 5), ("a guess, fused", 120)):
        print(f"  {name:33} {x:6.1f} {attainable(x, *REMEMBERED) / 1e12:9.1f}")
    counts = {"naive": naive_bytes(4096, 64), "fused, issued": issued_bytes(4096, 64)}
    counts["fused, compulsory"] = compulsory_bytes(4096, 64)
    for name, moved in counts.items():
        x = intensity(attention_flops(4096, 64), moved)
        print(f"  {f'N=4096, d=64, {name}':33} {x:6.1f} {attainable(x, peak, rate) / 1e12:9.1f}")
    print("\n4 fusing 5, GiB   one by one  fused  saved        a tensor  in L2?")
    for side in (8192, 1024):
        before, after = fusion_bytes(side * side, operations=5)
        saved = before - after
        print(f"  {f'{side} x {side}':15} {before / GIB:10.2f} {after / GIB:6.2f}", end="")
        print(f" {saved / GIB:6.2f}, {saved / before:.0%} {after / 2e6:7.1f} MB", end="")
        print(f"{'yes' if after / 2 <= fact(DEVICE, 'l2').value else 'no':>7}")
    (block, tiles), devices = row_tile(8192, 100 * 1024), (DEVICE, "H200")
    print("\n5 tile, KiB         needs   next K   left on " + "   left on ".join(devices))
    print(f"  row of 8192, fp32 {8192 * 4 / 1024:7.1f}  in 100 KiB: BLOCK {block}, tiles: {tiles}")
    for d in (64, 128):
        tile = tile_bytes(128, 128, d)
        left = [fact(device, "shared_per_block").value - sum(tile.values()) for device in devices]
        kib = [size / 1024 for size in (sum(tile.values()), tile["K"], *left)]
        print("  {:17} {:7.1f} {:8.1f} {:17.1f} {:14.1f}".format(f"128 x 128, d={d}", *kib))


if __name__ == "__main__":
    main()
