"""Building blocks on `vector<N x T>` values, the form in which a thread holds its elements of a tensor."""

from collections.abc import Sequence

from mlir import ir

from .context import LoweringContext


def length(ctx: LoweringContext, vector: ir.Value) -> int:
    """Number of elements of a vector value."""
    return ctx.types.parts(vector.type)[0]


def extract(ctx: LoweringContext, vector: ir.Value, index: int) -> ir.Value:
    """Element `index`."""
    return ctx.emit("llvm.extractelement", ctx.types.parts(vector.type)[1], (vector, ctx.i32(index)))


def insert(ctx: LoweringContext, vector: ir.Value, scalar: ir.Value, index: int) -> ir.Value:
    """`vector` with `scalar` as element `index`."""
    return ctx.emit("llvm.insertelement", vector.type, (vector, scalar, ctx.i32(index)))


def unpack(ctx: LoweringContext, vector: ir.Value) -> list[ir.Value]:
    """All elements."""
    count, element = ctx.types.parts(vector.type)
    return [ctx.emit("llvm.extractelement", element, (vector, ctx.i32(i))) for i in range(count)]


def pack(ctx: LoweringContext, scalars: Sequence[ir.Value]) -> ir.Value:
    """The vector of `scalars`, which are of one type."""
    type = ctx.types.vector(len(scalars), scalars[0].type)
    vector = ctx.poison(type)
    for i, scalar in enumerate(scalars):
        vector = ctx.emit("llvm.insertelement", type, (vector, scalar, ctx.i32(i)))
    return vector


def splat(ctx: LoweringContext, scalar: ir.Value, count: int) -> ir.Value:
    """`scalar` in each of `count` elements."""
    return ctx.splat(scalar, count)


def shuffle(ctx: LoweringContext, first: ir.Value, mask: Sequence[int], second: ir.Value | None = None) -> ir.Value:
    """The elements that `mask` picks out of `first` followed by `second`; no op if that is `first` itself."""
    count, element = ctx.types.parts(first.type)
    mask = tuple(mask)
    if mask == tuple(range(count)):
        return first
    operands = (first, first if second is None else second)
    return ctx.emit("llvm.shufflevector", ctx.types.vector(len(mask), element), operands, ctx.types.shuffle_attrs(mask))


def slice_of(ctx: LoweringContext, vector: ir.Value, start: int, count: int) -> ir.Value:
    """Elements `start` to `start + count`."""
    return shuffle(ctx, vector, range(start, start + count))


def concat(ctx: LoweringContext, vectors: Sequence[ir.Value]) -> ir.Value:
    """The elements of all `vectors` in order; they are equally long and their number is a power of two."""
    vectors = list(vectors)
    count = length(ctx, vectors[0])
    while len(vectors) > 1:
        count *= 2
        vectors = [shuffle(ctx, a, range(count), b) for a, b in zip(vectors[::2], vectors[1::2])]
    return vectors[0]


def bitcast(ctx: LoweringContext, value: ir.Value, type: ir.Type) -> ir.Value:
    """`value` reinterpreted as `type`; no op if it has that type."""
    return value if value.type == type else ctx.emit("llvm.bitcast", type, (value,))


def to_words(ctx: LoweringContext, vector: ir.Value, bits: int = 32) -> list[ir.Value]:
    """The bits of `vector` as integers of `bits` bits, lowest element first; its size is a multiple of `bits`."""
    count, _ = ctx.types.parts(vector.type)
    words = count * ctx.types.width(vector.type) // bits
    word = ctx.types.int(bits)
    if words == 1:
        return [bitcast(ctx, vector, word)]
    return unpack(ctx, bitcast(ctx, vector, ctx.types.vector(words, word)))


def from_words(ctx: LoweringContext, words: Sequence[ir.Value], count: int, element: ir.Type) -> ir.Value:
    """The inverse of `to_words`: `vector<count x element>`."""
    packed = words[0] if len(words) == 1 else pack(ctx, words)
    return bitcast(ctx, packed, ctx.types.vector(count, element))
