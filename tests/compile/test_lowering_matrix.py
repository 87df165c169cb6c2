"""Matrix instructions: results on the test machine, instruction counts in PTX, and no serialization by ptxas."""

from __future__ import annotations

import numpy as np
import pytest
import ttgir_kernels as K
from lowering_harness import assemble
from simt_matrix import decode

from tilewright.compiler import layouts as L

#: element -> (PTX name, bits, accumulator, NumPy dtype of the bits)
TYPES = {
    "f16": ("f16", 16, "f32", np.uint16),
    "bf16": ("bf16", 16, "f32", np.uint16),
    "f32": ("tf32", 32, "f32", np.uint32),
    "i8": ("s8", 8, "i32", np.uint8),
    "f8E4M3FN": ("e4m3", 8, "f32", np.uint8),
    "f8E5M2": ("e5m2", 8, "f32", np.uint8),
}


def values(shape, element: str, seed: int) -> np.ndarray:
    """Bits of small values, exact in every type."""
    rng = np.random.default_rng(seed)
    small = rng.integers(-4, 5, shape)
    if element == "i8":
        return small.astype(np.int8).view(np.uint8)
    if element == "f16":
        return small.astype(np.float16).view(np.uint16)
    if element == "f32":
        return small.astype(np.float32).view(np.uint32)
    if element == "f64":
        return small.astype(np.float64)
    if element == "bf16":
        return (small.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    name = TYPES[element][0]
    table = decode(np.arange(256), name)
    return np.array([int(np.flatnonzero(table == v)[0]) for v in small.ravel()], np.uint8).reshape(shape)


def product(a: np.ndarray, b: np.ndarray, element: str) -> np.ndarray:
    return decode(a, TYPES[element][0]) @ decode(b, TYPES[element][0])


def result_array(shape, out: str) -> np.ndarray:
    return np.zeros(shape, {"f32": np.float32, "i32": np.int32, "f16": np.float16, "f64": np.float64}[out])


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize(("shape", "warps"), [((32, 32, 64), (2, 2)), ((64, 16, 32), (4, 1)), ((16, 64, 32), (1, 4))])
def test_mma(run, element, shape, warps):
    name, bits, out, _ = TYPES[element]
    m, n, k = shape
    a, b = values((m, k), element, 1), values((k, n), element, 2)
    result = result_array((m, n), out)
    layouts = L.mma_operand((m, k), warps, bits, 0), L.mma_operand((k, n), warps, bits, 1), L.mma_accumulator((m, n), warps)
    instr = L.mma_shape(bits)
    kernel = K.mma(*layouts, instr, element, out, 4)
    run(kernel, a, b, result)
    np.testing.assert_array_equal(result, product(a, b, element))
    assembled = assemble(kernel, 89)
    expected = max(1, m // warps[0] // 16) * max(1, n // warps[1] // 8) * (k // instr[2])
    acc = "s32" if out == "i32" else "f32"
    assert assembled.count(f"mma.sync.aligned.m16n8k{instr[2]}.row.col.{acc}.{name}") == expected


@pytest.mark.parametrize(
    ("element", "inner_b"), [("f16", "n"), ("bf16", "k"), ("f32", "k"), ("i8", "k"), ("f8E4M3FN", "k"), ("f32", "n"), ("i8", "n")]
)
@pytest.mark.parametrize(("shape", "warps"), [((64, 64, 64), (2, 2)), ((128, 16, 32), (4, 1))])
def test_mma_from_buffers(run, element, inner_b, shape, warps):
    """ldmatrix stands between the matrix instructions, where the layout of the buffer allows it."""
    name, bits, out, _ = TYPES[element]
    m, n, k = shape
    a, b = values((m, k), element, 1), values((k, n), element, 2)
    result = result_array((m, n), out)
    layouts = L.mma_operand((m, k), warps, bits, 0), L.mma_operand((k, n), warps, bits, 1), L.mma_accumulator((m, n), warps)
    shared = L.nvmma((m, k), bits), L.nvmma((k, n), bits, None, (0, 1) if inner_b == "k" else (1, 0))
    kernel = K.mma(*layouts, L.mma_shape(bits), element, out, 4, shared)
    run(kernel, a, b, result)
    np.testing.assert_array_equal(result, product(a, b, element))
    assembled = assemble(kernel, 89)
    words = [layout.in_size("register") * bits // 32 for layout in layouts[:2]]
    plain, turned = "ldmatrix.sync.aligned.m8n8.x4.shared", "ldmatrix.sync.aligned.m8n8.x4.trans.shared"
    by_matrix = inner_b == "k" or bits == 16
    assert assembled.count(plain) == words[0] // 4 + (words[1] // 4 if inner_b == "k" else 0)
    assert assembled.count(turned) == (words[1] // 4 if inner_b == "n" and by_matrix else 0)
    assert (assembled.count("ld.shared") == 0) == by_matrix


def test_mma_f16_accumulator_and_f64(run):
    layouts = L.mma_operand((32, 32), (2, 2), 16, 0), L.mma_operand((32, 32), (2, 2), 16, 1), L.mma_accumulator((32, 32), (2, 2), 16)
    a, b = values((32, 32), "f16", 1), values((32, 32), "f16", 2)
    result = result_array((32, 32), "f16")
    run(K.mma(*layouts, (16, 8, 16), "f16", "f16", 4), a, b, result)
    np.testing.assert_array_equal(result, product(a, b, "f16"))
    layouts = L.mma_operand((16, 16), (2, 2), 64, 0), L.mma_operand((16, 16), (2, 2), 64, 1), L.mma_accumulator((16, 16), (2, 2), 64)
    a, b = values((16, 16), "f64", 1), values((16, 16), "f64", 2)
    result = result_array((16, 16), "f64")
    kernel = K.mma(*layouts, (8, 8, 4), "f64", "f64", 4)
    run(kernel, a, b, result)
    np.testing.assert_array_equal(result, a @ b)
    assert assemble(kernel, 80).count("mma.sync.aligned.m8n8k4.row.col.f64") == 4


WGMMA = [
    # element, (m, n, k), warps, A in registers, B given as [N, K]
    ("bf16", (64, 64, 64), 4, False, False),
    ("bf16", (128, 256, 64), 8, False, True),
    ("f16", (128, 64, 32), 4, False, False),
    ("f16", (64, 128, 64), 8, False, False),
    ("bf16", (64, 64, 64), 4, True, False),
    ("f16", (128, 32, 128), 8, True, True),
    ("f32", (64, 32, 32), 4, False, True),
    ("f32", (64, 32, 32), 4, True, True),
    ("i8", (64, 64, 64), 4, False, True),
    ("f8E4M3FN", (128, 64, 128), 8, False, True),
    ("f8E5M2", (64, 32, 64), 4, True, True),
    ("bf16", (64, 16, 16), 4, False, False),
]


@pytest.mark.parametrize(("element", "shape", "num_warps", "registers", "trans_b"), WGMMA)
def test_wgmma(run, element, shape, num_warps, registers, trans_b):
    name, bits, out, _ = TYPES[element]
    m, n, k = shape
    a, b = values((m, k), element, 1), values((k, n), element, 2)
    given_b = np.ascontiguousarray(b.T) if trans_b else b
    result = result_array((m, n), out)
    loads = tuple(L.default_blocked(s, num_warps, vector=4) for s in (a.shape, given_b.shape))
    where_a = L.wgmma_operand_a((m, k), num_warps, bits) if registers else L.nvmma((m, k), bits)
    instr = L.wgmma_instruction((m, n), num_warps, bits)
    kernel = K.wgmma(
        loads, (where_a, L.nvmma(given_b.shape, bits)), L.wgmma_accumulator((m, n), num_warps), instr, element, out, num_warps, trans_b
    )
    run(kernel, a, given_b, result)
    np.testing.assert_array_equal(result, 2 * product(a, b, element))
    assembled = assemble(kernel)
    per_op = max(1, m // 64 // (num_warps // 4)) * (k // instr[2])
    acc = "s32" if out == "i32" else "f32"
    assert assembled.count(f"wgmma.mma_async.sync.aligned.m64n{instr[1]}k{instr[2]}.{acc}.{name}.{name}") == 2 * per_op
    assert assembled.count("wgmma.commit_group") == 2
    check_asynchronous(assembled)


def check_asynchronous(assembled) -> None:
    """ptxas kept the wgmmas asynchronous and spilled nothing."""
    assert "C75" not in assembled.log and "warning" not in assembled.log, assembled.log
    assert " 0 bytes spill stores" in assembled.log


@pytest.mark.parametrize(("shape", "num_warps"), [((128, 256, 64), 8), ((128, 128, 64), 4), ((64, 256, 64), 4)])
def test_gemm_loop_stays_asynchronous(shape, num_warps):
    """One group in flight over the back edge of the loop, copies between: the accumulator never moves."""
    m, n, k = shape
    slots = 3
    acc, a, b = L.wgmma_accumulator((m, n), num_warps), L.nvmma((m, k), 16), L.nvmma((k, n), 16)
    loads = L.default_blocked((m, k), num_warps, vector=8), L.default_blocked((k, n), num_warps, vector=8)
    kernel = K.Kernel(num_warps, "bf16", "bf16", "f32")
    offsets, rings = (0, m * k * 2 * slots), [K.buffer(s, "bf16", slots) for s in (a, b)]
    slot_types, t = [K.buffer(s, "bf16") for s in (a, b)], K.tensor(acc, "f32")
    memory = [kernel.value(f'tilegpu.local_alloc : {r} {{"tilegpu.offset" = {o} : i32}}') for r, o in zip(rings, offsets, strict=True)]
    pointers = [kernel.pointers(i, layout) for i, layout in enumerate(loads)]
    zero = kernel.value(f"arith.constant dense<0.0> : {t}")
    c0, c1, end, count = (kernel.value(f"arith.constant {v} : i32") for v in (0, 1, 64, slots))
    loop = kernel.value(f"scf.for %i = {c0} to {end} step {c1} iter_args(%acc = {zero}) -> ({t}) : i32 {{")
    index = kernel.value(f"arith.remui %i, {count} : i32")
    kernel.op("tilegpu.barrier")
    now = [kernel.value(f"tilegpu.slot {x}[{index}] : {r}") for x, r in zip(memory, rings, strict=True)]
    instr = list(L.wgmma_instruction((m, n), num_warps, 16))
    pending = kernel.value(f"tilegpu.wgmma {now[0]}, {now[1]}, %acc instr = {instr} precision = tf32 : {', '.join(slot_types)} -> {t}")
    waited = kernel.value(f"tilegpu.wgmma_wait num = 1 ({pending} : {t})")
    following = kernel.value(f"arith.addi {index}, {c1} : i32")
    for i in range(2):
        slot = kernel.value(f"tilegpu.slot {memory[i]}[{following}] : {rings[i]}")
        kind = K.tensor(loads[i], "!tile.ptr<bf16>")
        token = kernel.value(f"tilegpu.async_copy {pointers[i]}, {slot} : {kind}, {slot_types[i]}")
        kernel.value(f"tilegpu.async_commit({token})")
    kernel.op(f"scf.yield {waited} : {t}")
    kernel.op("}")
    kernel.store(2, acc, kernel.value(f"tilegpu.wgmma_wait num = 0 ({loop} : {t})"))
    assembled = assemble(kernel)
    check_asynchronous(assembled)
    assert assembled.count("wgmma.wait_group") == 2


def test_attention_loop_stays_asynchronous():
    """Two dots in flight, P in registers: Q K^T of the next block is issued before P V, and exponentials run beside P V."""
    acc = L.wgmma_accumulator((128, 128), 8)
    assert L.wgmma_operand_a((128, 128), 8, 16) == acc
    plain = L.nvmma((128, 128), 16)
    kind, turned = K.buffer(plain, "bf16"), K.buffer(L.SharedLayout(L.trans(plain.linear, (1, 0))), "bf16")
    f32, bf16 = K.tensor(acc, "f32"), K.tensor(acc, "bf16")
    kernel = K.Kernel(8, "bf16", "bf16", "f32")
    q, k, v = (kernel.value(f'tilegpu.local_alloc : {kind} {{"tilegpu.offset" = {32768 * i} : i32}}') for i in range(3))
    k = kernel.value(f"tilegpu.view {k} order = [1, 0] : {kind} -> {turned}")
    zero, none = (kernel.value(f"arith.constant dense<0.0> : {t}") for t in (f32, bf16))
    c0, c1, end = (kernel.value(f"arith.constant {n} : i32") for n in (0, 1, 64))
    kernel.op(f"%loop:2 = scf.for %i = {c0} to {end} step {c1} iter_args(%acc = {zero}, %p = {none}) -> ({f32}, {bf16}) : i32 {{")
    kernel.op("tilegpu.barrier")
    tail = "instr = [64, 128, 16] precision = tf32"
    scores = kernel.value(f"tilegpu.wgmma {q}, {k}, {zero} {tail} : {kind}, {turned} -> {f32}")
    sums = kernel.value(f"tilegpu.wgmma %p, {v}, %acc {tail} : {bf16}, {kind} -> {f32}")
    scores = kernel.value(f"tilegpu.wgmma_wait num = 1 ({scores} : {f32})")
    weights = kernel.value(f"math.exp2 {scores} : {f32}")
    kernel.op(f"%done:2 = tilegpu.wgmma_wait num = 0 ({sums}, {weights} : {f32}, {f32})")
    scaled = kernel.value(f"arith.addf %done#0, %done#0 : {f32}")
    packed = kernel.value(f"tile.fp_to_fp %done#1 : {f32} -> {bf16}")
    kernel.op(f"scf.yield {scaled}, {packed} : {f32}, {bf16}")
    kernel.op("}")
    kernel.store(2, acc, "%loop#0")
    check_asynchronous(assemble(kernel))


def test_fma_dot(run):
    acc = L.blocked((16, 16), (2, 2), (8, 4), (1, 4), (1, 0))
    shape = (16, 8), (8, 16)
    from tilewright.compiler.analysis.dot_plan import fma_operand

    layouts = fma_operand(acc, 8, 0), fma_operand(acc, 8, 1)
    k = K.Kernel(4, "f16", "f16", "f32")
    left, right = k.load(0, layouts[0]), k.load(1, layouts[1])
    zero = k.value(f"arith.constant dense<0.0> : {K.tensor(acc, 'f32')}")
    types = f"{K.tensor(layouts[0], 'f16')}, {K.tensor(layouts[1], 'f16')} -> {K.tensor(acc, 'f32')}"
    k.store(2, acc, k.value(f"tile.dot {left}, {right}, {zero} precision = ieee : {types}"))
    a, b = values(shape[0], "f16", 1), values(shape[1], "f16", 2)
    result = result_array((16, 16), "f32")
    run(k, a, b, result)
    np.testing.assert_array_equal(result, product(a, b, "f16"))
