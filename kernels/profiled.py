"""A program for `tpk profile`: a matrix product and attention, whose results are checked.

Operands are large enough for the units of a chip to be busy, and small enough to be simulated in seconds.
"""

from __future__ import annotations

from triton.runtime import driver

from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.attention import AttentionTiles
from triton_porting_kit.kernels.matmul import Tiles
from triton_porting_kit.kernels.places import DevicePlace

CASES = (
    cases.matmul_case(512, 1024, 512, "float16", tiles=Tiles(128, 256, 64)),
    cases.attention_case(4, 512, 64, "float16", tiles=AttentionTiles(64, 64)),
)


def main() -> None:
    """Run each case twice, since the first launch of a kernel compiles it."""
    place = DevicePlace(driver.active.device)
    for case in CASES:
        operands = case.operands()
        arrays = [place.put(operand) for operand in operands]
        outputs = case.launch(arrays)
        assert all(
            deviation.ok for deviation in case.compare([place.get(each) for each in outputs], operands)
        )
        print(f"{case.id} is right")


if __name__ == "__main__":
    main()
