"""Loops that stream through memory load ahead, into shared memory or registers: numerics on the test machine, and which loops do."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import passes_of, run_kernel

import tilewright
import tilewright.language as tl


@tilewright.jit
def sums_of_rows(X, OUT, N, LD, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for start in range(0, N, B):
        total += tl.load(X + r * LD + start + c, mask=start + c < N, other=0.0)
    tl.store(OUT + r, tl.sum(total, axis=0))


@tilewright.jit
def maxima_of_rows(X, OUT, N, LD, B: tl.constexpr):
    """What is not zero where it is masked off goes through registers."""
    r = tl.program_id(0)
    c = tl.arange(0, B)
    top = tl.full((B,), -float("inf"), tl.float32)
    for start in range(0, N, B):
        top = tl.maximum(top, tl.load(X + r * LD + start + c, mask=start + c < N, other=-float("inf")))
    tl.store(OUT + r, tl.max(top, axis=0))


@tilewright.jit
def scaled_rows(X, SCALE, OUT, PART, ROWS, N, B: tl.constexpr):
    """Rows in steps of the grid, a scalar of each, a reduction in the loop, results to another array, pointers that advance."""
    pid = tl.program_id(0)
    c = tl.arange(0, B)
    x = X + pid * N + c
    seen = tl.zeros((B,), tl.float32)
    for r in range(pid, ROWS, tl.num_programs(0)):
        v = tl.load(x, mask=c < N, other=1.0)
        x += N * tl.num_programs(0)
        y = v * tl.load(SCALE + r) + tl.sum(tl.where(c < N, v, 0.0), axis=0)
        seen += y
        tl.store(OUT + r * N + c, y, mask=c < N)
    tl.store(PART + pid * N + c, seen, mask=c < N)


@tilewright.jit
def running(X, N, B: tl.constexpr):
    """Each block adds the one before, which the iteration before wrote."""
    c = tl.arange(0, B)
    for i in range(1, N):
        tl.store(X + i * B + c, tl.load(X + i * B + c) + tl.load(X + (i - 1) * B + c))


@tilewright.jit
def guarded(X, OUT, COUNT, N, B: tl.constexpr, GUARD: tl.constexpr):
    """Blocks that others announce, or that are counted."""
    c = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for i in range(0, N):
        if GUARD == "volatile":
            seen = tl.load(COUNT + i, volatile=True)
        elif GUARD == "not cached":
            seen = tl.load(COUNT + i, cache_modifier=".cv")
        elif GUARD == "assembly":
            seen = tl.inline_asm_elementwise("ld.acquire.gpu.b32 $0, [$1];", "=r,l", [COUNT + i], tl.int32, False, 1)
        else:
            seen = tl.atomic_add(COUNT + i, 1)
        v = tl.load(X + i * B + c)
        total += v if GUARD == "" else tl.where(seen > 0, v, 0.0)
    tl.store(OUT + c, total)


@pytest.mark.parametrize("n", [0, 16, 256, 272, 1024, 1040, 4112])
@pytest.mark.parametrize(("kernel", "want"), [(sums_of_rows, np.sum), (maxima_of_rows, lambda x, i: np.max(x, i, initial=-np.inf))])
def test_reductions_of_rows(kernel, want, n):
    ld = max(n, 16)
    x = np.random.default_rng(n).integers(-9, 9, (3, ld)).astype(np.float32)
    out = np.full(3, np.nan, np.float32)
    run_kernel(kernel, (3,), {"X": x, "OUT": out, "N": n, "LD": ld}, {"B": 256}, dict.fromkeys(["X", "OUT"], "*fp32"))
    assert np.array_equal(out, want(x[:, :n], 1))


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 11])
def test_scaled_rows(rows, monkeypatch):
    import simt

    special = simt.special_register
    monkeypatch.setattr(simt, "special_register", lambda s, name: np.int32(3) if name.endswith("nctaid.x") else special(s, name))
    n = 208
    rng = np.random.default_rng(rows)
    x, scale = rng.integers(-9, 9, (rows + 1, n)).astype(np.float32), rng.integers(1, 5, rows + 1).astype(np.float32)
    out, part = np.full((rows + 1, n), np.nan, np.float32), np.full((3, n), np.nan, np.float32)
    arguments = {"X": x, "SCALE": scale, "OUT": out, "PART": part, "ROWS": rows, "N": n}
    run_kernel(scaled_rows, (3,), arguments, {"B": 256}, {**dict.fromkeys(["X", "SCALE", "OUT", "PART"], "*fp32"), "ROWS": "i32"})
    want = x[:rows] * scale[:rows, None] + x[:rows].sum(1, keepdims=True)
    assert np.array_equal(out[:rows], want) and np.isnan(out[rows:]).all()
    assert np.array_equal(part, np.stack([want[i::3].sum(0) for i in range(3)]))


def test_blocks_that_the_loop_writes_are_read_in_their_turn():
    x = np.random.default_rng(0).integers(-9, 9, (6, 128)).astype(np.float32)
    want = x.cumsum(0)
    run_kernel(running, (1,), {"X": x, "N": 6}, {"B": 128}, {"X": "*fp32"})
    assert np.array_equal(x, want)


TYPES = {"COUNT": "*i32", "X": "*fp32", "SCALE": "*fp32", "OUT": "*fp32", "PART": "*fp32", "N": "i32", "LD": "i32", "ROWS": "i32"}


def carried_by(kernel, constants=(), **options) -> int:
    """The values that the loop of a kernel carries."""
    constants = {"B": 256, **dict(constants)}
    module, _ = passes_of(kernel, {n: TYPES[n] for n in kernel.arg_names if n not in constants}, constants, **options)
    (loop,) = [line for line in str(module).splitlines() if "scf.for" in line]
    return loop.count(" = %") - 1


def test_which_loops_carry_their_loads():
    assert carried_by(sums_of_rows, num_stages=1) == 1
    assert carried_by(sums_of_rows) == 3  # the sum, and the slots that are read and written
    assert carried_by(maxima_of_rows) == 2  # the maxima, and the loaded block
    assert carried_by(scaled_rows) == 2  # the sum and the pointer: OUT may be X
    assert carried_by(running) == 0
    assert carried_by(guarded, {"GUARD": ""}) == 1  # COUNT may be X


@pytest.mark.parametrize("guard", ["atomic", "volatile", "not cached", "assembly"])
def test_loads_stay_behind_what_may_have_waited_for_other_programs(guard):
    assert carried_by(guarded, {"GUARD": guard}) == 1


@tilewright.jit
def last_block(X, OUT, N, B: tl.constexpr):
    """The loop carries out what it loads as it is."""
    c = tl.arange(0, B)
    v = tl.zeros((B,), tl.float32)
    for i in range(0, N):
        v = tl.load(X + i * B + c)
    tl.store(OUT + c, v)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_loaded_block_that_is_carried_as_it_is(n):
    x = np.random.default_rng(n).standard_normal((4, 128)).astype(np.float32)
    out = np.full(128, np.nan, np.float32)
    run_kernel(last_block, (1,), {"X": x, "OUT": out, "N": n}, {"B": 128}, {"X": "*fp32", "OUT": "*fp32"})
    assert np.array_equal(out, x[n - 1] if n else np.zeros(128))
