"""Masks that are in one branch only (`tilegpu-version-masks`): what else the branches may hold, on the test machine."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import passes_of, run_kernel

import tilewright
import tilewright.language as tl

TYPES = {"Q": "*fp16", "K": "*fp16", "OUT": "*fp32", "N": "i32", "SCALE": "fp32"}
CONSTANTS = {"BM": 128, "BN": 64, "D": 64}


@tilewright.jit
def causal(Q, K, OUT, N, SCALE, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, MODE: tl.constexpr):
    """Row maxima and products of masked scores."""
    rows, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + rows[:, None] * D + d[None, :])
    best = tl.zeros((BM,), tl.float32)
    out = tl.zeros((BM, D), tl.float32)
    for n in range(0, N, BN):
        columns = n + tl.arange(0, BN)
        k = tl.load(K + columns[:, None] * D + d[None, :])
        s = tl.where(rows[:, None] >= columns[None, :], tl.dot(q, tl.trans(k)), 0.0)
        if MODE == "scaled by an argument":
            s = tl.where(rows[:, None] >= columns[None, :] - N, s * SCALE, 1.0)
            best += tl.max(s, 1)
        elif MODE == "scaled by a result":
            best += tl.max(s * tl.max(tl.max(s, 1), 0), 1)
        else:
            s = tl.where(rows[:, None] >= tl.max(tl.max(s, 1), 0).to(tl.int32), s, 1.0)
            best += tl.max(s, 1)
        out = tl.dot(s.to(tl.float16), k, out)
    tl.store(OUT + rows, best + tl.sum(out, 1))


@pytest.mark.parametrize("mode", ["scaled by an argument", "scaled by a result", "masked by a result"])
def test_conditions_are_made_of_what_is_there_before_the_branches(mode):
    rng = np.random.default_rng(0)
    q, k = (rng.integers(-2, 3, (256, 64)).astype(np.float16) for _ in range(2))
    out = np.full(256, np.nan, np.float32)
    arguments = {"Q": q, "K": k, "OUT": out, "N": 256, "SCALE": 2.0}
    run_kernel(causal, (2,), arguments, {**CONSTANTS, "MODE": mode}, TYPES, tma=False)
    module, _ = passes_of(causal, TYPES, {**CONSTANTS, "MODE": mode}, tma=False)
    assert "scf.if" in str(module)
    assert np.array_equal(out, np.concatenate([_reference(q, k, rows, mode) for rows in np.split(np.arange(256), 2)]))


def _reference(q, k, rows, mode):
    out = np.zeros(len(rows), np.float32)
    for columns in np.split(np.arange(256), 4):
        s = np.where(rows[:, None] >= columns, q[rows].astype(np.float32) @ k[columns].T.astype(np.float32), 0)
        if mode == "scaled by an argument":
            s = s * 2
        best = (s * s.max()).max(1) if mode == "scaled by a result" else s.max(1)
        if mode == "masked by a result":
            s = np.where(rows[:, None] >= int(s.max()), s, 1)
            best = s.max(1)
        out += best + (s @ k[columns].astype(np.float32)).sum(1)
    return out
