"""What the assembler made of a kernel: its registers, and those written while a product reads them.

Hopper's tensor cores take the left side of a product from registers or from shared memory, and
read registers until the product is waited for. To write one earlier is undefined (PTX ISA,
`wgmma.mma_async`), and a test of results may miss it: the products mostly come first.
"""

import re
import subprocess
import tempfile
from typing import NamedTuple

import triton

CODE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")
LABEL = re.compile(r"(\.L_x_\d+):")
PRODUCT = re.compile(r"HGMMA\.\S+ R\d+, R(\d+)\S*, gdesc")  # one whose left side is in registers
LEFT = 4  # registers of a left side, 64 by 16 numbers of 16 bits
WAIT = re.compile(r"WARPGROUP\.DEPBAR\.LE gsb0, (0x[0-9a-f]+)")
ENDS_GROUP = re.compile(r"HGMMA.*gsb0")
JUMP = re.compile(r"\bBRA\b.*`\((\.L_x_\d+)\)")
WRITES_NONE = re.compile(
    r"ST[A-Z]*|RED|BAR|SYNCS|BRA|EXIT|HGMMA|WARP\w*|MEMBAR|CCTL|[A-Z0-9]*SETP|U\w*|R2UR"
)


def registers_of(cubin: bytes) -> int:
    """Return the registers that a thread takes."""
    usage = told_by(triton.knobs.nvidia.cuobjdump.path, "-res-usage", cubin)
    return int(re.search(r"REG:(\d+)", usage)[1])  # type: ignore[index]


def told_by(tool: str, option: str, cubin: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [tool, option, file.name]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Products(NamedTuple):
    """How many products take their left side from registers, and what is written too early."""

    from_registers: int
    early: list[str]


def products_of(cubin: bytes) -> Products:
    """Read the machine code of a kernel."""
    return products(told_by(triton.knobs.nvidia.nvdisasm.path, "-c", cubin))


def products(listing: str) -> Products:
    """Follow all ways from each product to where it has been waited for."""
    code: list[str] = []
    labels: dict[str, int] = {}
    for line in listing.splitlines():
        if label := LABEL.match(line.strip()):
            labels[label[1]] = len(code)
        if instruction := CODE.search(line):
            code.append(instruction[1])
    starts = [(at, found) for at, line in enumerate(code) if (found := PRODUCT.search(line))]
    early = []
    for at, found in starts:
        first = int(found[1])
        left = set(range(first, first + LEFT))
        early += [
            f"{code[at]}: {code[x]}"
            for x in before_its_wait(code, labels, at)
            if written(code[x]) & left
        ]
    return Products(len(starts), early)


def before_its_wait(code: list[str], labels: dict[str, int], product: int) -> set[int]:
    """Return the places that may run after a product and before it has been waited for.

    A wait for at most n groups leaves those running that were committed last.
    """
    reached: set[tuple[int, int]] = set()
    later = 0 if ENDS_GROUP.search(code[product]) else -1  # groups since its own
    ways = [(product + 1, later)]
    while ways:
        place, later = ways.pop()
        while place < len(code) and (place, later) not in reached:
            line = code[place]
            wait = WAIT.search(line)
            if (wait and int(wait[1], 16) <= later) or line.startswith("EXIT"):
                break
            reached.add((place, later))
            later = min(later + bool(ENDS_GROUP.search(line)), 8)
            if jump := JUMP.search(line):
                ways.append((labels[jump[1]], later))
                if re.match(r"BRA\S* `", line):  # no condition
                    break
            place += 1
    return {place for place, _ in reached}


def written(line: str) -> set[int]:
    """Return the general registers that an instruction writes."""
    name, _, operands = re.sub(r"^@!?U?P\w+ ", "", line).partition(" ")
    if WRITES_NONE.fullmatch(name.split(".")[0]):
        return set()
    for operand in operands.split(","):
        if register := re.match(r"\s*R(\d+)", operand):
            count = 2 if re.search(r"\.(64|WIDE)\b", name) or name == "CS2R" else 1
            count = 4 if ".128" in name else int(name[-1]) if "LDSM" in name else count
            return set(range(int(register[1]), int(register[1]) + count))
        if not re.match(r"\s*U?P\w", operand):  # a predicate may stand before what is written
            return set()
    return set()
