"""Whether a tile of attention fits on an SM, and what is left when it does.

What to notice: at d = 128 a 128 x 128 tile just fits into shared memory and leaves no room for the
next K. With S and O in registers there is room, if enough threads share those registers.

Run it: `python -m snippets.tile_budget`
"""

from snippets.hardware import fact
from snippets.naive_attention import check_sizes

WARP = 32  # threads


# --8<-- [start:budget]
def tile_bytes(br: int, bc: int, d: int, e: int = 2) -> dict[str, int]:
    """Bytes of what a tile needs: Q, K, V with e bytes an element, S and O in fp32."""
    check_sizes(br=br, bc=bc, d=d, e=e)
    sizes = {"Q": br * d * e, "K": bc * d * e, "V": bc * d * e}
    return sizes | {"S": br * bc * 4, "O": br * d * 4}


def split(br: int, bc: int, d: int, stages: int, e: int = 2) -> tuple[int, int]:
    """Bytes in shared memory, Q and `stages` tiles of K and V, and in registers, S and O."""
    check_sizes(stages=stages)
    tile = tile_bytes(br, bc, d, e)
    return tile["Q"] + stages * (tile["K"] + tile["V"]), tile["S"] + tile["O"]


def registers_per_thread(registers: int, warps: int) -> float:
    """4-byte registers a thread when `warps` warps share so many bytes."""
    check_sizes(registers=registers, warps=warps)
    return registers / (4 * WARP * warps)


def programs_per_sm(device: str, shared: int, registers: int, warps: int) -> int:
    """Programs of so many bytes that an SM holds at once; 0 when one alone does not fit."""
    check_sizes(shared=shared, registers=registers, warps=warps)
    per_sm, per_block = (int(fact(device, f"shared_per_{of}").value) for of in ("sm", "block"))
    most = fact(device, "max_registers").value
    if shared > per_block or registers_per_thread(registers, warps) > most:
        return 0
    by_shared = per_sm // (shared + per_sm - per_block)  # each block also costs the reserve
    by_registers = int(fact(device, "registers_per_sm").value) // registers
    return min(by_shared, by_registers, int(fact(device, "warp_slots").value) // warps)


# --8<-- [end:budget]


def main() -> None:
    device = "H200"
    print("bytes of a tile: Q, K, V at 2 bytes an element, S and O in fp32")
    print(" Br   Bc    d        Q        K        V        S        O     total")
    for br, bc, d in ((128, 128, 64), (128, 128, 128)):
        sizes = list(tile_bytes(br, bc, d).values())
        print(f"{br:3} {bc:4} {d:4}", *(f"{size:8,}" for size in sizes), f"{sum(sizes):9,}")
    slots = fact(device, "warp_slots").value
    limit, tile = int(fact(device, "shared_per_block").value), tile_bytes(128, 128, 128)
    print(f"shared memory of one block, {device}: {limit:,} B. At d = 128 that leaves")
    print(f"{limit - sum(tile.values()):,} B; the next tile of K takes {tile['K']:,} B.\n")
    print("Q and the tiles of K, V in shared memory, S and O in registers")
    print(" Br   Bc    d  K,V  shared  registers         /thread  programs   warp")
    print("             tiles     KiB        KiB  warps              an SM  slots")
    for br, bc, d, stages, warps in (
        (128, 128, 64, 2, 8),
        (128, 128, 128, 2, 4),
        (128, 128, 128, 2, 8),
        (128, 128, 128, 3, 8),
        (64, 64, 128, 2, 4),
    ):
        shared, registers = split(br, bc, d, stages)
        programs = programs_per_sm(device, shared, registers, warps)
        print(
            f"{br:3} {bc:4} {d:4} {stages:4} {shared / 1024:7.0f} {registers / 1024:10.0f}", end=""
        )
        print(f" {warps:6} {registers_per_thread(registers, warps):10.0f}", end="")
        print(f" {programs:9} {programs * warps / slots:6.1%}")


if __name__ == "__main__":
    main()
