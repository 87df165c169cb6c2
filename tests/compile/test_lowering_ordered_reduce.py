"""Reductions by functions that do not commute: when the lowering sees that, and that it then keeps operands in order."""

import numpy as np
import pytest
from mlir import ir
from test_lowering_numerics import PLANES, compute
from ttgir_text import Source, build, pointers, with_slices

from tilewright.compiler.layouts import LinearLayout, blocked, slice_dim
from tilewright.compiler.lowering.reduce import commutes
from tilewright.dialects import context

INTERLEAVED = LinearLayout(
    {"register": [(0, 4)], "lane": [(0, 1), (1, 0), (0, 8), (2, 0), (0, 32)], "warp": [(0, 2), (0, 16)], "block": []}, (4, 64)
)  # the axis is walked from lanes to warps to registers, and back to both


def reduction(layout: LinearLayout, axis: int) -> Source:
    """Composition of affine maps (m, c); stores m * 1000 + c."""
    shape = layout.out_sizes
    kind, rest = f"tensor<{'x'.join(map(str, shape))}", shape[1 - axis]
    return build(
        "%x: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<i32> {tile.divisibility = 16 : i32}, "
        "%o: !tile.ptr<i32> {tile.divisibility = 16 : i32}",
        f"""{pointers("xp", "x", shape, "i32")}
{pointers("yp", "y", shape, "i32")}
%m = tile.load %xp : {kind}x!tile.ptr<i32>, #l>
%c = tile.load %yp : {kind}x!tile.ptr<i32>, #l>
%rm, %rc = tile.reduce (%m, %c) axis = {axis} {{
^bb0(%am: i32, %ac: i32, %bm: i32, %bc: i32):
  %p = arith.muli %am, %bm : i32
  %q = arith.muli %ac, %bm : i32
  %s = arith.addi %q, %bc : i32
  tile.yield %p, %s : i32, i32
}} : ({kind}xi32, #l>, {kind}xi32, #l>) -> (tensor<{rest}xi32, #r>, tensor<{rest}xi32, #r>)
%k = arith.constant dense<1000> : tensor<{rest}xi32, #r>
%t = arith.muli %rm, %k : tensor<{rest}xi32, #r>
%u = arith.addi %t, %rc : tensor<{rest}xi32, #r>
{pointers("op", "o", (rest,), "i32", "r")}
tile.store %op, %u : tensor<{rest}x!tile.ptr<i32>, #r>""",
        **with_slices("l", layout),
        r=slice_dim(layout, axis),
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "layout",
    [*PLANES.values(), INTERLEAVED, blocked((2, 2), (1, 1), (2, 16), (2, 2), (1, 0))],
    ids=[*PLANES, "interleaved", "tiny"],
)
def test_operands_stay_in_order(run, layout: LinearLayout, axis: int) -> None:
    rng = np.random.default_rng(0)
    m, c = rng.choice([-1, 1, 3], layout.out_sizes).astype(np.int32), rng.integers(-4, 5, layout.out_sizes).astype(np.int32)
    got = compute(run, reduction(layout, axis), [m, c], np.zeros(layout.out_sizes[1 - axis], np.int32))
    with np.errstate(over="ignore"):
        total = [np.ones(layout.out_sizes[1 - axis], np.int32), np.zeros(layout.out_sizes[1 - axis], np.int32)]
        for mi, ci in zip(np.moveaxis(m, axis, 0), np.moveaxis(c, axis, 0), strict=True):
            total = [total[0] * mi, total[1] * mi + ci]
        assert np.array_equal(got, total[0] * 1000 + total[1])


@pytest.mark.parametrize(
    ("body", "known"),
    [
        ("%r = arith.addf %a, %b : f32", True),
        ("%r = arith.maxnumf %b, %a : f32", True),
        ("%s = arith.addf %b, %a : f32 %t = arith.mulf %a, %b : f32 %r = arith.addf %t, %s : f32", True),
        ("%r = arith.subf %a, %b : f32", False),
        ("%c = arith.cmpf ogt, %a, %b : f32 %r = arith.select %c, %a, %b : f32", False),
        ("%c = arith.constant 2.0 : f32 %t = arith.mulf %a, %c : f32 %r = arith.addf %t, %b : f32", False),
        ("%c = arith.constant 2.0 : f32 %t = arith.mulf %a, %b : f32 %r = arith.addf %t, %c : f32", True),
        ("%c = arith.constant true %r = scf.if %c -> f32 { scf.yield %a : f32 } else { scf.yield %a : f32 }", False),
    ],
)
@pytest.mark.parametrize("marked", [False, True])
def test_what_is_known_to_commute(body: str, known: bool, marked: bool) -> None:
    text = f"""func.func @f(%x: tensor<8xf32>) -> f32 {{
  %y = tile.reduce (%x) axis = 0 {{
  ^bb0(%a: f32, %b: f32):
    {body}
    tile.yield %r : f32
  }} {"{tile.commutative}" if marked else ""} : (tensor<8xf32>) -> f32
  return %y : f32
}}"""
    with context():
        module = ir.Module.parse(text)
        op = module.body.operations[0].regions[0].blocks[0].operations[0]
        assert commutes(op.operation) == (known or marked)
