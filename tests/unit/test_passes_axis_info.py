"""Axis info: known idioms by example, and random index arithmetic against its evaluation."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mlir")

from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

from tilewright.compiler.analysis.axis_info import analyze
from tilewright.dialects import context


def infos(body: str, arguments: str) -> dict[str, object]:
    """Return the info of each value that `body`, indented by two, names at its top level."""
    source = f"func.func @f({arguments}) {{\n{body}\n  return\n}}"
    with context(), ir.Location.unknown():
        module = ir.Module.parse(source)
        function = module.body.operations[0].operation
        analysis = analyze(function)
        names = [line.split("=")[0].strip() for line in body.splitlines() if line.startswith("  %")]
        ops = [op.operation for op in function.regions[0].blocks[0].operations]
        return {name: analysis.get(op.results[0]) for name, op in zip(names, ops, strict=False)}


ALIGNED = "{tile.divisibility = 16 : i32}"


def test_wrapped_rows_stay_contiguous_in_runs():
    """(pid * 128 + arange) % M with M divisible by 16: runs of 16."""
    info = infos(
        """  %pid = tile.program_id 0
  %c = arith.constant 128 : i32
  %s = arith.muli %pid, %c : i32
  %r = tile.range 0 to 128 : tensor<128xi32>
  %b = tile.splat %s : i32 -> tensor<128xi32>
  %i = arith.addi %b, %r : tensor<128xi32>
  %ms = tile.splat %m : i32 -> tensor<128xi32>
  %w = arith.remsi %i, %ms : tensor<128xi32>
  %q = arith.divsi %i, %ms : tensor<128xi32>
  %lt = arith.cmpi slt, %i, %ms : tensor<128xi32>
  %le = arith.cmpi sle, %i, %ms : tensor<128xi32>""",
        f"%m: i32 {ALIGNED}",
    )
    assert (info["%i"].contiguity, info["%i"].divisibility) == ((128,), (128,))
    assert (info["%w"].contiguity, info["%w"].divisibility) == ((16,), (16,))
    assert info["%q"].constancy == (16,)
    assert info["%lt"].constancy == (16,)
    assert info["%le"].constancy == (1,)


def test_pointers_count_bytes():
    """base + arange[:, None] * stride + arange[None, :]: rows start at multiples of 32 bytes, elements of a row follow each other."""
    info = infos(
        """  %r = tile.range 0 to 64 : tensor<64xi32>
  %rows = tile.expand_dims %r axis = 1 : tensor<64xi32> -> tensor<64x1xi32>
  %cols = tile.expand_dims %r axis = 0 : tensor<64xi32> -> tensor<1x64xi32>
  %ss = tile.splat %s : i32 -> tensor<64x1xi32>
  %o = arith.muli %rows, %ss : tensor<64x1xi32>
  %ob = tile.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cb = tile.broadcast %cols : tensor<1x64xi32> -> tensor<64x64xi32>
  %t = arith.addi %ob, %cb : tensor<64x64xi32>
  %ps = tile.splat %p : !tile.ptr<bf16> -> tensor<64x64x!tile.ptr<bf16>>
  %a = tile.addptr %ps, %t : tensor<64x64x!tile.ptr<bf16>>, tensor<64x64xi32>""",
        f"%p: !tile.ptr<bf16> {ALIGNED}, %s: i32 {ALIGNED}",
    )
    assert info["%a"].contiguity == (1, 64)
    assert info["%a"].divisibility[1] == 16
    assert info["%o"].divisibility == (16, 16)


def test_loops_keep_what_every_iteration_has():
    """A pointer that a loop advances by 64 elements stays divisible by 16 bytes; one that it advances by 3 does not."""
    info = infos(
        """  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c64 = arith.constant 64 : i32
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%x = %p) -> (!tile.ptr<bf16>) : i32 {
    %y = tile.addptr %x, %c64 : !tile.ptr<bf16>, i32
    scf.yield %y : !tile.ptr<bf16>
  }
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%x = %p) -> (!tile.ptr<bf16>) : i32 {
    %y = tile.addptr %x, %c3 : !tile.ptr<bf16>, i32
    scf.yield %y : !tile.ptr<bf16>
  }""",
        f"%p: !tile.ptr<bf16> {ALIGNED}, %n: i32",
    )
    assert info["%a"].divisibility == (16,)
    assert info["%b"].divisibility == (2,)


def test_hints():
    info = infos(
        """  %v = tile.load %p {tile.contiguity = array<i32: 8>, tile.divisibility = array<i32: 8>} : tensor<64x!tile.ptr<i32>>""",
        "%p: tensor<64x!tile.ptr<i32>>",
    )
    assert (info["%v"].contiguity, info["%v"].divisibility) == ((8,), (8,))


def holds(info: object, value: np.ndarray) -> bool:
    """Whether all that is claimed is so of a tensor of integers."""
    for dim, (run, divisor, equal) in enumerate(zip(info.contiguity, info.divisibility, info.constancy, strict=True)):
        rows = np.moveaxis(value, dim, -1)
        runs, same = (rows.reshape(*rows.shape[:-1], -1, min(n, rows.shape[-1])) for n in (run, equal))
        if (np.diff(runs, axis=-1) != 1).any() or (runs[..., 0] % divisor).any() or (same != same[..., :1]).any():
            return False
    return info.constant is None or (value == info.constant).all()


def test_shapes_carry_along_what_is_known():
    """arange(16)[:, None] * 64 + arange(8)[None, :], turned, stretched and reshaped."""
    info = infos(
        """  %r = tile.range 0 to 16 : tensor<16xi32>
  %c = tile.range 0 to 8 : tensor<8xi32>
  %k = arith.constant dense<64> : tensor<16xi32>
  %o = arith.muli %r, %k : tensor<16xi32>
  %oe = tile.expand_dims %o axis = 1 : tensor<16xi32> -> tensor<16x1xi32>
  %ce = tile.expand_dims %c axis = 0 : tensor<8xi32> -> tensor<1x8xi32>
  %ob = tile.broadcast %oe : tensor<16x1xi32> -> tensor<16x8xi32>
  %cb = tile.broadcast %ce : tensor<1x8xi32> -> tensor<16x8xi32>
  %s = arith.addi %ob, %cb : tensor<16x8xi32>
  %t = tile.trans %s order = [1, 0] : tensor<16x8xi32> -> tensor<8x16xi32>
  %to = tile.trans %ob order = [1, 0] : tensor<16x8xi32> -> tensor<8x16xi32>
  %f = tile.reshape %s : tensor<16x8xi32> -> tensor<128xi32>
  %d = tile.reshape %s : tensor<16x8xi32> -> tensor<4x4x8xi32>
  %u = tile.trans %d order = [2, 0, 1] : tensor<4x4x8xi32> -> tensor<8x4x4xi32>""",
        "",
    )
    offsets = np.repeat(np.arange(16)[:, None] * 64, 8, axis=1)
    total = offsets + np.arange(8)
    values = {"%ob": offsets, "%s": total, "%t": total.T, "%to": offsets.T, "%f": total.ravel()}
    values |= {"%d": total.reshape(4, 4, 8), "%u": total.reshape(4, 4, 8).transpose(2, 0, 1)}
    assert [name for name, value in values.items() if not holds(info[name], value)] == []
    assert (info["%t"].contiguity, info["%u"].contiguity, info["%f"].contiguity) == ((8, 1), (8, 1, 1), (8,))
    assert info["%to"].constancy == (8, 1)


# Random arithmetic


N = 32


class Expression:
    """A tensor of N integers: its lines of IR, its name and its value."""

    def __init__(self, lines: list[str], name: str, value: np.ndarray):
        self.lines, self.name, self.value = lines, name, value


@st.composite
def expressions(draw, depth: int = 4):
    counter = draw(st.shared(st.builds(list), key="names"))

    def fresh() -> str:
        counter.append(None)
        return f"%v{len(counter)}"

    def make(level: int) -> Expression:
        name = fresh()
        kind = draw(
            st.sampled_from(["range", "splat", "const"] if level == 0 else ["add", "sub", "mul", "rem", "div", "min", "select", "and"])
        )
        if kind == "range":
            start = draw(st.integers(0, 64))
            line = f"{name} = tile.range {start} to {start + N} : tensor<{N}xi32>"
            return Expression([line], name, np.arange(start, start + N))
        if kind == "splat":
            which = draw(st.sampled_from(["a", "b"]))
            line = f"{name} = tile.splat %{which} : i32 -> tensor<{N}xi32>"
            return Expression([line], name, np.full(N, {"a": A, "b": B}[which]))
        if kind == "const":
            number = draw(st.sampled_from([1, 2, 3, 4, 8, 12, 16, 31]))
            line = f"{name} = arith.constant dense<{number}> : tensor<{N}xi32>"
            return Expression([line], name, np.full(N, number))
        x, y = make(draw(st.integers(0, level - 1))), make(draw(st.integers(0, level - 1)))
        lines = x.lines + y.lines
        if kind == "select":
            mask = fresh()
            predicate, compare = draw(
                st.sampled_from([("slt", np.less), ("sle", np.less_equal), ("sgt", np.greater), ("sge", np.greater_equal)])
            )
            lines = [*lines, f"{mask} = arith.cmpi {predicate}, {x.name}, {y.name} : tensor<{N}xi32>"]
            line = f"{name} = arith.select {mask}, {x.name}, {y.name} : tensor<{N}xi1>, tensor<{N}xi32>"
            return Expression([*lines, line], name, np.where(compare(x.value, y.value), x.value, y.value))
        if kind in ("rem", "div"):
            one = fresh()
            # Dividends are not negative in kernels, as the analysis has it; divisors are not zero.
            positive, divisor = fresh(), fresh()
            zero = fresh()
            lines += [
                f"{one} = arith.constant dense<1> : tensor<{N}xi32>",
                f"{zero} = arith.constant dense<0> : tensor<{N}xi32>",
                f"{positive} = arith.maxsi {x.name}, {zero} : tensor<{N}xi32>",
                f"{divisor} = arith.maxsi {y.name}, {one} : tensor<{N}xi32>",
            ]
            if not (x.value >= 0).all():
                x = Expression([], positive, np.maximum(x.value, 0))
            if not (y.value >= 1).all():
                y = Expression([], divisor, np.maximum(y.value, 1))
        operation, function = {
            "add": ("addi", np.add),
            "sub": ("subi", np.subtract),
            "mul": ("muli", np.multiply),
            "rem": ("remsi", np.remainder),
            "div": ("divsi", np.floor_divide),
            "min": ("minsi", np.minimum),
            "and": ("andi", np.bitwise_and),
        }[kind]
        line = f"{name} = arith.{operation} {x.name}, {y.name} : tensor<{N}xi32>"
        return Expression([*lines, line], name, function(x.value, y.value))

    return make(depth)


A, B = 48, 7


@settings(max_examples=300, deadline=None)
@given(expressions())
def test_claims_hold(expression):
    """Whatever is claimed of a random expression holds for its value."""
    value = expression.value
    if np.abs(value).max() >= 1 << 31:
        return
    info = infos("\n".join("  " + line for line in expression.lines), f"%a: i32 {ALIGNED}, %b: i32")[expression.name]
    assert holds(info, value)
