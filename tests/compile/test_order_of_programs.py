"""Programs that are numbered anew so that long ones start first: each runs once."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import run_kernel

import tilewright
import tilewright.language as tl


@tilewright.jit
def triangle(OUT, N, GROWS: tl.constexpr, AXIS: tl.constexpr):
    """Count programs, and the iterations of each."""
    x = tl.program_id(0)
    y = tl.program_id(1)
    z = tl.program_id(2)
    length = x if AXIS == 0 else y
    sum = 0
    for i in range(0 if GROWS else length, length + 1 if GROWS else N):
        sum += i
    at = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(OUT + at, tl.load(OUT + at) + sum + 1)


@pytest.mark.parametrize(
    ("grid", "axis", "grows"), [((3, 2, 2), 0, True), ((3, 2, 2), 0, False), ((2, 5), 1, True), ((100, 4), 0, True), ((257, 2), 0, False)]
)
def test_every_program_runs_once(grid, axis, grows):
    n, (x, y, z) = grid[axis], (*grid, 1)[:3]
    out = np.zeros((z, y, x), np.int32)
    run_kernel(triangle, grid, {"OUT": out, "N": n}, {"GROWS": grows, "AXIS": axis}, {"OUT": "*i32"}, num_warps=1)
    length = np.arange(n).reshape((1, 1, n) if axis == 0 else (1, n, 1))
    sums = length * (length + 1) // 2
    assert np.array_equal(out, np.broadcast_to((sums if grows else n * (n - 1) // 2 - sums + length) + 1, out.shape))
