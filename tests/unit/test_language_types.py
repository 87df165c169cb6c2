"""Types: names, interning, signature strings, shapes."""

from __future__ import annotations

import copy
import pickle

import pytest

from tilewright.language import dtypes as dt

SCALARS = {
    # name: (bits, bytes in memory, mangled, name in tl)
    "int1": (1, 1, "i1", "int1"),
    "int8": (8, 1, "i8", "int8"),
    "uint8": (8, 1, "u8", "uint8"),
    "int64": (64, 8, "i64", "int64"),
    "fp8e4nv": (8, 1, "fp8e4nv", "float8e4nv"),
    "fp8e5b16": (8, 1, "fp8e5b16", "float8e5b16"),
    "fp16": (16, 2, "fp16", "float16"),
    "bf16": (16, 2, "bf16", "bfloat16"),
    "fp64": (64, 8, "fp64", "float64"),
}


@pytest.mark.parametrize("name", SCALARS)
def test_scalar_attributes(name):
    ty = dt.dtype(name)
    bits, size, mangled, tl_name = SCALARS[name]
    assert (ty.primitive_bitwidth, ty.itemsize, ty.mangle(), ty.codegen_name()) == (bits, size, mangled, tl_name)
    assert str(ty) == name
    assert repr(ty) == f"triton.language.{tl_name}"
    assert getattr(dt, tl_name) is ty
    assert getattr(ty, f"is_{name}")()
    assert ty.is_int() != ty.is_floating()


def test_kinds_are_ordered():
    order = [dt.int1, dt.uint8, dt.float16]
    assert [t.kind().value for t in order] == [0, 1, 2]
    with pytest.raises(TypeError):
        dt.void.kind()


@pytest.mark.parametrize(
    ("ty", "low", "high"),
    [(dt.int8, -128, 127), (dt.uint8, 0, 255), (dt.int1, 0, 1), (dt.uint64, 0, 2**64 - 1), (dt.int32, -(2**31), 2**31 - 1)],
)
def test_integer_range(ty, low, high):
    assert (ty.get_int_min_value(), ty.get_int_max_value()) == (low, high)


def test_equal_types_are_one_object():
    a = dt.block_type(dt.pointer_type(dt.float32), [16, 32])
    assert a is dt.block_type(dt.pointer_type(dt.float32, "global"), (16, 32))
    assert dt.pointer_type(dt.float32) is not dt.pointer_type(dt.float32, const=True)
    for same in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a)):
        assert same is a


def test_unknown_dtype_names_the_known_ones():
    with pytest.raises(TypeError, match="unknown dtype 'float32'; accepted: .*fp32"):
        dt.dtype("float32")


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        ([3], ValueError, "Shape element 0 must be a power of 2"),
        ([16, 0], ValueError, "Shape element 1 must be a power of 2"),
        ([16, 2.0], TypeError, r"Shape element 1 must have type `constexpr\[int\]`"),
        ([1024, 2048], ValueError, r"numel \(2097152\) exceeds triton maximum tensor numel \(1048576\)"),
        ([], TypeError, "0d block_type is forbidden"),
    ],
)
def test_block_shapes(shape, error, message):
    with pytest.raises(error, match=message):
        dt.block_type(dt.float32, shape)


@pytest.mark.parametrize(
    ("text", "ty"),
    [
        ("i32", dt.int32),
        ("u1", dt.int1),
        ("B", dt.int1),
        ("u64", dt.uint64),
        ("*fp32", dt.pointer_type(dt.float32)),
        ("*kbf16", dt.pointer_type(dt.bfloat16, 1, True)),
        ("**i8", dt.pointer_type(dt.pointer_type(dt.int8))),
        ("*i1", dt.pointer_type(dt.int1)),
        ("fp8e4b15", dt.float8e4b15),
        ("tensordesc<fp16[128, 64]>", dt.tensor_descriptor_type(dt.block_type(dt.float16, (128, 64)))),
    ],
)
def test_signature_strings(text, ty):
    assert dt.str_to_ty(text) == ty


def test_signature_of_constants_and_tuples():
    assert dt.str_to_ty("constexpr", 3) == dt.constexpr_type(3)
    assert dt.constexpr_type(1) != dt.constexpr_type(1.0) != dt.constexpr_type(True)
    assert dt.str_to_ty(("i32", ("*fp16", "constexpr")), (None, (None, 7))).types[1].types[1] == dt.constexpr_type(7)


@pytest.mark.parametrize(
    ("spelling", "code"),
    [
        ("bool", "u1"),
        ("float", "fp32"),
        ("float8_e4m3fnuz", "fp8e4b8"),
        ("*const half", "*kfp16"),
        ("*float64", "*fp64"),
        ("tl.int32", "i32"),
    ],
)
def test_spellings(spelling, code):
    assert dt.canonicalize_type_name(spelling) == code


def test_unknown_spelling():
    with pytest.raises(ValueError, match="unknown type 'complex64'; accepted: .*float32"):
        dt.canonicalize_type_name("complex64")
