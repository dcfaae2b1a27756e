"""Which writes to a product's registers the reader of machine code finds, in a few lines of it."""

import pytest

from tests.kernels.machine_code import products

PRODUCT = "HGMMA.64x128x16.F32.BF16 R24, R152, gdesc[UR12].tnspB, R24"
LAST = f"{PRODUCT}, gsb0"  # ends its group
OTHER = "HGMMA.64x64x16.F32.BF16 R88, gdesc[UR8], R88, gsb0"
WRITE = "F2FP.BF16.F32.PACK_AB R153, R20, R17"
ALL, ALL_BUT_ONE = (f"WARPGROUP.DEPBAR.LE gsb0, {n}" for n in ("0x0", "0x1"))
AGAIN = "@!P0 BRA `(.L_x_1)"


def listing(*lines: str) -> str:
    return "\n".join(
        x if x.endswith(":") else f"        /*0a{i:02x}*/  {x} ;" for i, x in enumerate(lines)
    )


@pytest.mark.parametrize(
    ("lines", "early"),
    [
        ((LAST, ALL, WRITE), 0),
        ((LAST, WRITE, ALL), 1),
        ((PRODUCT, LAST, WRITE, ALL), 2),
        ((LAST, "STS.128 [R153], R20", "ISETP.NE.AND P0, PT, R153, RZ, PT", ALL), 0),
        ((LAST, "FADD R20, R153, R152", ALL), 0),
        ((LAST, "LDS.128 R152, [R3]", ALL), 1),
        ((LAST, "LDS.128 R156, [R3]", ALL), 0),
        ((LAST, "IMAD.WIDE R154, R3, R4, R6", ALL), 1),
        ((LAST, "SHFL.BFLY PT, R155, R8, 0x2, 0x1f", ALL), 1),
        ((LAST, "@P2 MUFU.EX2 R152, R8", ALL), 1),
        ((LAST, OTHER, ALL_BUT_ONE, WRITE), 0),  # the other may still run, this one has ended
        ((LAST, ALL_BUT_ONE, WRITE, ALL), 1),
        ((PRODUCT, ALL_BUT_ONE, LAST, ALL_BUT_ONE, WRITE, ALL), 2),
        ((".L_x_1:", WRITE, LAST, AGAIN, ALL), 1),  # in the next turn
        ((".L_x_1:", ALL, WRITE, LAST, AGAIN, ALL), 0),
        ((LAST, "BRA `(.L_x_1)", WRITE, ".L_x_1:", ALL), 0),
        ((LAST, "EXIT", WRITE), 0),
    ],
)
def test_a_write_is_early_until_the_product_has_been_waited_for(
    lines: tuple[str, ...], early: int
) -> None:
    found = products(listing(*lines))
    assert found.from_registers == sum("R152, gdesc" in line for line in lines)
    assert len(found.early) == early
