"""Makers of what whole kernels are built of: descriptors, block pointers, softmax, attention, random numbers, scaled products."""

from __future__ import annotations

from .program import Array, Helper, Statement
from .types import BF16, BOOL, DTYPES, FLOATS, FP16, FP32, I32, U32, DType, Type
from .writer import Writer

OPAQUE = DType("opaque", "pointer", 64, "opaque")  # descriptors, pointers, tuples: nothing else uses them


def opaque(w: Writer, text: str) -> str:
    """Append `v = text` for a v that other makers do not see."""
    name = w.fresh()
    w.block.append(Statement(f"{name} = {text}", ((name, Type(OPAQUE)),)))
    return name


def _matrix(w: Writer, ty: DType) -> tuple[str, int, int, int]:
    """(array argument, rows, columns, row stride) of a matrix whose rows start at multiples of 16 bytes."""
    size = max(ty.bits, 8) // 8
    rows, stride = w.rng.choice([8, 20, 33, 64]), w.rng.choice([16, 48, 64, 80]) * max(1, 4 // size)
    columns = stride - w.rng.choice([0, 0, 3, 8])
    array = w.argument(Array(ty.code, rows * stride, w.array_fill(ty), w.rng.randrange(2**31)))
    return array, rows, columns, stride


def _block(w: Writer, ty: DType) -> tuple[int, int]:
    size = max(ty.bits, 8) // 8
    return w.rng.choice([1, 4, 8, 16, 32]), max(w.rng.choice([16, 32, 64]), 16 // size)


def descriptor(w: Writer) -> None:
    """Blocks loaded through a tensor descriptor, partly outside, maybe in a loop; one stored through another."""
    rng = w.rng
    ty = rng.choice([FP16, BF16, FP32, I32, DTYPES["i8"], DTYPES["u16"], DTYPES["i64"]])
    array, rows, columns, stride = _matrix(w, ty)
    shape = _block(w, ty)
    padding = ", padding_option='nan'" if ty.is_float and w.chance(0.3) else ""
    rows_text = w.argument(rows) if w.chance(0.5) else str(rows)
    made = opaque(w, f"tl.make_tensor_descriptor({array}, [{rows_text}, {columns}], [{stride}, 1], {list(shape)}{padding})")
    row = rng.choice(["0", "pid * 4", "pid - 2", str(rows - 3), w.scalar()])
    column = rng.choice(["0", "-4", "8", str(max(0, columns - 5))])
    type = Type(ty, shape)
    total = w.emit(type, f"{made}.load([{row}, {column}])")
    if w.chance(0.4):
        counter = w.fresh()
        with w.nested() as body:
            w.assign(total, f"{total} + {made}.load([{counter} * {shape[0]}, {column}])")
        bound = rng.choice(["2", "3", w.argument(rng.randrange(1, 4))])
        w.block.append(Statement(f"for {counter} in range({bound}):", (), tuple(body)))
    if w.chance(0.5):
        target = w.argument(Array(ty.code, 40 * w.programs * 96, "pattern", 0))
        other = opaque(w, f"tl.make_tensor_descriptor({target}, [{36 * w.programs}, {rng.choice([80, 90])}], [96, 1], {list(shape)})")
        w.run(f"{other}.store([pid * 36, {rng.choice([0, 16, 70])}], {total})")


def block_pointer(w: Writer) -> None:
    """Loads by a block pointer that a loop advances, with checks of its boundary."""
    rng = w.rng
    ty = rng.choice([FP16, FP32, I32, BF16])
    array, rows, columns, stride = _matrix(w, ty)
    shape = _block(w, ty)
    start = f"[{rng.choice(['0', 'pid'])}, 0]"
    pointer = opaque(w, f"tl.make_block_ptr({array}, [{rows}, {columns}], [{stride}, 1], {start}, {list(shape)}, [1, 0])")
    total = w.emit(Type(ty, shape), f"tl.load({pointer}, boundary_check=[0, 1], padding_option='zero')")
    counter = w.fresh()
    with w.nested() as body:
        body.append(
            Statement(
                f"{pointer} = tl.advance({pointer}, [{rng.choice([0, shape[0]])}, {rng.choice([4, 16])}])", ((pointer, Type(OPAQUE)),)
            )
        )
        w.assign(total, f"{total} + tl.load({pointer}, boundary_check=[0, 1], padding_option='zero')")
    w.block.append(Statement(f"for {counter} in range({rng.randrange(1, 4)}):", (), tuple(body)))


def softmax(w: Writer) -> None:
    """tl.softmax, or its parts along an axis, as kernels write them."""
    a = w.tensor(FLOATS)
    type = w.type(a)
    x = w.emit(type.of(FP32), f"{a}.to(tl.float32) * 0.5")
    axis = w.rng.randrange(len(type.shape))
    if w.chance(0.3):
        w.emit(type.of(FP32), f"tl.softmax({x}, {axis})")
        return
    top = w.emit(Type(FP32, (*type.shape[:axis], 1, *type.shape[axis + 1 :])), f"tl.max({x}, {axis}, keep_dims=True)")
    e = w.emit(type.of(FP32), f"tl.exp({x} - {top})")
    w.emit(type.of(FP32), f"{e} / tl.sum({e}, {axis}, keep_dims=True)")


def attention(w: Writer) -> None:
    """One block of attention: products, online softmax, carried accumulators."""
    rng = w.rng
    ty = rng.choice([FP16, BF16])
    m, n, d, trips = rng.choice([16, 32, 64, 64]), rng.choice([16, 32, 64]), rng.choice([16, 32, 64]), rng.randrange(1, 4)
    arrays = [w.argument(Array(ty.code, size * w.programs, "unit", rng.randrange(2**31))) for size in (m * d, n * trips * d, n * trips * d)]
    q = w.emit(Type(ty, (m, d)), f"tl.load({arrays[0]} + pid * {m * d} + ({w.index((m, d), (d, 1))}))")
    acc = w.emit(Type(FP32, (m, d)), f"tl.zeros([{m}, {d}], tl.float32)")
    top = w.emit(Type(FP32, (m,)), f"tl.full([{m}], float('-inf'), tl.float32)")
    norm = w.emit(Type(FP32, (m,)), f"tl.zeros([{m}], tl.float32)")
    counter = w.fresh()
    causal = w.chance(0.4)
    with w.nested() as body:
        base = f"pid * {n * trips * d} + {counter} * {n * d}"
        k = w.emit(Type(ty, (d, n)), f"tl.load({arrays[1]} + {base} + ({w.index((d, n), (1, d))}))")
        s = w.emit(Type(FP32, (m, n)), f"tl.dot({q}, {k}) * 0.25")
        if causal:
            row, column = w.index((m, 1), (1, 0), full=False), w.index((1, n), (0, 1), full=False)
            s = w.emit(Type(FP32, (m, n)), f"tl.where(({row}) >= ({column} + {counter} * {n}), {s}, -10.0)")
        new = w.emit(Type(FP32, (m,)), f"tl.maximum({top}, tl.max({s}, 1))")
        p = w.emit(Type(FP32, (m, n)), f"tl.exp2({s} - {new}[:, None])")
        alpha = w.emit(Type(FP32, (m,)), f"tl.exp2({top} - {new})")
        w.assign(norm, f"{norm} * {alpha} + tl.sum({p}, 1)")
        v = w.emit(Type(ty, (n, d)), f"tl.load({arrays[2]} + {base} + ({w.index((n, d), (d, 1))}))")
        w.assign(acc, f"{acc} * {alpha}[:, None]")
        w.assign(acc, f"tl.dot({p}.to({ty.spelled}), {v}, {acc})")
        w.assign(top, new)
    options = rng.choice(["", ", num_stages=1", ", num_stages=3"])
    bound = w.argument(trips) if w.chance(0.5) else str(trips)
    w.block.append(Statement(f"for {counter} in tl.range(0, {bound}{options}):", (), tuple(body)))
    w.emit(Type(FP32, (m, d)), f"{acc} / {norm}[:, None]")


def strided_product(w: Writer) -> None:
    """A product of matrices in memory as kernels address them: rows with a pitch, tiles that wrap around or are masked, several matrices,
    pointers that advance or are made anew."""
    rng = w.rng
    ty = rng.choice([FP16, FP16, BF16])
    m, n, k = *rng.choice([(64, 32), (64, 64), (128, 32)]), rng.choice([16, 32, 64])
    trips = rng.randrange(1, 4)
    rows, columns, depth = m + rng.choice([0, 0, 16, -16, -5]), n + rng.choice([0, 0, 16, -16]), k * trips - rng.choice([0, 0, 8, 3])
    # The first dimension of each matrix is M or N; the second K. Each lies along memory in one of two ways.
    along_k = [w.chance(0.5), w.chance(0.5)]
    pitches = [
        -(-(depth if inner else size) // 16) * 16 + rng.choice([0, 0, 16, 64, 8, 1]) for inner, size in zip(along_k, (rows, columns))
    ]
    batch = [pitch * (size + m if inner else k * trips) for pitch, inner, size in zip(pitches, along_k, (rows, columns))]
    arrays = [
        w.argument(Array(ty.code, size * (w.programs + 1) + m * pitch, "unit", rng.randrange(2**31))) for size, pitch in zip(batch, pitches)
    ]
    names = [w.argument(pitch) if w.chance(0.7) else str(pitch) for pitch in pitches]
    rows_text, columns_text, depth_text = (w.argument(value) if w.chance(0.7) else str(value) for value in (rows, columns, depth))
    indices = [opaque(w, f"{rng.choice(['0', 'pid % 2'])} * {size} + tl.arange(0, {size})") for size in (m, n)]
    style = rng.choice(["wraps", "mask", "plain"]) if rows + columns >= m + n else rng.choice(["wraps", "mask"])
    placed = [opaque(w, f"{index} % {limit}") for index, limit in zip(indices, (rows_text, columns_text))] if style == "wraps" else indices
    steps = opaque(w, f"tl.arange(0, {k})")
    counter = w.fresh()

    def pointers(which: int, first: str) -> str:
        outer, inner = (
            (f"{placed[which]}[:, None]", f"({first}{steps})[None, :]")
            if which == 0
            else (f"{placed[which]}[None, :]", f"({first}{steps})[:, None]")
        )
        outer, inner = (f"{outer} * {names[which]}", inner) if along_k[which] else (outer, f"{inner} * {names[which]}")
        return f"{arrays[which]} + pid * {batch[which]} + {outer} + {inner}"

    advance = w.chance(0.6)
    made = [opaque(w, pointers(which, "")) for which in (0, 1)] if advance else []
    acc = w.emit(Type(FP32, (m, n)), f"tl.zeros([{m}, {n}], tl.float32)")
    with w.nested() as body:
        loaded = []
        for which, shape in enumerate([(m, k), (k, n)]):
            place = ("[:, None]", "[None, :]")[which]
            other = ("[None, :]", "[:, None]")[which]
            limits = [f"({steps}{other} < {depth_text} - {counter} * {k})"] if depth % k or w.chance(0.3) else []
            limits += [f"({indices[which]}{place} < {(rows_text, columns_text)[which]})"] if style == "mask" else []
            mask = f", mask={' & '.join(limits)}, other=0.0" if limits else ""
            at = made[which] if advance else pointers(which, f"{counter} * {k} + ")
            loaded.append(w.emit(Type(ty, shape), f"tl.load({at}{mask})"))
        w.assign(acc, f"tl.dot({loaded[0]}, {loaded[1]}, {acc})")
        for which, pointer in enumerate(made):
            body.append(Statement(f"{pointer} += {k if along_k[which] else f'{k} * {names[which]}'}", ((pointer, Type(OPAQUE)),)))
    w.block.append(Statement(f"for {counter} in range({trips}):", (), tuple(body)))
    if w.chance(0.5):
        target = w.argument(Array("fp32", m * 2 * 128 * w.programs, "pattern", 0))
        outside = f"({indices[0]}[:, None] < {rows_text}) & ({indices[1]}[None, :] < {columns_text})"
        w.run(f"tl.store({target} + pid * {m * 256} + {indices[0]}[:, None] * 128 + {indices[1]}[None, :], {acc}, mask={outside})")
        w.scopes[-1].pop(acc)


def random_numbers(w: Writer) -> None:
    """Philox on offsets."""
    a = w.pick(lambda t: t.dtype in (I32, U32) and t.shape) or w.load(Type(I32, w.rng.choice([s for s in w.shapes if s])))
    type = w.type(a)
    seed = w.rng.choice(["7", w.scalar()])
    name = w.rng.choice(["rand", "randint", "randn"])
    w.emit(type.of(U32 if name == "randint" else FP32), f"tl.{name}({seed}, {a})")


def choice_of_pointers(w: Writer) -> None:
    """Loads through pointers that a mask or a branch chooses."""
    rng = w.rng
    ty = rng.choice([t for t in w.dtypes if t is not BOOL] or [FP32])
    shape = rng.choice([s for s in w.shapes if s])
    strides, span = w.strides(shape)
    a, b = (w.argument(Array(ty.code, span, w.array_fill(ty), rng.randrange(2**31))) for _ in range(2))
    index = w.index(shape, strides)
    if w.chance(0.5):
        chosen = opaque(w, f"{a} if {w.scalar()} > 10 else {b}")
        w.emit(Type(ty, shape), f"tl.load({chosen} + ({index}))")
    else:
        chosen = opaque(w, f"tl.where({w.mask(shape)}, {a} + ({index}), {b} + ({index}))")
        w.emit(Type(ty, shape), f"tl.load({chosen})")


def chosen_scalar(w: Writer) -> None:
    """A conditional expression, a chained comparison or a minimum of scalars."""
    a, b = w.scalar(), w.scalar()
    text = w.rng.choice(
        [f"{a} + pid if {b} > 9 else pid", f"min({a} + pid, {b} + 1)", f"tl.cdiv({a} + pid, 7)", f"({a} + pid) * ({b} + 3) // 5"]
    )
    w.emit(Type(I32), text)


def called_scalar(w: Writer) -> None:
    """A helper on scalars that is not inlined, with a loop in it."""
    name = f"h{len(w.helpers)}"
    text = f"def {name}(x, n):\n    for i in range(n & 3):\n        x = x * 3 + i\n    return x\n"
    w.helpers.append(Helper(name, text, "noinline=True"))
    w.emit(Type(I32), f"{name}(pid + {w.scalar()}, {w.scalar()} + pid)")


def scaled_product(w: Writer) -> None:
    """tl.dot_scaled of bytes with scales."""
    rng = w.rng
    m, n, k = rng.choice([16, 32, 64]), rng.choice([16, 32, 64]), rng.choice([64, 128])

    def operand(rows: int, columns: int, code: str) -> str:
        array = w.argument(Array(code, rows * columns, "small" if code == "u8" else "unit", rng.randrange(2**31)))
        return w.emit(Type(DTYPES[code], (rows, columns)), f"tl.load({array} + {w.index((rows, columns), (columns, 1))})")

    def scales(rows: int) -> str:
        array = w.argument(Array("u8", rows * k // 32, "small", rng.randrange(2**31)))
        return w.emit(Type(DTYPES["u8"], (rows, k // 32)), f"tl.load({array} + {w.index((rows, k // 32), (k // 32, 1))}) + 122")

    formats = {"e2m1": "u8", "e4m3": "u8", "e5m2": "u8", "bf16": "bf16"}
    left, right = rng.choice(list(formats)), rng.choice(list(formats))
    a = operand(m, k // 2 if left == "e2m1" else k, formats[left])
    b = operand(k // 2 if right == "e2m1" else k, n, formats[right])
    sa = scales(m) if left != "bf16" else "None"
    sb = scales(n) if right != "bf16" and (w.chance(0.7) or sa == "None") else "None"
    if sa == sb == "None":
        return
    w.emit(Type(FP32, (m, n)), f"tl.dot_scaled({a}, {sa}, '{left}', {b}, {sb}, '{right}')")


def integer_product(w: Writer) -> None:
    """tl.dot of bytes of both signednesses."""
    rng = w.rng
    m, n, k = rng.choice([16, 32, 64]), rng.choice([16, 32, 64]), rng.choice([32, 64])
    names = []
    for shape in ((m, k), (k, n)):
        code = rng.choice(["i8", "u8"])
        array = w.argument(Array(code, m * n * k, "full", rng.randrange(2**31)))
        names.append(w.emit(Type(DTYPES[code], shape), f"tl.load({array} + {w.index(shape, (shape[1], 1))})"))
    w.emit(Type(I32, (m, n)), f"tl.dot({names[0]}, {names[1]})")


def swizzle(w: Writer) -> None:
    """tl.swizzle2d of index tensors."""
    shape = w.rng.choice([s for s in w.shapes if s])
    i, j = (w.emit(Type(I32, shape), f"({w.index(shape, tuple(range(1, len(shape) + 1)))}) & {m}") for m in (7, 15))
    w.emit_several([Type(I32, shape)] * 2, f"tl.swizzle2d({i}, {j}, 8, 16, {w.rng.choice([1, 2, 4])})")


MAKERS = [
    (descriptor, 0.8),
    (block_pointer, 0.5),
    (softmax, 1),
    (attention, 0.4),
    (strided_product, 0.4),
    (random_numbers, 0.4),
    (choice_of_pointers, 0.7),
    (chosen_scalar, 0.7),
    (called_scalar, 0.4),
    (scaled_product, 0.3),
    (integer_product, 0.4),
    (swizzle, 0.3),
]
