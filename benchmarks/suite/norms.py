"""Cases: softmax, norms and cross entropy, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch.nn import functional

from .building import Tensors, block, by_shape, configs, empty, in_group, integers, normal, problem, row_configs, size_of
from .cases import Case, Problem, cdiv

EPS = 1e-5
PROGRAMS = 4 * 132  # of kernels whose programs walk over rows


def softmax(device: str, rows: int, n: int) -> Problem:
    x, o = normal(device, rows, n), empty(device, rows, n)
    vendor = lambda: partial(torch.softmax, x, 1)  # noqa: E731
    rest = (o,), lambda: (torch.softmax(x.float(), 1),), size_of(x, o), vendor
    if n <= 512:
        choices = configs("R", (2048 // n, 4), (8192 // n, 4), (8192 // n, 8))
        return problem("softmax_rows", choices, lambda cf: (cdiv(rows, cf["R"]),), (o, x, rows, n), {"B": block(n)}, *rest)
    whole = problem("softmax_kernel", row_configs(n), lambda cf: (rows,), (o, x, n, n, n), {"B": block(n)}, *rest, module="kernels")
    if n > 65536:
        online = problem("softmax_online", configs("B", (8192, 8), (8192, 16), (16384, 16)), lambda cf: (rows,), (o, x, n), {}, *rest)
        online.variants += [replace(v, name="clusters") for v in whole.variants]
        return online
    return whole


def softmax_backward(device: str, rows: int, n: int) -> Problem:
    y, dy, dx = torch.softmax(normal(device, rows, n), 1), normal(device, rows, n), empty(device, rows, n)

    def reference() -> Tensors:
        p, g = y.float(), dy.float()
        return (p * (g - (p * g).sum(1, keepdim=True)),)

    return problem(
        "softmax_backward",
        row_configs(n, held=2),
        lambda cf: (rows,),
        (dx, y, dy, n),
        {"B": block(n)},
        (dx,),
        reference,
        size_of(y, dy, dx),
        lambda: partial(torch._softmax_backward_data, dy, y, 1, torch.bfloat16),
    )


def layernorm(device: str, rows: int, n: int) -> Problem:
    x, o = normal(device, rows, n), empty(device, rows, n)
    w, b = (normal(device, n, dtype=torch.float32) for _ in range(2))
    return problem(
        "layernorm_kernel",
        row_configs(n),
        lambda cf: (rows,),
        (x, o, w, b, n, EPS),
        {"B": block(n)},
        (o,),
        lambda: (functional.layer_norm(x.float(), (n,), w, b, EPS),),
        size_of(x, o),
        lambda: partial(functional.layer_norm, x, (n,), w.bfloat16(), b.bfloat16(), EPS),
        module="kernels",
    )


def layernorm_backward(device: str, rows: int, n: int) -> Problem:
    x, dy, dx, w = normal(device, rows, n), normal(device, rows, n), empty(device, rows, n), normal(device, n, dtype=torch.float32)
    mean = x.float().sum(1) / n
    rstd = torch.rsqrt((x.float() - mean[:, None]).square().sum(1) / n + EPS)
    part_w, part_b = (empty(device, PROGRAMS, n, dtype=torch.float32) for _ in range(2))

    def reference() -> Tensors:
        h, g = (x.float() - mean[:, None]) * rstd[:, None], dy.float() * w
        return ((g - h * (g * h).mean(1, keepdim=True) - g.mean(1, keepdim=True)) * rstd[:, None],)

    def vendor() -> Callable[[], object]:
        leaves = [t.clone().requires_grad_() for t in (x, w.bfloat16(), w.bfloat16())]
        y = functional.layer_norm(leaves[0], (n,), leaves[1], leaves[2], EPS)
        return partial(torch.autograd.grad, y, leaves, dy, retain_graph=True)

    return problem(
        "layernorm_backward",
        row_configs(n, held=2),
        lambda cf: (PROGRAMS,),
        (dx, part_w, part_b, dy, x, w, mean, rstd, rows, n),
        {"B": block(n)},
        (dx,),
        reference,
        size_of(x, dy, dx, part_w, part_b),
        vendor,
    )


def rmsnorm(device: str, rows: int, n: int) -> Problem:
    x, o, w, rstd = normal(device, rows, n), empty(device, rows, n), normal(device, n), empty(device, rows, dtype=torch.float32)
    return problem(
        "rmsnorm",
        row_configs(n),
        lambda cf: (rows,),
        (o, x, w, rstd, n, EPS),
        {"B": block(n)},
        (o,),
        lambda: (functional.rms_norm(x.float(), (n,), w.float(), EPS),),
        size_of(x, o),
        lambda: partial(functional.rms_norm, x, (n,), w, EPS),
    )


def rmsnorm_residual(device: str, rows: int, n: int) -> Problem:
    x, res, w = normal(device, rows, n), normal(device, rows, n), normal(device, n)
    o, s = empty(device, rows, n), empty(device, rows, n)

    def reference() -> Tensors:
        total = x.float() + res.float()
        return total, functional.rms_norm(total, (n,), w.float(), EPS)

    return problem(
        "rmsnorm_residual",
        row_configs(n),
        lambda cf: (rows,),
        (o, s, x, res, w, n, EPS),
        {"B": block(n)},
        (s, o),
        reference,
        size_of(x, res, s, o),
    )


def rmsnorm_backward(device: str, rows: int, n: int) -> Problem:
    x, dy, dx, w = normal(device, rows, n), normal(device, rows, n), empty(device, rows, n), normal(device, n)
    rstd = torch.rsqrt(x.float().square().sum(1) / n + EPS)
    part = empty(device, PROGRAMS, n, dtype=torch.float32)

    def reference() -> Tensors:
        h, g = x.float() * rstd[:, None], dy.float() * w.float()
        return ((g - h * (g * h).mean(1, keepdim=True)) * rstd[:, None],)

    def vendor() -> Callable[[], object]:
        leaves = [t.clone().requires_grad_() for t in (x, w)]
        y = functional.rms_norm(leaves[0], (n,), leaves[1], EPS)
        return partial(torch.autograd.grad, y, leaves, dy, retain_graph=True)

    return problem(
        "rmsnorm_backward",
        row_configs(n, held=2),
        lambda cf: (PROGRAMS,),
        (dx, part, dy, x, w, rstd, rows, n),
        {"B": block(n)},
        (dx,),
        reference,
        size_of(x, dy, dx, part),
        vendor,
    )


def cross_entropy(device: str, rows: int, n: int) -> Problem:
    """Loss and gradient. The row is read twice, but counted once: the second time it can come from the L2 cache."""
    x, dx, target = normal(device, rows, n), empty(device, rows, n), integers(device, n, rows, dtype=torch.int64)
    loss = empty(device, rows, dtype=torch.float32)

    def reference() -> Tensors:
        p = torch.softmax(x.float(), 1)
        p[torch.arange(rows, device=device), target] -= 1
        return functional.cross_entropy(x.float(), target, reduction="none"), p

    def vendor() -> Callable[[], object]:
        leaf = x.clone().requires_grad_()
        return lambda: torch.autograd.grad(functional.cross_entropy(leaf, target, reduction="sum"), leaf)

    return problem(
        "cross_entropy",
        configs("B", (8192, 8), (8192, 16), (16384, 16), (16384, 32)),
        lambda cf: (rows,),
        (loss, dx, x, target, n),
        {},
        (loss, dx),
        reference,
        size_of(x, dx),
        vendor,
    )


_ROWS = ((8192, 1024), (8192, 4096), (8192, 8192), (4096, 12000), (4096, 16384))
_LONG_ROWS = ((4096, 32768), (2048, 65536), (1024, 131072), (512, 262144))
_BACKWARD = ((8192, 1024), (8192, 4096), (4096, 8192))


CASES: list[Case] = [
    *in_group(
        "norms",
        *by_shape("softmax", softmax, (*_ROWS, (262144, 128), (131072, 256), *_LONG_ROWS)),
        *by_shape("layer norm", layernorm, (*_ROWS, *_LONG_ROWS)),
        *by_shape("rms norm", rmsnorm, _ROWS),
        *by_shape("rms norm of a sum", rmsnorm_residual, ((8192, 4096), (4096, 16384))),
        *by_shape("cross entropy", cross_entropy, ((4096, 32768), (2048, 128256))),
    ),
    *in_group(
        "norms-backward",
        *by_shape("softmax", softmax_backward, _BACKWARD),
        *by_shape("layer norm", layernorm_backward, _BACKWARD),
        *by_shape("rms norm", rmsnorm_backward, _BACKWARD),
    ),
]
