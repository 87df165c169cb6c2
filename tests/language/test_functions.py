"""Values other than tensors: tuples, named tuples, None, constants, functions as arguments, aggregates, map_elementwise."""

from typing import NamedTuple

import numpy as np
import pytest
from language_harness import jit, launch, reports

import tilewright
import tilewright.language as tl


@jit
def mix(pair, weights):
    return pair[0] * weights[0] + pair[1] * weights[1], pair[0] - pair[1]


@jit
def tuple_kernel(pointers, strides, out, SHAPE: tl.constexpr):
    M, N = SHAPE
    i, j = tl.arange(0, SHAPE[0])[:, None], tl.arange(0, SHAPE[1])[None, :]
    a = tl.load(pointers[0] + i * strides[0][0] + j * strides[0][1])
    b = tl.load(pointers[1] + i * strides[1][0] + j * strides[1][1])
    s, d = mix((a, b), (2, 3))
    both = (s + (M - N), d)
    tl.store(out + i * N + j, both[0])
    tl.store(out + M * N + i * N + j, both[1])
    tl.static_assert(len(both) == 2)


def test_tuples():
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 9, (4, 8)).astype(np.float32) for _ in range(2))
    out = np.zeros((2, 4, 8), np.float32)
    launch(tuple_kernel, (1,), (a, b), ((8, 1), (8, 1)), out, (4, 8))
    assert np.array_equal(out[0], 2 * a + 3 * b - 4) and np.array_equal(out[1], a - b)


class Matrix(NamedTuple):
    data: object
    rows: object
    cols: object


@jit
def row_sum(matrix, row, N: tl.constexpr):
    c = tl.arange(0, N)
    return tl.sum(tl.load(matrix.data + row * matrix.cols + c, mask=c < matrix.cols, other=0))


@jit
def named_tuple_kernel(matrix, out, N: tl.constexpr):
    for r in range(matrix.rows):
        tl.store(out + r, row_sum(matrix, r, N))


def test_named_tuples():
    x = np.arange(35, dtype=np.int32).reshape(5, 7)
    out = np.zeros(5, np.int32)
    launch(named_tuple_kernel, (1,), Matrix(x, 5, 7), out, 8)
    assert np.array_equal(out, x.sum(1))


@jit
def square(x):
    return x * x


@jit
def negate(x):
    return -x


@jit
def apply_twice(F: tl.constexpr, x):
    return F(F(x))


@jit
def function_argument_kernel(x, out, N: tl.constexpr, F: tl.constexpr, SCALE: tl.constexpr = 1):
    i = tl.arange(0, N)
    v = apply_twice(F, tl.load(x + i))
    if SCALE is not None:
        v = v * SCALE
    tl.store(out + i, v)


@pytest.mark.parametrize("scale", [None, 2, 0.5])
def test_functions_as_constants(scale):
    x = np.arange(8, dtype=np.float32)
    for function, reference in ((square, lambda v: v**4), (negate, lambda v: v)):
        out = np.zeros(8, np.float32)
        launch(function_argument_kernel, (1,), x, out, 8, function, scale)
        assert np.array_equal(out, reference(x) * (1 if scale is None else scale))


def test_default_arguments():
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    launch(function_argument_kernel, (1,), x, out, 8, negate)
    assert np.array_equal(out, x)


@jit
def optional_kernel(x, bias, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if bias is not None:
        v += tl.load(bias + i)
    if bias == None:  # noqa: E711
        v += 100
    tl.store(out + i, v)


def test_none():
    x, bias, out = np.arange(8, dtype=np.int32), np.full(8, 5, np.int32), np.zeros(8, np.int32)
    launch(optional_kernel, (1,), x, bias, out, 8)
    assert np.array_equal(out, x + 5)
    launch(optional_kernel, (1,), x, None, out, 8)
    assert np.array_equal(out, x + 100)


@jit
def string_kernel(out, MODE: tl.constexpr, DTYPE: tl.constexpr):
    if MODE == "half":
        v = 0.5
    elif MODE in ("one", "uno"):
        v = 1.0
    else:
        v = 2.0
    tl.store(out, tl.full((), v, DTYPE).to(tl.float32))


def test_strings_and_types_as_constants():
    for mode, dtype, want in (("half", tl.float16, 0.5), ("uno", tl.float32, 1), ("x", tl.int32, 2), ("half", tl.int8, 0)):
        out = np.zeros(1, np.float32)
        launch(string_kernel, (1,), out, mode, dtype)
        assert out[0] == want


@tilewright.constexpr_function
def block_for(n, least):
    block = least
    while block < n:
        block *= 2
    return block


@jit
def constexpr_function_kernel(out, N: tl.constexpr):
    B: tl.constexpr = block_for(N, 4)
    i = tl.arange(0, B)
    tl.store(out + i, i * tilewright.next_power_of_2(N), mask=i < N)
    tl.static_assert(B >= N, "too small")


def test_constexpr_functions():
    out = np.full(16, -1, np.int32)
    launch(constexpr_function_kernel, (1,), out, 11)
    assert out.tolist() == [i * 16 for i in range(11)] + [-1] * 5


@tilewright.aggregate
class Tile:
    pointer: tl.tensor
    size: tl.constexpr
    offset: tl.tensor

    @jit
    def addresses(self):
        return self.pointer + self.offset + tl.arange(0, self.size)

    @jit
    def next(self):
        return Tile(self.pointer, self.size, self.offset + self.size)


@jit
def aggregate_kernel(x, out, n, B: tl.constexpr):
    tile = Tile(x, B, 0)
    total = tl.zeros([B], tl.int32)
    for _ in range(n):
        total += tl.load(tile.addresses())
        tile = tile.next()
    tl.store(out + tl.arange(0, B), total)
    tl.store(out + B, tile.offset)


def test_aggregates():
    x = np.arange(64, dtype=np.int32)
    out = np.zeros(17, np.int32)
    launch(aggregate_kernel, (1,), x, out, 4, 16)
    assert np.array_equal(out[:16], x.reshape(4, 16).sum(0)) and out[16] == 64


@jit
def steps_to_one(x):
    count = 0
    while x > 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        count += 1
    return count


@jit
def pair_function(a, b):
    return a + b, a * 2.0


@jit
def map_kernel(x, y, out, real, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.map_elementwise(steps_to_one, tl.load(x + i)))
    s, d = tl.map_elementwise(pair_function, tl.load(y + i), tl.load(y + N + i))
    tl.store(real + i, s)
    tl.store(real + N + i, d)


def test_map_elementwise():
    x = np.arange(1, 33, dtype=np.int32)
    y = np.random.default_rng(2).standard_normal(64).astype(np.float32)
    out, real = np.zeros(32, np.int32), np.zeros(64, np.float32)
    launch(map_kernel, (1,), x, y, out, real, 32)

    def steps(n):
        count = 0
        while n > 1:
            n, count = n // 2 if n % 2 == 0 else 3 * n + 1, count + 1
        return count

    assert out.tolist() == [steps(int(v)) for v in x]
    assert np.array_equal(real[:32], y[:32] + y[32:]) and np.array_equal(real[32:], y[:32] * 2)


@jit
def sorted_pair(a, b, c, d):
    if a > b:
        low, high = b, a
    else:
        low, high = a, b
    return low, high, (c + d).to(tl.float32), (c - d).to(tl.float32)


@jit
def rotated(a, b, c, d):
    return b, c, d, a


@jit
def packed_map_kernel(x, out, sums, turned, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    low, s = tl.map_elementwise(sorted_pair, v, v + 1, pack=2)
    tl.store(out + i, low)
    tl.store(sums + i, s)
    j = tl.arange(0, 4)[:, None] * (N // 4) + tl.arange(0, N // 4)[None, :]
    tl.store(turned + j, tl.map_elementwise(rotated, tl.load(x + j), pack=4))


@pytest.mark.parametrize("n", [4, 16, 512])
def test_map_elementwise_with_packing(n):
    x = np.random.default_rng(0).permutation(n).astype(np.int32)
    out, sums, turned = np.zeros(n, np.int32), np.zeros(n, np.float32), np.zeros(n, np.int32)
    launch(packed_map_kernel, (1,), x, out, sums, turned, n)
    pairs = x.reshape(-1, 2)
    assert np.array_equal(out, np.sort(pairs, 1).ravel())
    assert np.array_equal(sums, np.stack([pairs.sum(1) + 2, pairs[:, 0] - pairs[:, 1]], 1).ravel())
    assert np.array_equal(turned, np.roll(x.reshape(-1, 4), -1, 1).ravel())


@jit
def varargs_total(*values):
    total = 0
    for i in tl.static_range(len(values)):
        total += values[i]
    return total


@jit
def varargs_kernel(out, *values):
    tl.store(out, varargs_total(*values))


def test_varargs():
    out = np.zeros(1, np.int32)
    launch(varargs_kernel, (1,), out, 3, 4, 5)
    assert out[0] == 12


@jit
def static_kernel(out, N: tl.constexpr):
    tl.static_assert(N % 2 == 0, "N must be even")
    tl.store(out, N)


def test_static_assert_names_the_line():
    out = np.zeros(1, np.int32)
    launch(static_kernel, (1,), out, 4)
    with pytest.raises(tilewright.errors.CompileTimeAssertionFailure, match=r"(?s)test_functions.py:\d+.*N must be even"):
        launch(static_kernel, (1,), out, 5)


@jit
def constexpr_argument_kernel(x, N: tl.constexpr):
    tl.store(x, N)


@jit
def wrong_constexpr_kernel(x):
    n = tl.load(x)
    constexpr_argument_kernel(x, n)


def test_a_tensor_is_no_constexpr():
    reports("constexpr", wrong_constexpr_kernel, np.zeros(1, np.int32))


def test_a_kernel_cannot_be_called_directly():
    with pytest.raises(RuntimeError, match="outside of the scope of a kernel"):
        static_kernel(np.zeros(1, np.int32), 4)


def test_missing_and_wrong_arguments():
    with pytest.raises(TypeError, match="N"):
        launch(static_kernel, (1,), np.zeros(1, np.int32))
    with pytest.raises(TypeError, match="out"):
        launch(static_kernel, (1,), object(), 4)
