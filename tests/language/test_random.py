"""Philox random numbers: the bits of the reference algorithm, and the distributions made of them."""

import numpy as np
import pytest
from language_harness import jit, launch

import tilewright.language as tl


def philox(counter, key, rounds, bits):
    """Philox 4x32 or 4x64 as its authors define it, on Python integers."""
    mask = 2**bits - 1
    k = (0x9E3779B9, 0xBB67AE85) if bits == 32 else (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
    m = (0xD2511F53, 0xCD9E8D57) if bits == 32 else (0xD2E7470EE14C6C93, 0xCA5A826395121157)
    c, (k0, k1) = list(counter), key
    for _ in range(rounds):
        a, b = m[0] * c[0], m[1] * c[2]
        c = [(b >> bits) ^ c[1] ^ k0, b & mask, (a >> bits) ^ c[3] ^ k1, a & mask]
        k0, k1 = (k0 + k[0]) & mask, (k1 + k[1]) & mask
    return c


@jit
def randint_kernel(out, seed, N: tl.constexpr, ROUNDS: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.randint(seed, i, ROUNDS))


@pytest.mark.parametrize("rounds", [6, 10])
@pytest.mark.parametrize("seed", [0, 42, 0xDEADBEEF, 0x123456789ABCDEF])
def test_randint(seed, rounds):
    out = np.zeros(256, np.int32)
    launch(randint_kernel, (2,), out, seed, 128, rounds)
    key = seed & 0xFFFFFFFF, seed >> 32
    want = [philox((i, 0, 0, 0), key, rounds, 32)[0] for i in range(256)]
    assert out.view(np.uint32).tolist() == want


@jit
def randint4x_kernel(out, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(out + i, a)
    tl.store(out + N + i, b)
    tl.store(out + 2 * N + i, c)
    tl.store(out + 3 * N + i, d)


def test_randint4x():
    out = np.zeros((4, 64), np.int32)
    launch(randint4x_kernel, (1,), out, 7, 64)
    want = np.array([philox((i, 0, 0, 0), (7, 0), 10, 32) for i in range(64)], np.uint32).T
    assert np.array_equal(out.view(np.uint32), want)


@jit
def philox_kernel(out, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    zero = tl.zeros([N], tl.int32)
    a, b, c, d = tl.philox(seed, i, i + 1, zero, zero)
    tl.store(out + i, a.to(tl.uint32, bitcast=True))
    tl.store(out + N + i, d.to(tl.uint32, bitcast=True))


def test_philox_with_all_counters():
    out = np.zeros((2, 32), np.uint32)
    launch(philox_kernel, (1,), out, 5, 32)
    want = np.array([philox((i, i + 1, 0, 0), (5, 0), 10, 32) for i in range(32)])
    assert np.array_equal(out[0], want[:, 0]) and np.array_equal(out[1], want[:, 3])


@jit
def uniform_kernel(out, normal, seed, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.rand(seed, i))
    tl.store(normal + i, tl.randn(seed, i))


def test_distributions():
    n = 16384
    uniform, normal = np.zeros(n, np.float32), np.zeros(n, np.float32)
    launch(uniform_kernel, (n // 1024,), uniform, normal, 11, 1024)
    assert uniform.min() >= 0 and uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.02 and abs(uniform.var() - 1 / 12) < 0.01
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03
    bits = np.array([philox((i, 0, 0, 0), (11, 0), 10, 32)[0] for i in range(100)], np.uint32).view(np.int32)
    want = np.where(bits < 0, ~bits, bits).astype(np.float32) * np.float32(4.6566127342e-10)
    assert np.array_equal(uniform[:100], want)
