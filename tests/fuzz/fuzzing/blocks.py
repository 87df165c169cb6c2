"""Makers of statements that move or combine elements: reductions, scans, sorting, shapes, gather, histogram, products."""

from __future__ import annotations

from .elementwise import ARITHMETIC
from .program import Array, Helper
from .types import BF16, BOOL, DTYPES, FP16, FP32, FP64, I32, U32, DType, Type, extremum_type, sum_type
from .writer import MAX_NUMEL, Writer


def without(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    """The shape of a reduction along an axis, None for all."""
    return () if axis is None else shape[:axis] + shape[axis + 1 :]


def axis_of(w: Writer, shape: tuple[int, ...]) -> int | None:
    """An axis to reduce along."""
    return None if w.chance(0.2) else w.rng.randrange(len(shape))


def no_nan(name: str, ty: DType) -> str:
    """Text of a tensor without its NaN."""
    return f"tl.where({name} == {name}, {name}, 0.0)" if ty.is_float else name


def reduction(w: Writer) -> None:
    """tl.sum, max, min, xor_sum, argmax, argmin and tl.reduce, along an axis or of all."""
    a = w.tensor([*ARITHMETIC, BOOL])
    type = w.type(a)
    ty, shape, axis = type.dtype, type.shape, axis_of(w, type.shape)
    keep = axis is not None and w.chance(0.2)
    result = (*shape[:axis], 1, *shape[axis + 1 :]) if keep else without(shape, axis)
    tail = f", {axis}" + (", keep_dims=True" if keep else "") if axis is not None else ""
    choice = w.rng.random()
    if ty is BOOL:
        w.emit(Type(I32, result), f"tl.sum({a}.to(tl.int32){tail})")
    elif choice < 0.3:
        w.emit(Type(sum_type(ty), result), f"tl.sum({a}{tail})")
    elif choice < 0.55:
        w.emit(Type(extremum_type(ty), result), f"tl.{w.rng.choice(['max', 'min'])}({a}{tail})")
    elif choice < 0.65 and ty.is_int:
        w.emit(Type(ty, result), f"tl.xor_sum({a}{tail})")
    elif choice < 0.8 and axis is not None:
        name = w.rng.choice(["argmax", "argmin"])
        w.emit(Type(I32, result), f"tl.{name}({no_nan(a, ty)}{tail})")
    elif choice < 0.88 and axis is not None:
        values = ty if ty is not BF16 else FP32
        name = w.rng.choice(["max", "min"])
        w.emit_several([Type(values, result), Type(I32, result)], f"tl.{name}({no_nan(a, ty)}{tail}, return_indices=True)")
    else:
        custom(w, a, type, axis if axis is not None else 0, scan=False)


_COMBINE = {
    "add": ("x, y", "x + y"),
    "mul": ("x, y", "x * y"),
    "max": ("x, y", "tl.maximum(x, y)"),
    "or": ("x, y", "x | y"),
    "last": ("x, y", "tl.where(y != 0, y, x)"),
    "affine": ("a, b, c, d", "a * c, b * c + d"),
    "best": ("a, b, c, d", "tl.maximum(a, c), b + d"),
}


def combine_helper(w: Writer, kind: str) -> str:
    """The name of the helper that combines in this way."""
    parameters, result = _COMBINE[kind]
    text_of = lambda name: f"def {name}({parameters}):\n    return {result}\n"  # noqa: E731
    for helper in w.helpers:
        if helper.text == text_of(helper.name):
            return helper.name
    name = f"h{len(w.helpers)}"
    w.helpers.append(Helper(name, text_of(name)))
    return name


def custom(w: Writer, a: str, type: Type, axis: int, scan: bool) -> None:
    """tl.reduce or tl.associative_scan by a helper, of one tensor or of two."""
    ty = type.dtype
    result = type.shape if scan else without(type.shape, axis)
    call, end = ("tl.associative_scan", ", reverse=True" if w.chance(0.3) else "") if scan else ("tl.reduce", "")
    b = w.pick(lambda t: t.shape == type.shape and t.dtype in ARITHMETIC)
    if b and w.chance(0.5):
        if ty.is_int and w.chance(0.5):
            names = w.pick(lambda t: t == type)
            fn = combine_helper(w, "affine")
            w.emit_several([Type(ty, result)] * 2, f"{call}(({a}, {names}), {axis}, {fn}{end})")
            return
        fn = combine_helper(w, "best")
        w.emit_several([Type(ty, result), Type(w.type(b).dtype, result)], f"{call}(({a}, {b}), {axis}, {fn}{end})")
        return
    kinds = ["add", "max"] + (["mul", "or", "last"] if ty.is_int else ["last"])
    w.emit(Type(ty, result), f"{call}({a}, {axis}, {combine_helper(w, w.rng.choice(kinds))}{end})")


def scan(w: Writer) -> None:
    """tl.cumsum, cumprod and tl.associative_scan."""
    a = w.tensor(ARITHMETIC)
    type = w.type(a)
    axis = w.rng.randrange(len(type.shape))
    reverse = ", reverse=True" if w.chance(0.3) else ""
    choice = w.rng.random()
    if choice < 0.45:
        w.emit(type.of(sum_type(type.dtype)), f"tl.cumsum({a}, {axis}{reverse})")
    elif choice < 0.55 and type.dtype.is_int:
        w.emit(type.of(sum_type(type.dtype)), f"tl.cumprod({a}, {axis}{reverse})")
    else:
        custom(w, a, type, axis, scan=True)


def sorting(w: Writer) -> None:
    """tl.sort, topk, flip."""
    a = w.tensor(ARITHMETIC)
    type = w.type(a)
    choice = w.rng.random()
    if choice < 0.4:
        d = w.rng.randrange(len(type.shape))
        w.emit(type, f"tl.flip({a}, {d})")
        return
    if type.shape[-1] > 256 or type.numel > 1024:
        return
    x = no_nan(a, type.dtype)
    if choice < 0.8:
        w.emit(type, f"tl.sort({x}{', descending=True' if w.chance(0.4) else ''})")
    else:
        k = min(type.shape[-1], w.rng.choice([1, 2, 4, 8]))
        w.emit(Type(type.dtype, (*type.shape[:-1], k)), f"tl.topk({x}, {k})")


def shape(w: Writer) -> None:
    """reshape, trans, expand_dims, broadcast_to, join, split, cat, interleave, ravel."""
    rng = w.rng
    a = w.pick(lambda t: bool(t.shape)) or w.tensor()
    type = w.type(a)
    ty, shape, rank = type.dtype, type.shape, len(type.shape)
    choice = rng.choice(["reshape", "trans", "expand", "broadcast", "join", "split", "cat", "interleave", "ravel"])
    if choice == "reshape":
        log = type.numel.bit_length() - 1
        cut = sorted(rng.randrange(log + 1) for _ in range(rng.choice([0, 1, 1, 2])))
        edges = [0, *cut, log]
        new = tuple(2 ** (hi - lo) for lo, hi in zip(edges, edges[1:], strict=False))
        w.emit(Type(ty, new), f"tl.reshape({a}, {list(new)})")
    elif choice == "trans" and rank > 1:
        order = list(range(rank))
        rng.shuffle(order)
        w.emit(
            Type(ty, tuple(shape[d] for d in order)),
            f"tl.permute({a}, {order})" if w.chance(0.5) else f"tl.trans({a}, {', '.join(map(str, order))})",
        )
    elif choice == "expand" and rank < 3:
        d = rng.randrange(rank + 1)
        picks = [":"] * rank
        picks.insert(d, "None")
        text = f"{a}[{', '.join(picks)}]" if w.chance(0.6) else f"tl.expand_dims({a}, {d})"
        w.emit(Type(ty, (*shape[:d], 1, *shape[d:])), text)
    elif choice == "broadcast" and 1 in shape:
        d = shape.index(1)
        n = rng.choice([2, 8, 16])
        if type.numel * n <= MAX_NUMEL:
            new = (*shape[:d], n, *shape[d + 1 :])
            w.emit(Type(ty, new), f"tl.broadcast_to({a}, {list(new)})")
    elif choice in ("join", "cat", "interleave") and 2 * type.numel <= MAX_NUMEL:
        b = w.pick(lambda t: t == type)
        if choice == "join" and rank < 4:
            w.emit(Type(ty, (*shape, 2)), f"tl.join({a}, {b})")
        elif choice == "cat":
            d = rng.randrange(rank)
            w.emit(Type(ty, (*shape[:d], 2 * shape[d], *shape[d + 1 :])), f"tl.cat({a}, {b}, dim={d})")
        elif choice == "interleave":
            w.emit(Type(ty, (*shape[:-1], 2 * shape[-1])), f"tl.interleave({a}, {b})")
    elif choice == "split":
        if shape[-1] == 2:
            w.emit_several([Type(ty, shape[:-1])] * 2, f"tl.split({a})")
        elif type.numel >= 2 and type.numel % 2 == 0:
            half = (type.numel // 2,)
            w.emit_several([Type(ty, half)] * 2, f"tl.split(tl.reshape({a}, [{type.numel // 2}, 2]))")
    elif choice == "ravel":
        w.emit(Type(ty, (type.numel,)), f"tl.ravel({a})")


def gather(w: Writer) -> None:
    """tl.gather along an axis by indices in range."""
    a = w.tensor(ARITHMETIC)
    type = w.type(a)
    axis = w.rng.randrange(len(type.shape))
    index = w.pick(lambda t: t.dtype.is_int and t.shape == type.shape)
    if index is None:
        index = w.load(Type(I32, type.shape))
    high = w.type(index).dtype.high
    mask = min(type.shape[axis] - 1, high)
    w.emit(type, f"tl.gather({a}, ({index} & {mask}).to(tl.int32), {axis})")


def indexed_load(w: Writer) -> None:
    """A load at addresses that data gives."""
    index = w.pick(lambda t: t.dtype.is_int and t.shape) or w.load(Type(I32, w.rng.choice([s for s in w.shapes if s])))
    type = w.type(index)
    size = min(2 ** w.rng.randrange(11), type.dtype.high // 2 + 1)
    ty = w.rng.choice(w.dtypes)
    array = w.argument(Array(ty.code, size, w.array_fill(ty), w.rng.randrange(2**31)))
    mask = f", mask={w.mask(type.shape)}, other={w.number(ty)}" if w.chance(0.4) else ""
    w.emit(type.of(ty), f"tl.load({array} + ({index} & {size - 1}){mask})")


def histogram(w: Writer) -> None:
    """tl.histogram of what fits in its bins."""
    a = w.pick(lambda t: t.dtype in (I32, U32) and len(t.shape) == 1)
    if a is None:
        shapes = [s for s in w.shapes if len(s) == 1] or [(128,)]
        a = w.load(Type(I32, w.rng.choice(shapes)))
    bins = w.rng.choice([2, 8, 16, 64, 256])
    mask = f", mask={w.mask(w.type(a).shape)}" if w.chance(0.3) else ""
    w.emit(Type(I32, (bins,)), f"tl.histogram({a} & {bins - 1}, {bins}{mask})")


_DOT_TYPES = [FP16, FP16, BF16, FP32, DTYPES["i8"], DTYPES["fp8e5"], DTYPES["fp8e4nv"], FP64]


def dot(w: Writer) -> None:
    """tl.dot of two loaded or computed operands, maybe chained into another, maybe batched."""
    rng = w.rng
    ty = rng.choice(_DOT_TYPES)
    m, n, k = (rng.choice([16, 16, 32, 64]) for _ in range(3))
    if ty.bits == 8:
        k = max(k, 32)
    if ty is FP64:
        m, n, k = (min(x, 32) for x in (m, n, k))
    batch = (2,) if w.chance(0.08) else ()
    a = operand(w, Type(ty, (*batch, m, k)))
    b = operand(w, Type(ty, (*batch, k, n)))
    if batch:
        m, n, k = min(m, 32), min(n, 32), k
    out = I32 if ty.is_int else FP64 if ty is FP64 else FP32
    extra = ""
    if ty is FP32:
        extra = f", input_precision='{rng.choice(['tf32', 'tf32x3', 'ieee', 'bf16x3', 'bf16x6'])}'"
    elif ty is FP16 and w.chance(0.15):
        extra, out = ", out_dtype=tl.float16", FP16
    shape = (*w.type(a).shape[:-1], w.type(b).shape[-1])
    acc = w.pick(lambda t: t == Type(out, shape))
    accumulate = f", {acc}" if acc and w.chance(0.5) else ""
    c = w.emit(Type(out, shape), f"tl.dot({a}, {b}{accumulate}{extra})")
    if w.chance(0.3) and ty in (FP16, BF16) and not batch and shape[-1] >= 16:
        narrow = w.emit(Type(ty, shape), f"({c} * 0.125).to({ty.spelled})")
        d = operand(w, Type(ty, (shape[-1], rng.choice([16, 32]))))
        w.emit(Type(FP32, (shape[0], w.type(d).shape[-1])), f"tl.dot({narrow}, {d})")


def operand(w: Writer, type: Type) -> str:
    """An operand of a product with small values, loaded in either order, maybe transposed in the kernel."""
    found = w.pick(lambda t: t == type)
    if found and w.chance(0.3):
        return found
    *batch, rows, cols = type.shape
    size = type.numel * w.programs
    array = w.argument(Array(type.dtype.code, size, "unit" if type.dtype.is_float else "small", w.rng.randrange(2**31)))
    swapped = w.chance(0.3)
    r, c = (cols, rows) if swapped else (rows, cols)
    leading = tuple(rows * cols for _ in batch)
    index = w.index((*batch, r, c), (*leading, c, 1))
    loaded = w.emit(Type(type.dtype, (*batch, r, c)), f"tl.load({array} + pid * {type.numel} + ({index}))")
    if not swapped:
        return loaded
    order = [*range(len(batch)), len(batch) + 1, len(batch)]
    return w.emit(type, f"tl.permute({loaded}, {order})" if batch else f"tl.trans({loaded})")


_ATOMIC_INT = ["add", "max", "min", "and", "or", "xor"]


def atomic(w: Writer) -> None:
    """Atomics whose result does not depend on their order: on shared places with the old value unused, or on places of one's own."""
    rng = w.rng
    shapes = [s for s in w.shapes if s]
    ty = rng.choice([I32, U32, DTYPES["i64"], DTYPES["u64"], FP32, FP64, FP16])
    value = w.value(Type(ty, rng.choice(shapes)))
    type = w.type(value)
    mask = f", mask={w.mask(type.shape)}" if w.chance(0.4) else ""
    sem = rng.choice(["", "", ", sem='relaxed'", ", sem='release'", ", scope='cta'" if w.programs == 1 else ""])
    ops = _ATOMIC_INT if ty.is_int else ["add"] if ty is FP16 else ["add", "max", "min"]
    op = rng.choice(ops)
    if ty.is_float and op != "add":
        value = no_nan(value, ty)
    strides, span = w.strides(type.shape)
    if w.chance(0.5):
        places = 2 ** rng.randrange(7)
        array = w.argument(Array(ty.code, places, "small", rng.randrange(2**31)))
        w.run(f"tl.atomic_{op}({array} + (({w.index(type.shape, strides)}) & {places - 1}), {value}{mask}{sem})")
        return
    array = w.argument(Array(ty.code, span * w.programs, "small", rng.randrange(2**31)))
    pointer = f"{array} + pid * {span} + ({w.index(type.shape, strides)})"
    if op in _ATOMIC_INT and ty.is_int and w.chance(0.2) and not mask:
        w.most_ctas = min(w.most_ctas, type.numel)
        w.emit(type, f"tl.atomic_cas({pointer}, tl.full({list(type.shape)}, 3, {ty.spelled}), {value})")
    elif mask:
        w.run(f"tl.atomic_{op}({pointer}, {value}{mask}{sem})")
    else:
        w.emit(type, f"tl.atomic_{op}({pointer}, {value}{sem})")


MAKERS = [
    (reduction, 6),
    (scan, 2.5),
    (sorting, 1.5),
    (shape, 6),
    (gather, 1),
    (indexed_load, 1.5),
    (histogram, 0.7),
    (dot, 1.5),
    (atomic, 1),
]
