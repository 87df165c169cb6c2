"""The kernels of attention backward, compiled for sm_90 with roles of warps and without, on the test machine."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import run_kernel

pytest.importorskip("torch")

from suite import implementations

ROWS, D, BM, BN = 256, 64, 64, 128
LOG2E = 1.4426950408889634


def inputs(causal: bool) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(arguments, expected dq / sm, dk, dv) of two heads."""
    rng = np.random.default_rng(0)
    q, k, v, do = (rng.standard_normal((2, ROWS, D)).astype(np.float16) for _ in range(4))
    sm = D**-0.5
    wide = {name: x.astype(np.float64) for name, x in zip(("q", "k", "v", "do"), (q, k, v, do))}
    s = wide["q"] @ wide["k"].transpose(0, 2, 1) * sm
    if causal:
        s = np.where(np.tri(ROWS, dtype=bool), s, -1e30)
    lse = np.log(np.exp(s - s.max(2, keepdims=True)).sum(2)) + s.max(2)
    p = np.exp(s - lse[..., None])
    dp = wide["do"] @ wide["v"].transpose(0, 2, 1)
    delta = (p * dp).sum(2)
    ds = p * (dp - delta[..., None])
    expected = {"DQ": ds @ wide["k"], "DK": sm * ds.transpose(0, 2, 1) @ wide["q"], "DV": p.transpose(0, 2, 1) @ wide["do"]}
    arguments = {"Q": q, "K": k, "V": v, "DO": do, "LSE": (lse * LOG2E).astype(np.float32), "DELTA": delta.astype(np.float32)}
    return arguments, expected


def run(
    name: str, outputs: dict[str, np.ndarray], causal: bool, roles: bool, grid: tuple[int, int], blocks: tuple[int, int]
) -> dict[str, float]:
    """Largest errors of what a kernel computes, relative to the largest value."""
    given, expected = inputs(causal)
    kernel = getattr(implementations.kernels("kernels_attention", "tilewright"), name)
    values = {**given, **outputs, "sm": D**-0.5, "Z": 1, "H": 2, "S": ROWS}
    arguments = {p.name: values[p.name] for p in kernel.params if p.name in values}
    types = {n: "*fp32" if x.dtype == np.float32 else "*fp16" for n, x in arguments.items() if isinstance(x, np.ndarray)} | {"sm": "fp32"}
    constants = {"D": D, "BM": blocks[0], "BN": blocks[1], "CAUSAL": causal, "WS": roles}
    run_kernel(kernel, grid, arguments, constants, types, seed=1, num_warps=8, num_stages=2)
    scaled = {"DQ": expected["DQ"] * (1 if outputs.get("DQ", np.empty(0)).dtype == np.float32 else D**-0.5)}
    return {n: np.abs(x - {**expected, **scaled}[n]).max() / np.abs(expected[n]).max() for n, x in outputs.items()}


@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_one_pass(causal, roles):
    outputs = {"DQ": np.zeros((2, ROWS, D), np.float32), **{n: np.full((2, ROWS, D), np.nan, np.float16) for n in ("DK", "DV")}}
    errors = run("attention_backward_kernel", outputs, causal, roles, (ROWS // BN, 2), (BM, BN))
    assert max(errors.values()) < 4e-3, errors


@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_two_passes(causal, roles):
    errors = run(
        "attention_backward_kv_kernel",
        {n: np.full((2, ROWS, D), np.nan, np.float16) for n in ("DK", "DV")},
        causal,
        roles,
        (ROWS // BN, 2),
        (BM, BN),
    )
    errors |= run(
        "attention_backward_q_kernel", {"DQ": np.full((2, ROWS, D), np.nan, np.float16)}, causal, roles, (ROWS // BN, 2), (BN, BM)
    )
    assert max(errors.values()) < 4e-3, errors


def test_no_rows():
    """Columns behind the last row: the loop has no iteration, but the products in front of it are issued; the sums are zero."""
    given, expected = inputs(True)
    kernel = implementations.kernels("kernels_attention", "tilewright").attention_backward_kernel
    outputs = {"DQ": np.zeros((2, ROWS, D), np.float32), **{n: np.full((2, ROWS, D), np.nan, np.float16) for n in ("DK", "DV")}}
    values = {**given, **outputs, "sm": D**-0.5, "Z": 1, "H": 2, "S": ROWS}
    arguments = {p.name: values[p.name] for p in kernel.params if p.name in values}
    types = {n: "*fp32" if x.dtype == np.float32 else "*fp16" for n, x in arguments.items() if isinstance(x, np.ndarray)} | {"sm": "fp32"}
    constants = {"D": D, "BM": BM, "BN": BN, "CAUSAL": True, "WS": False}
    run_kernel(kernel, (ROWS // BN + 1, 1), arguments, constants, types, seed=1, num_warps=8, num_stages=2)
    for name in ("DK", "DV"):
        assert np.abs(outputs[name][0] - expected[name][0]).max() < 4e-3 * np.abs(expected[name]).max()
        assert not outputs[name][1, :BN].any()
