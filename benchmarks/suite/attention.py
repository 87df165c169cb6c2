"""Cases: attention, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .cases import Case, Config, Launch, Problem, Stage, Step, Variant, cdiv, config, variant

_LOG2E = 1.4426950408889634
_MASKED = -1e30

_FORWARD = [
    config("BM BN", blocks, warps, stages)
    for blocks, warps, stages in (((128, 128), 8, 2), ((128, 128), 8, 3), ((128, 64), 8, 3), ((64, 64), 4, 3))
]
#: In a cluster of two CTAs, each may load half of the keys and values for both.
_CLUSTER = config("BM BN", (256, 128), 8, 2, WS=True, num_ctas=2)
_SPECIALIZED = [*(config("BM BN", (128, bn), 8, stages, WS=True) for bn, stages in ((128, 2), (128, 3), (64, 3))), _CLUSTER]
#: 64 columns: there is room for four warpgroups of 64 rows, or for two CTAs of two.
_NARROW = [*_FORWARD, config("BM BN", (256, 64), 16, 3), config("BM BN", (128, 128), 8, 3, maxnreg=128)]
_NARROW_SPECIALIZED = [
    config("BM BN", blocks, warps, stages, WS=True)
    for blocks, warps, stages in (((128, 128), 8, 3), ((128, 128), 8, 4), ((256, 64), 16, 3), ((256, 64), 16, 4))
]
#: 256 columns: two operands of a stage are 64 KB with 64 rows each.
_WIDE = [config("BM BN", blocks, warps, stages) for blocks, warps, stages in (((128, 64), 8, 2), ((128, 32), 8, 3), ((64, 64), 4, 2))]
_WIDE_SPECIALIZED = [config("BM BN", (128, bn), 8, stages, WS=True) for bn, stages in ((64, 2), (32, 3))]


def _inputs(device: str, z: int, h: int, s: int, d: int, group: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q = torch.randn(z, h, s, d, device=device, dtype=torch.bfloat16)
    k, v = (torch.randn(z, h // group, s, d, device=device, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v


def _sdpa(backend: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> Callable[[], Any]:
    """torch's attention with one of its backends; raises where the backend does not take these inputs."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def call() -> torch.Tensor:
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])

    call()
    return call


def _vendors(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> dict[str, Callable[[], Callable[[], Any]]]:
    names = {"cuDNN": "CUDNN_ATTENTION", "FlashAttention 2 (torch)": "FLASH_ATTENTION"}
    return {name: partial(_sdpa, backend, q, k, v, causal) for name, backend in names.items()}


def _scores(q: torch.Tensor, k: torch.Tensor, causal: bool) -> torch.Tensor:
    """Scaled scores of one head in fp32."""
    s = q.float() @ k.float().t() * q.shape[1] ** -0.5
    if causal:
        s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu_(1), _MASKED)
    return s


def _reference_forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse of base 2) in fp32, head by head."""
    o, lse = torch.empty(q.shape, device=q.device), torch.empty(q.shape[:3], device=q.device)
    for z in range(q.shape[0]):
        for h in range(q.shape[1]):
            s = _scores(q[z, h], k[z, h // group], causal)
            lse[z, h] = s.logsumexp(1) * _LOG2E
            o[z, h] = s.softmax(1) @ v[z, h // group].float()
    return o, lse


def _reference_backward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor, causal: bool) -> tuple[torch.Tensor, ...]:
    """(dq, dk, dv) in fp32, head by head."""
    dq, dk, dv = (torch.empty(q.shape, device=q.device) for _ in range(3))
    scale = q.shape[-1] ** -0.5
    for at in ((z, h) for z in range(q.shape[0]) for h in range(q.shape[1])):
        p = _scores(q[at], k[at], causal).softmax(1)
        g = do[at].float()
        dv[at] = p.t() @ g
        dp = g @ v[at].float().t()
        ds = p * (dp - (p * dp).sum(1, keepdim=True)) * scale
        dq[at] = ds @ k[at].float()
        dk[at] = ds.t() @ q[at].float()
    return dq, dk, dv


def forward(device: str, z: int, h: int, s: int, d: int, causal: bool) -> Problem:
    """The kernels of `kernels.py`."""
    q, k, v = _inputs(device, z, h, s, d)
    o = torch.empty_like(q)
    scale = d**-0.5

    def pointers(cf: Config) -> list[Step]:
        constants = {"D": d, "CAUSAL": causal, **cf}
        return [Launch("kernels", "attn_kernel", (s // cf["BM"], z * h), (q, k, v, o, scale, h, s), constants)]

    def descriptors(cf: Config) -> list[Step]:
        constants = {"D": d, "CAUSAL": causal, "WS": False, **cf}
        return [Launch("kernels", "attn_tma_kernel", (s // cf["BM"], z * h), (q, k, v, o, scale, z, h, s), constants)]

    plain = {64: _NARROW, 256: _WIDE}.get(d, _FORWARD)
    specialized = {64: _NARROW_SPECIALIZED, 256: _WIDE_SPECIALIZED}.get(d, _SPECIALIZED)
    return Problem(
        outputs=(o,),
        variants=[variant("pointers", plain, pointers), variant("descriptors", specialized + plain, descriptors)],
        reference=lambda: _reference_forward(q, k, v, causal, 1)[:1],
        work=4.0 * z * h * s * s * d * (0.5 if causal else 1),
        unit="TFLOP/s",
        vendors=_vendors(q, k, v, causal),
    )


def grouped_heads(device: str, z: int, h: int, group: int, s: int, d: int, causal: bool) -> Problem:
    """`group` heads share keys and values."""
    q, k, v = _inputs(device, z, h, s, d, group)
    o, lse = torch.empty_like(q), torch.empty(z, h, s, device=device)

    def steps(cf: Config) -> list[Step]:
        constants = {"GROUP": group, "D": d, "CAUSAL": causal, "WS": False, **cf}
        arguments = (q, k, v, o, lse, d**-0.5, z, h, s)
        return [Launch("kernels_attention", "attention_forward_kernel", (cdiv(s, cf["BM"]), z * h), arguments, constants)]

    return Problem(
        outputs=(o, lse),
        variants=[variant("descriptors", _SPECIALIZED + _FORWARD, steps, outputs=2)],
        reference=lambda: _reference_forward(q, k, v, causal, group),
        work=4.0 * z * h * s * s * d * (0.5 if causal else 1),
        unit="TFLOP/s",
        vendors=_vendors(q, k, v, causal),
    )


_BACKWARD_KV = [
    config("BM BN", blocks, warps, 2, WS=specialized)
    for blocks, warps, specialized in (
        ((64, 128), 8, True),
        ((64, 128), 8, False),
        ((64, 64), 4, False),
    )
]
_BACKWARD_ALL = [
    config("BM BN", blocks, warps, 2, WS=specialized)
    for blocks, warps, specialized in (((64, 128), 8, True), ((64, 128), 8, False), ((64, 64), 4, False))
]
_BACKWARD_Q = [
    config("BM BN", blocks, warps, stages, WS=specialized)
    for blocks, warps, stages, specialized in (
        ((128, 64), 8, 2, True),
        ((128, 128), 8, 2, True),
        ((128, 64), 8, 2, False),
        ((64, 64), 4, 2, False),
    )
]


def backward(device: str, z: int, h: int, s: int, d: int, causal: bool) -> Problem:
    """dq, dk and dv from do, o and lse. In two passes over the scores, one for dk and dv and one for dq, or in one that adds to an fp32 dq
    in memory."""
    q, k, v = _inputs(device, z, h, s, d)
    do = torch.randn_like(q)
    dq, dk, dv = (torch.empty_like(q) for _ in range(3))
    sum_dq = torch.empty(q.shape, device=device)
    delta = torch.empty(z, h, s, device=device)
    o, lse = (torch.empty_like(q), delta) if device == "meta" else _reference_forward(q, k, v, causal, 1)
    o = o.to(q.dtype)
    scale, heads = d**-0.5, z * h

    def launch(kernel: str, grid: int, outputs: tuple[torch.Tensor, ...], cf: Config) -> list[Step]:
        arguments = (q, k, v, do, *outputs, lse, delta, scale, z, h, s)
        return [Launch("kernels_attention", kernel, (grid, heads), arguments, {"D": d, "CAUSAL": causal, **cf})]

    def sums(cf: Config) -> list[Step]:
        return [Launch("kernels_attention", "attention_delta_kernel", (heads * s // cf["BM"],), (o, do, delta), {"D": d, **cf})]

    def scaled(cf: Config) -> list[Step]:
        return [Launch("kernels_attention", "attention_scale_kernel", (q.numel() // cf["B"],), (sum_dq, dq, scale), cf)]

    def of_columns(cf: Config) -> list[Step]:
        return launch("attention_backward_kv_kernel", cdiv(s, cf["BN"]), (dk, dv), cf)

    def of_rows(cf: Config) -> list[Step]:
        return launch("attention_backward_q_kernel", cdiv(s, cf["BM"]), (dq,), cf)

    def of_all(cf: Config) -> list[Step]:
        return [sum_dq.zero_, *launch("attention_backward_kernel", cdiv(s, cf["BN"]), (sum_dq, dk, dv), cf)]

    def reference() -> tuple[torch.Tensor, ...]:
        by_rows, *by_columns = _reference_backward(q, k, v, do, causal)
        return (o.float() * do.float()).sum(-1), by_rows / scale, by_rows, *by_columns

    first = Stage([{"BM": 64, "num_warps": 4}], sums, (0,))
    two = [first, Stage(_BACKWARD_KV, of_columns, (3, 4)), Stage(_BACKWARD_Q, of_rows, (2,))]
    one = [first, Stage(_BACKWARD_ALL, of_all, (1, 3, 4)), Stage([{"B": 2048, "num_warps": 4}], scaled, (2,))]
    return Problem(
        outputs=(delta, sum_dq, dq, dk, dv),
        variants=[Variant("one pass", one), Variant("two passes", two)],
        reference=reference,
        work=10.0 * z * h * s * s * d * (0.5 if causal else 1),
        unit="TFLOP/s",
        vendors={
            "cuDNN": lambda: _sdpa_backward("CUDNN_ATTENTION", q, k, v, do, causal),
            "FlashAttention 2 (torch)": lambda: _sdpa_backward("FLASH_ATTENTION", q, k, v, do, causal),
        },
        tolerance=2e-2,
    )


def _sdpa_backward(backend: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor, causal: bool) -> Callable[[], Any]:
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    o = _sdpa(backend, *inputs, causal)()
    return lambda: torch.autograd.grad(o, inputs, do, retain_graph=True)


def _text(causal: bool) -> str:
    return "causal" if causal else "full"


_FORWARD_SHAPES = [
    *((2, 16, 8192, d, causal) for d in (128, 64, 256) for causal in (False, True)),
    *((8, 16, 2048, 128, causal) for causal in (False, True)),
]
_BACKWARD_SHAPES = [(2, 16, 8192, d, causal) for d in (128, 64) for causal in (False, True)] + [(8, 16, 2048, 128, True)]

CASES = [
    *(
        Case("attention", f"D{d} S{s} {_text(causal)}", partial(forward, z=z, h=h, s=s, d=d, causal=causal), quick=d == 128 and s == 8192)
        for z, h, s, d, causal in _FORWARD_SHAPES
    ),
    *(
        Case(
            "attention",
            f"D128 S8192 {_text(causal)}, 4 heads a key",
            partial(grouped_heads, z=2, h=16, group=4, s=8192, d=128, causal=causal),
        )
        for causal in (False, True)
    ),
    *(
        Case("attention-backward", f"D{d} S{s} {_text(causal)}", partial(backward, z=z, h=h, s=s, d=d, causal=causal), quick=d == 128)
        for z, h, s, d, causal in _BACKWARD_SHAPES
    ),
]
