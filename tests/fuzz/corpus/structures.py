"""Named tuples and early returns through loops, recursion on constants, control flow per element, reductions and reverse scans of tuples."""

import tilewright.language as tl
from typing import NamedTuple

class State(NamedTuple):
    a: tl.tensor
    b: tl.tensor

@jit
def step(s, k):
    if k % 2 == 0:
        return State(s.a + 1, s.b * 0.5)
    return State(s.a - k, s.b + 1.0)

@jit
def fact(n: tl.constexpr):
    if n <= 1:
        return 1
    else:
        return n * fact(n - 1)

@jit
def pick(t, i: tl.constexpr):
    return t[i]

@jit
def early(x, lim):
    if lim > 5:
        return x + 100
    if lim > 3:
        x = x + 10
        if lim == 4:
            return x * 2
    return x - 1

@jit
def collatz(v):
    n = 0
    while v > 1:
        if v % 2 == 0:
            v = v // 2
        else:
            v = 3 * v + 1
        n += 1
    return n

@jit
def minmaxsum(a1, b1, c1, a2, b2, c2):
    return tl.minimum(a1, a2), tl.maximum(b1, b2), c1 + c2

@jit
def kernel(x, y, o1, o2, o3, o4, o5, o6, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    f = tl.load(y + i)
    s = State(v, f)
    for k in range(n):
        s = step(s, k)
        for j in tl.static_range(3):
            s = State(s.a ^ pick((1, 2, 4), j), s.b)
        if k == 2:
            s = State(s.a + tl.sum(s.a), s.b)
    tl.store(o1 + i, s.a)
    tl.store(o2 + i, s.b)
    acc = v
    for k in range(n, 0, -1):
        acc = early(acc, k)
    tl.store(o3 + i, acc + fact(5))
    tl.store(o4 + i, tl.map_elementwise(collatz, (v & 15) + 1))
    a, b, c = tl.reduce((v, v, v), 0, minmaxsum)
    sa, sb, sc = tl.associative_scan((v, v, v), 0, minmaxsum, reverse=True)
    tl.store(o5 + i, sa + sb * 3 + sc * 5 + a + b + c)
    t = n
    u = 0
    while t > 0 and u < 100:
        u += t
        t -= 1
        while u % 3 != 0:
            u += 1
    tl.store(o6, u)
    tl.store(o6 + 1, t)

GRID = (1,)
OPTIONS = {'num_warps': 4, 'num_stages': 2}
ARGUMENTS = {'x': Array(dtype='i32', size=128, fill='small', seed=1), 'y': Array(dtype='fp32', size=128, fill='unit', seed=2),
 'o1': Array(dtype='i32', size=128, fill='pattern', seed=0), 'o2': Array(dtype='fp32', size=128, fill='pattern', seed=0), 'o3': Array(dtype='i32', size=128, fill='pattern', seed=0), 'o4': Array(dtype='i32', size=128, fill='pattern', seed=0), 'o5': Array(dtype='i32', size=128, fill='pattern', seed=0), 'o6': Array(dtype='i32', size=2, fill='pattern', seed=0), 'n': 7, 'N': 128}
