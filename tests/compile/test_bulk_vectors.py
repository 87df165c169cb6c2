"""Vectors that TMA copies beside the blocks of a loop of products, as they lie in memory (`passes/bulk_vectors.py`)."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import passes_of, run_kernel

import tilewright
import tilewright.language as tl

ROWS, BLOCKS, D = 128, 5, 64


@tilewright.jit
def scaled_columns(A, B, SCALE, OUT, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WRITES: tl.constexpr, MASKED: tl.constexpr):
    """OUT = sum over blocks of exp2(A B^T) SCALE[block] B: columns of the first product are scaled by a vector."""
    a = tl.make_tensor_descriptor(A, shape=[BM, D], strides=[D, 1], block_shape=[BM, D]).load([0, 0])
    bd = tl.make_tensor_descriptor(B, shape=[n, D], strides=[D, 1], block_shape=[BN, D])
    od = tl.make_tensor_descriptor(OUT, shape=[BM, D], strides=[D, 1], block_shape=[BM, D])
    acc = tl.zeros((BM, D), tl.float32)
    for i in tl.range(0, n, BN, warp_specialize=False):
        b = bd.load([i, 0])
        at = i + tl.arange(0, BN)
        scale = tl.load(SCALE + at, mask=at < n) if MASKED else tl.load(SCALE + at)
        p = tl.math.exp2(tl.dot(a, b.T)) * scale[None, :]
        acc += tl.dot(p.to(A.dtype.element_ty), b)
    if WRITES:
        tl.store(SCALE + tl.arange(0, BN), tl.zeros((BN,), tl.float32))
    od.store([0, 0], acc)


TYPES = {"A": "*fp16", "B": "*fp16", "SCALE": "*fp32", "OUT": "*fp32"}
CONSTANTS = {"D": D, "BM": ROWS, "BN": 64, "WRITES": False, "MASKED": False}
OPTIONS = {"num_warps": 8, "num_stages": 3}


def test_values():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-1, 2, shape).astype(np.float16) * 0.25 for shape in ((ROWS, D), (64 * BLOCKS, D)))
    scale = rng.integers(1, 4, 64 * BLOCKS).astype(np.float32)
    out = np.full((ROWS, D), np.nan, np.float32)
    arguments = {"A": a, "B": b, "SCALE": scale, "OUT": out, "n": 64 * BLOCKS}
    assert run_kernel(scaled_columns, (1,), arguments, CONSTANTS, TYPES, **OPTIONS)
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    want = (np.exp2(wide_a @ wide_b.T) * scale).astype(np.float16).astype(np.float32) @ wide_b
    assert np.abs(out - want).max() < 1e-2 * np.abs(want).max()


def copied(constants: dict[str, bool], unaligned: tuple[str, ...] = ()) -> bool:
    """Whether the vector is copied in bulk."""
    module, _ = passes_of(scaled_columns, {**TYPES, "n": "i32"}, {**CONSTANTS, **constants}, unaligned=unaligned, **OPTIONS)
    text = str(module)
    assert ("tilegpu.bulk" in text) == ("tile.load" not in text)
    return "tilegpu.bulk" in text


@pytest.mark.parametrize(
    ("constants", "unaligned", "expected"),
    [
        ({}, (), True),
        ({"MASKED": True}, (), False),  # TMA would copy what the mask leaves out
        ({"WRITES": True}, (), False),  # TMA does not see what the kernel writes
        ({}, ("SCALE",), False),  # not at a multiple of 16 bytes
    ],
)
def test_which_are_copied(constants, unaligned, expected):
    assert copied(constants, unaligned) == expected
