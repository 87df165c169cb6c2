"""wgmma descriptors and TMA boxes against models of how the hardware addresses shared memory."""

from __future__ import annotations

from itertools import product

import pytest

from tilewright.compiler import layouts as L
from tilewright.compiler.layouts.descriptors import matrix_descriptor, tma_boxes


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


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("swizzle", [128, 64, 32, None])
@pytest.mark.parametrize("shape", [(64, 128), (2, 16, 64), (512, 32)])
def test_tma_boxes_fill_the_buffer(shape, swizzle, bits):
    size = bits // 8
    if swizzle is not None and shape[-1] * size < swizzle:
        return
    shared = L.identity(shape) if swizzle is None else L.nvmma(shape, bits, swizzle)
    boxes = tma_boxes(shared, bits)
    assert boxes.swizzle == (swizzle or 0) and max(boxes.box) <= 256
    mask = boxes.swizzle // 16 - 1 if boxes.swizzle else 0
    seen = set()
    for start, offset in boxes.parts:
        for place, coords in enumerate(product(*map(range, boxes.box))):
            if place % 5:
                continue
            address = offset + place * size
            address ^= (address >> 7 & mask) << 4
            assert shared.linear(offset=address // size) == tuple(s + c for s, c in zip(start, coords, strict=True))
        seen.add(offset)
    assert len(seen) == len(boxes.parts)


def test_tma_refuses_what_it_cannot_write():
    assert tma_boxes(L.swizzled((64, 64), 8, 2, 8), 16) is None
    assert tma_boxes(L.padded((64, 64), 64, 8), 16) is None
    assert tma_boxes(L.nvmma((64, 64), 16, 128, (0, 1)), 16) is None
