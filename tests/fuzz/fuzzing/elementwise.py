"""Makers of elementwise statements: arithmetic, bits, comparisons, selection, conversions, functions.

Undefined behaviour is kept out: integers are divided by positive numbers, shifts are below the width, floats become integers only where
they fit.
"""

from __future__ import annotations

from .types import BOOL, DTYPES, FLOATS, FP8S, FP32, FP64, I32, I64, INTEGERS, U32, DType, Type, broadcast, promote, promote_number
from .writer import Writer

ARITHMETIC = [*FLOATS, *INTEGERS]


def fits(shape: tuple[int, ...] | None, limit: int = 4096) -> bool:
    """Whether operands of a result of this shape can be combined at all, and stay small."""
    n = 1
    for size in shape or ():
        n *= size
    return shape is not None and n <= limit


def operand_pair(w: Writer, dtypes: list[DType]) -> tuple[str, str, Type] | None:
    """Two variables of these element types that broadcast, and the type of the first with the common shape."""
    a = w.pick(lambda t: t.dtype in dtypes)
    if a is None:
        a = w.tensor(dtypes)
    ta = w.type(a)
    b = w.pick(lambda t: t.dtype in dtypes and fits(broadcast(ta.shape, t.shape)))
    if b is None:
        return None
    return a, b, Type(ta.dtype, broadcast(ta.shape, w.type(b).shape))


def arithmetic(w: Writer) -> None:
    """+ - * / of two variables, or of a variable and a number."""
    op = w.rng.choice(["+", "-", "*", "+", "-", "*", "/"])
    if w.chance(0.4):
        with_number(w, op)
        return
    pair = operand_pair(w, ARITHMETIC)
    if pair is None:
        return
    a, b, type = pair
    da, db = w.type(a).dtype, w.type(b).dtype
    if op == "/":
        # integers of two signednesses cannot be divided
        if not (da.is_float or db.is_float) and da.kind != db.kind:
            op = "-"
        else:
            ty = promote(da, db, division=True)
            w.emit(type.of(ty if ty.is_float else FP32), f"{a} / {b}")
            return
    function = {"+": "tl.add", "-": "tl.sub", "*": "tl.mul"}[op]
    text = f"{a} {op} {b}" if w.chance(0.9) else f"{function}({a}, {b})"
    if w.chance(0.15):
        fused_product(w, a, b, type)
        return
    w.emit(type.of(promote(da, db)), text)


def fused_product(w: Writer, a: str, b: str, type: Type) -> None:
    """a * b + c, which may be contracted."""
    ty = promote(w.type(a).dtype, w.type(b).dtype)
    c = w.pick(lambda t: t.dtype is ty and t.shape == type.shape)
    w.emit(type.of(ty), f"{a} * {b} + {c or w.number(ty)}")


def with_number(w: Writer, op: str) -> None:
    """A variable with a Python number or a constexpr on one side."""
    a = w.pick(lambda t: t.dtype in ARITHMETIC or (t.dtype is BOOL and op in "+*"))
    if a is None:
        return
    type = w.type(a)
    number = w.number(type.dtype if w.chance(0.7) and type.dtype is not BOOL else (FP32 if op == "/" or w.chance(0.5) else I32))
    value = float(number) if "." in number else int(number)
    if type.dtype.kind == "uint" and value < 0 and isinstance(value, int):
        number, value = "3", 3
    if type.dtype.is_int and isinstance(value, int) and not type.dtype.low <= value <= type.dtype.high:
        number, value = "1", 1
    if w.chance(0.25):
        number = w.constexpr(value)
    ty = promote_number(value, type.dtype, op == "/")
    if op == "/" and not ty.is_float:
        ty = FP32
    text = f"{a} {op} {number}" if w.chance(0.7) else f"{number} {op} {a}"
    w.emit(type.of(ty), text)


def integer_division(w: Writer) -> None:
    """// and % by what is positive."""
    op = w.rng.choice(["//", "%"])
    a = w.pick(lambda t: t.dtype.is_int) or w.tensor(INTEGERS)
    type = w.type(a)
    if w.chance(0.5):
        divisor = w.rng.choice([1, 2, 3, 4, 7, 10, 16, 100, type.dtype.high])
        w.emit(type, f"{a} {op} {w.constexpr(divisor) if w.chance(0.3) else divisor}")
        return
    b = w.pick(lambda t: t.dtype.kind == type.dtype.kind and fits(broadcast(type.shape, t.shape)))
    if b is None:
        return
    tb = w.type(b)
    shape = broadcast(type.shape, tb.shape)
    positive = f"(({b} & {min(tb.dtype.high, w.rng.choice([7, 63, 127]))}) + 1)" if w.chance(0.5) else f"tl.where({b} > 0, {b}, 3)"
    if tb.dtype.high == 127 and "+ 1" in positive:
        positive = f"(({b} & 63) + 1)"
    w.emit(Type(promote(type.dtype, tb.dtype), shape), f"{a} {op} {positive}")


def remainder_of_floats(w: Writer) -> None:
    """% of a float by a number."""
    a = w.pick(lambda t: t.dtype in (FP32, FP64)) or w.tensor([FP32])
    w.emit(w.type(a), f"{a} % {w.rng.choice(['2.0', '0.75', '3.5'])}")


def bits(w: Writer) -> None:
    """& | ^ ~ and shifts of integers, & | ^ ~ of booleans."""
    a = w.pick(lambda t: t.dtype.is_int or t.dtype is BOOL) or w.tensor([*INTEGERS, BOOL])
    type = w.type(a)
    choice = w.rng.random()
    if choice < 0.15:
        w.emit(type, f"~{a}")
    elif choice < 0.5 and type.dtype.is_int:
        width = type.dtype.bits
        op = w.rng.choice(["<<", ">>"])
        b = w.pick(lambda t: t == type)
        amount = f"({b} & {width - 1})" if b and w.chance(0.5) else str(w.rng.randrange(width))
        w.emit(type, f"{a} {op} {amount}")
    else:
        b = w.pick(
            lambda t: (
                (t.dtype is BOOL) == (type.dtype is BOOL)
                and not t.dtype.is_float
                and t.dtype not in FP8S
                and fits(broadcast(type.shape, t.shape))
            )
        )
        if b is None:
            return
        tb = w.type(b)
        ty = BOOL if type.dtype is BOOL else promote(type.dtype, tb.dtype)
        w.emit(Type(ty, broadcast(type.shape, tb.shape)), f"{a} {w.rng.choice('&|^')} {b}")


def comparison(w: Writer) -> None:
    """Two variables, or a variable and a number, compared."""
    op = w.rng.choice(["<", "<=", ">", ">=", "==", "!="])
    pair = operand_pair(w, ARITHMETIC)
    if pair is None or w.chance(0.4):
        a = w.tensor(ARITHMETIC)
        w.emit(w.type(a).of(BOOL), f"{a} {op} {w.number(w.type(a).dtype)}")
        return
    a, b, type = pair
    w.emit(type.of(BOOL), f"{a} {op} {b}")


def selection(w: Writer) -> None:
    """tl.where of a mask and two variables, or a variable and a number."""
    pair = operand_pair(w, ARITHMETIC)
    if pair is None:
        return
    a, b, type = pair
    da, db = w.type(a).dtype, w.type(b).dtype
    if not type.shape:
        return
    mask = w.mask(type.shape)
    if w.chance(0.3):
        number = w.number(da)
        value = float(number) if "." in number else int(number)
        shape = w.type(a).shape
        if shape:
            w.emit(Type(promote_number(value, da), shape), f"tl.where({w.mask(shape)}, {a}, {number})")
        return
    w.emit(Type(promote(da, db), type.shape), f"tl.where({mask}, {a}, {b})")


def extremum(w: Writer) -> None:
    """tl.minimum, tl.maximum, tl.clamp."""
    pair = operand_pair(w, ARITHMETIC)
    if pair is None:
        return
    a, b, type = pair
    ty = promote(w.type(a).dtype, w.type(b).dtype)
    nan = w.rng.choice(["", ", propagate_nan=tl.PropagateNan.ALL"]) if ty.is_float else ""
    if w.chance(0.25) and w.type(a).dtype.is_float:
        w.emit(w.type(a), f"tl.clamp({a}, -1.5, 2.0{nan})" if w.type(a).dtype in (FP32, FP64) else f"tl.abs({a})")
        return
    w.emit(type.of(ty), f"tl.{w.rng.choice(['minimum', 'maximum'])}({a}, {b}{nan})")


_UNARY = {
    "exp": "tl.exp(tl.minimum({x}, 10.0))",
    "exp2": "tl.exp2(tl.minimum({x}, 12.0))",
    "log": "tl.log(tl.abs({x}) + 0.25)",
    "log2": "tl.log2(tl.abs({x}) + 0.25)",
    "sin": "tl.sin({x})",
    "cos": "tl.cos({x})",
    "sqrt": "tl.sqrt(tl.abs({x}))",
    "rsqrt": "tl.rsqrt(tl.abs({x}) + 0.5)",
    "erf": "tl.erf({x})",
    "floor": "tl.floor({x})",
    "ceil": "tl.ceil({x})",
    "sigmoid": "tl.sigmoid({x})",
    "fma": "tl.fma({x}, {x}, {x})",
    "fdiv": "tl.fdiv({x}, tl.abs({x}) + 1.0)",
}


def function(w: Writer) -> None:
    """Elementary functions of fp32 and fp64, on arguments where they behave."""
    a = w.pick(lambda t: t.dtype.is_float) or w.tensor(FLOATS)
    type = w.type(a)
    x = a
    if type.dtype not in (FP32, FP64):
        type = type.of(FP32)
        x = w.emit(type, f"{a}.to(tl.float32)")
    name = w.rng.choice(list(_UNARY))
    text = _UNARY[name].format(x=x)
    if type.dtype is FP32 and w.chance(0.15):
        text = w.rng.choice([f"tl.sqrt_rn(tl.abs({x}))", f"tl.div_rn({x}, 3.0)", f"tl.fdiv({x}, 7.0, ieee_rounding=True)"])
    w.emit(type, text)


def sign(w: Writer) -> None:
    """Negation and absolute value."""
    a = w.pick(lambda t: t.dtype in ARITHMETIC) or w.tensor(ARITHMETIC)
    type = w.type(a)
    w.emit(type, w.rng.choice([f"-{a}", f"tl.abs({a})"]))


def high_product(w: Writer) -> None:
    """tl.umulhi."""
    a = w.pick(lambda t: t.dtype in (I32, U32, I64, DTYPES["u64"]))
    if a:
        w.emit(w.type(a), f"tl.umulhi({a}, {a})")


def conversion(w: Writer) -> None:
    """.to of every pair of types, and bitcasts."""
    targets = [*DTYPES.values()]
    a = w.pick(lambda t: bool(t.shape)) or w.tensor()
    type = w.type(a)
    source = type.dtype
    if w.chance(0.15) and source.bits > 1:
        same = [t for t in targets if t.bits == source.bits and t is not source]
        if same and not (source.is_float or source in FP8S):
            w.emit(type.of(ty := w.rng.choice(same)), f"{a}.to({ty.spelled}, bitcast=True)")
            return
        if source.is_float:
            ty = next(t for t in INTEGERS if t.bits == source.bits)
            w.emit(type.of(ty), f"tl.where({a} == {a}, {a}, 0.0).to({ty.spelled}, bitcast=True)")
            return
    target = w.rng.choice(targets if w.chance(0.5) else [t for t in targets if t not in FP8S])
    if w.unsafe_cast(source, target):
        bound = min(float(target.high), 30000.0 if source.bits <= 16 else float(2**30))
        x = a if source.is_float else w.emit(type.of(FP32), f"{a}.to(tl.float32)")
        low = f"{x} > -1.0" if target.kind == "uint" else f"{x} > {-bound}"
        w.emit(type.of(target), f"tl.where(({x} < {bound}) & ({low}), {x}, 1.0).to({target.spelled})")
        return
    rounding = ""
    if source.is_float and target.is_float and target.bits < source.bits and w.chance(0.2):
        rounding = ", fp_downcast_rounding='rtz'"
    spelled = f"tl.cast({a}, {target.spelled}{rounding})" if w.chance(0.3) else f"{a}.to({target.spelled}{rounding})"
    w.emit(type.of(target), spelled)


def counting(w: Writer) -> None:
    """Index vectors: arange, program ids, full, zeros."""
    shape = w.rng.choice([s for s in w.shapes if s])
    choice = w.rng.random()
    if choice < 0.5:
        strides, step = [], 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
        w.emit(Type(I32, shape), w.index(shape, tuple(strides), w.rng.choice([0, "pid", 5])))
    elif choice < 0.8:
        ty = w.rng.choice(w.dtypes)
        w.emit(Type(ty, shape), f"tl.full({list(shape)}, {w.number(ty)}, {ty.spelled})")
    else:
        w.emit(Type(I32), w.rng.choice(["pid", "pid * 3 + 1", "tl.num_programs(0)"]))


def logic(w: Writer) -> None:
    """and, or, not of scalars; of a scalar used as a mask."""
    a = w.pick(lambda t: t == Type(I32)) or w.scalar_argument()
    b = w.scalar()
    w.emit(Type(BOOL), w.rng.choice([f"({a} > 3) and ({b} < 50)", f"({a} > 3) or ({b} == 7)", f"not ({a} + pid > 3)"]))


MAKERS = [
    (arithmetic, 10),
    (integer_division, 3),
    (remainder_of_floats, 0.5),
    (bits, 3),
    (comparison, 3),
    (selection, 4),
    (extremum, 3),
    (function, 3),
    (sign, 2),
    (high_product, 0.5),
    (conversion, 6),
    (counting, 2),
    (logic, 0.7),
]
