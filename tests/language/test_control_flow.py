"""Branches, loops, early return, conditional expressions, short-circuiting of constants, nested functions."""

import numpy as np
import pytest
from language_harness import jit, launch, reports

import tilewright.language as tl


@jit
def collatz_kernel(out, N: tl.constexpr):
    n = tl.program_id(0) + 1
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(out + tl.program_id(0), steps)


def test_while_with_a_branch_inside():
    out = np.zeros(40, np.int32)
    launch(collatz_kernel, (40,), out, 1)

    def steps(n):
        count = 0
        while n != 1:
            n, count = n // 2 if n % 2 == 0 else 3 * n + 1, count + 1
        return count

    assert out.tolist() == [steps(i + 1) for i in range(40)]


@jit
def range_kernel(out, start, stop, step, DOWN: tl.constexpr):
    total = 0
    count = 0
    for i in range(start, stop, step):
        total += i * i
        count += 1
    for j in range(10, 0, -3):
        total += j
    for k in tl.static_range(3):
        total += k * 100
    for m in tl.range(0, count, num_stages=2):
        total += m
    tl.store(out, total)
    tl.store(out + 1, count)


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 10, 1), (3, 20, 4), (5, 5, 1), (7, 2, 1), (-4, 4, 3)])
def test_ranges(start, stop, step):
    out = np.zeros(2, np.int32)
    launch(range_kernel, (1,), out, start, stop, step, False)
    values = list(range(start, stop, step))
    want = sum(i * i for i in values) + sum(range(10, 0, -3)) + 300 + sum(range(len(values)))
    assert out.tolist() == [want, len(values)]


@jit
def nested_loop_kernel(x, lengths, out, groups, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros([N], tl.float32)
    for g in range(groups):
        part = tl.zeros([N], tl.float32)
        for j in range(tl.load(lengths + g)):
            part += tl.load(x + (g * 4 + j) * N + i)
        if g % 2 == 1:
            part = -part
        total += part
    tl.store(out + i, total)


def test_nested_loops_with_bounds_from_memory():
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, (5, 4, 16)).astype(np.float32)
    lengths = np.array([4, 0, 2, 1, 3], np.int32)
    out = np.zeros(16, np.float32)
    launch(nested_loop_kernel, (1,), x, lengths, out, 5, 16)
    assert np.array_equal(out, sum((-1) ** g * x[g, : lengths[g]].sum(0) for g in range(5)))


@jit
def early_return_kernel(out, limit, N: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= limit:
        return
    tl.store(out + pid, pid * 10)
    if pid % 2 == 0:
        return
    tl.store(out + pid, pid * 10 + 1)


def test_early_return():
    out = np.full(20, -1, np.int32)
    launch(early_return_kernel, (20,), out, 7, 1)
    assert out.tolist() == [0, 11, 20, 31, 40, 51, 60] + [-1] * 13


@jit
def classify(x, limit):
    if x < 0:
        return -1
    if x > limit:
        return 1
    return 0


@jit
def helper_return_kernel(x, out, limit):
    pid = tl.program_id(0)
    tl.store(out + pid, classify(tl.load(x + pid), limit))


def test_helper_with_several_returns():
    x = np.array([-5, 0, 3, 9, 10, 11, -1], np.int32)
    out = np.full(7, 7, np.int32)
    launch(helper_return_kernel, (7,), x, out, 9)
    assert out.tolist() == [-1, 0, 0, 0, 1, 1, -1]


@jit
def conditional_kernel(x, out, n, FLAG: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    a = v if pid < n else -v
    b = 1.5 if FLAG else 2.5
    tl.store(out + pid, a * b)


@pytest.mark.parametrize("flag", [False, True])
def test_conditional_expressions(flag):
    x = np.arange(1, 9, dtype=np.float32)
    out = np.zeros(8, np.float32)
    launch(conditional_kernel, (8,), x, out, 3, flag)
    assert np.array_equal(out, np.where(np.arange(8) < 3, x, -x) * (1.5 if flag else 2.5))


@jit
def logic_kernel(x, missing, out, A: tl.constexpr, B: tl.constexpr):
    v = tl.load(x + tl.program_id(0))
    r = 0
    if missing is not None and tl.load(missing) > 0:
        r += 1
    if A == 1 or B == 1:
        r += 10
    if (v > 2 and v < 6) or v == 9:
        r += 100
    if not (v > 2) and A == 1:
        r += 1000
    if 1 < v < 4:
        r += 10000
    tl.store(out + tl.program_id(0), r)


@pytest.mark.parametrize(("a", "b"), [(0, 0), (1, 0), (0, 1)])
def test_and_or_not(a, b):
    x = np.arange(10, dtype=np.int32)
    out = np.zeros(10, np.int32)
    launch(logic_kernel, (10,), x, None, out, a, b)
    want = [
        (10 if 1 in (a, b) else 0) + (100 if 2 < v < 6 or v == 9 else 0) + (1000 if v <= 2 and a == 1 else 0) + (10000 if 1 < v < 4 else 0)
        for v in x
    ]
    assert out.tolist() == want


@jit
def minmax_kernel(out, a, b, N: tl.constexpr):
    tl.store(out, min(a, b))
    tl.store(out + 1, max(a, b, 5))
    tl.store(out + 2, min(N, 3))
    i = tl.arange(0, 4)
    tl.store(out + 4 + i, max(i, 2))


def test_python_min_and_max():
    out = np.zeros(8, np.int32)
    launch(minmax_kernel, (1,), out, 7, -2, 8)
    assert out.tolist() == [-2, 7, 3, 0, 2, 2, 2, 3]


@jit
def swap_kernel(out, n):
    a = 0
    b = 1
    for _ in range(n):
        a, b = b, a + b
    tl.store(out, a)


def test_tuple_assignment_in_a_loop():
    out = np.zeros(1, np.int32)
    launch(swap_kernel, (1,), out, 20)
    assert out[0] == 6765


@jit
def condition_kernel(out, n):
    i = 0
    while tl.condition(i * i < n):
        i += 1
    tl.store(out, i)


def test_tl_condition():
    out = np.zeros(1, np.int32)
    launch(condition_kernel, (1,), out, 50)
    assert out[0] == 8


@jit
def walrus_kernel(x, out, n):
    total = 0
    i = 0
    while (v := tl.load(x + i)) > 0:
        total += v
        i += 1
    tl.store(out, total)
    tl.store(out + 1, v - 1)  # the condition ran at least once, so its names have a value


def test_walrus():
    x = np.array([3, 4, 5, 0, 9], np.int32)
    out = np.zeros(2, np.int32)
    launch(walrus_kernel, (1,), x, out, 5)
    assert out.tolist() == [12, -1]


@jit
def walrus_block_kernel(x, out, N: tl.constexpr):
    p = x
    while tl.sum(v := tl.load(q := p + tl.arange(0, N))) < 100:
        tl.store(q, v + 1)
        p += N
    tl.store(out + tl.arange(0, N), v)
    tl.store(out + N + tl.arange(0, N), tl.load(q))


def test_walrus_of_blocks_and_pointers():
    x = np.repeat(np.arange(5), 16).astype(np.int32) * 2
    out = np.zeros(32, np.int32)
    launch(walrus_block_kernel, (1,), x, out, 16)
    assert out.tolist() == [8] * 32 and x.tolist() == np.repeat([1, 3, 5, 7, 8], 16).tolist()


@jit
def grid_kernel(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny = tl.num_programs(0), tl.num_programs(1)
    tl.store(out + (z * ny + y) * nx + x, 100 * x + 10 * y + z)


def test_grids():
    out = np.full((2, 3, 5), -1, np.int32)
    launch(grid_kernel, (5, 3, 2), out)
    z, y, x = np.indices((2, 3, 5))
    assert np.array_equal(out, 100 * x + 10 * y + z)
    out[:] = -1
    launch(grid_kernel, lambda meta: (5, 3), out)
    assert np.array_equal(out[0], (100 * x + 10 * y)[0]) and (out[1] == -1).all()


@jit
def block_condition_kernel(x):
    v = tl.load(x + tl.arange(0, 4))
    if v > 0:
        tl.store(x, 1)


def test_a_block_is_no_condition():
    reports("more than one value is ambiguous", block_condition_kernel, np.zeros(4, np.int32))


SCALE = tl.constexpr(3)
NAME = tl.constexpr("double")


def make_kernel(offset):
    @jit
    def closure_kernel(out):
        v = tl.program_id(0) * SCALE + offset
        if NAME == "double":
            v = v * 2
        tl.store(out + tl.program_id(0), v)

    return closure_kernel


def test_closures_and_global_constants():
    for offset in (1, 10):
        out = np.zeros(4, np.int32)
        launch(make_kernel(tl.constexpr(offset)), (4,), out)
        assert out.tolist() == [(3 * i + offset) * 2 for i in range(4)]


@jit
def turning_kernel(x, out, turns):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    tile = tl.load(x + i * 16 + j)
    count = tl.zeros([16], tl.int32)
    for _ in range(turns):
        tile = tl.trans(tile) + 1
        count = count + count + 1
    tl.store(out + i * 16 + j, tile + count[:, None])


@pytest.mark.parametrize("turns", [0, 1, 4, 5])
def test_a_carried_tile_that_is_transposed_each_time(turns):
    x = np.random.default_rng(8).integers(0, 100, (16, 16)).astype(np.int32)
    out = np.zeros_like(x)
    launch(turning_kernel, (1,), x, out, turns)
    assert np.array_equal(out, (x.T if turns % 2 else x) + turns + 2**turns - 1)


@jit
def factorial(n: tl.constexpr):
    return 1 if n <= 1 else n * factorial(n - 1)


@jit
def power(x, n: tl.constexpr):
    if n == 0:
        return x * 0 + 1
    return x * power(x, n - 1)


@jit
def recursion_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, power(tl.load(x + i), 3) + factorial(5))


def test_recursion_that_ends_on_a_constant():
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    launch(recursion_kernel, (1,), x, out, 8)
    assert np.array_equal(out, x**3 + 120)


@jit
def turned(t):
    a, (b, c) = t
    return c, (a, b)


@jit
def nested_tuple_kernel(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    t = (v, (v + 1, v + 2))
    for k in range(n):
        t = turned(t)
        if k > 1:
            t = turned(t)
        elif k == 0:
            t = (t[0] * 2, t[1])
    a, (b, c) = t
    tl.store(out + i, a + b * 3 + c * 5)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_nested_tuples_through_branches_and_loops(n):
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    launch(nested_tuple_kernel, (1,), x, out, n, 8)
    a, b, c = x, x + 1, x + 2
    for k in range(n):
        a, b, c = c, a, b
        if k > 1:
            a, b, c = c, a, b
        elif k == 0:
            a = a * 2
    assert np.array_equal(out, a + b * 3 + c * 5)
