"""Layouts to attributes and back."""

from __future__ import annotations

import pytest
from mlir import ir

from tilewright.compiler import encoding
from tilewright.compiler import layouts as L
from tilewright.dialects import context

DISTRIBUTED = [
    L.wgmma_accumulator((128, 64), 8),
    L.mma_operand((16, 32), (4, 1), 16, 1),
    L.slice_dim(L.default_blocked((64, 64), 4, vector=4), 1),
    L.blocked((64, 32), (1, 4), (4, 8), (4, 1), (1, 0), (2, 1)),
    L.blocked((1,), (1,), (32,), (4,), (0,)),
]
SHARED = [L.nvmma((128, 64), 16), L.padded((64, 64), 64, 8), L.swizzled((32, 64), 8, 2, 4, (0, 1)), L.identity((1,))]


@pytest.mark.parametrize("layout", DISTRIBUTED)
def test_tensor_types_carry_layouts(layout):
    with context(), ir.Location.unknown():
        plain = ir.RankedTensorType.get(layout.out_sizes, ir.F32Type.get())
        encoded = encoding.with_layout(plain, layout)
        assert encoding.layout_of(encoded) == layout
        assert encoding.with_layout(encoded, layout) == encoded
        with pytest.raises(ValueError, match="has no layout"):
            encoding.layout_of(plain)


@pytest.mark.parametrize("slots", [0, 3])
@pytest.mark.parametrize("shared", SHARED)
def test_buffer_types_carry_shared_layouts(shared, slots):
    with context():
        assert encoding.shared_of(encoding.buffer_type(shared, ir.BF16Type.get(), slots)) == shared
