"""Promotion, operators, comparisons and casts: which operations they become, on which types."""

from __future__ import annotations

import pytest
from recording_builder import Kernel

import tilewright.language as tl
from tilewright.language.semantic.promotion import computation_type

PTR = tl.pointer_type(tl.float32)


@pytest.fixture
def k():
    with Kernel(debug=False) as kernel:
        yield kernel


# ---- promotion ------------------------------------------------------------------------------------------------------------------

TENSORS = [
    # a, b, type of a + b, type in which a / b and a % b are computed
    (tl.int1, tl.int1, tl.int1, tl.int1),
    (tl.int1, tl.int8, tl.int8, TypeError),
    (tl.int8, tl.int32, tl.int32, tl.int32),
    (tl.int32, tl.uint32, tl.uint32, TypeError),
    (tl.int64, tl.uint32, tl.int64, TypeError),
    (tl.int32, tl.uint64, tl.uint64, TypeError),
    (tl.uint8, tl.uint16, tl.uint16, tl.uint16),
    (tl.int64, tl.float16, tl.float16, tl.float32),
    (tl.float16, tl.bfloat16, tl.float16, tl.float32),
    (tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.float32),
    (tl.bfloat16, tl.float32, tl.float32, tl.float32),
    (tl.bfloat16, tl.int32, tl.float32, tl.float32),
    (tl.float32, tl.float64, tl.float64, tl.float64),
    (tl.float8e5, tl.float8e5, tl.float8e5, tl.float8e5),
    (tl.float8e5, tl.float8e4nv, tl.float16, tl.float16),
    (tl.float8e5, tl.float16, tl.float16, tl.float32),
    (tl.float8e5, tl.int32, TypeError, TypeError),
]


@pytest.mark.parametrize("division", [False, True])
@pytest.mark.parametrize("row", TENSORS, ids=lambda r: f"{r[0]}-{r[1]}")
def test_promotion_of_tensors(row, division):
    a, b, want = row[0], row[1], row[3] if division else row[2]
    for x, y in ((a, b), (b, a)):
        if want is TypeError:
            with pytest.raises(TypeError):
                computation_type(x, y, division=division)
        else:
            assert computation_type(x, y, division=division) is want


NUMBERS = [
    # tensor, number, type of tensor + number
    (tl.int8, 1, tl.int8),
    (tl.uint64, 1, tl.uint64),
    (tl.float16, 3, tl.float16),
    (tl.float16, 1e30, tl.float16),
    (tl.bfloat16, 1.5, tl.bfloat16),
    (tl.float32, 1e300, tl.float32),
    (tl.int32, 1.5, tl.float32),
    (tl.int64, 1e300, tl.float64),
    (tl.int1, 2, tl.int32),
    (tl.int1, True, tl.int1),
    (tl.int16, True, tl.int16),
]


@pytest.mark.parametrize(("ty", "number", "want"), NUMBERS)
def test_numbers_take_the_tensors_type(k, ty, number, want):
    x = k.value(ty, 16)
    assert (x + number).dtype is want
    assert (tl.constexpr(number) + x).dtype is want


@pytest.mark.parametrize(
    ("number", "ty"),
    [
        (True, tl.int1), (-1, tl.int32), (2**31, tl.uint32), (2**32, tl.int64), (2**63, tl.uint64), (1.0, tl.float32), (0.0, tl.float32),
        (float("nan"), tl.float32), (1e-40, tl.float64), (1e39, tl.float64),
    ],
)  # fmt: skip
def test_type_of_a_lone_number(k, number, ty):
    assert tl.to_tensor(number).dtype is ty


def test_numbers_out_of_range(k):
    with pytest.raises(ValueError, match="Scalar 300 is out of range for type int8"):
        k.value(tl.int8, 4) + 300
    with pytest.raises(ValueError, match="unsigned tensor and a negative scalar"):
        k.value(tl.uint32, 4) - -1


# ---- operators --------------------------------------------------------------------------------------------------------------------

OPERATORS = [
    # operator, type, operation, type of the result
    (lambda a, b: a + b, tl.float16, "addf", tl.float16),
    (lambda a, b: a * b, tl.uint8, "muli", tl.uint8),
    (lambda a, b: a / b, tl.float16, "divf", tl.float32),
    (lambda a, b: a / b, tl.int64, "divf", tl.float32),
    (lambda a, b: a / b, tl.float64, "divf", tl.float64),
    (lambda a, b: a // b, tl.int16, "divsi", tl.int16),
    (lambda a, b: a // b, tl.uint16, "divui", tl.uint16),
    (lambda a, b: a % b, tl.int32, "remsi", tl.int32),
    (lambda a, b: a % b, tl.uint32, "remui", tl.uint32),
    (lambda a, b: a % b, tl.bfloat16, "remf", tl.float32),
    (lambda a, b: a & b, tl.int8, "andi", tl.int8),
    (lambda a, b: a | b, tl.int1, "ori", tl.int1),
    (lambda a, b: a ^ b, tl.uint64, "xori", tl.uint64),
    (lambda a, b: a << b, tl.int32, "shli", tl.int32),
    (lambda a, b: a >> b, tl.int32, "shrsi", tl.int32),
    (lambda a, b: a >> b, tl.uint32, "shrui", tl.uint32),
    (lambda a, b: a < b, tl.int32, "slt", tl.int1),
    (lambda a, b: a < b, tl.uint32, "ult", tl.int1),
    (lambda a, b: a <= b, tl.float32, "ole", tl.int1),
    (lambda a, b: a == b, tl.float32, "oeq", tl.int1),
    (lambda a, b: a != b, tl.float32, "une", tl.int1),
    (lambda a, b: a != b, tl.uint8, "ne", tl.int1),
    (tl.maximum, tl.float32, "maxnumf", tl.float32),
    (tl.minimum, tl.bfloat16, "minnumf", tl.bfloat16),
    (tl.maximum, tl.int32, "maxsi", tl.int32),
    (tl.minimum, tl.uint32, "minui", tl.uint32),
    (lambda a, b: tl.maximum(a, b, tl.PropagateNan.ALL), tl.float32, "maximumf", tl.float32),
    (tl.fdiv, tl.float32, "divf", tl.float32),
    (tl.div_rn, tl.float32, "div_rn", tl.float32),
    (lambda a, b: tl.fdiv(a, b, ieee_rounding=True), tl.float32, "div_rn", tl.float32),
    (tl.umulhi, tl.int32, "mulhiui", tl.int32),
]


@pytest.mark.parametrize(("operator", "ty", "kind", "result"), OPERATORS)
def test_operator(k, operator, ty, kind, result):
    r = operator(k.value(ty, 4, 1), k.value(ty, 8))
    assert r.dtype is result
    assert r.type.shape == (4, 8)
    assert k.names()[-1] == kind


def test_fp8_is_computed_in_fp32(k):
    r = k.value(tl.float8e5, 4) * k.value(tl.float8e5, 4)
    assert r.dtype is tl.float8e5
    assert k.names() == ["fp_to_fp", "fp_to_fp", "mulf", "fp_to_fp"]
    assert k.builder.calls[2][1][3] is tl.block_type(tl.float32, (4,))


def test_unary(k):
    assert (-k.value(tl.float32, 4)).dtype is tl.float32
    assert k.names() == ["negf"]
    assert (~k.value(tl.uint8, 4)).dtype is tl.uint8
    assert k.builder.calls[-2][1][0] == 255
    with pytest.raises(TypeError, match="unary invert"):
        ~k.value(tl.float32)
    assert k.value(tl.float32, 4).__not__().dtype is tl.int1


def test_python_numbers_on_the_left(k):
    x = k.value(tl.int32, 4)
    k.builder.calls.clear()
    8 - x
    (_, (number, _), _), (_, args, _) = k.builder.calls
    assert number == 8
    assert args[0] == "subi"
    assert args[2] == x.handle


@pytest.mark.parametrize(
    ("operation", "error", "message"),
    [
        (lambda p, f: p + p, TypeError, "cannot add pointers together"),
        (lambda p, f: p - p, TypeError, "cannot subtract pointers"),
        (lambda p, f: p + f, TypeError, "offset by integers only, not by fp32"),
        (lambda p, f: p * 2, TypeError, "invalid operands of type pointer<fp32> and int32"),
        (lambda p, f: p < p, TypeError, "invalid operands of type"),
        (lambda p, f: f // f, TypeError, "`//` is defined on integers, not on fp32 and fp32"),
        (lambda p, f: f & f, TypeError, "invalid operands of type fp32 and fp32"),
        (lambda p, f: f + None, TypeError, "cannot convert None to tensor"),
        (lambda p, f: -p, TypeError, "unary minus"),
        (lambda p, f: tl.exp(f.to(tl.float16)), ValueError, r"Expected dtype \['fp32', 'fp64'\] but got fp16"),
        (lambda p, f: tl.maximum(f, f, True), TypeError, "propagate_nan must be"),
    ],
)
def test_refused(k, operation, error, message):
    with pytest.raises(error, match=message):
        operation(k.value(PTR), k.value(tl.float32))


def test_shapes_that_do_not_broadcast(k):
    with pytest.raises(ValueError, match=r"cannot broadcast shapes \[4, 8\] and \[4\]: incompatible dimensions at index 1: 8 and 4"):
        k.value(tl.int32, 4, 8) + k.value(tl.int32, 4)


def test_pointer_offsets(k):
    p = k.value(PTR)
    for ty, casts in ((tl.int32, []), (tl.int64, []), (tl.int8, ["extsi"]), (tl.uint32, ["extui"]), (tl.uint64, [])):
        k.builder.calls.clear()
        r = p + k.value(ty, 8)
        assert r.type is tl.block_type(PTR, (8,))
        assert sorted(k.names()) == sorted([*casts, "splat", "addptr"])
    assert (3 + p).type is PTR
    k.builder.calls.clear()
    p - 3
    assert k.builder.calls[0][1][0] == -3


def test_where_takes_numbers_and_pointers(k):
    c, x = k.value(tl.int1, 4), k.value(tl.float16, 4)
    assert tl.where(c, x, 0.0).dtype is tl.float16
    assert tl.where(c, 0, 1).type is tl.block_type(tl.int32, (4,))
    p = k.value(PTR)
    assert tl.where(c, p, p).type is tl.block_type(PTR, (4,))
    with pytest.warns(UserWarning, match="condition of type int32"):
        tl.where(k.value(tl.int32, 4), x, x)


def test_overflow_is_asserted_when_asked_for():
    with Kernel(debug=True, sanitize_overflow=True) as k:
        a, b = k.value(tl.int32, 4), k.value(tl.int32, 4)
        a + b
        assert "assert_" in k.names()
        k.builder.calls.clear()
        tl.add(a, b, sanitize_overflow=False)
        assert k.names() == ["addi"]


# ---- casts ------------------------------------------------------------------------------------------------------------------------

CASTS = [
    (tl.float32, tl.float16, ["fp_to_fp"]),
    (tl.float16, tl.bfloat16, ["fp_to_fp"]),
    (tl.float8e5, tl.float64, ["fp_to_fp"]),
    (tl.float8e5, tl.float8e4nv, ["fp_to_fp", "fp_to_fp"]),
    (tl.float32, tl.int8, ["fptosi"]),
    (tl.float32, tl.uint64, ["fptoui"]),
    (tl.float16, tl.int32, ["fp_to_fp", "fptosi"]),
    (tl.bfloat16, tl.uint8, ["fp_to_fp", "fptoui"]),
    (tl.float64, tl.int1, ["constant", "une"]),
    (tl.float8e5, tl.int1, ["fp_to_fp", "constant", "une"]),
    (tl.int64, tl.int1, ["constant", "ne"]),
    (tl.int32, tl.int8, ["trunci"]),
    (tl.int8, tl.uint32, ["extsi"]),
    (tl.uint8, tl.int32, ["extui"]),
    (tl.int1, tl.int32, ["extui"]),
    (tl.int32, tl.uint32, []),
    (tl.int32, tl.float16, ["sitofp"]),
    (tl.uint32, tl.float32, ["uitofp"]),
    (tl.int1, tl.float32, ["uitofp"]),
    (tl.int32, tl.float8e5, ["sitofp", "fp_to_fp"]),
    (tl.int64, PTR, ["int_to_ptr"]),
    (tl.int32, PTR, ["extsi", "int_to_ptr"]),
    (PTR, tl.int64, ["ptr_to_int"]),
    (PTR, tl.int1, ["ptr_to_int", "constant", "ne"]),
    (PTR, tl.pointer_type(tl.int8), ["bitcast"]),
]


@pytest.mark.parametrize(("source", "target", "operations"), CASTS)
def test_cast(k, source, target, operations):
    x = k.value(source, 8)
    r = x.to(target)
    assert k.names() == operations
    assert r.type is tl.block_type(target, (8,))
    assert x.to(source) is x


@pytest.mark.parametrize(
    ("source", "target", "keywords", "message"),
    [
        (tl.float32, tl.int16, {"bitcast": True}, "Cannot bitcast data-type of size 32 to data-type of size 16"),
        (tl.float16, tl.float32, {"fp_downcast_rounding": "rtz"}, "applies only to a float that is cast to a narrower float"),
        (tl.float32, tl.float16, {"fp_downcast_rounding": "up"}, "'up' not supported; accepted: rtne, rtz"),
        (PTR, tl.int32, {}, "cannot cast pointer<fp32> to int32"),
    ],
)
def test_refused_casts(k, source, target, keywords, message):
    with pytest.raises(ValueError, match=message):
        k.value(source, 4).to(target, **keywords)


def test_rounding_is_passed_on(k):
    k.value(tl.float32, 4).to(tl.float8e5, fp_downcast_rounding="rtz")
    assert k.last()[1][4] == "rtz"


def test_bitcast(k):
    assert k.value(tl.float32, 4).to(tl.uint32, bitcast=True).dtype is tl.uint32
    assert k.names() == ["bitcast"]


def test_fp8_types_of_the_target():
    with Kernel(supported_fp8_dtypes=("fp8e5",)) as k, pytest.raises(ValueError, match="type fp8e4nv not supported in this architecture"):
        k.value(tl.float32, 4).to(tl.float8e4nv)
