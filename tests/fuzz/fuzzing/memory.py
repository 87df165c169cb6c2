"""Makers of accesses to memory that depend on one another or have unusual forms: stores read back, loops over one array, scalars, hints."""

from __future__ import annotations

from .elementwise import ARITHMETIC
from .program import Array, Statement
from .types import BOOL, DTYPES, FP32, FP64, I32, U32, Type
from .writer import Writer


def _places(w: Writer, shape: tuple[int, ...]) -> tuple[str, str, int]:
    """(offsets of a block in row-major order, the same elements in another order, number of elements)."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    straight = f"({w.index(shape, tuple(strides))})"
    other = w.rng.choice([f"({step - 1} - {straight})", f"({straight} ^ {w.rng.randrange(step)})", f"(({straight} * 5 + 3) & {step - 1})"])
    return straight, other, step


def read_back(w: Writer) -> None:
    """A tensor stored and, after a barrier, loaded in another order."""
    name = w.tensor([*ARITHMETIC, BOOL])
    type = w.type(name)
    straight, other, n = _places(w, type.shape)
    array = w.argument(Array(type.dtype.code, n * w.programs, "pattern", 0))
    w.run(f"tl.store({array} + pid * {n} + {straight}, {name})")
    w.run("tl.debug_barrier()")
    w.emit(type, f"tl.load({array} + pid * {n} + {other})")
    w.run("tl.debug_barrier()")  # the array may be written again if this is a loop's body


def loop_over_array(w: Writer) -> None:
    """A loop that loads what its earlier trips have stored: no load may move before a store."""
    rng = w.rng
    shape = rng.choice([s for s in w.shapes if s])
    ty = rng.choice([I32, U32, FP32, DTYPES["i64"], DTYPES["i16"]])
    straight, other, n = _places(w, shape)
    array = w.argument(Array(ty.code, n * w.programs, "small", rng.randrange(2**31)))
    counter = w.fresh()
    with w.nested() as body:
        value = w.emit(Type(ty, shape), f"tl.load({array} + pid * {n} + {other})")
        w.run("tl.debug_barrier()")
        w.run(f"tl.store({array} + pid * {n} + {straight}, {value} + {counter})")
        w.run("tl.debug_barrier()")
    options = rng.choice(["", ", num_stages=3", ", loop_unroll_factor=2"])
    bound = w.argument(rng.randrange(1, 5)) if w.chance(0.6) else str(rng.randrange(1, 5))
    w.block.append(Statement(f"for {counter} in tl.range(0, {bound}{options}):", (), tuple(body)))


def masked_scalar(w: Writer) -> None:
    """A scalar loaded, stored or added to under a scalar mask."""
    rng = w.rng
    ty = rng.choice([I32, FP32, DTYPES["i8"], DTYPES["fp16"], FP64])
    array = w.argument(Array(ty.code, w.programs + 8, w.array_fill(ty), rng.randrange(2**31)))
    name = w.emit(Type(ty), f"tl.load({array} + pid + {rng.choice([0, 3])}, mask={w.scalar()} > {rng.randrange(9)}, other={w.number(ty)})")
    target = w.argument(Array(ty.code, w.programs, "pattern", 0))
    w.run(f"tl.store({target} + pid, {name}, mask={w.scalar()} < 20)")
    if w.chance(0.5):
        counts = w.argument(Array("i32", 4, "small", rng.randrange(2**31)))
        w.run(f"tl.atomic_add({counts} + (pid & 3), {w.scalar()})")


def broadcast_store(w: Writer) -> None:
    """A number, a scalar or a tensor of smaller shape stored to a block."""
    shape = w.rng.choice([s for s in w.shapes if s])
    straight, _, n = _places(w, shape)
    value = w.pick(
        lambda t: (
            t.dtype in ARITHMETIC
            and (not t.shape or (len(t.shape) == len(shape) and all(a in (1, b) for a, b in zip(t.shape, shape, strict=True))))
        )
    )
    ty = w.type(value).dtype if value else w.rng.choice([I32, FP32])
    array = w.argument(Array(ty.code, n * w.programs, "pattern", 0))
    w.run(f"tl.store({array} + pid * {n} + {straight}, {value or w.number(ty)})")


def hinted_load(w: Writer) -> None:
    """A load whose offsets carry hints, all of them true."""
    rng = w.rng
    n = 2 ** rng.randrange(4, 11)
    ty = rng.choice(w.dtypes)
    start = rng.choice([0, 16, 64])
    array = w.argument(Array(ty.code, start + n + 128 * 16, w.array_fill(ty), rng.randrange(2**31)))
    base = w.emit(Type(I32), f"tl.multiple_of({w.scalar()} * 16, 16)")
    offsets = w.emit(Type(I32, (n,)), f"tl.max_contiguous({base} + tl.arange({start}, {start + n}), {min(n, 16)})")
    w.run(f"tl.assume({base} >= 0)")
    w.emit(Type(ty, (n,)), f"tl.load({array} + {offsets})")


def old_values(w: Writer) -> None:
    """Atomics in a loop on places of one's own, whose old values are used."""
    rng = w.rng
    shape = rng.choice([s for s in w.shapes if s])
    ty = rng.choice([I32, U32, DTYPES["i64"]])
    straight, _, n = _places(w, shape)
    array = w.argument(Array(ty.code, n * w.programs, "small", rng.randrange(2**31)))
    total = w.emit(Type(ty, shape), f"tl.zeros({list(shape)}, {ty.spelled})")
    counter = w.fresh()
    op = rng.choice(["add", "xor", "max", "xchg"])
    with w.nested() as body:
        old = w.emit(Type(ty, shape), f"tl.atomic_{op}({array} + pid * {n} + {straight}, {total} + {counter})")
        w.assign(total, f"{total} * 3 + {old}")
    w.block.append(Statement(f"for {counter} in range({rng.randrange(1, 4)}):", (), tuple(body)))


MAKERS = [
    (read_back, 1),
    (loop_over_array, 0.6),
    (masked_scalar, 0.6),
    (broadcast_store, 0.7),
    (hinted_load, 0.5),
    (old_values, 0.4),
]
