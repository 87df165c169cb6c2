"""Building blocks on `vector<N x T>` values, the form in which a thread holds its elements of a tensor."""

from collections.abc import Sequence

from mlir import ir

from .context import TRACED, LoweringContext

LOOK_THROUGH = 12  # ops that `element` redoes one after the other at most
BITWISE = ("llvm.and", "llvm.or", "llvm.xor")  # redone for masks only: for integers they are part of hashes and the like


def length(ctx: LoweringContext, vector: ir.Value) -> int:
    """Number of elements of a vector value."""
    return ctx.types.parts(vector.type)[0]


def extract(ctx: LoweringContext, vector: ir.Value, index: int) -> ir.Value:
    """Element `index`; taken from where it came from if `vector` was put together of known elements or picked out of other vectors."""
    while (made := ctx.made.get(vector)) is not None:
        if made[0] == "elements":
            return made[1][index]
        if made[0] == "constants":
            return ctx.constant(ctx.types.parts(vector.type)[1], made[1][index])
        if made[0] != "shuffle":
            break
        _, first, second, mask, count = made
        vector, index = (first, mask[index]) if mask[index] < count else (second, mask[index] - count)
    key = (vector, index)
    found = ctx.scalars.get(key)
    if found is None:
        element_type = ctx.types.parts(vector.type)[1]
        found = ctx.scalars[key] = ctx.emit("llvm.extractelement", element_type, (vector, ctx.i32(index)))
    return found


def element(ctx: LoweringContext, vector: ir.Value, index: int, depth: int = LOOK_THROUGH) -> ir.Value:
    """Element `index`, computed by itself where it takes little: index arithmetic, comparisons, masks and addresses of one element.

    For uses that need few elements of a vector, which then is not computed at all. LLVM does badly on vectors of i1 and wide vectors
    of pointers.
    """
    made = ctx.made.get(vector)
    if made is not None and made[0] == "shuffle":
        _, first, second, mask, count = made
        source, position = (first, mask[index]) if mask[index] < count else (second, mask[index] - count)
        return element(ctx, source, position, depth)
    if made is None or depth == 0 or made[0] not in TRACED:
        return extract(ctx, vector, index)
    key = (vector, index)
    found = ctx.scalars.get(key)
    if found is None:
        name, operands, attrs = made
        if name in BITWISE and ctx.types.parts(vector.type)[1] != ctx.types.i1:
            return extract(ctx, vector, index)
        counts = [ctx.types.parts(v.type)[0] for v in operands]
        scalars = [element(ctx, v, index, depth - 1) if count else v for v, count in zip(operands, counts)]
        found = ctx.scalars[key] = ctx.emit(name, ctx.types.parts(vector.type)[1], scalars, attrs)
    return found


def unpack(ctx: LoweringContext, vector: ir.Value) -> list[ir.Value]:
    """All elements."""
    return [extract(ctx, vector, i) for i in range(length(ctx, vector))]


def pack(ctx: LoweringContext, scalars: Sequence[ir.Value]) -> ir.Value:
    """The vector of `scalars`, which are of one type."""
    type = ctx.types.vector(len(scalars), scalars[0].type)
    vector = ctx.poison(type)
    for i, scalar in enumerate(scalars):
        vector = ctx.emit("llvm.insertelement", type, (vector, scalar, ctx.i32(i)))
    ctx.made[vector] = ("elements", tuple(scalars))
    return vector


def shuffle(ctx: LoweringContext, first: ir.Value, mask: Sequence[int], second: ir.Value | None = None) -> ir.Value:
    """The elements that `mask` picks out of `first` followed by `second`; no op if that is `first` itself."""
    count, element = ctx.types.parts(first.type)
    mask = tuple(mask)
    if mask == tuple(range(count)):
        return first
    if second is None:
        second = first
    type = ctx.types.vector(len(mask), element)
    value = ctx.emit("llvm.shufflevector", type, (first, second), ctx.types.shuffle_attrs(mask))
    ctx.made[value] = ("shuffle", first, second, mask, count)
    return value


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
