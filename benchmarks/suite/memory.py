"""Cases: kernels bound by memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch.nn import functional

from .cases import Case, Config, Launch, Problem, Step, cdiv, config, variant

EPS = 1e-5
PROGRAMS = 4 * 132  # of kernels whose programs walk over rows

Data = torch.Tensor
Tensors = tuple[Data, ...]


def size_of(*tensors: Data) -> int:
    """Bytes of all tensors together."""
    return sum(t.numel() * t.element_size() for t in tensors)


def normal(device: str, *shape: int, dtype: torch.dtype = torch.bfloat16) -> Data:
    return torch.randn(*shape, device=device, dtype=dtype)


def empty(device: str, *shape: int, dtype: torch.dtype = torch.bfloat16) -> Data:
    return torch.empty(*shape, device=device, dtype=dtype)


def integers(device: str, high: int, *shape: int, dtype: torch.dtype = torch.int32) -> Data:
    return torch.randint(0, high, shape, device=device, dtype=dtype)


#: Elements of a row from which on a cluster of CTAs may share it.
_LONG_ROW = 32768


def block(n: int) -> int:
    """The power of two that covers n."""
    return 1 << (n - 1).bit_length()


def configs(constants: str, *values: tuple[int, ...]) -> list[Config]:
    """`configs("R C", (64, 32, 8))`: R = 64, C = 32, eight warps."""
    return [config(constants, v[:-1], v[-1], 3) for v in values]


def row_configs(n: int) -> list[Config]:
    """Numbers of warps for one row of n elements a program, and of CTAs for long rows."""
    found = configs("", *((w,) for w in ((4, 8) if n <= 2048 else (8, 16) if n <= 8192 else (8, 16, 32))))
    if n < _LONG_ROW:
        return found
    ctas = [config("", (), w, 3, num_ctas=c) for c in (2, 4, 8, 16) for w in (4, 8, 16) if 32 <= n // (32 * w * c) <= 64]
    return [*(cf for cf in found if n // (32 * cf["num_warps"]) <= 128), *ctas]


def problem(
    kernel: str,
    choices: list[Config],
    grid: Callable[[Config], tuple[int, ...]],
    arguments: tuple,
    constants: Config,
    outputs: Tensors,
    reference: Callable[[], Tensors],
    traffic: int,
    vendor: Callable[[], Callable[[], object]] | None = None,
    tolerance: float = 1e-2,
    before: tuple[Callable[[], object], ...] = (),
    module: str = "kernels_memory",
) -> Problem:
    """A problem of one kernel, with plain functions `before` its launch."""

    def steps(cf: Config) -> list[Step]:
        return [*before, Launch(module, kernel, grid(cf), arguments, {**constants, **cf})]

    vendors = {} if vendor is None else {"torch": vendor}
    return Problem(outputs, [variant("pointers", choices, steps, len(outputs))], reference, traffic, "GB/s", vendors, tolerance)


# Elementwise


def add(device: str, n: int) -> Problem:
    x, y = (normal(device, n, dtype=torch.float32) for _ in range(2))
    o = torch.empty_like(x)
    return problem(
        "add_kernel",
        configs("B", (1024, 4)),
        lambda cf: (n // cf["B"],),
        (x, y, o, n),
        {},
        (o,),
        lambda: (x + y,),
        size_of(x, y, o),
        lambda: partial(torch.add, x, y, out=o),
        0.0,
        module="kernels",
    )


def swiglu(device: str, rows: int, n: int) -> Problem:
    x, o = normal(device, rows, 2 * n), empty(device, rows, n)

    def vendor() -> Callable[[], Data]:
        return lambda: functional.silu(x[:, :n]) * x[:, n:]

    return problem(
        "swiglu",
        configs("B", (1024, 4), (2048, 4), (4096, 8)),
        lambda cf: (rows, cdiv(n, cf["B"])),
        (o, x, n),
        {},
        (o,),
        lambda: (functional.silu(x[:, :n].float()) * x[:, n:].float(),),
        size_of(x, o),
        vendor,
    )


def swiglu_interleaved(device: str, rows: int, n: int) -> Problem:
    x, o = normal(device, rows, n, 2), empty(device, rows, n)
    return problem(
        "swiglu_interleaved",
        configs("B", (1024, 4), (2048, 4)),
        lambda cf: (rows * n // cf["B"],),
        (o, x, rows * n),
        {},
        (o,),
        lambda: (functional.silu(x[..., 0].float()) * x[..., 1].float(),),
        size_of(x, o),
    )


def swiglu_backward(device: str, rows: int, n: int) -> Problem:
    x, dx, dy = normal(device, rows, 2 * n), empty(device, rows, 2 * n), normal(device, rows, n)

    def reference() -> Tensors:
        a, b, g = x[:, :n].float(), x[:, n:].float(), dy.float()
        s = torch.sigmoid(a)
        return (torch.cat([g * b * s * (1 + a * (1 - s)), g * a * s], 1),)

    return problem(
        "swiglu_backward",
        configs("B", (1024, 4), (2048, 8)),
        lambda cf: (rows, cdiv(n, cf["B"])),
        (dx, x, dy, n),
        {},
        (dx,),
        reference,
        size_of(x, dx, dy),
    )


def rotary(device: str, rows: int, heads: int, size: int) -> Problem:
    x, o = normal(device, rows, heads, size), empty(device, rows, heads, size)
    cos, sin = (normal(device, rows, size // 2, dtype=torch.float32) for _ in range(2))

    def reference() -> Tensors:
        a, b, c, s = x.float()[..., 0::2], x.float()[..., 1::2], cos[:, None], sin[:, None]
        return (torch.stack([a * c - b * s, a * s + b * c], -1).view(x.shape),)

    return problem(
        "rotary",
        configs("", (4,), (8,)),
        lambda cf: (rows,),
        (o, x, cos, sin),
        {"H": heads, "D": size},
        (o,),
        reference,
        size_of(x, o, cos, sin),
    )


def philox(seed: int, counter: Data) -> Tensors:
    """The four words that Philox-4x32-10 makes of a counter of 32 bits, as int64."""
    low, keys = 0xFFFFFFFF, [seed & 0xFFFFFFFF, seed >> 32]
    words = [counter.long(), *(torch.zeros_like(counter, dtype=torch.int64) for _ in range(3))]
    for _ in range(10):
        a, b = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57  # the low 64 bits, as those of an unsigned product
        words = [(b >> 32 & low) ^ words[1] ^ keys[0], b & low, (a >> 32 & low) ^ words[3] ^ keys[1], a & low]
        keys = [keys[0] + 0x9E3779B9 & low, keys[1] + 0xBB67AE85 & low]
    return tuple(words)


def uniform(word: Data) -> Data:
    """A word of 32 bits as a float in [0, 1)."""
    signed = word.to(torch.int32)
    return torch.where(signed < 0, ~signed, signed).float() * 4.6566127342e-10


def dropout(device: str, n: int, share: int) -> Problem:
    """`share` elements from one call of the generator."""
    x, o = normal(device, n), empty(device, n)
    choices = configs("B", (1024, 4), (2048, 4)) if share == 1 else configs("B", (512, 4))

    def reference() -> Tensors:
        counter = torch.arange(n // share, device=device)
        words = philox(123, counter)[:share]
        size = choices[0]["B"] if share > 1 else n
        kept = torch.stack([uniform(w).view(-1, size) for w in words], 1).view(-1) > 0.5
        return (torch.where(kept, 2 * x.float(), 0.0),)

    return problem(
        "dropout" if share == 1 else "dropout4",
        choices,
        lambda cf: (n // (share * cf["B"]),),
        (o, x, n, 0.5, 123),
        {},
        (o,),
        reference,
        size_of(x, o),
        lambda: partial(functional.dropout, x, 0.5),
    )


def adam(device: str, n: int) -> Problem:
    start = normal(device, n, dtype=torch.float32)
    g, p, m1, m2 = normal(device, n), start.clone(), torch.zeros_like(start), torch.zeros_like(start)

    def reference() -> Tensors:
        a, v = 0.1 * g.float(), 0.001 * g.float() ** 2
        return start - 1e-3 * a / (v.sqrt() + 1e-8), a, v

    return problem(
        "adam",
        configs("B", (1024, 4)),
        lambda cf: (n // cf["B"],),
        (p, g, m1, m2, n, 1e-3, 0.9, 0.999, 1e-8),
        {},
        (p, m1, m2),
        reference,
        2 * size_of(p, m1, m2) + size_of(g) + size_of(p, start, m1, m2),
        before=(partial(p.copy_, start), m1.zero_, m2.zero_),
    )


# Normalizations


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
        row_configs(n),
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
        row_configs(n),
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
        row_configs(n),
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


# Reductions and scans


def sum_columns(device: str, rows: int, n: int) -> Problem:
    x, o = normal(device, rows, n, dtype=torch.float32), empty(device, n, dtype=torch.float32)
    return problem(
        "sum_columns",
        configs("R C", (64, 32, 8), (128, 32, 16), (32, 64, 4)),
        lambda cf: (cdiv(n, cf["C"]),),
        (o, x, rows, n),
        {},
        (o,),
        lambda: (x.sum(0),),
        size_of(x),
        lambda: partial(torch.sum, x, 0, out=o),
    )


def sum_rows(device: str, rows: int, n: int) -> Problem:
    x, o = normal(device, rows, n, dtype=torch.float32), empty(device, rows, dtype=torch.float32)
    return problem(
        "sum_rows",
        configs("R C", (4, 1024, 4), (1, 4096, 4), (16, 128, 4)),
        lambda cf: (cdiv(rows, cf["R"]),),
        (o, x, rows, n),
        {},
        (o,),
        lambda: (x.sum(1),),
        size_of(x),
        lambda: partial(torch.sum, x, 1, out=o),
    )


def argmax(device: str, rows: int, n: int) -> Problem:
    x, o = normal(device, rows, n, dtype=torch.float32), empty(device, rows, dtype=torch.int32)
    return problem(
        "argmax_rows",
        configs("", (4,), (8,)),
        lambda cf: (rows,),
        (o, x, n),
        {"B": block(n)},
        (o,),
        lambda: (x.argmax(1),),
        size_of(x),
        lambda: partial(torch.argmax, x, 1),
        0.0,
    )


def cumsum_rows(device: str, rows: int, n: int, dtype: torch.dtype) -> Problem:
    x, o = normal(device, rows, n, dtype=dtype), empty(device, rows, n, dtype=dtype)
    return problem(
        "cumsum_rows",
        configs("", (4,), (8,)),
        lambda cf: (rows,),
        (o, x, n),
        {"B": block(n)},
        (o,),
        lambda: (x.float().cumsum(1),),
        size_of(x, o),
        lambda: partial(torch.cumsum, x, 1, out=o),
    )


def cumsum_columns(device: str, rows: int, n: int) -> Problem:
    x, o = normal(device, rows, n, dtype=torch.float32), empty(device, rows, n, dtype=torch.float32)
    return problem(
        "cumsum_columns",
        configs("C", (32, 4), (64, 8)),
        lambda cf: (cdiv(n, cf["C"]),),
        (o, x, n),
        {"R": rows},
        (o,),
        lambda: (x.cumsum(0),),
        size_of(x, o),
        lambda: partial(torch.cumsum, x, 0, out=o),
    )


# Data in other places


def transpose(device: str, rows: int, n: int, dtype: torch.dtype) -> Problem:
    x, o = normal(device, rows, n, dtype=torch.float32).to(dtype), empty(device, n, rows, dtype=dtype)
    return problem(
        "transpose",
        configs("R C", (64, 64, 4), (64, 64, 8), (128, 64, 8)),
        lambda cf: (cdiv(rows, cf["R"]), cdiv(n, cf["C"])),
        (o, x, rows, n),
        {},
        (o,),
        lambda: (x.t(),),
        size_of(x, o),
        lambda: partial(o.copy_, x.t()),
        0.0,
    )


def embedding(device: str, words: int, count: int, n: int) -> Problem:
    table, index, o = normal(device, words, n), integers(device, words, count), empty(device, count, n)
    return problem(
        "embedding",
        configs("B", (4096, 4), (4096, 8), (2048, 4)),
        lambda cf: (count, cdiv(n, cf["B"])),
        (o, table, index, n),
        {},
        (o,),
        lambda: (table[index.long()],),
        2 * size_of(o),
        lambda: partial(torch.index_select, table, 0, index.long(), out=o),
        0.0,
    )


def embedding_backward(device: str, words: int, count: int, n: int, dtype: torch.dtype) -> Problem:
    """Atomic additions to the rows of the table; clearing it is part of the work."""
    dtable, dy, index = empty(device, words, n, dtype=dtype), normal(device, count, n, dtype=dtype), integers(device, words, count)

    def vendor() -> Callable[[], Data]:
        long = index.long()
        return lambda: dtable.zero_().index_add_(0, long, dy)

    return problem(
        "embedding_backward",
        configs("B", (4096, 8), (2048, 4)),
        lambda cf: (count, cdiv(n, cf["B"])),
        (dtable, dy, index, n),
        {},
        (dtable,),
        lambda: (torch.zeros(words, n, device=device).index_add_(0, index.long(), dy.float()),),
        3 * size_of(dy) + size_of(dtable),
        vendor,
        before=(dtable.zero_,),
    )


def gather(device: str, rows: int, n: int) -> Problem:
    x, o, index = normal(device, rows, n, dtype=torch.float32), empty(device, rows, n, dtype=torch.float32), integers(device, n, rows, n)
    return problem(
        "gather_rows",
        configs("", (4,), (8,)),
        lambda cf: (rows,),
        (o, x, index, n),
        {"B": n},
        (o,),
        lambda: (torch.gather(x, 1, index.long()),),
        size_of(x, o, index),
        tolerance=0.0,
    )


# Sorting and counting


def sort(device: str, rows: int, n: int) -> Problem:
    x, o = normal(device, rows, n, dtype=torch.float32), empty(device, rows, n, dtype=torch.float32)
    choices = ((1, 1), (8, 4)) if n <= 256 else ((1, 4),) if n <= 1024 else ((1, 8),)
    return problem(
        "sort_rows",
        configs("R", *choices),
        lambda cf: (rows // cf["R"],),
        (o, x, n),
        {"B": n},
        (o,),
        lambda: (x.sort(1)[0],),
        size_of(x, o),
        lambda: partial(torch.sort, x, 1),
        0.0,
    )


def topk(device: str, rows: int, n: int, k: int) -> Problem:
    x, o = normal(device, rows, n, dtype=torch.float32), empty(device, rows, k, dtype=torch.float32)
    return problem(
        "topk_rows",
        configs("R", (8, 4), (32, 4)) if n <= 256 else configs("R", (1, 4), (1, 8)),
        lambda cf: (rows // cf["R"],),
        (o, x, n),
        {"B": n, "K": k},
        (o,),
        lambda: (torch.topk(x, k, 1)[0],),
        size_of(x, o),
        lambda: partial(torch.topk, x, k, 1),
        0.0,
    )


def histogram(device: str, n: int, high: int) -> Problem:
    """Counts of n bytes below `high`."""
    x, o, per = integers(device, high, n, dtype=torch.uint8), empty(device, 256, dtype=torch.int32), 1 << 16
    return problem(
        "histogram",
        configs("B", (2048, 4), (8192, 8), (16384, 8)),
        lambda cf: (cdiv(n, per),),
        (o, x, n, per),
        {"BINS": 256},
        (o,),
        lambda: (torch.bincount(x, minlength=256),),
        size_of(x),
        lambda: partial(torch.bincount, x, minlength=256),
        0.0,
        (o.zero_,),
    )


# Quantization


def quantize_int8(device: str, rows: int, n: int) -> Problem:
    """A scale a row. The error is that of rounding."""
    x, q, scale = normal(device, rows, n), empty(device, rows, n, dtype=torch.int8), empty(device, rows, dtype=torch.float32)

    def reference() -> Tensors:
        s = x.float().abs().amax(1) / 127
        return x.float() / s[:, None], s

    return problem(
        "quantize_int8", configs("", (4,), (8,)), lambda cf: (rows,), (q, scale, x, n), {"B": n}, (q, scale), reference, size_of(x, q),
        tolerance=2e-2,
    )  # fmt: skip


def dequantize_int8(device: str, rows: int, n: int) -> Problem:
    q, o, scale = integers(device, 128, rows, n, dtype=torch.int8), empty(device, rows, n), normal(device, rows, dtype=torch.float32)
    return problem(
        "dequantize_int8", configs("", (4,), (8,)), lambda cf: (rows,), (o, q, scale, n), {"B": n}, (o,),
        lambda: (q.float() * scale[:, None],), size_of(q, o),
    )  # fmt: skip


def quantize_fp8(device: str, groups: int, size: int) -> Problem:
    """e4m3, a scale a group. The error is that of rounding."""
    x, q = normal(device, groups, size), empty(device, groups, size, dtype=torch.float8_e4m3fn)
    scale = empty(device, groups, dtype=torch.float32)

    def reference() -> Tensors:
        s = x.float().abs().amax(1) / 448
        return x.float() / s[:, None], s

    return problem(
        "quantize_fp8",
        configs("R", (16, 4), (32, 4), (64, 4)),
        lambda cf: (cdiv(groups, cf["R"]),),
        (q, scale, x, groups),
        {"G": size},
        (q, scale),
        reference,
        size_of(x, q, scale),
        tolerance=4e-2,
    )


def dequantize_fp8(device: str, groups: int, size: int) -> Problem:
    q, o = normal(device, groups, size).to(torch.float8_e4m3fn), empty(device, groups, size)
    scale = normal(device, groups, dtype=torch.float32)
    return problem(
        "dequantize_fp8",
        configs("R", (16, 4), (32, 4), (64, 4)),
        lambda cf: (cdiv(groups, cf["R"]),),
        (o, q, scale, groups),
        {"G": size},
        (o,),
        lambda: (q.float() * scale[:, None],),
        size_of(q, o, scale),
    )


_ROWS = ((8192, 1024), (8192, 4096), (8192, 8192), (4096, 12000), (4096, 16384))
_LONG_ROWS = ((4096, 32768), (2048, 65536), (1024, 131072), (512, 262144))
_BACKWARD = ((8192, 1024), (8192, 4096), (4096, 8192))
_TYPES = ((torch.float32, "f32"), (torch.bfloat16, "bf16"), (torch.int8, "i8"))


def _by_shape(name: str, build: Callable[..., Problem], shapes: tuple[tuple[int, ...], ...], quick: int = 1) -> list[Case]:
    """A case for each shape; number `quick` is part of the short run."""
    return [_case(f"{name} {'x'.join(map(str, shape))}", build, *shape, quick=i == quick % len(shapes)) for i, shape in enumerate(shapes)]


def _case(name: str, build: Callable[..., Problem], *sizes: object, quick: bool = False) -> Case:
    """A case that `_group` puts into its group."""
    return Case("", name, partial(_on, build, sizes), quick)


def _group(name: str, *cases: Case) -> list[Case]:
    return [replace(case, group=name) for case in cases]


def _on(build: Callable[..., Problem], sizes: tuple, device: str) -> Problem:
    return build(device, *sizes)


CASES: list[Case] = [
    *_group(
        "norms",
        *_by_shape("softmax", softmax, (*_ROWS, (262144, 128), (131072, 256), *_LONG_ROWS)),
        *_by_shape("layer norm", layernorm, (*_ROWS, *_LONG_ROWS)),
        *_by_shape("rms norm", rmsnorm, _ROWS),
        *_by_shape("rms norm of a sum", rmsnorm_residual, ((8192, 4096), (4096, 16384))),
        *_by_shape("cross entropy", cross_entropy, ((4096, 32768), (2048, 128256))),
    ),
    *_group(
        "norms-backward",
        *_by_shape("softmax", softmax_backward, _BACKWARD),
        *_by_shape("layer norm", layernorm_backward, _BACKWARD),
        *_by_shape("rms norm", rmsnorm_backward, _BACKWARD),
    ),
    *_group(
        "elementwise",
        *(_case(f"add f32 2^{p}", add, 1 << p, quick=p == 28) for p in (24, 28)),
        *_by_shape("swiglu", swiglu, ((8192, 8192),)),
        *_by_shape("swiglu interleaved", swiglu_interleaved, ((8192, 8192),)),
        *_by_shape("swiglu backward", swiglu_backward, ((8192, 8192),)),
        *_by_shape("rotary", rotary, ((16384, 32, 128),)),
        _case("dropout 2^27", dropout, 1 << 27, 1, quick=True),
        _case("dropout 2^27, 4 a call", dropout, 1 << 27, 4),
        _case("adam 2^26", adam, 1 << 26),
        *_by_shape("quantize int8", quantize_int8, ((16384, 8192),)),
        *_by_shape("dequantize int8", dequantize_int8, ((16384, 8192),)),
        *_by_shape("quantize fp8", quantize_fp8, ((1 << 20, 128),)),
        *_by_shape("dequantize fp8", dequantize_fp8, ((1 << 20, 128),)),
    ),
    *_group(
        "scans",
        *_by_shape("sum of columns", sum_columns, ((8192, 8192),)),
        *_by_shape("sum of rows", sum_rows, ((8192, 8192),)),
        *_by_shape("argmax of rows", argmax, ((16384, 4096),)),
        _case("cumsum of rows f32 16384x4096", cumsum_rows, 16384, 4096, torch.float32, quick=True),
        _case("cumsum of rows bf16 32768x1024", cumsum_rows, 32768, 1024, torch.bfloat16),
        *_by_shape("cumsum of columns", cumsum_columns, ((128, 1 << 18),)),
        *_by_shape("sort", sort, ((65536, 128), (16384, 1024), (4096, 4096))),
        *_by_shape("topk", topk, ((65536, 128, 8), (16384, 2048, 32))),
        *(_case(f"histogram 2^27, {high} values", histogram, 1 << 27, high, quick=high == 256) for high in (256, 8)),
    ),
    *_group(
        "gathers",
        *_by_shape("embedding", embedding, ((128256, 32768, 4096),)),
        *(_case(f"embedding backward {t}", embedding_backward, 32064, 32768, 4096, d) for d, t in _TYPES[:2]),
        *_by_shape("gather in rows", gather, ((16384, 2048),)),
        *(_case(f"transpose {t} 8192x8192", transpose, 8192, 8192, d, quick=t == "bf16") for d, t in _TYPES),
    ),
]
