"""wgmma descriptors against a model of how the hardware addresses shared memory."""

from __future__ import annotations

import pytest

from tilewright.compiler import layouts as L
from tilewright.compiler.layouts.descriptors import matrix_descriptor


def hardware_address(desc, start: int, outer: int, k: int, size: int) -> int:
    """Byte address of an element of one instruction's operand, from the PTX manual's canonical layouts."""
    span = desc.swizzle or 16
    if desc.mn_major:
        inner = outer * size
        across, groups = (desc.stride, desc.leading) if desc.swizzle == 0 else (desc.leading, desc.stride)
        address = start + inner % span + inner // span * across + k % 8 * span + k // 8 * groups
    else:
        inner = k * size
        address = start + outer % 8 * span + outer // 8 * desc.stride + inner % span + inner // span * desc.leading
    mask = desc.swizzle // 16 - 1 if desc.swizzle else 0
    return address ^ ((address >> 7 & mask) << 4)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("swizzle", [128, 64, 32, 0])
@pytest.mark.parametrize("inner", ["k", "mn"])
@pytest.mark.parametrize("extent", [64, 128])
def test_descriptor_addresses_every_element(bits, swizzle, inner, extent):
    size = bits // 8
    rows, depth = 128, 256 // size
    shape = (rows, depth)
    order = (1, 0) if inner == "k" else (0, 1)
    shared = L.nvmma(shape, bits, swizzle, order)
    desc = matrix_descriptor(shared, 0, extent, bits)
    if inner == "mn" and bits != 16:
        assert desc is None
        return
    assert desc is not None and desc.swizzle == swizzle and desc.mn_major == (inner == "mn")
    assert matrix_descriptor(L.SharedLayout(L.trans(shared.linear, (1, 0))), 1, extent, bits) == desc
    k_step = 32 // size
    for row in range(0, rows, extent):
        for k0 in range(0, depth, k_step):
            start = desc.offset(row, k0)
            for r in range(0, extent, 3):
                for k in range(k_step):
                    address = hardware_address(desc, start, r, k, size)
                    assert shared.linear(offset=address // size) == (row + r, k0 + k)


def test_other_layouts_are_refused():
    assert matrix_descriptor(L.identity((64, 64)), 0, 64, 16) is None
    assert matrix_descriptor(L.padded((64, 64), 64, 8), 0, 64, 16) is None
    assert matrix_descriptor(L.swizzled((64, 64), 8, 2, 8), 0, 64, 16) is None


def test_bits():
    desc = matrix_descriptor(L.nvmma((128, 64), 16), 0, 64, 16)
    assert desc.bits() == 1 << 62 | 64 << 32 | 1 << 16
