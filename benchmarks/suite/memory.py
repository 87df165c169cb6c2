"""Cases: elementwise kernels, scans, sorts, and data in other places."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional

from .building import Data, Tensors, block, by_shape, case, configs, empty, in_group, integers, normal, problem, size_of
from .cases import Case, Problem, cdiv

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
        configs("C", (32, 4), (64, 4), (64, 8)),
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
        configs("R C", (64, 64, 4), (64, 64, 8), (128, 64, 8), (64, 128, 8), (128, 128, 8)),
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


_TYPES = ((torch.float32, "f32"), (torch.bfloat16, "bf16"), (torch.int8, "i8"))


CASES: list[Case] = [
    *in_group(
        "elementwise",
        *(case(f"add f32 2^{p}", add, 1 << p, quick=p == 28) for p in (24, 28)),
        *by_shape("swiglu", swiglu, ((8192, 8192),)),
        *by_shape("swiglu interleaved", swiglu_interleaved, ((8192, 8192),)),
        *by_shape("swiglu backward", swiglu_backward, ((8192, 8192),)),
        *by_shape("rotary", rotary, ((16384, 32, 128),)),
        case("dropout 2^27", dropout, 1 << 27, 1, quick=True),
        case("dropout 2^27, 4 a call", dropout, 1 << 27, 4),
        case("adam 2^26", adam, 1 << 26),
        *by_shape("quantize int8", quantize_int8, ((16384, 8192),)),
        *by_shape("dequantize int8", dequantize_int8, ((16384, 8192),)),
        *by_shape("quantize fp8", quantize_fp8, ((1 << 20, 128),)),
        *by_shape("dequantize fp8", dequantize_fp8, ((1 << 20, 128),)),
    ),
    *in_group(
        "scans",
        *by_shape("sum of columns", sum_columns, ((8192, 8192),)),
        *by_shape("sum of rows", sum_rows, ((8192, 8192),)),
        *by_shape("argmax of rows", argmax, ((16384, 4096),)),
        case("cumsum of rows f32 16384x4096", cumsum_rows, 16384, 4096, torch.float32, quick=True),
        case("cumsum of rows bf16 32768x1024", cumsum_rows, 32768, 1024, torch.bfloat16),
        *by_shape("cumsum of columns", cumsum_columns, ((128, 1 << 18),)),
        *by_shape("sort", sort, ((65536, 128), (16384, 1024), (4096, 4096))),
        *by_shape("topk", topk, ((65536, 128, 8), (16384, 2048, 32))),
        *(case(f"histogram 2^27, {high} values", histogram, 1 << 27, high, quick=high == 256) for high in (256, 8)),
    ),
    *in_group(
        "gathers",
        *by_shape("embedding", embedding, ((128256, 32768, 4096),)),
        *(case(f"embedding backward {t}", embedding_backward, 32064, 32768, 4096, d) for d, t in _TYPES[:2]),
        *by_shape("gather in rows", gather, ((16384, 2048),)),
        *(case(f"transpose {t} 8192x8192", transpose, 8192, 8192, d, quick=t == "bf16") for d, t in _TYPES),
    ),
]
