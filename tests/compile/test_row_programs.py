"""Layer norms whose programs are looped over, on the test machine: any number of rows for each CTA, the same bits as without a loop."""

from __future__ import annotations

import kernel_harness
import numpy as np
import pytest
from kernel_harness import run_kernel

import tilewright
import tilewright.language as tl


@tilewright.jit
def norm(X, OUT, W, S, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < n
    v = tl.load(X + r * n + c, mask=m, other=0.0)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(m, v - mean, 0.0)
    tl.store(S + r, tl.sum(d * d, axis=0))
    tl.store(OUT + r * n + c, d * tl.load(W + c, mask=m) + tl.load(W + n + c, mask=m), mask=m)


TYPES = {**dict.fromkeys(["X", "OUT", "W", "S"], "*fp32"), "n": "i32"}


def results(
    rows: int, n: int, resident: int, monkeypatch: pytest.MonkeyPatch, num_warps: int = 16, **options: int
) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel writes for so many rows, with so many CTAs at a time."""
    monkeypatch.setattr(kernel_harness, "_RESIDENT", resident)
    rng = np.random.default_rng(rows)
    x, w = rng.standard_normal((rows, n)).astype(np.float32), rng.standard_normal((2, n)).astype(np.float32)
    o, s = np.full((rows, n), np.nan, np.float32), np.full(rows, np.nan, np.float32)
    run_kernel(norm, (rows,), {"X": x, "OUT": o, "W": w, "S": s, "n": n}, {"B": 8192}, TYPES, num_warps=num_warps, **options)
    return o, s


@pytest.mark.parametrize("queue", [True, False])
@pytest.mark.parametrize(("rows", "resident"), [(1, 4), (5, 4), (11, 1), (15, 2)])
def test_rows(rows, resident, queue, monkeypatch):
    """A queue gives the CTA that runs first all programs but those of the first turns."""
    monkeypatch.setattr(kernel_harness, "_QUEUE", queue)
    looped, plain = (results(rows, 8176, resident, monkeypatch, **options) for options in ({}, {"persistent": False}))
    assert all(np.array_equal(a, b) for a, b in zip(looped, plain, strict=True))


@pytest.mark.parametrize(("rows", "resident", "num_ctas"), [(5, 2, 2), (7, 1, 4)])
def test_clusters(rows, resident, num_ctas, monkeypatch):
    """Clusters loop over programs by turns."""
    options = {"num_warps": 16 // num_ctas, "num_ctas": num_ctas}
    looped, plain = (results(rows, 8176, resident, monkeypatch, **options, **more) for more in ({}, {"persistent": False}))
    assert all(np.array_equal(a, b) for a, b in zip(looped, plain, strict=True))


def test_which_kernels_loop():
    def loops(block: int, num_warps: int, num_ctas: int = 1) -> bool:
        module, _ = kernel_harness.passes_of(norm, TYPES, {"B": block}, num_warps=num_warps, num_ctas=num_ctas)
        return "tile.programs" in str(module)

    assert loops(32768, 8, 4) and not loops(8192, 8, 4)

    assert loops(8192, 16) and loops(16384, 16)
    assert not loops(8192, 4)  # three CTAs fit, and more
    assert not loops(1024, 16)
