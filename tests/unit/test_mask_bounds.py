"""When a mask is true everywhere, as comparisons of scalars."""

from __future__ import annotations

import pytest

from tilewright.compiler.analysis.mask_bounds import true_everywhere
from tilewright.dialects import context

TEXT = """
func.func @f(%n: i32, %m: i32) -> tensor<8x4xi1> {{
  %r = tile.range 0 to 8 : tensor<8xi32>
  %c = tile.range 2 to 6 : tensor<4xi32>
  %k = arith.constant dense<{factor}> : tensor<4xi32>
  %scaled = arith.muli %c, %k : tensor<4xi32>
  %sn = tile.splat %n : i32 -> tensor<8xi32>
  %sm = tile.splat %m : i32 -> tensor<4xi32>
  %row = arith.addi %r, %sn : tensor<8xi32>
  %col = arith.subi %sm, %scaled : tensor<4xi32>
  %row1 = tile.expand_dims %row axis = 1 : tensor<8xi32> -> tensor<8x1xi32>
  %col1 = tile.expand_dims %col axis = 0 : tensor<4xi32> -> tensor<1x4xi32>
  %rows = tile.broadcast %row1 : tensor<8x1xi32> -> tensor<8x4xi32>
  %cols = tile.broadcast %col1 : tensor<1x4xi32> -> tensor<8x4xi32>
  %mask = arith.cmpi {predicate}, %rows, %cols : tensor<8x4xi32>
  return %mask : tensor<8x4xi1>
}}
"""


def comparisons(predicate: str, factor: int = 3):
    """The comparisons for a mask of `row {predicate} m - factor * column`, rows n to n + 7 and columns 2 to 5."""
    from mlir import ir

    with context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT.format(predicate=predicate, factor=factor))
        function = module.body.operations[0]
        found = true_everywhere(function.regions[0].blocks[0].operations[-1].operands[0])
        return None if found is None else [(c.predicate, c.left.low, c.right.low, len(c.left.terms), len(c.right.terms)) for c in found]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [("sge", (5, 0, -6, 1, 1)), ("sgt", (4, 0, -6, 1, 1)), ("slt", (2, 7, -15, 1, 1)), ("sle", (3, 7, -15, 1, 1))],
)
def test_the_worst_position_decides(predicate, expected):
    assert comparisons(predicate) == [expected]


@pytest.mark.parametrize("predicate", ["eq", "ne", "ult", "uge"])
def test_other_comparisons_say_nothing(predicate):
    assert comparisons(predicate) is None


def test_large_numbers_say_nothing():
    assert comparisons("sge", factor=1 << 29) is None
