"""A tuple of tuples that branches take apart: comparing the branches' values took tensors for constants, and MLIR ended the process."""

import tilewright.language as tl


@jit
def turned(t):
    a, (b, c) = t
    return c, (a, b)


@jit
def kernel(x, out, n):
    i = tl.arange(0, 64)
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


GRID = (1,)
OPTIONS = {"num_warps": 2, "num_stages": 2}
ARGUMENTS = {
    "x": Array(dtype="i32", size=64, fill="small", seed=1),
    "out": Array(dtype="i32", size=64, fill="pattern", seed=0),
    "n": 4,
}
