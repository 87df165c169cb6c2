"""Cases: matrix products."""

from __future__ import annotations

from functools import partial

import torch

from .cases import Case, Config, Launch, Problem, Step, Variant, cdiv, config, variant

MULTIPROCESSORS = 132

_POINTERS = [
    config("BM BN BK", blocks, warps, stages, G=group)
    for blocks, warps, stages, group in (
        ((128, 256, 64), 8, 3, 8),
        ((128, 256, 64), 8, 3, 16),
        ((128, 256, 64), 8, 4, 8),
        ((128, 256, 64), 8, 4, 16),
        ((128, 128, 64), 4, 4, 8),
        ((256, 128, 64), 8, 3, 8),
    )
]


def _roles(*rows: tuple[tuple[int, int, int], int, int, bool, int]) -> list[Config]:
    """Configurations from (blocks, warps, stages, whether roles are asked for, rows of tiles in a group)."""
    return [config("BM BN BK", blocks, warps, stages, WS=roles, G=group) for blocks, warps, stages, roles, group in rows]


_DESCRIPTORS = _roles(
    ((128, 256, 64), 8, 3, True, 8),
    ((128, 256, 64), 8, 3, True, 16),
    ((128, 256, 64), 8, 4, True, 8),
    ((128, 128, 64), 8, 4, True, 8),
    ((128, 256, 64), 8, 3, False, 8),
    ((128, 256, 64), 8, 3, False, 16),
    ((128, 256, 64), 8, 4, False, 8),
    ((128, 128, 64), 4, 4, False, 8),
)
#: 8-bit elements: twice as many fit in the rows of 128 bytes.
_BYTES = _roles(
    ((128, 256, 128), 8, 3, True, 8),
    ((128, 256, 128), 8, 3, True, 16),
    ((128, 256, 128), 8, 4, True, 8),
    ((128, 256, 128), 8, 3, False, 8),
    ((128, 256, 128), 8, 3, False, 16),
    ((128, 256, 128), 8, 4, False, 8),
    ((128, 128, 128), 8, 4, False, 8),
)


def _persistent(
    module: str, kernel: str, a: torch.Tensor, bt: torch.Tensor, c: torch.Tensor, configs: list[Config], name: str = "descriptors"
) -> Variant:
    """A persistent kernel over tiles of C = A Bt^T, with as few programs as end no later: 128 of them have 16 of 2048 tiles each."""
    (m, k), n = a.shape, bt.shape[0]

    def steps(cf: Config) -> list[Step]:
        tiles = cdiv(m, cf["BM"]) * cdiv(n, cf["BN"])
        programs = cdiv(tiles, cdiv(tiles, MULTIPROCESSORS))
        return [Launch(module, kernel, (programs,), (a, bt, c, m, n, k), {**cf, "NSM": programs})]

    return variant(name, configs, steps)


def plain(device: str, m: int, n: int, k: int) -> Problem:
    """C = A B with the kernels of `kernels.py`: B[K, N] for pointers, B[N, K] for descriptors."""
    a = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    b = torch.randn(k, n, device=device, dtype=torch.bfloat16)
    bt = b.t().contiguous()
    c = torch.empty(m, n, device=device, dtype=torch.bfloat16)

    def pointers(cf: Config) -> list[Step]:
        grid = (cdiv(m, cf["BM"]) * cdiv(n, cf["BN"]),)
        return [Launch("kernels", "matmul_kernel", grid, (a, b, c, m, n, k, k, 1, n, 1, n, 1), cf)]

    return Problem(
        outputs=(c,),
        variants=[variant("pointers", _POINTERS, pointers), _persistent("kernels", "matmul_tma_kernel", a, bt, c, _DESCRIPTORS)],
        reference=lambda: (a.float() @ b.float(),),
        work=2.0 * m * n * k,
        unit="TFLOP/s",
        vendors={
            "cuBLAS": lambda: partial(torch.matmul, a, b, out=c),
            "cuBLAS, transposed B": lambda: partial(torch.matmul, a, bt.t(), out=c),
        },
    )


def float8(device: str, m: int, n: int, k: int) -> Problem:
    """e4m3 in, bf16 out."""
    a = torch.randn(m, k, device=device).to(torch.float8_e4m3fn)
    bt = torch.randn(n, k, device=device).to(torch.float8_e4m3fn)
    c = torch.empty(m, n, device=device, dtype=torch.bfloat16)
    one = torch.ones((), device=device)
    return Problem(
        outputs=(c,),
        variants=[_persistent("kernels", "matmul_tma_kernel", a, bt, c, _BYTES)],
        reference=lambda: (a.float() @ bt.float().t(),),
        work=2.0 * m * n * k,
        unit="TFLOP/s",
        vendors={"cuBLAS": lambda: partial(torch._scaled_mm, a, bt.t(), one, one, out_dtype=torch.bfloat16)},
    )


def int8(device: str, m: int, n: int, k: int) -> Problem:
    """int8 in, int32 out, exact."""
    a = torch.randint(-128, 128, (m, k), device=device, dtype=torch.int8)
    bt = torch.randint(-128, 128, (n, k), device=device, dtype=torch.int8)
    c = torch.empty(m, n, device=device, dtype=torch.int32)
    return Problem(
        outputs=(c,),
        variants=[_persistent("kernels_gemm", "matmul_int8_kernel", a, bt, c, _BYTES)],
        reference=lambda: (a.double() @ bt.double().t(),),
        work=2.0 * m * n * k,
        unit="TFLOP/s",
        vendors={"cuBLAS": lambda: partial(torch._int_mm, a, bt.t(), out=c)},
        tolerance=0.0,
    )


def linear(device: str, m: int, n: int, k: int) -> Problem:
    """A few rows times all weights, as in decoding: bound by reading the weights, so it is counted in bytes."""
    x = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    w = torch.randn(n, k, device=device, dtype=torch.bfloat16)
    y = torch.empty(m, n, device=device, dtype=torch.bfloat16)
    configs = [
        config("BN BK", blocks, 4, stages, BM=m, WS=specialized)
        for blocks, stages, specialized in (
            ((64, 128), 6, False),
            ((64, 256), 4, False),
            ((64, 128), 8, True),
            ((64, 256), 5, True),
        )
    ]

    def steps(cf: Config) -> list[Step]:
        return [Launch("kernels_gemm", "linear_kernel", (cdiv(n, cf["BN"]),), (x, w, y, m, n, k), cf)]

    return Problem(
        outputs=(y,),
        variants=[variant("descriptors", configs, steps)],
        reference=lambda: (x.float() @ w.float().t(),),
        work=2.0 * (n * k + m * k + m * n),
        unit="GB/s",
        vendors={"cuBLAS": lambda: partial(torch.matmul, x, w.t(), out=y)},
    )


def split_k(device: str, m: int, n: int, k: int) -> Problem:
    """Few tiles and a long sum: SPLIT programs add to each fp32 tile."""
    a = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    bt = torch.randn(n, k, device=device, dtype=torch.bfloat16)
    c = torch.empty(m, n, device=device, dtype=torch.float32)
    configs = [
        config("BM BN BK", (128, bn, 64), 8, 4, SPLIT=parts, WS=specialized)
        for bn, parts in ((128, 4), (128, 8), (256, 8), (256, 16))
        for specialized in (False, True)
    ]

    def steps(cf: Config) -> list[Step]:
        grid = (cdiv(n, cf["BN"]), cdiv(m, cf["BM"]), cf["SPLIT"])
        return [c.zero_, Launch("kernels_gemm", "matmul_split_k_kernel", grid, (a, bt, c, m, n, k), cf)]

    return Problem(
        outputs=(c,),
        variants=[variant("descriptors", configs, steps)],
        reference=lambda: (a.float() @ bt.float().t(),),
        work=2.0 * m * n * k,
        unit="TFLOP/s",
        vendors={"cuBLAS": lambda: partial(torch.mm, a, bt.t(), out_dtype=torch.float32)},
    )


def grouped(device: str, rows: list[int], n: int, k: int) -> Problem:
    """Rows of A in groups, each with a matrix of its own, as in a mixture of experts. The number of groups is a power of 2."""
    groups, total = len(rows), sum(rows)
    a = torch.randn(total, k, device=device, dtype=torch.bfloat16)
    bt = torch.randn(groups, n, k, device=device, dtype=torch.bfloat16)
    c = torch.empty(total, n, device=device, dtype=torch.bfloat16)
    bounds = [sum(rows[:i]) for i in range(groups + 1)]
    ends = torch.tensor(bounds[1:], dtype=torch.int32).to(device)
    configs = [
        config("BM BN BK", blocks, warps, stages, E=groups, WS=specialized)
        for blocks, warps, stages, specialized in (
            ((128, 256, 64), 8, 3, True),
            ((128, 256, 64), 8, 4, True),
            ((128, 256, 64), 8, 3, False),
            ((256, 128, 64), 8, 3, True),
            ((128, 128, 64), 8, 4, True),
            ((128, 128, 64), 8, 3, False),
            ((128, 128, 64), 4, 3, False),
        )
    ]

    def steps(cf: Config) -> list[Step]:
        tiles = (cdiv(total, cf["BM"]) + groups) * cdiv(n, cf["BN"])
        return [Launch("kernels_gemm", "grouped_matmul_kernel", (tiles,), (a, bt, c, ends, total, n, k), cf)]

    def reference() -> tuple[torch.Tensor, ...]:
        parts = [a[lo:hi].float() @ bt[g].float().t() for g, (lo, hi) in enumerate(zip(bounds, bounds[1:]))]
        return (torch.cat(parts),)

    return Problem(
        outputs=(c,),
        variants=[variant("descriptors", configs, steps)],
        reference=reference,
        work=2.0 * total * n * k,
        unit="TFLOP/s",
        vendors={"torch._grouped_mm": lambda: partial(torch._grouped_mm, a, bt.transpose(1, 2), offs=ends)},
    )


_SHAPES = ((8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (8192, 8192, 1024), (512, 8192, 8192))
#: Rows of 8 groups, 8192 in all, unevenly spread.
_ROWS = [2048, 1536, 1200, 1000, 848, 700, 512, 348]

CASES = [
    *(Case("gemm", f"bf16 {m}x{n}x{k}", partial(plain, m=m, n=n, k=k), quick=m == k) for m, n, k in _SHAPES),
    Case("gemm", "fp8 8192x8192x8192", partial(float8, m=8192, n=8192, k=8192), quick=True),
    Case("gemm", "int8 8192x8192x8192", partial(int8, m=8192, n=8192, k=8192), quick=True),
    *(Case("decode", f"bf16 {m}x8192x8192", partial(linear, m=m, n=8192, k=8192), quick=m == 16) for m in (16, 32, 64)),
    Case("split-k", "bf16 512x512x32768", partial(split_k, m=512, n=512, k=32768), quick=True),
    Case("split-k", "bf16 256x1024x16384", partial(split_k, m=256, n=1024, k=16384)),
    Case("grouped", "bf16 8 groups, 8192 rows, 4096x4096", partial(grouped, rows=_ROWS, n=4096, k=4096), quick=True),
    Case("grouped", "bf16 32 groups of 256 rows, 4096x2048", partial(grouped, rows=[256] * 32, n=4096, k=2048)),
]
