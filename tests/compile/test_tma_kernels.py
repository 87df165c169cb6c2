"""Kernels on tensor descriptors through all passes: their results on the test machine, and what they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from descriptor_kernels import attention
from kernel_harness import passes_of, run_kernel

import tilewright
import tilewright.compiler
import tilewright.language as tl
from tilewright.backends.compiler import GPUTarget

ONE_ROLE = {"CAUSAL": False, "WS": False}


@tilewright.jit
def gemm(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STEP: tl.constexpr, TRANSPOSED: tl.constexpr):
    start = tl.program_id(0)
    across = tl.cdiv(N, BN)
    a = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    if TRANSPOSED:
        b = tl.make_tensor_descriptor(B, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    else:
        b = tl.make_tensor_descriptor(B, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    c = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    for t in tl.range(start, tl.cdiv(M, BM) * across, STEP, warp_specialize=False):
        row = t // across * BM
        col = t % across * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            x = a.load([row, k * BK])
            y = b.load([col, k * BK]).T if TRANSPOSED else b.load([k * BK, col])
            acc = tl.dot(x, y, acc)
        c.store([row, col], acc.to(C.dtype.element_ty))


@tilewright.jit
def add_blocks(X, OUT, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(X, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    out = tl.make_tensor_descriptor(OUT, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    for i in range(0, M, BM):
        out.store([i, 0], x.load([i, 0]) + out.load([i, 0]))


@tilewright.jit
def batched_gemm(A, B, C, Z, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    z = tl.program_id(0)
    a = tl.make_tensor_descriptor(A, shape=[Z, M, K], strides=[M * K, K, 1], block_shape=[1, BM, BK])
    b = tl.make_tensor_descriptor(B, shape=[Z, N, K], strides=[N * K, K, 1], block_shape=[1, BN, BK])
    c = tl.make_tensor_descriptor(C, shape=[Z, M, N], strides=[M * N, N, 1], block_shape=[1, BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = a.load([z, 0, k]).reshape(BM, BK)
        y = b.load([z, 0, k]).reshape(BN, BK)
        acc = tl.dot(x, y.T, acc)
    c.store([z, 0, 0], acc.to(C.dtype.element_ty).reshape(1, BM, BN))


HALF = {"A": "*fp16", "B": "*fp16", "C": "*fp16"}


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("arch", [90, 120])
def test_gemm(stages, transposed, arch):
    m, n, k = 144, 80, 208
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (n, k) if transposed else (k, n)).astype(np.float16)
    c = np.full((m, n), 7, np.float16)
    arguments = {"A": a, "B": b, "C": c, "M": m, "N": n, "K": k}
    constants = {"BM": 64, "BN": 64, "BK": 64, "STEP": 2, "TRANSPOSED": transposed}
    run_kernel(gemm, (2,), arguments, constants, HALF, num_stages=stages, arch=arch)
    right = b.T if transposed else b
    assert np.array_equal(c, (a.astype(np.float32) @ right.astype(np.float32)).astype(np.float16))


@pytest.mark.parametrize("arch", [90, 120])
def test_blocks_of_more_dimensions(arch):
    z, m, n, k = 3, 64, 48, 144
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((z, m, k), (z, n, k)))
    c = np.zeros((z, m, n), np.float16)
    arguments = {"A": a, "B": b, "C": c, "Z": z, "M": m, "N": n, "K": k}
    run_kernel(batched_gemm, (z,), arguments, {"BM": 64, "BN": 64, "BK": 64}, HALF, arch=arch)
    assert np.array_equal(c, np.einsum("zmk,znk->zmn", a.astype(np.float32), b.astype(np.float32)).astype(np.float16))


def test_wgmma_reads_blocks_of_more_dimensions_where_tma_puts_them():
    kernel = compiled(batched_gemm, HALF, {"BM": 128, "BN": 128, "BK": 64}, num_stages=3)
    assert_clean(kernel)
    assert "ld.shared" not in kernel.asm["ptx"] and kernel.asm["ptx"].count("mbarrier.try_wait.parity") == 1


@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_attention(rows, stages):
    s, d = 160, 64
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((s, d)).astype(np.float16) for _ in range(3))
    out = np.zeros((s, d), np.float16)
    # The last block of keys is cut off: its rows are zeros, whose weight is known.
    arguments = {"Q": q, "K": k, "V": v, "OUT": out, "S": s}
    types = dict.fromkeys(("Q", "K", "V", "OUT"), "*fp16")
    run_kernel(attention, (-(-s // rows),), arguments, {"D": d, "BM": rows, "BN": 64, **ONE_ROLE}, types, num_stages=stages)
    keys, values = (np.concatenate([x, np.zeros((-s % 64, d))]).astype(np.float64) for x in (k, v))
    p = np.exp2(q.astype(np.float64) @ keys.T)
    assert np.abs(out - p @ values / p.sum(1, keepdims=True)).max() < 2e-3


def test_what_is_stored_is_loaded_again():
    x = np.arange(40 * 32, dtype=np.float32).reshape(40, 32)
    out = x.copy()
    run_kernel(add_blocks, (1,), {"X": x, "OUT": out, "M": 40, "N": 32}, {"BM": 8, "BN": 32}, {"X": "*fp32", "OUT": "*fp32"})
    assert np.array_equal(out, 2 * x)


def compiled(kernel, types: dict[str, str], constants: dict[str, int], **options):
    """A kernel compiled for sm_90; pointers and integers are multiples of 16."""
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, "i32") for name in names}
    attrs = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if name not in constants}
    source = tilewright.compiler.ASTSource(kernel, signature, constants, attrs)
    return tilewright.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def assert_clean(kernel) -> None:
    """No spills, and wgmmas stay asynchronous (ptxas warns by C75xx where it serializes them)."""
    assert kernel.n_spills == 0
    assert not kernel.metadata.ptxas_warnings


def test_gemm_is_made_of_tma_and_wgmma():
    constants = {"BM": 128, "BN": 256, "BK": 64, "STEP": 132, "TRANSPOSED": True}
    kernel = compiled(gemm, HALF, constants, num_warps=8, num_stages=3)
    assert_clean(kernel)
    ptx = kernel.asm["ptx"]
    assert ptx.count(".param .align 64 .b8") == 3 and ptx.count("prefetch.tensormap") == 3
    assert ptx.count("mbarrier::complete_tx::bytes") == 6  # two iterations ahead, and one in the loop, of two operands
    assert ptx.count("mbarrier.try_wait.parity") == 1
    assert ptx.count("wgmma.mma_async") == 4 and ptx.count("stmatrix") == 16
    assert ptx.count("global.shared::cta.tile.bulk_group") == 4  # boxes of 64 columns
    assert "cp.async.cg" not in ptx and "ld.global" not in ptx and "st.global" not in ptx
    assert [d["base"] for d in kernel.metadata.tma_descriptors] == ["a0", "a1", "a2"]
    assert [d["swizzle"] for d in kernel.metadata.tma_descriptors] == [128] * 3
    # Rows of 128 bytes of A and B: L2 fetches what the next block needs as well.
    assert [d["promotion"] for d in kernel.metadata.tma_descriptors] == [256, 256, 128]


@pytest.mark.parametrize("stages", [2, 3])
def test_attention_is_made_of_tma_and_wgmma(stages):
    types = dict.fromkeys(("Q", "K", "V", "OUT"), "*fp16")
    kernel = compiled(attention, types, {"D": 128, "BM": 128, "BN": 128, **ONE_ROLE}, num_warps=8, num_stages=stages)
    assert_clean(kernel)
    ptx = kernel.asm["ptx"]
    assert ptx.count("global.shared::cta.tile.bulk_group") == 2
    assert "cp.async.cg" not in ptx and "ld.global" not in ptx and "st.global" not in ptx


def test_softmax_is_held_above_the_wait_for_the_second_product():
    """Without the load, ptxas moves the wait in front of the softmax."""
    types = dict.fromkeys(("Q", "K", "V", "OUT"), "*fp16")
    kernel = compiled(attention, types, {"D": 64, "BM": 128, "BN": 64, **ONE_ROLE}, num_warps=8, num_stages=3)
    assert_clean(kernel)
    before, _, behind = kernel.asm["ptx"].partition("ld.volatile.shared")
    assert before.rindex("wgmma.wait_group.sync.aligned 1;") < before.rindex("ex2.approx")
    waited = behind.index("wgmma.wait_group.sync.aligned 0;")
    assert waited < behind.index("cvt.rn.f16x2") and "ex2.approx" not in behind[:waited]


def test_what_is_read_back_was_written():
    """A block that the kernel loads again must be in memory, not only read from its buffer, before the kernel goes on."""
    module, _ = passes_of(add_blocks, {"X": "*fp16", "OUT": "*fp16", "M": "i32", "N": "i32"}, {"BM": 32, "BN": 32})
    assert [line.strip() for line in str(module).splitlines() if "store_wait" in line] == ["tilegpu.tma_store_wait num = 0"]


def test_no_tma_before_sm_90():
    constants = {"BM": 64, "BN": 64, "BK": 64, "STEP": 1, "TRANSPOSED": True}
    module, _ = passes_of(gemm, {**HALF, **dict.fromkeys("MNK", "i32")}, constants, arch=80)
    assert "tma_" not in str(module) and "!tile.desc" not in str(module)


@tilewright.jit
def grouped_gemm(A, B, C, ENDS, groups, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STEP: tl.constexpr):
    """Group g multiplies its rows of A with its own B; the kernel makes the descriptors of a group."""
    done = tl.program_id(0)
    for g in range(0, groups):
        start = tl.load(ENDS + g)
        rows = tl.load(ENDS + g + 1) - start
        a = tl.make_tensor_descriptor(A + start * K, shape=[rows, K], strides=[K, 1], block_shape=[BM, BK])
        b = tl.make_tensor_descriptor(B + g * N * K + start * 0, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(rows, BM) * across
        while done < tiles:
            row, col = done // across * BM, done % across * BN
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for k in range(0, K, BK):
                acc = tl.dot(a.load([row, k]), b.load([col, k]).T, acc)
            i, j = row + tl.arange(0, BM), col + tl.arange(0, BN)
            tl.store(C + (start + i[:, None]) * N + j[None, :], acc.to(C.dtype.element_ty), mask=(i[:, None] < rows) & (j[None, :] < N))
            done += STEP
        done -= tiles


@pytest.mark.parametrize("ctas", [1, 2])
def test_descriptors_that_the_kernel_makes(ctas):
    rng = np.random.default_rng(0)
    ends = np.array([0, 48, 208, 224], np.int32)
    a, b = rng.standard_normal((224, 128)).astype(np.float16), rng.standard_normal((3, 96, 128)).astype(np.float16)
    c = np.full((224, 96), np.nan, np.float32)
    arguments = {"A": a, "B": b, "C": c, "ENDS": ends, "groups": 3, "N": 96, "K": 128}
    constants = {"BM": 64 * ctas, "BN": 64, "BK": 64, "STEP": 2}
    types = {"A": "*fp16", "B": "*fp16", "C": "*fp32", "ENDS": "*i32"}
    module, _ = passes_of(grouped_gemm, {n: types.get(n, "i32") for n in arguments}, constants, num_ctas=ctas)
    assert str(module).count("tile.slot = ") == 2 and "tile.load" in str(module)
    run_kernel(grouped_gemm, (2,), arguments, constants, types, num_ctas=ctas)
    for g, (start, end) in enumerate(zip(ends, ends[1:], strict=False)):
        assert np.allclose(c[start:end], a[start:end].astype(np.float32) @ b[g].astype(np.float32).T, rtol=1e-2, atol=1e-1)


def test_maps_that_the_kernel_makes_are_written_and_acquired():
    types = {"A": "*fp16", "B": "*fp16", "C": "*fp32", "ENDS": "*i32"}
    constants = {"BM": 128, "BN": 128, "BK": 64, "STEP": 8}
    kernel = compiled(grouped_gemm, types, constants, num_warps=4)
    text = kernel.asm["ptx"]
    assert kernel.metadata.global_scratch_size == 256 and kernel.n_spills == 0
    assert text.count("tensormap.cp_fenceproxy") == text.count("fence.proxy.tensormap::generic.acquire.gpu") == 2
    assert text.count("fence.proxy.async;") == 1 and "cp.async.ca" not in text and "cp.async.cg" not in text
    assert "tensormap" not in compiled(grouped_gemm, types, constants, num_warps=4, tma=False).asm["ptx"]
