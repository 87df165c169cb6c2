"""Atomics: every operation and type, masks, repeated addresses, returned values, locks."""

import numpy as np
import pytest
from language_harness import empty, jit, launch, numbers, of, reports, sample

import tilewright.language as tl


@jit
def rmw_kernel(x, v, old, n, N: tl.constexpr, OP: tl.constexpr):
    i = tl.arange(0, N)
    p = x + i
    a = tl.load(v + i)
    m = i < n
    if OP == "add":
        r = tl.atomic_add(p, a, mask=m)
    elif OP == "max":
        r = tl.atomic_max(p, a, mask=m)
    elif OP == "min":
        r = tl.atomic_min(p, a, mask=m)
    elif OP == "and":
        r = tl.atomic_and(p, a, mask=m)
    elif OP == "or":
        r = tl.atomic_or(p, a, mask=m, sem="relaxed")
    elif OP == "xor":
        r = tl.atomic_xor(p, a, mask=m, scope="sys")
    else:
        r = tl.atomic_xchg(p, a, mask=m)
    tl.store(old + i, r, mask=m)


OPERATIONS = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "xchg": lambda a, b: b,
}  # fmt: skip


@pytest.mark.parametrize("op", sorted(OPERATIONS))
@pytest.mark.parametrize("dtype", [tl.int32, tl.uint32, tl.int64, tl.uint64], ids=str)
def test_integers(dtype, op):
    x, v = sample(dtype, 64, 1), sample(dtype, 64, 2)
    before, old = x.copy(), np.zeros_like(x)
    launch(rmw_kernel, (1,), x, v, old, 50, 64, op)
    assert np.array_equal(old[:50], before[:50])
    with np.errstate(over="ignore"):
        assert np.array_equal(x[:50], OPERATIONS[op](before, v)[:50])
    assert np.array_equal(x[50:], before[50:])


@pytest.mark.parametrize("op", ["add", "max", "min", "xchg"])
@pytest.mark.parametrize("dtype", [tl.float32, tl.float64], ids=str)
def test_floats(dtype, op):
    x, v = sample(dtype, 64, 3), sample(dtype, 64, 4)
    before, old = x.copy(), np.zeros_like(x)
    launch(rmw_kernel, (1,), x, v, old, 64, 64, op)
    assert np.array_equal(old, before)
    np.testing.assert_allclose(x, OPERATIONS[op](before, v), rtol=1e-6)


@jit
def add_kernel(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out + i, tl.load(x + i), mask=i < n)


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
def test_16_bit_additions(dtype):
    x, out = of(np.arange(128) % 5 - 2, dtype), of(np.full(128, 3), dtype)
    launch(add_kernel, (8,), x, out, 100, 128)
    want = np.full(128, 3.0)
    want[:100] += 8 * (np.arange(100) % 5 - 2)
    assert np.array_equal(numbers(out), want)


@jit
def scatter_kernel(index, value, out, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    m = i < n
    tl.atomic_add(out + tl.load(index + i, mask=m, other=0), tl.load(value + i, mask=m, other=0), mask=m)


@pytest.mark.parametrize("n", [1, 5, 1000])
@pytest.mark.parametrize("block", [1, 8, 128])
def test_repeated_addresses_all_count(block, n):
    rng = np.random.default_rng(5)
    index, value = rng.integers(0, 7, n), rng.integers(-9, 9, n).astype(np.int32)
    out, want = np.zeros(8, np.int32), np.zeros(8, np.int32)
    np.add.at(want, index, value)
    launch(scatter_kernel, (-(-n // block),), index, value, out, n, block)
    assert np.array_equal(out, want)


@jit
def ticket_kernel(counter, out, N: tl.constexpr):
    tickets = tl.atomic_add(counter + tl.zeros([N], tl.int32), 1)
    tl.store(out + tl.program_id(0) * N + tl.arange(0, N), tickets)
    mine = tl.atomic_add(counter + 1, 1)
    tl.store(out + 1024 + mine, tl.program_id(0))


def test_returned_values_are_all_different():
    counter, out = np.zeros(2, np.int32), np.full(1024 + 32, -1, np.int32)
    launch(ticket_kernel, (32,), counter, out, 32)
    assert sorted(out[:1024].tolist()) == list(range(1024))
    assert sorted(out[1024:].tolist()) == list(range(32))
    assert counter.tolist() == [1024, 32]


@jit
def lock_kernel(lock, total, x, N: tl.constexpr):
    v = tl.sum(tl.load(x + tl.program_id(0) * N + tl.arange(0, N)))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + v)
    tl.atomic_xchg(lock, 0)


def test_spin_lock():
    x = np.arange(24 * 16, dtype=np.float32)
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.float32)
    launch(lock_kernel, (24,), lock, total, x, 16)
    assert total[0] == x.sum() and lock[0] == 0


@jit
def cas_kernel(x, old, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(old + i, tl.atomic_cas(x + i, i % 3, 100 + i))


def test_compare_and_swap_of_blocks():
    x = np.arange(32, dtype=np.int32) % 4
    before, old = x.copy(), np.zeros(32, np.int32)
    launch(cas_kernel, (1,), x, old, 32)
    i = np.arange(32)
    assert np.array_equal(old, before)
    assert np.array_equal(x, np.where(before == i % 3, 100 + i, before))


@jit
def load_store_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.atomic_load(x + i, sem="acquire")
    tl.atomic_store(out + i, v + 1, mask=i < N - 2)
    tl.store(out + N, tl.atomic_poll(x + 3, 3).to(tl.int32))


def test_atomic_load_store_and_poll():
    x, out = np.arange(16, dtype=np.int32), np.full(17, -1, np.int32)
    launch(load_store_kernel, (1,), x, out, 16)
    assert out.tolist() == [*range(1, 15), -1, -1, 1]


@jit
def last_block_kernel(x, partial, counter, out, N: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(partial + pid, tl.sum(tl.load(x + pid * N + tl.arange(0, N))))
    done = tl.atomic_add(counter, 1)
    if done == tl.num_programs(0) - 1:
        tl.store(out, tl.sum(tl.load(partial + tl.arange(0, 16))))


def test_the_last_program_sums_up():
    x = np.arange(16 * 32, dtype=np.float32)
    partial, counter, out = np.zeros(16, np.float32), np.zeros(1, np.int32), np.zeros(1, np.float32)
    launch(last_block_kernel, (16,), x, partial, counter, out, 32)
    assert out[0] == x.sum()


@jit
def bad_kernel(x, OP: tl.constexpr):
    if OP == "sem":
        tl.atomic_add(x, 1, sem="strong")
    elif OP == "scope":
        tl.atomic_add(x, 1, scope="world")
    else:
        tl.atomic_max(x, 1)


@pytest.mark.parametrize(
    ("dtype", "op", "message"),
    [(tl.int32, "sem", "semantic"), (tl.int32, "scope", "scope"), (tl.float16, "max", "fp16"), (tl.int16, "max", "int16")],
)
def test_what_atomics_refuse(dtype, op, message):
    reports(message, bad_kernel, empty(4, dtype), op)
