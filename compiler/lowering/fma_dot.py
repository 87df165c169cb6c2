"""`tile.dot` without matrix instructions: outer products by vector FMAs in each thread.

Before: each thread holds all of K of the rows of A and columns of B that its elements of the accumulator need. After: one multiply-add on
the whole accumulator for each k. Floating-point operands narrower than the accumulator are widened first; integers are added up in
the accumulator's type.
"""

from collections.abc import Sequence

from mlir import ir

from tilewright.compiler.layouts import LinearLayout

from . import linear, vectors
from .context import LoweringContext
from .registry import rule


@rule("tile.dot")
def dot(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    a, b, acc = ctx.operands(op)
    layouts = [ctx.layout(v) for v in op.operands]
    a = _widen(ctx, a, acc, "a_unsigned" in op.attributes)
    b = _widen(ctx, b, acc, "b_unsigned" in op.attributes)
    places_a, places_b = (_places(layout) for layout in layouts[:2])
    elements = [layouts[2].unpack(packed) for packed in linear.images(layouts[2].column("register"))]
    is_float = ctx.types.parts(acc.type)[1] in ctx.types.floats
    for k in range(layouts[0].out_sizes[-1]):
        left = vectors.shuffle(ctx, a, _take(places_a, [(*c[:-1], k) for c in elements], layouts[0]))
        right = vectors.shuffle(ctx, b, _take(places_b, [(*c[:-2], k, c[-1]) for c in elements], layouts[1]))
        if is_float:
            acc = ctx.emit("llvm.intr.fma", acc.type, (left, right, acc))
        else:
            acc = ctx.emit("llvm.add", acc.type, (acc, ctx.emit("llvm.mul", acc.type, (left, right))))
    return [acc]


def _places(layout: LinearLayout) -> dict[tuple[int, ...], int]:
    """The register of each coordinate that thread 0 holds."""
    places: dict[tuple[int, ...], int] = {}
    for register, packed in enumerate(linear.images(layout.column("register"))):
        places.setdefault(layout.unpack(packed), register)
    return places


def _take(places: dict[tuple[int, ...], int], wanted: Sequence[tuple[int, ...]], layout: LinearLayout) -> list[int]:
    try:
        return [places[c] for c in wanted]
    except KeyError as error:
        raise ValueError(f"tile.dot: {layout} does not hold element {error} in the thread that needs it") from None


def _widen(ctx: LoweringContext, vector: ir.Value, acc: ir.Value, unsigned: bool) -> ir.Value:
    """`vector` with elements of the accumulator's type."""
    count, element = ctx.types.parts(vector.type)
    target = ctx.types.parts(acc.type)[1]
    if element == target:
        return vector
    wanted = ctx.types.vector(count, target)
    if element in ctx.types.floats:
        return ctx.emit("llvm.fpext" if ctx.types.width(element) < ctx.types.width(target) else "llvm.fptrunc", wanted, (vector,))
    return ctx.emit("llvm.zext" if unsigned else "llvm.sext", wanted, (vector,))
