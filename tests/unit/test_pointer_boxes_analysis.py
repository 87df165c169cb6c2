"""Polynomials, and which loads and stores are boxes of strided arrays under which conditions."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("mlir")

from frontend_build import jit
from mlir import ir
from passes_pipeline import ttgir

import tilewright.language as tl
from tilewright.compiler.analysis.polynomial import ONE, ZERO, Polynomial, quotient
from tilewright.compiler.passes.building import collect


def test_polynomials():
    x, y = Polynomial.unknown(0), Polynomial.unknown(1)
    square = (x + y) * (x + y)
    assert square - x * x - y * y == (x * y).scaled(2)
    assert square - square == ZERO and (x - x + ONE).number == 1 and x.number is None and ZERO.number == 0
    assert (x.scaled(6) + y.scaled(4)).divided(2) == x.scaled(3) + y.scaled(2) and x.divided(2) is None
    assert quotient(((0, 0, 1), 12), ((0,), 4)) == ((0, 1), 3)
    assert quotient(((0,), 12), ((1,), 4)) is None and quotient(((0,), 3), ((0,), 2)) is None


@jit
def product(x, y, out, index, n, s, MODE: tl.constexpr):
    """One operand is a plain box; the other is loaded as MODE says."""
    pid = tl.program_id(0)
    r = tl.arange(0, 64)
    c = tl.arange(0, 64)
    rows = pid * 64 + r
    columns = c
    step = 64
    if MODE == "before the argument":
        rows = rows - 64
    elif MODE == "from memory":
        rows = tl.load(index + pid) * 64 + r
    elif MODE == "from memory, with a bound":
        rows = tl.maximum(tl.load(index + pid) * 64, 0) + r
    elif MODE == "scattered":
        rows = rows ^ 1
    elif MODE == "backwards":
        step = -64
    elif MODE == "every other row":
        rows = pid * 128 + 2 * r
    elif MODE == "every other column":
        columns = 2 * c
    elif MODE[:12] == "wraps around":
        rows = rows % n
    elif MODE == "may wrap around anywhere":
        rows = (pid * 16 + r) % n
    elif MODE == "quotient":
        rows = (pid // n) * 64 + r
    elif MODE == "unaligned":
        columns = c + pid * 4
    elif MODE == "negative":
        rows = rows - pid * 65
    elif MODE == "counts down":
        rows = (tl.num_programs(0) - 1 - pid) * 64 + r
    elif MODE == "counts down twice as fast":
        rows = (tl.num_programs(0) - 2 * pid) * 64 + r
    elif MODE == "batch":
        rows = rows + (pid // 8).to(tl.int64) * n
    if MODE == "behind what acquires":
        tl.store(index + 1, tl.atomic_add(index, 1))
    elif MODE == "behind a barrier":
        tl.debug_barrier()
    elif MODE == "behind a volatile load":
        tl.store(index + 1, tl.load(index, volatile=True))
    elif MODE == "behind a count":
        tl.atomic_add(index, 1)
    p = x + rows[:, None] * s + columns[None, :]
    q = y + r[:, None] * 64 + c[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    for i in range(0, n, 64):
        if MODE == "mask":
            a = tl.load(p, mask=(rows[:, None] < n) & (c[None, :] + i < n), other=0.0)
        elif MODE == "mask below":
            a = tl.load(p, mask=(c[None, :] + i >= 0) & (c[None, :] + i < n), other=0.0)
        elif MODE == "mask of another index":
            a = tl.load(p, mask=c[None, :] + 2 * i < n, other=0.0)
        elif MODE == "mask of a program":
            a = tl.load(p, mask=r[:, None] < tl.load(index), other=0.0)
        elif MODE == "ones":
            a = tl.load(p, mask=c[None, :] + i < n, other=1.0)
        elif MODE == "volatile":
            a = tl.load(p, volatile=True)
        else:
            a = tl.load(p)
        acc = tl.dot(a, tl.load(q), acc)
        p += step
        q += 64 * 64
        if MODE == "written in the loop":
            tl.store(p, a)
    if MODE == "written behind the loop":
        tl.store(p, acc.to(tl.float16))
    if MODE == "wraps around, seen by a sum":
        acc += tl.sum(acc, 0)[None, :]
    if MODE == "counts":
        tl.atomic_add(index, 1)
    elif MODE == "adds":
        acc += tl.load(out + r[:, None] * 64 + c[None, :])
    o = out + r[:, None] * 64 + c[None, :]
    own = pid * 64 + r
    if MODE[:13] == "wraps around,":
        tl.store(out + own[:, None] * 64 + c[None, :], (acc * 2).to(tl.float32), mask=(own < n)[:, None])
    elif MODE == "clips":
        tl.store(o, acc, mask=(r[:, None] < n) & (c[None, :] < n))
    elif MODE == "clips anywhere":
        tl.store(o, acc, mask=c[None, :] < n + 1)
    elif MODE == "overwrites":
        tl.store(o, tl.zeros((64, 64), tl.float32))
        tl.store(o, acc)
    elif MODE == "stores two blocks":
        tl.store(o, acc)
        tl.store(o + 64 * 64, acc)
    elif MODE == "overwrites in a loop":
        for i in range(n):
            tl.store(o, acc + i)
    elif MODE == "stores in a loop":
        for i in range(n):
            tl.store(o + i * 4096, acc + i)
    elif MODE == "transposes":
        tl.store(out + c[None, :] * 64 + r[:, None], acc)
    else:
        tl.store(o, acc)


@jit
def block_pointers(x, y, out, index, n, s, MODE: tl.constexpr):
    """The same product with blocks whose boundaries are checked."""
    a = tl.make_block_ptr(x + tl.program_id(1) * n, (n, n), (s, 1), (tl.program_id(0) * 64, 0), (64, 64), (1, 0))
    b = tl.make_block_ptr(y, (n, 64), (64, 1), (0, 0), (64, 64), (1, 0))
    acc = tl.zeros((64, 64), tl.float32)
    for _ in range(0, n, 64):
        acc = tl.dot(tl.load(a, boundary_check=(0, 1)), tl.load(b, boundary_check=(0,)), acc)
        a = tl.advance(a, (0, 64))
        b = tl.advance(b, (64, 0))
    c = tl.make_block_ptr(out, (n, n), (s, 1), (tl.program_id(0) * 64, 0), (64, 64), (1, 0))
    tl.store(c, acc, boundary_check=(0, 1))


def recipes(mode: str, capability: int = 90, kernel=product) -> dict[str, str]:
    """What becomes of loads and stores: the name of the pointer -> the fields of its descriptor, joined."""
    module = ttgir(kernel, ["*fp16", "*fp16", "*fp32", "*i32", "i32", "i32"], capability, upto="tile-pointer-boxes", MODE=mode)
    out = {}
    for function in collect(module.operation, "func.func"):
        for attributes in ir.ArrayAttr(function.attributes["arg_attrs"]):
            if "tile.descriptor" in attributes:
                recipe = attributes["tile.descriptor"]
                fields = [recipe[name] for name in ("base", "shape", "strides", "conditions")]
                out["xyo"[recipe["argument"].value]] = re.sub(r"2147483648", "inf", " ".join(str(f).replace('"', "") for f in fields))
    return out


PLAIN = "a0 [inf, inf] [a5] [64 <= a5]"


@pytest.mark.parametrize(
    ("mode", "x"),
    [
        ("", PLAIN),
        ("before the argument", "(a0 + 2 * -64*a5) [inf, inf] [a5] [64 <= a5]"),
        ("from memory", None),
        ("from memory, with a bound", "a0 [inf, inf] [a5] [1 <= a5]"),
        ("scattered", None),
        ("backwards", None),
        ("every other row", "a0 [inf, inf] [2*a5] [64 <= 2*a5]"),
        ("every other column", None),
        ("wraps around", "a0 [inf, inf] [a5] [a4 > 0, a4 % 64 == 0, 64 <= a5]"),
        ("may wrap around anywhere", None),
        ("quotient", "a0 [inf, inf] [a5] [a4 > 0, 64 <= a5]"),
        ("unaligned", None),
        ("negative", None),
        ("batch", "a0 [inf, inf] [a5] [a4 >= 0, 64 <= a5]"),
        ("counts down", "(a0 + 2 * -64*a5) [inf, inf] [a5] [64 <= a5]"),
        ("counts down twice as fast", None),
        ("mask", "a0 [a4, a4] [a5] [1 <= a4 <= inf, 1 <= a5]"),
        ("mask below", "a0 [inf, a4] [a5] [64 <= a5, 1 <= a4 <= inf]"),
        ("mask of another index", None),
        ("mask of a program", None),
        ("ones", None),
        ("volatile", None),
        ("written in the loop", None),
        ("written behind the loop", None),
    ],
)
def test_boxes(mode, x):
    found = recipes(mode)
    # What goes to one loop's wgmmas goes there by TMA altogether, or not at all.
    assert found == ({} if x is None else {"x": x, "y": "a1 [inf, inf] [64] []", "o": "a2 [inf, inf] [64] []"})


def test_block_pointers():
    assert recipes("", kernel=block_pointers) == {
        "x": "a0 [inf, a4, a4] [a4, a5] [1 <= a4, 1 <= a4 <= inf, 1 <= a5]",
        "y": "a1 [a4, inf] [64] [1 <= a4 <= inf]",
        "o": "a2 [a4, a4] [a5] [1 <= a4 <= inf, 1 <= a5]",
    }


def test_wrapped_indices_that_nobody_looks_at():
    assert recipes("wraps around, unseen")["x"] == "a0 [a4, inf] [a5] [1 <= a4 <= inf, 1 <= a5]"
    assert recipes("wraps around, seen by a sum")["x"] == "a0 [inf, inf] [a5] [a4 > 0, a4 % 64 == 0, 64 <= a5]"


@pytest.mark.parametrize(
    ("mode", "out"),
    [
        ("counts", None),
        ("adds", None),
        ("clips", "a2 [a4, a4] [64] [1 <= a4 <= inf]"),
        ("clips anywhere", None),
        ("transposes", None),
        ("overwrites", None),
        ("stores two blocks", "(a2 + 4 * 4096) [inf, inf] [64] []"),
        ("overwrites in a loop", None),
        ("stores in a loop", "a2 [inf, inf] [64] []"),
    ],
)
def test_stores(mode, out):
    found = recipes(mode)
    assert found.pop("o", None) == out and list(found) == ["x", "y"]


def test_what_may_have_been_written_is_loaded_plainly():
    assert recipes("behind what acquires") == recipes("behind a volatile load") == recipes("behind a barrier") == {}
    assert set(recipes("behind a count")) == {"x", "y"}


def test_targets_without_wgmma_keep_pointers():
    assert recipes("", 80) == recipes("", 100) == recipes("", 120) == {}
