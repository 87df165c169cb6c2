"""The type that an operation on two types has: tensors, Python numbers and constants."""

import numpy as np
import pytest
from language_harness import empty, jit, launch, reports

import tilewright.language as tl

B1, I8, I16, I32, I64 = tl.int1, tl.int8, tl.int16, tl.int32, tl.int64
U8, U16, U32, U64 = tl.uint8, tl.uint16, tl.uint32, tl.uint64
F16, BF16, F32, F64 = tl.float16, tl.bfloat16, tl.float32, tl.float64
E5, E4 = tl.float8e5, tl.float8e4nv


@jit
def sum_type_kernel(x, y, WANT: tl.constexpr):
    a = tl.load(x + tl.arange(0, 2))
    b = tl.load(y + tl.arange(0, 2))
    tl.static_assert((a + b).dtype == WANT)
    tl.static_assert((b + a).dtype == WANT)
    tl.static_assert((a * b).dtype == WANT)
    tl.static_assert(tl.where(a == b, a, b).dtype == WANT)


PAIRS = [
    (I8, I8, I8), (I8, I16, I16), (I16, I64, I64), (U8, U32, U32),
    # signed with unsigned, as in C: the wider wins, of one width the unsigned
    (I8, U8, U8), (I32, U32, U32), (I64, U32, I64), (I16, U8, I16), (I8, U64, U64),
    # any integer with a float: the float, but fp32 beside bf16
    (I64, F16, F16), (U8, BF16, F32), (I32, F32, F32), (B1, F64, F64), (B1, I16, I16),
    (F16, F16, F16), (F16, BF16, F16), (BF16, BF16, BF16), (F16, F32, F32), (BF16, F32, F32), (F32, F64, F64),
    (E5, E5, E5), (E5, E4, F16), (E4, F16, F16), (E4, F32, F32),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "result"), PAIRS, ids=str)
def test_two_tensors(a, b, result):
    launch(sum_type_kernel, (1,), empty(2, a), empty(2, b), result)


@jit
def scalar_type_kernel(x, VALUE: tl.constexpr, WANT: tl.constexpr):
    a = tl.load(x + tl.arange(0, 2))
    tl.static_assert((a + VALUE).dtype == WANT)
    tl.static_assert((VALUE + a).dtype == WANT)


@pytest.mark.parametrize(
    ("dtype", "value", "result"),
    [(I8, 1, I8), (I16, 300, I16), (U8, 255, U8), (F16, 1, F16), (F16, 0.1, F16), (BF16, 2.5, BF16), (F64, 0.1, F64), (F32, 7, F32),
     (I32, 0.5, F32), (I8, 0.5, F32), (B1, 1, I32), (I64, 2**40, I64), (E5, 1.0, E5)], ids=str,
)  # fmt: skip
def test_a_number_of_no_higher_kind_takes_the_tensors_type(dtype, value, result):
    launch(scalar_type_kernel, (1,), empty(2, dtype), value, result)


@jit
def add_constant_kernel(x, VALUE: tl.constexpr):
    tl.store(x, tl.load(x) + VALUE)


@pytest.mark.parametrize(("dtype", "value"), [(I8, 128), (I8, -129), (U16, 65536), (I32, 2**31)], ids=str)
def test_a_number_out_of_range_is_refused(dtype, value):
    reports("out of range", add_constant_kernel, empty(2, dtype), value)


def test_a_negative_number_with_an_unsigned_tensor_is_refused():
    reports("unsigned", add_constant_kernel, empty(2, U32), -1)


@jit
def literal_type_kernel():
    tl.static_assert(tl.to_tensor(1).dtype == tl.int32)
    tl.static_assert(tl.to_tensor(2**31).dtype == tl.uint32)
    tl.static_assert(tl.to_tensor(2**32).dtype == tl.int64)
    tl.static_assert(tl.to_tensor(2**63).dtype == tl.uint64)
    tl.static_assert(tl.to_tensor(True).dtype == tl.int1)
    tl.static_assert(tl.to_tensor(0.5).dtype == tl.float32)
    tl.static_assert(tl.to_tensor(1e300).dtype == tl.float64)
    tl.static_assert(tl.to_tensor(float("inf")).dtype == tl.float32)


def test_numbers_that_stand_alone():
    launch(literal_type_kernel, (1,))


@jit
def argument_type_kernel(small, big, huge, flag, real, WANT: tl.constexpr):
    tl.static_assert(small.dtype == tl.int32)
    tl.static_assert(big.dtype == tl.int64)
    tl.static_assert(huge.dtype == tl.uint64)
    tl.static_assert(flag.dtype == tl.int1)
    tl.static_assert(real.dtype == WANT)


def test_argument_types():
    launch(argument_type_kernel, (1,), 7, 2**40, 2**64 - 1, True, 0.5, tl.float32)


@jit
def annotated_kernel(out, a: tl.int64, b: tl.float64, c: "u8"):  # noqa: F821
    tl.static_assert(a.dtype == tl.int64)
    tl.static_assert(b.dtype == tl.float64)
    tl.static_assert(c.dtype == tl.uint8)
    tl.store(out, a.to(tl.float64) + b + c)


def test_annotated_arguments():
    out = np.zeros(1)
    launch(annotated_kernel, (1,), out, 3, 0.1, 200)
    assert out[0] == 203.1


@jit
def bad_kernel(x, y, OP: tl.constexpr):
    a = tl.load(x)
    b = tl.load(y)
    if OP == "//":
        c = a // b
    elif OP == "&":
        c = a & b
    elif OP == "ptr":
        c = x + y
    else:
        c = a % b
    tl.store(x, c)


@pytest.mark.parametrize(
    ("a", "b", "op", "message"),
    [(F32, F32, "//", "integers"), (F32, I32, "&", "fp32"), (I32, I32, "ptr", "cannot add pointers"), (I32, U32, "//", "sign")],
)
def test_operators_refuse_wrong_types(a, b, op, message):
    reports(message, bad_kernel, empty(2, a), empty(2, b), op)
