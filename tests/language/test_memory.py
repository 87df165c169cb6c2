"""Loads and stores: masks, other values, broadcasting, strides, 64-bit offsets, booleans, block pointers."""

import numpy as np
import pytest
from language_harness import FLOATS, FP8, INTEGERS, Typed, empty, interpreter_only, jit, launch, numbers, of, reports, sample

import tilewright.language as tl


@jit
def copy_kernel(x, out, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", [tl.int1, *INTEGERS, *FLOATS, *FP8], ids=str)
def test_copy_of_every_type(dtype):
    x, out = sample(dtype, 300, 1), empty(300, dtype)
    launch(copy_kernel, (3,), x, out, 300, 128)
    assert np.array_equal(numbers(out), numbers(x))


def test_copy_keeps_every_bit_pattern():
    x = Typed(np.arange(65536, dtype=np.uint16), tl.bfloat16)
    out = empty(65536, tl.bfloat16)
    launch(copy_kernel, (256,), x, out, 65536, 256)
    assert np.array_equal(out.base, x.base)


@jit
def masked_kernel(x, out, n, other, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=other))


@pytest.mark.parametrize("n", [0, 1, 31, 64])
@pytest.mark.parametrize(("dtype", "other"), [(np.float32, -0.5), (np.float32, np.nan), (np.float16, np.inf), (np.int8, 3), (np.int64, -7)])
def test_masked_lanes_take_other(dtype, other, n):
    x = np.arange(100, 164).astype(dtype)
    out = np.zeros(64, dtype)
    launch(masked_kernel, (1,), x, out, n, other, 64)
    assert np.array_equal(out, np.where(np.arange(64) < n, x, np.array(other, dtype)), equal_nan=True)


@jit
def masked_2d_kernel(x, out, rows, cols, M: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, M)[:, None]
    c = tl.arange(0, N)[None, :]
    inside = (r < rows) & (c < cols)
    v = tl.load(x + r * cols + c, mask=inside, other=-1)
    tl.store(out + r * N + c, v)
    tl.store(x + r * cols + c, v + 1, mask=inside & (c % 2 == 0))


def test_masked_tile():
    x = np.arange(35, dtype=np.int32).reshape(5, 7)
    before = x.copy()
    out = np.zeros((8, 8), np.int32)
    launch(masked_2d_kernel, (1,), x, out, 5, 7, 8, 8)
    want = np.full((8, 8), -1)
    want[:5, :7] = before
    assert np.array_equal(out, want)
    assert np.array_equal(x, before + (np.arange(7) % 2 == 0))


@jit
def broadcast_store_kernel(out, M: tl.constexpr, N: tl.constexpr):
    p = out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(p, tl.arange(0, N)[None, :], mask=(tl.arange(0, M) > 1)[:, None])
    tl.store(out, 42)


def test_store_broadcasts_value_and_mask():
    out = np.full((4, 8), -1, np.int32)
    launch(broadcast_store_kernel, (1,), out, 4, 8)
    want = np.full((4, 8), -1)
    want[2:] = np.arange(8)
    want[0, 0] = 42
    assert np.array_equal(out, want)


@jit
def bool_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))


@pytest.mark.parametrize(
    "values", [np.array([0, 1, 256, -256, 65536, 2, 0, 3], np.int32), np.float32([0, -0.0, 0.3, np.nan, 1e-20, 256, 1, -7])]
)
def test_store_to_bool_is_not_zero(values):
    out = np.zeros(8, np.bool_)
    launch(bool_kernel, (1,), values, out, 8)
    assert np.array_equal(out.view(np.uint8), (values != 0).astype(np.uint8))


def test_load_of_bool_is_not_zero():
    x = np.array([0, 1, 2, 255, 0, 128, 1, 0], np.uint8)
    out = np.zeros(8, np.int32)
    launch(bool_kernel, (1,), x.view(np.bool_), out, 8)
    assert np.array_equal(out, x != 0)


@jit
def gather_rows_kernel(x, index, out, stride, N: tl.constexpr):
    row = tl.load(index + tl.program_id(0))
    c = tl.arange(0, N)
    tl.store(out + tl.program_id(0) * N + c, tl.load(x + row * stride + c))


def test_indirect_rows():
    x = np.arange(640, dtype=np.float32).reshape(10, 64)
    index = np.array([7, 0, 3, 3, 9], np.int64)
    out = np.zeros((5, 32), np.float32)
    launch(gather_rows_kernel, (5,), x, index, out, 64, 32)
    assert np.array_equal(out, x[index, :32])


@jit
def pointer_select_kernel(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    p = tl.where(i % 2 == 0, x + i, y + i)
    tl.store(out + i, tl.load(p))


def test_pointers_into_two_arrays():
    x, y, out = np.arange(16, dtype=np.int32), np.arange(100, 116, dtype=np.int32), np.zeros(16, np.int32)
    launch(pointer_select_kernel, (1,), x, y, out, 16)
    assert np.array_equal(out, np.where(np.arange(16) % 2 == 0, x, y))


@jit
def modifiers_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i, cache_modifier=".cg", eviction_policy="evict_first")
    b = tl.load(x + i, cache_modifier=".ca", eviction_policy="evict_last", volatile=True)
    tl.store(out + i, a + b, cache_modifier=".wt", eviction_policy="evict_first")


def test_modifiers_do_not_change_values():
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    launch(modifiers_kernel, (1,), x, out, 64)
    assert np.array_equal(out, 2 * x)


@jit
def bad_load_kernel(x, KIND: tl.constexpr):
    i = tl.arange(0, 8)
    if KIND == "cache":
        v = tl.load(x + i, cache_modifier=".xx")
    elif KIND == "other":
        v = tl.load(x + i, other=0.0)
    elif KIND == "mask":
        v = tl.load(x + i, mask=i)
    elif KIND == "pointer":
        v = tl.load(i)
    else:
        v = tl.load(x, mask=i < 4)
    tl.store(x + i, v)


@pytest.mark.parametrize(
    ("kind", "message"),
    [("cache", r"\.xx"), ("other", "without `mask`|without mask"), ("mask", "Mask"), ("pointer", "ptr"), ("block", "block")],
)
def test_bad_loads(kind, message):
    reports(message, bad_load_kernel, np.zeros(8, np.float32), kind)


@jit
def const_store_kernel(x: tl.const):
    tl.store(x, 1.0)


def test_store_to_a_const_pointer_is_refused():
    reports("constant pointer", const_store_kernel, np.zeros(1, np.float32))


@jit
def first_of(p: tl.const, n=0):
    return tl.load(p + n)


@jit
def writes(p: tl.const, value):
    tl.store(p, value)


@jit
def adds(value, *, p: tl.const = None):
    tl.atomic_add(p, value)


@jit
def hands_on(p):
    tl.store(p, 1.0)


@jit
def passes_on(p: "tl.const"):
    hands_on(p)


@jit
def const_helper_kernel(x, out, how: tl.constexpr):
    i = tl.arange(0, 4)
    tl.store(out, first_of(x, 2) + tl.sum(first_of(p=x + i)))
    tl.store(x + 1, 5.0)
    if how == "store":
        writes(x, 1.0)
    elif how == "block":
        writes(p=x + i, value=1.0)
    elif how == "tuple":
        writes((x, i)[0], 1.0)
    elif how == "atomic":
        adds(1.0, p=x)
    elif how == "helper":
        passes_on(x)


def test_pointers_are_constant_in_helpers_that_say_so_and_only_there():
    x, out = np.array([1, 2, 3, 4], np.float32), np.zeros(1, np.float32)
    launch(const_helper_kernel, (1,), x, out, "")
    assert out[0] == 13 and x.tolist() == [1, 5, 3, 4]


@pytest.mark.parametrize("how", ["store", "block", "tuple", "atomic", "helper"])
def test_store_in_a_helper_with_a_const_parameter_is_refused(how):
    reports(
        "constant pointer: it comes from a parameter annotated tl.const", const_helper_kernel, np.zeros(4, np.float32), np.zeros(1), how
    )


@jit
def block_pointer_kernel(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_block_ptr(x, shape=(M, N), strides=(N, 1), offsets=(0, 0), block_shape=(BM, BN), order=(1, 0))
    target = tl.make_block_ptr(out, shape=(M, N), strides=(N, 1), offsets=(0, 0), block_shape=(BM, BN), order=(1, 0))
    for _ in range(0, tl.cdiv(N, BN)):
        v = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, v * 2, boundary_check=(0, 1))
        source = tl.advance(source, (0, BN))
        target = tl.advance(target, (0, BN))


def test_block_pointers():
    x = np.random.default_rng(3).standard_normal((13, 45)).astype(np.float32)
    out = np.zeros_like(x)
    launch(block_pointer_kernel, (1,), x, out, 13, 45, 16, 16)
    assert np.array_equal(out, 2 * x)


@jit
def far_kernel(x, out, i, j):
    tl.store(out, tl.load(x + i * j))


def test_32_bit_offsets_wrap_and_64_bit_ones_do_not():
    x, out = of(np.arange(8), tl.float32), np.zeros(1, np.float32)
    launch(far_kernel, (1,), x, out, 2**30, 4)  # 2**32 wraps to 0
    assert out[0] == 0
    launch(far_kernel, (1,), x, out, 2**31, 0)
    assert out[0] == 0


@interpreter_only
def test_out_of_bounds_names_argument_index_and_line():
    x, out = np.zeros(100, np.float32), np.zeros(128, np.float32)
    reports(r"(?s)test_memory.py:\d+:.*in copy_kernel.*out-of-bounds load: argument 'x' at index 100.*valid: 0 to 99.*program \(0, 0, 0\)",
            copy_kernel, x, out, 128, 128)  # fmt: skip
    with pytest.raises(Exception, match="out-of-bounds store: argument 'out' at index 100"):
        launch(copy_kernel, (1,), out, x, 128, 128)


@interpreter_only
def test_what_a_failed_launch_wrote_before_is_kept():
    x, out = np.arange(100, dtype=np.float32), np.zeros(256, np.float32)
    with pytest.raises(Exception, match=r"program \(3, 0, 0\)"):
        launch(copy_kernel, (8,), x, out, 256, 32)
    assert np.array_equal(out[:96], x[:96]) and not out[96:].any()
