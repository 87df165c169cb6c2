"""Ops that make tensors or rearrange them. Wherever the layouts let a thread do it alone, the result is a permutation of registers."""

from mlir import ir

from tilewright.compiler.layouts import LinearLayout, register_sources, shape_ops

from . import linear, vectors
from .context import LoweringContext
from .registry import rule


def int_attr(op: ir.Operation, name: str) -> int:
    """The value of an integer attribute."""
    return ir.IntegerAttr(op.attributes[name]).value


@rule("tile.range")
def range_(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    layout = ctx.layout(op.results[0])
    indices = linear.coordinates(ctx, layout, 0)
    start = int_attr(op, "start")
    if start:
        indices = ctx.emit("llvm.add", indices.type, (indices, ctx.constant(indices.type, start)), ctx.types.no_signed_wrap)
    return [indices]


@rule("tile.splat")
def splat(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (scalar,) = ctx.operands(op)
    return [ctx.splat(scalar, ctx.tensor(op.results[0]).registers)]


@rule("tile.unsplat")
def unsplat(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (vector,) = ctx.operands(op)
    return [vectors.extract(ctx, vector, 0)]


def rearrange(ctx: LoweringContext, op: ir.Operation, vector: ir.Value, source: LinearLayout, result: ir.Value) -> ir.Value:
    """The elements of the tensor held in `vector` with layout `source`, as registers of the old value `result`."""
    order = register_sources(source, ctx.layout(result))
    if order is None:
        raise ValueError(f"{op.name} needs data of another thread: {source} to {ctx.layout(result)}")
    return vectors.shuffle(ctx, vector, order)


@rule("tile.expand_dims")
def expand_dims(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (vector,) = ctx.operands(op)
    source = shape_ops.expand_dims(ctx.layout(op.operands[0]), int_attr(op, "axis"))
    return [rearrange(ctx, op, vector, source, op.results[0])]


@rule("tile.reshape")
def reshape(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (vector,) = ctx.operands(op)
    result = ctx.tensor(op.results[0])
    if "allow_reorder" in op.attributes and result.registers == vectors.length(ctx, vector):
        return [vector]
    return [rearrange(ctx, op, vector, shape_ops.reshape(ctx.layout(op.operands[0]), result.shape), op.results[0])]


@rule("tile.trans")
def trans(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (vector,) = ctx.operands(op)
    order = tuple(ir.DenseI32ArrayAttr(op.attributes["order"]))
    return [rearrange(ctx, op, vector, shape_ops.trans(ctx.layout(op.operands[0]), order), op.results[0])]


@rule("tile.broadcast")
def broadcast(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (vector,) = ctx.operands(op)
    source, result = ctx.layout(op.operands[0]), ctx.layout(op.results[0])
    keep = [s == t for s, t in zip(source.out_sizes, result.out_sizes, strict=True)]
    # the element of `source` that each element of the result repeats: its coordinate with the stretched dimensions at zero
    repeated = {
        name: tuple(source.pack([c if k else 0 for c, k in zip(result.unpack(column), keep)]) for column in columns)
        for name, columns in zip(result.names, result.columns)
    }
    order = register_sources(source, LinearLayout.from_columns(repeated, source.out_sizes))
    if order is None:
        raise ValueError(f"tile.broadcast needs data of another thread: {source} to {result}")
    return [vectors.shuffle(ctx, vector, order)]


@rule("tile.join")
def join(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    a, b = ctx.operands(op)
    count = vectors.length(ctx, a)
    source = shape_ops.join(ctx.layout(op.operands[0]))
    order = register_sources(source, ctx.layout(op.results[0]))
    if order is None:
        raise ValueError("tile.join needs data of another thread")
    # register r of the joined layout is register r >> 1 of a (r even) or b (r odd)
    return [vectors.shuffle(ctx, a, [(r >> 1) + (r & 1) * count for r in order], b)]


@rule("tile.split")
def split(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (vector,) = ctx.operands(op)
    layout = ctx.layout(op.operands[0])
    bit, half = shape_ops.split_register(layout), shape_ops.split(layout)
    if bit is None or half is None:
        raise ValueError("tile.split needs data of another thread")
    low = [r for r in range(layout.in_size("register")) if not r >> bit & 1]
    halves = []
    for which, result in enumerate(op.results):
        if not isinstance(result.type, ir.RankedTensorType):
            halves.append(vectors.extract(ctx, vector, low[0] | which << bit))
            continue
        order = register_sources(half, ctx.layout(result))
        if order is None:
            raise ValueError("tile.split needs data of another thread")
        halves.append(vectors.shuffle(ctx, vector, [low[r] | which << bit for r in order]))
    return halves


@rule("tile.cat")
def cat(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    a, b = ctx.operands(op)
    source = shape_ops.concatenate(ctx.layout(op.operands[0]), int_attr(op, "dim"))
    order = register_sources(source, ctx.layout(op.results[0]))
    if order is None:
        raise ValueError("tile.cat needs data of another thread")
    return [vectors.shuffle(ctx, a, order, b)]
