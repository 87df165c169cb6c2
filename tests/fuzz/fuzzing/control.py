"""Makers of control flow: branches on runtime scalars, loops with values carried, pointer loops, helper functions."""

from __future__ import annotations

from . import blocks, elementwise, kernels, memory
from .kernels import OPAQUE
from .program import Array, Helper, Statement
from .types import BF16, BOOL, FP16, FP32, FP64, I32, Type
from .writer import Writer

MAX_DEPTH = 2


def add_statements(w: Writer, count: int, simple: bool = False) -> None:
    """Append what `count` random makers make."""
    makers = [*elementwise.MAKERS, *blocks.MAKERS]
    if not simple and w.depth < MAX_DEPTH:
        makers += [*MAKERS, *kernels.MAKERS, *memory.MAKERS]
    functions, weights = zip(*((f, weight * w.weights.get(f.__name__, 1.0)) for f, weight in makers), strict=True)
    for _ in range(count):
        w.rng.choices(functions, weights)[0](w)


def condition(w: Writer) -> str:
    """A scalar condition that differs between runs or programs."""
    found = w.pick(lambda t: t == Type(BOOL))
    if found and w.chance(0.3):
        return found
    scalar = w.scalar()
    return w.rng.choice([f"{scalar} > 5", f"pid % 2 == {w.rng.randrange(2)}", f"{scalar} < pid + 20", f"{scalar} == 7", f"pid < {scalar}"])


def convertible(w: Writer, type: Type) -> str | None:
    """Text of a value of this type, made of a variable of its shape."""
    found = w.pick(lambda t: t.shape == type.shape and not w.unsafe_cast(t.dtype, type.dtype))
    if found is None:
        return None
    return found if w.type(found) == type else f"{found}.to({type.dtype.spelled})"


def assignable(w: Writer) -> list[str]:
    """Up to three outer variables that an inner block may set."""
    names = [n for n in w.candidates(lambda t: t.numel <= 2048) if n not in w.fixed]
    w.rng.shuffle(names)
    return names[: w.rng.randrange(1, 4)]


def update(w: Writer, name: str) -> None:
    """Assign to an outer variable a value of its type, often made of its old one."""
    type = w.type(name)
    ty = type.dtype
    new = w.pick(lambda t: t == type)
    if ty in elementwise.ARITHMETIC and new and w.chance(0.7):
        w.assign(name, f"{name} {w.rng.choice(['+', '-', '*', '+'])} {new if w.chance(0.8) else w.number(ty)}")
    elif len(type.shape) > 1 and type.shape[-1] == type.shape[-2] and w.chance(0.5):
        w.assign(name, f"tl.trans({name}{', 0, 2, 1' if len(type.shape) == 3 else ''})" if len(type.shape) < 4 else name)
    elif (text := convertible(w, type)) is not None:
        w.assign(name, text)


def exchange(w: Writer) -> None:
    """Two variables of one type exchanged."""
    a = w.pick(lambda t: t.numel <= 2048)
    if a is None or a in w.fixed:
        return
    b = w.pick(lambda t: t == w.type(a))
    if b != a and b not in w.fixed:
        type = w.type(a)
        w.block.append(Statement(f"{a}, {b} = {b}, {a}", ((a, type), (b, type))))


def constant_branch(w: Writer) -> None:
    """`if` on a constexpr: only one branch is there, and it may change a type."""
    a = w.tensor(elementwise.ARITHMETIC)
    type = w.type(a)
    value = w.rng.choice([0, 1, 2])
    new = w.fresh()
    branches = [Statement(f"{new} = {a}.to(tl.float64)", ((new, type.of(FP64)),)), Statement(f"{new} = {a}", ((new, type),))]
    if type.dtype is FP64:
        branches[0] = branches[1]
    w.block.append(Statement(f"if {w.constexpr(value)} > 1:", (), (branches[0],), (branches[1],)))
    w.scopes[-1][new] = type.of(FP64) if value > 1 else type


def branch(w: Writer) -> None:
    """`if` on a runtime scalar that sets outer variables, or defines one in both branches."""
    if not w.visible():
        return
    head = condition(w)
    names = assignable(w)
    both = w.pick(lambda t: t.numel <= 2048) if w.chance(0.4) else None
    new, type = (w.fresh(), w.type(both)) if both else (None, None)
    bodies = []
    for _ in range(2 if both or w.chance(0.5) else 1):
        with w.nested() as body:
            add_statements(w, w.rng.randrange(0, 3))
            for name in names:
                if w.chance(0.7):
                    update(w, name)
            if new:
                body.append(Statement(f"{new} = {convertible(w, type)}", ((new, type),)))
            if w.chance(0.15):
                store = w.pick()
                if store:
                    w.store(store)
        bodies.append(tuple(body))
    w.block.append(Statement(f"if {head}:", (), *bodies))
    if new:
        w.scopes[-1][new] = type


def loop(w: Writer) -> None:
    """`for` with carried variables; bounds are numbers, constexprs or runtime scalars."""
    if not w.visible():
        return
    rng = w.rng
    counter = w.fresh()
    kind = rng.choice(["range", "range", "tl.range", "tl.static_range"])
    trips = rng.randrange(1, 5)
    if kind == "tl.static_range":
        bounds = str(min(trips, 3))
    elif w.chance(0.4):
        bounds = f"({w.scalar()}) & 3" if w.chance(0.7) else f"pid, pid + {trips}"
    else:
        bounds = rng.choice([str(trips), f"1, {trips + 1}", f"0, {2 * trips}, 2", f"{trips}, 0, -1", w.constexpr(trips)])
    options = ""
    if kind == "tl.range":
        options = rng.choice(
            ["", ", num_stages=3", ", num_stages=1", ", loop_unroll_factor=2", ", disallow_acc_multi_buffer=True", ", flatten=True"]
        )
    names = assignable(w)
    with w.nested() as body:
        if kind != "tl.static_range":
            w.scopes[-1][counter] = Type(I32)
            w.fixed.add(counter)
        add_statements(w, rng.randrange(1, 4))
        for name in names:
            update(w, name)
    w.block.append(Statement(f"for {counter} in {kind}({bounds}{options}):", (), tuple(body)))


def while_loop(w: Writer) -> None:
    """`while` that counts, with carried variables."""
    if not w.visible():
        return
    counter = w.emit(Type(I32), "pid * 0") if w.chance(0.5) else w.emit(Type(I32), w.rng.choice(["0", "1"]))
    w.fixed.add(counter)
    limit = f"(({w.scalar()}) & 3) + {w.rng.randrange(3)}"
    names = [n for n in assignable(w) if n != counter]
    with w.nested() as body:
        add_statements(w, w.rng.randrange(1, 3))
        for name in names:
            update(w, name)
        w.assign(counter, f"{counter} + 1")
    w.block.append(Statement(f"while {counter} < {limit}:", (), tuple(body)))


def early_return(w: Writer) -> None:
    """A return at the top level of the kernel."""
    if w.depth == 0 and w.chance(0.5):
        w.block.append(Statement(f"if {condition(w)}:", (), (Statement("return"),)))


def pointer_loop(w: Writer) -> None:
    """A loop that advances a tensor of pointers and accumulates what it loads."""
    rng = w.rng
    shape = rng.choice([s for s in w.shapes if s])
    ty = rng.choice([FP16, BF16, FP32, I32, *w.dtypes])
    if ty is BOOL:
        ty = I32
    accumulator = FP32 if ty in (FP16, BF16) else ty
    type = Type(ty, shape)
    trips, step = rng.randrange(1, 6), max(1, type.numel)
    strides, span = w.strides(shape)
    step = rng.choice([span, span, 1, 16])
    size = (span + step * trips) * w.programs
    array = w.argument(Array(ty.code, size, "small", rng.randrange(2**31)))
    pointers = w.emit(Type(OPAQUE, shape), f"{array} + pid * {span + step * trips} + ({w.index(shape, strides)})")
    w.scopes[-1].pop(pointers)
    total = w.emit(Type(accumulator, shape), f"tl.zeros({list(shape)}, {accumulator.spelled})")
    counter = w.fresh()
    mask = f", mask={w.mask(shape)}, other=0" if w.chance(0.4) else ""
    with w.nested() as body:
        loaded = w.emit(type, f"tl.load({pointers}{mask})")
        w.assign(total, f"{total} + {loaded}")
        if w.chance(0.3):
            add_statements(w, 1, simple=True)
        body.append(Statement(f"{pointers} += {step}", ((pointers, Type(OPAQUE, shape)),)))
    bound = w.argument(trips) if w.chance(0.5) else str(trips)
    options = rng.choice(["", ", num_stages=2", ", num_stages=4"])
    head = f"for {counter} in tl.range({bound}{options}):" if options else f"for {counter} in range({bound}):"
    w.block.append(Statement(head, (), tuple(body)))


def product_loop(w: Writer) -> None:
    """A matrix product over a loop along K, as kernels write it."""
    rng = w.rng
    ty = rng.choice([FP16, FP16, BF16, FP32, FP64])
    m, n, k = rng.choice([16, 32, 64, 64, 128]), rng.choice([16, 32, 64, 128]), rng.choice([16, 32, 64])
    if ty is FP64:
        m, n, k = 16, 16, 16
    trips = rng.randrange(1, 5)
    out = FP64 if ty is FP64 else FP32
    columns = k * trips
    a = w.argument(Array(ty.code, m * columns * w.programs, "unit", rng.randrange(2**31)))
    b = w.argument(Array(ty.code, n * columns * w.programs, "unit", rng.randrange(2**31)))
    row_major = w.chance(0.5)
    pa = w.emit(Type(OPAQUE, (m, k)), f"{a} + pid * {m * columns} + ({w.index((m, k), (columns, 1))})")
    pb = w.emit(Type(OPAQUE, (k, n)), f"{b} + pid * {n * columns} + ({w.index((k, n), (n, 1) if row_major else (1, columns))})")
    for pointer in (pa, pb):
        w.scopes[-1].pop(pointer)
    acc = w.emit(Type(out, (m, n)), f"tl.zeros([{m}, {n}], {out.spelled})")
    counter = w.fresh()
    limit = f"({w.index((1, k), (0, 1), full=False)}) < {w.argument(columns - rng.choice([0, 3, 8]))} - {counter} * {k}"
    mask = f", mask={limit}, other=0.0" if w.chance(0.4) else ""
    with w.nested() as body:
        x = w.emit(Type(ty, (m, k)), f"tl.load({pa}{mask})")
        y = w.emit(Type(ty, (k, n)), f"tl.load({pb})")
        if w.chance(0.2):
            x = w.emit(Type(ty, (m, k)), f"({x} * 2).to({ty.spelled})")
        w.assign(acc, f"tl.dot({x}, {y}, {acc})" if w.chance(0.6) else f"{acc} + tl.dot({x}, {y})")
        body.append(Statement(f"{pa} += {k}", ((pa, Type(OPAQUE, (m, k))),)))
        body.append(Statement(f"{pb} += {k * n if row_major else k}", ((pb, Type(OPAQUE, (k, n))),)))
    bound = w.argument(trips) if w.chance(0.5) else str(trips)
    head = rng.choice([f"range({bound})", f"range(0, {bound})", f"tl.range(0, {bound}, num_stages={rng.choice([1, 2, 3, 4])})"])
    w.block.append(Statement(f"for {counter} in {head}:", (), tuple(body)))


def helper_call(w: Writer) -> None:
    """A call of a helper function that computes on its operands, branches on a scalar, or returns a tuple."""
    a = w.tensor(elementwise.ARITHMETIC)
    type = w.type(a)
    name = f"h{len(w.helpers)}"
    form = w.rng.choice(["plain", "tuple", "branch", "constexpr", "map"])
    op = w.rng.choice("+-*")
    if form == "plain":
        w.helpers.append(Helper(name, f"def {name}(x, y):\n    z = x {op} y\n    return z + x\n"))
        w.emit(type, f"{name}({a}, {a})")
    elif form == "tuple":
        w.helpers.append(Helper(name, f"def {name}(x, y=2):\n    return x {op} x, (x > y)\n"))
        w.emit_several([type, type.of(BOOL)], f"{name}({a})")
    elif form == "branch":
        text = f"def {name}(x, n):\n    if n > 5:\n        return x {op} x\n    else:\n        y = x + 1\n        return y\n"
        w.helpers.append(Helper(name, text))
        w.emit(type, f"{name}({a}, {w.scalar()})")
    elif form == "constexpr":
        loop = "    for i in tl.static_range(N):\n        x += i\n"
        text = f"def {name}(x, N: tl.constexpr):\n    if N > 2:\n        x = x {op} N\n{loop}    return x\n"
        w.helpers.append(Helper(name, text))
        w.emit(type, f"{name}({a}, {w.rng.choice([1, 2, 3])})")
    else:
        text = f"def {name}(x, y):\n    z = y\n    if x > 1:\n        z = x {op} y\n    return z\n"
        w.helpers.append(Helper(name, text))
        w.emit(type, f"tl.map_elementwise({name}, {a}, {a})")


def tuples(w: Writer) -> None:
    """A tuple made, indexed and unpacked."""
    a, b = w.tensor(), w.tensor()
    pair = w.fresh()
    w.block.append(Statement(f"{pair} = ({a}, {b}, 3)", ((pair, Type(OPAQUE)),)))
    w.emit(w.type(b), f"{pair}[1]")


MAKERS = [
    (branch, 2.5),
    (loop, 2.5),
    (while_loop, 0.8),
    (early_return, 0.4),
    (pointer_loop, 1),
    (product_loop, 0.8),
    (helper_call, 1.5),
    (tuples, 0.4),
    (exchange, 1),
    (constant_branch, 0.4),
]
