"""What the passes make of whole kernels: which conversions, copies, waits and matrix instructions there are, and where."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("mlir")

from frontend_build import jit
from passes_pipeline import ttgir

import tilewright.language as tl
from tilewright.errors import CompilationError

BF, F32 = "*bf16", "*fp32"


@jit
def softmax(o, x, stride, n, B: tl.constexpr):
    c = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * stride + c, mask=c < n, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + tl.program_id(0) * stride + c, (v / tl.sum(v, axis=0)).to(o.dtype.element_ty), mask=c < n)


@jit
def gemm(a, b, c, k_size, sa, sb, sc, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STAGES: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    pa = a + m[:, None] * sa + k[None, :]
    pb = b + k[:, None] * sb + n[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for step in tl.range(0, tl.cdiv(k_size, K), num_stages=STAGES):
        x = tl.load(pa, mask=k[None, :] < k_size - step * K, other=0.0)
        y = tl.load(pb, mask=k[:, None] < k_size - step * K, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += K
        pb += K * sb
    tl.store(c + m[:, None] * sc + n[None, :], acc.to(tl.bfloat16))


@jit
def attention(q, k, v, o, scale, n_keys, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    d = tl.arange(0, D)
    query = tl.load(q + m[:, None] * D + d[None, :])
    top = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    pk = k + n[None, :] * D + d[:, None]
    pv = v + n[:, None] * D + d[None, :]
    for _ in range(0, n_keys, N):
        s = tl.dot(query, tl.load(pk))
        new = tl.maximum(top, tl.max(s, 1) * scale)
        p = tl.math.exp2(s * scale - new[:, None])
        factor = tl.math.exp2(top - new)
        total = total * factor + tl.sum(p, 1)
        acc = acc * factor[:, None]
        value = tl.load(pv)
        acc = tl.dot(p.to(value.dtype), value, acc)
        top = new
        pk += N * D
        pv += N * D
    tl.store(o + m[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.bfloat16))


@jit
def in_place(a, b, n, M: tl.constexpr):
    i = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    w = tl.load(b + i)
    for step in range(n):
        x = tl.load(a + step * M + i)
        tl.store(a + step * M + i, tl.dot(x, w).to(tl.bfloat16))


@jit
def two_descriptors(x, y, o, n, M: tl.constexpr):
    first = tl.make_tensor_descriptor(x, shape=[n, n], strides=[n, 1], block_shape=[M, M])
    second = tl.make_tensor_descriptor(y, shape=[n, n], strides=[n, 1], block_shape=[M, M])
    out = tl.make_tensor_descriptor(o, shape=[n, n], strides=[n, 1], block_shape=[M, M])
    for i in range(n):
        out.store([i, 0], first.load([i, 0]))
        first = second


def body(text: str) -> str:
    """The text of the only loop's body."""
    return re.search(r"scf\.for .*?\n(.*?)\n    }", text, re.DOTALL)[1]


def order(text: str, *needles: str) -> list[str]:
    """Which of `needles` stand in `text`, in order and with repetitions."""
    return re.findall("|".join(map(re.escape, needles)), re.sub(" +", " ", text))


def test_softmax_converts_nothing():
    text = str(ttgir(softmax, [BF, BF, "i32", "i32"], 90, num_warps=8, B=4096))
    assert "convert_layout" not in text
    assert text.count("tilegpu.vector = 8 : i32") == 2


def test_gemm_keeps_one_product_in_flight():
    text = str(ttgir(gemm, [BF, BF, BF, "i32", "i32", "i32", "i32"], 90, num_warps=8, tma=False, M=128, N=256, K=64, STAGES=3))
    loop = body(text)
    steps = order(loop, "async_wait num = 1", "tilegpu.wgmma ", "async_copy", "async_commit", "wgmma_wait num = 1")
    assert steps == ["async_wait num = 1", "tilegpu.wgmma ", "async_copy", "async_copy", "async_commit", "wgmma_wait num = 1"]
    assert "slots = 4" in text
    # Pointers advance as scalars; only the result is converted, once, behind the loop.
    assert "tensor<128x64x!tile.ptr<bf16>" not in re.search(r"scf\.for .*", text)[0]
    assert text.count("convert_layout") == 1 and "convert_layout" not in loop


@pytest.mark.parametrize("stages", (1, 2))
def test_stages_of_a_loop_override_the_option(stages):
    text = str(ttgir(gemm, [BF, BF, BF, "i32", "i32", "i32", "i32"], 80, num_stages=4, M=64, N=64, K=64, STAGES=stages))
    assert ("slots = 2" in text) == (stages == 2)
    assert ("async_copy" in text) == (stages == 2)


def test_stages_shrink_to_fit_shared_memory():
    text = str(ttgir(gemm, [BF, BF, BF, "i32", "i32", "i32", "i32"], 86, num_warps=8, M=128, N=256, K=64, STAGES=5))
    assert "slots = 2" in text


def test_attention_issues_both_products_together():
    text = str(ttgir(attention, [BF, BF, BF, BF, "fp32", "i32"], 90, num_warps=8, num_stages=2, tma=False, D=128, M=128, N=64))
    loop = body(text)
    steps = order(loop, "async_wait", "tilegpu.wgmma ", "async_copy", "wgmma_wait num = 1", "math.exp2", "wgmma_wait num = 0", "fp_to_fp")
    assert steps[:6] == ["async_wait", "tilegpu.wgmma ", "tilegpu.wgmma ", "async_copy", "async_copy", "wgmma_wait num = 1"]
    # The new left operand is made only behind the wait for the product that reads the old one; the factor of the old sums comes before.
    assert steps[6:] == ["math.exp2", "wgmma_wait num = 0", "math.exp2", "fp_to_fp"]
    assert "convert_layout" not in loop and "local_alloc" not in loop
    behind = text.split(loop)[1]
    assert order(behind, "async_wait num = 0", "tilegpu.wgmma ", "wgmma_wait num = 0")[:3] == [
        "async_wait num = 0",
        "tilegpu.wgmma ",
        "wgmma_wait num = 0",
    ]


def test_attention_does_not_delay_what_takes_too_many_registers():
    text = str(ttgir(attention, [BF, BF, BF, BF, "fp32", "i32"], 90, num_warps=8, num_stages=2, tma=False, D=128, M=128, N=128))
    assert order(body(text), "tilegpu.wgmma ", "math.exp2") == ["tilegpu.wgmma ", "math.exp2", "math.exp2", "tilegpu.wgmma "]


def test_attention_stays_in_registers_on_sm80():
    text = str(ttgir(attention, [BF, BF, BF, BF, "fp32", "i32"], 80, num_warps=4, num_stages=2, D=64, M=64, N=64))
    assert "convert_layout" not in body(text)


def test_a_store_to_the_same_array_keeps_loads_in_place():
    text = str(ttgir(in_place, [BF, BF, "i32"], 90, M=64))
    assert "async_copy" not in text
    assert order(body(text), "tile.load", "tile.store") == ["tile.load", "tile.store"]


def test_a_moving_descriptor_is_an_error_with_its_line():
    with pytest.raises(CompilationError, match="tensor descriptor that changes") as caught:
        ttgir(two_descriptors, [BF, BF, BF, "i32"], 90, M=64)
    assert "first.load([i, 0])" in str(caught.value)


def test_eight_bit_operands_run_along_k():
    """wgmma reads 8-bit operands K-major only: the loaded [K, N] block, contiguous along N, is stored with K innermost."""
    text = str(ttgir(gemm, ["*fp8e5", "*fp8e5", BF, "i32", "i32", "i32", "i32"], 90, M=64, N=64, K=64, STAGES=3))
    operand = re.search(r"tilegpu\.wgmma %\w+, (%\w+), .*?, !tilegpu\.buffer<64x64xf8E5M2, (#\w+)>", text)
    layout = re.search(rf"^{operand[2]} = #tilegpu\.shared<offset = \[\[(\d+), (\d+)\]", text, re.MULTILINE)
    assert (layout[1], layout[2]) == ("1", "0")
