"""Mistakes in kernels, one a row: the compiler and the interpreter say the same, at the line of the mistake.

A row is `program | message`, the programs being like those of `api_registry.py`. COMPILED is about what only the compiler can tell.
"""

import re

import pytest
from api_registry import PRELUDE
from api_table import inputs, interpreted_jit, kernel_of

import tilewright
import tilewright.language as tl
from tilewright.errors import CompilationError, InterpreterError

BOTH = r"""
tl.program_id(3) | program_id axis must be 0, 1, or 2 but got 3
tl.program_id(k) | program_id axis must be 0, 1, or 2 but got int32
tl.maximum(x, x, 1, 2) | maximum\(\) takes 3 positional arguments \(x, y, propagate_nan\) but 4 were given
tl.load(f + i, q, 0, (), "", "", "", False, 1) | load\(\) takes 8 positional arguments \(.*\) but 9 were given
tl.arange(0, 5) | arange's range must be a power of 2
tl.arange(4, 4) | arange's end argument must be greater than the start argument
tl.arange(0, k) | arange's arguments must be of type tl.constexpr
tl.full((3,), 0, tl.int32) | Shape element 0 must be a power of 2
tl.full((2048, 1024), 0, tl.int32) | numel \(2097152\) exceeds triton maximum tensor numel
tl.full((4,), x, tl.float32) | full needs a scalar value
tl.full((4,), 300, tl.int8) | out of range for type int8
tl.zeros((4.0,), tl.float32) | Shape element 0 must have type `constexpr\[int\]`
tl.zeros((4,), 3) | dtype must be a type such as tl.float32, got 3
tl.cat(x, n) | cat needs two tensors of one shape and type
tl.broadcast_to(x, 2, 16) | rank of .* and of shape \[2, 16\] differ
tl.broadcast_to(x, 8) | cannot broadcast shapes \[16\] and \[8\]
x + tl.arange(0, 8) | (?i)cannot .*broadcast|incompatible
tl.expand_dims(x, 5) | axis
tl.expand_dims(x, k) | must be a constexpr int
tl.squeeze(x, 0) | dimension 0 of .* must have size 1
tl.reshape(x, 3, 5) | reshape|power of 2
tl.reshape(x, 8) | reshape
tl.reshape(k, 2) | cannot reshape a scalar to \[2\]
tl.trans(x) | trans needs a tensor of rank 2 or more
tl.permute(a, 0, 0) | permut
tl.join(x, n) | join needs tensors of one type, got fp32 and int32
tl.split(x) | split
tl.gather(x, i[:, None], 0) | gather needs source and index of one rank
tl.gather(a, tl.zeros((8, 16), tl.int32), 1) | dimension 0 of .* must be equal
tl.gather(x, x, 0) | gather
tl.histogram(x, 16) | histogram
tl.histogram(n, 16, mask=n) | the mask of histogram must be int1
tl.map_elementwise(largest) | map_elementwise needs at least one tensor
tl.map_elementwise(largest, x, y, pack=3) | pack must be a power of 2
tl.map_elementwise(largest, k, k) | map_elementwise needs tensors of rank 1 or more
tl.map_elementwise(varied, x, y, pack=32) | pack 32 must divide the number of elements 16
tl.map_elementwise(collatz_one, x, pack=2) | with pack 2 the function must return a multiple of 2 values, got 1
tl.map_elementwise(mixed_types, x, pack=2) | the 2 values of a result must be scalars of one type
x.T | .T needs a tensor of rank 2
x[0] | unsupported tensor index
x[:, :, None] | too many indices for tensor of rank 1
tl.load(x) | Unsupported ptr type
tl.load(f, mask=q) | Mask argument cannot be block type if pointer argument is not a block
tl.load(f + i, mask=n) | Mask must have boolean scalar type
tl.load(f + i, other=0.0) | other
tl.load(f + i, cache_modifier=".xx") | Cache modifier .xx not supported; accepted
tl.load(f + i, eviction_policy="never") | Eviction policy never not supported; accepted
tl.load(f + i, boundary_check=(0,)) | are for block pointers
tl.store(f, x) | block
tl.store(f + tl.arange(0, 8), x) | broadcast|shape
tl.make_block_ptr(f + i, (8,), (1,), (0,), (8,), (0,)) | base must be a scalar pointer
tl.make_block_ptr(f, (8, 8), (1,), (0,), (8,), (0,)) | shape has 2 items, block_shape has 1
tl.make_block_ptr(f, (8,), (1,), (0,), (8,), (1,)) | order must be a permutation of 0 to 0
tl.make_block_ptr(f, (8.0,), (1,), (0,), (8,), (0,)) | shape must be integer scalars
tl.load(tl.advance(tl.make_block_ptr(f, (8,), (1,), (0,), (8,), (0,)), (1, 2))) | advance needs 1 offsets, got 2
tl.load(tl.make_block_ptr(f, (8,), (1,), (0,), (8,), (0,)), boundary_check=(0, 0)) | duplicate dimension in boundary_check
tl.load(tl.make_block_ptr(s, (8,), (1,), (0,), (8,), (0,)), boundary_check=(0,), padding_option="nan") | 'nan' needs floats
tl.store(tl.make_block_ptr(f, (8,), (1,), (0,), (8,), (0,)), 1.0, mask=True) | `mask` argument cannot be specified for storing block
  pointers
tl.advance(x, (1,)) + 1 | advance needs a block pointer
tl.make_tensor_descriptor(f, [], [], []) | Expected 1 <= ndim <= 5 but got 0 dimensions
tl.make_tensor_descriptor(f, [8, 8], [8, 2], [8, 8]) | last dim must be 1 but got 2
tl.make_tensor_descriptor(f, [8.5, 8], [8, 1], [8, 8]) | must be integer scalars
tl.make_tensor_descriptor(f, [8, 8], [8, 1], [8, 2]) | 16 bytes
tl.make_tensor_descriptor(s, [8, 8], [8, 1], [8, 8], padding_option="nan") | nan
tl.make_tensor_descriptor(f, [8, 8], [8, 1], [8, 8]).load([0]) | offset
tl.load_tensor_descriptor(x, [0]) | a tensor descriptor is needed
tl.make_tensor_descriptor(f, [8, 8], [8, 1], [1, 8]).gather(x, 0) | x_offsets must be a 1-D tensor of int16 or int32
tl.make_tensor_descriptor(f, [8, 8], [8, 1], [1, 4]).gather(tl.arange(0, 8), 0) | must have at least 8 columns
tl.make_tensor_descriptor(f, [8, 8], [8, 1], [1, 8]).scatter(x, tl.arange(0, 8), 0) | scatter: value must have shape \[8, 8\]
tl.make_tensor_descriptor(f, [8, 8], [8, 1], [8, 8]).atomic_xor([0, 0], a) | xor
tl.atomic_add(s, n) | Value argument of .* cannot be block type if pointer argument is not a block
tl.atomic_add(s + i, n, sem="strong") | Memory semantic strong not supported
tl.atomic_add(s + i, n, scope="world") | world
tl.atomic_add((s + i).to(tl.pointer_type(tl.int8), bitcast=True), 1) | atomic_add does not support int8
tl.atomic_poll(f, 1) | atomic_poll needs a scalar pointer to 16-, 32- or 64-bit integers
tl.dot(x, a) | dot needs two tensors of one rank, 2 or more
tl.dot(w, tl.zeros((32, 16), tl.float16)) | dot|K
tl.dot(tl.zeros((2, 16, 16), tl.float16), tl.zeros((4, 16, 16), tl.float16)) | batch dimensions of .* must be equal
tl.dot(w, a) | dot|dtype
tl.dot(w, w, out_dtype=tl.bfloat16) | bf16|bfloat16
tl.dot(w, w, out_dtype=tl.int32) | dot of .* gives
tl.dot(w, w, acc=x) | acc
tl.dot(a, a, input_precision="tf33") | tf33
tl.dot(a, a, input_precision="ieee", allow_tf32=True) | allow_tf32
tl.dot(fp8_bits(16, 32).to(tl.float8e5, bitcast=True), fp8_bits(32, 16).to(tl.float8e5, bitcast=True), max_num_imprecise_acc=64) |
  max_num_imprecise_acc \(64\) must be <= K
tl.dot(n[:, None].broadcast_to(16, 16), a) | dot|dtype
tl.dot_scaled(fp8_bits(1, 32).reshape(32), None, "e5m2", fp8_bits(1, 32).reshape(32), None, "e5m2") | dot_scaled needs two tensors of rank
  2 or 3
tl.dot_scaled(fp8_bits(16, 32), None, "e9m9", fp8_bits(32, 16), None, "e5m2") | e9m9
tl.dot_scaled(a, None, "e5m2", fp8_bits(16, 16), None, "e5m2") | of format e5m2 must be
tl.dot_scaled(a, None, "e2m1", fp8_bits(32, 16), None, "e5m2") | of format e2m1 must be packed in uint8
tl.dot_scaled(fp8_bits(16, 32), a, "e5m2", fp8_bits(32, 16), None, "e5m2") | must be uint8 \(e8m0\) or fp8e4nv
tl.dot_scaled(fp8_bits(16, 32), None, "e5m2", fp8_bits(64, 16), None, "e5m2") | do not match: K is 32 and 64
tl.dot_scaled(fp8_bits(16, 32), None, "e5m2", fp8_bits(32, 16), None, "e5m2", lhs_k_pack=False) | is for format e2m1 only
tl.dot_scaled(fp8_bits(16, 32), None, "e5m2", fp8_bits(32, 16), None, "e5m2", out_dtype=tl.float16) | out_dtype must be float32
tl.dot_scaled(fp8_bits(16, 32), None, "e5m2", fp8_bits(32, 16), None, "e5m2", acc=x) | acc must be fp32\[16, 16\]
tl.exp(h) | Expected dtype \['fp32', 'fp64'\] but got fp16
tl.exp(n) | Expected dtype
tl.sqrt_rn(d) | Expected dtype
tl.umulhi(x, y) | Expected dtype
tl.abs(f + i) | abs is not defined on
tl.fdiv(n, m) | floats are needed, got int32, int32
tl.fdiv(x, y, ieee_rounding=True, approx=True) | ieee_rounding and approx exclude each other
tl.clamp(x, 0, 1, propagate_nan=3) | propagate_nan
x // y | unexpected type|integer|int
n // u | cannot divide int32 and uint32: one is signed, the other is not
x & y | invalid operands of type
n & x | invalid operands of type
x << n | invalid operands of type
~x | unary
-(f + i) | unary
(f + i) + (f + i) | cannot add pointers together
f * 2 | pointer
n + 5000000000 | Scalar 5000000000 is out of range for type int32
u + -1 | Cannot perform a binary operation between an unsigned tensor and a negative scalar
n + 2**70 | does not fit in 64 bits
n + "text" | text
x.to(tl.float16, fp_downcast_rounding="up") | fp_downcast_rounding 'up' not supported; accepted
n.to(tl.float16, fp_downcast_rounding="rtz") | applies only to a float that is cast to a narrower float
x.to(tl.float16, bitcast=True) | Cannot bitcast data-type of size 32 to data-type of size 16
x.to(tl.pointer_type(tl.int32)) | cannot cast fp32 to
(f + i).to(tl.float32) | cannot cast .*; a pointer casts to int64, int1 or another pointer
tl.reduce(k, 0, largest) | reduce needs tensors of rank 1 or more
tl.reduce((), 0, largest) | reduce needs at least one tensor
tl.reduce((x, tl.arange(0, 8)), 0, affine) | all operands of reduce must have one shape
tl.reduce(x, 0, two_results) | must return 1 values, one per operand, got 2
tl.reduce(n, 0, as_float) | must be int32 like its operand, got fp32
tl.reduce(x, 3, largest) | axis
tl.associative_scan(x, 1, largest) | axis
tl.xor_sum(x, 0) | xor_sum only supported for integers, got fp32
tl.sum(3, 0) | input must be a tensor
tl.sort(k) | needs a tensor of rank 1 or more
tl.sort(a, dim=0) | last
tl.topk(x, 3) | power of 2
tl.philox(1, u, u.to(tl.uint64), u, u) | philox needs counters of 32 or of 64 bits
tl.rand(1, x) | philox: offset must be an integer
tl.static_assert(k > 0) | constexpr|static_assert
tl.device_print(k) | prefix must be a string
tl.assume(q) | assume needs a scalar condition
tl.multiple_of(i, (16, 16)) | multiple_of
tl.max_contiguous(i, 2.5) | values must have type `constexpr\[int\]`
tl.inline_asm_elementwise(3, "=r,r", [n], tl.int32, True, 1) | must be a string, got 3
tl.inline_asm_elementwise("", "=r,r", [n], tl.int32, True, 0) | pack must be a positive constexpr int, got 0
tl.inline_asm_elementwise("", "=r,r", [n], (), True, 1) | must return at least one tensor
no_symbols(x) | arg_type_symbol_dict must have at least one row
tl.extra.libdevice.sin(n) | sin|int32
tl.range(0, x) | range needs integer scalars
tl.range(0, 4, 0) | step must not be 0
tl.range(0, 4, num_stages=-1) | num_stages must be a non-negative constexpr int, got -1
tl.static_range(0, k) | static_range needs constexpr integers
tl.static_range(0, 4, 0) | static_range: step must not be 0
Pair(x) | Pair lacks a value for field 'second'
Pair(x, y, n) | Pair takes 2 values, got 3
Pair(x, first=y, second=n) | Pair got a second value for field 'first'
Pair(x, second=n, third=n) | Pair got an unknown value for field 'third'
Pair(x, (y, n)) | field second of Pair must be tensor
Sized(x, k) | field size of Sized is constexpr, got
tl.aggregate_replace(Pair(x, y), third=n) | Pair has no field 'third'; its fields: first, second
Unset(x) | Unset.__init__ did not set second
Returning(x) | Returning.__init__ must not return a value
tl.pointer_type(3) | element_ty must be a dtype, got int
tl.str_to_ty("fp33", None) | unknown type 'fp33'
tl.full((4,), 0, tl.pointer_type(tl.int32)) | a number cannot be of type
tl.to_tensor(None) | cannot convert None to tensor
set_unknown(Pair(x, y)) | Pair has no field 'third'|immutable aggregate Pair
tl.cat(k, k) | cat needs two tensors of one shape and type, rank 1 or more
"""

COMPILED = r"""
int(k) | int\(\) runs at compile time and takes constants only
len(x) | a tensor has no len\(\): use x.shape\[0\] or x.numel
max(x) | max\(\) takes two values or more
min(1.0, float("nan")) | does not take NaN or -0.0
list(x, y) | list\(\) and tuple\(\) take one tuple
list(3) | list\(\) and tuple\(\) take one tuple
tl.tensor(x.handle, x.type) | tl.tensor cannot be made in a kernel
tl.constexpr(k) | tl.constexpr takes a constant
largest(*x) | `\*` takes a tuple
largest(**{}) | `\*\*` arguments are not supported|dict
largest(x, p=y) | multiple values for argument 'p'
largest(x, y, s=1) | unexpected argument 's'; it takes \(p, r\)
outlined_forever(k) | is marked noinline and calls itself
k in (1, 2) | `in` is for constants only
(x, y) < (n, m) | tuples with tensors compare by `==` and `!=` only
(x, y)[k:] | the bounds of a slice must be constants
[v for v in x] | a tuple, or a range with constant bounds, is needed here
[v for v in (x, y) if k > 0] | the `if` of a list comprehension must be known at compile time
x if Pair(x, y) else y | must be a bool, an int, None or a scalar tensor
x if not Pair(x, y) else y | neither true nor false
x.a: tl.constexpr = 3 ;; x | tl.constexpr annotates one name
with nothing(): return ;; x | Cannot have `return` statements inside `with` statements
2j | is not supported in a kernel
b"bytes" | is not supported in a kernel
p, r = x ;; p | cannot unpack .*: a tuple is needed
p, r = x, y, n ;; p | cannot unpack 3 values into 2 names
p, *r = x, y ;; p | a starred target is not supported in a kernel
p: tl.constexpr = k ;; p | constexpr
assert k > 0, n ;; k | the message of an assert must be a string constant
with x: pass ;; x | is no context manager
for p, r in range(3): pass ;; x | the target of `for` must be one name
tl.advance(tl.make_block_ptr(f, (8,), (1,), (0,), (8,), (0,)), (1,)) ;; x | The result of advance\(\) is not being used
for j in range(k): t = x + j ;; t | only the loop on line \d+ assigns it
while (t := tl.make_tensor_descriptor(f, [8, 8], [8, 1], [8, 8])).load([0, 0]).sum() < 0: pass ;; x | needs a value before the loop
t = k ;; for j in range(k): ;;     for t in range(3): pass ;; x | Loop-carried variable t has no value at the end of the loop
for j in range(k): ;;     if k > 1: return ;; x | Cannot have `return` statements inside
if k > 0: t = x ;; else: t = n ;; t | Mismatched type for t
t = x ;; for j in range(k): t = n ;; t | Loop-carried variable t has initial type
"""


def rows(text):
    return [pytest.param(*row.split(" | ", 1), id=row.split(" | ", 1)[0]) for row in text.strip().replace("\n  ", " ").splitlines()]


def more_helpers(jit):
    """Functions with mistakes."""

    @jit
    def collatz_one(p, r):
        return p

    @jit
    def mixed_types(p, r):
        return p.to(tl.float32), r.to(tl.int32)

    @jit
    def as_float(p, r):
        return p.to(tl.float32)

    @jit(noinline=True)
    def outlined_forever(p):
        return outlined_forever(p)

    @tl.core.builtin
    def set_unknown(pair, _semantic=None):
        pair.third = pair.first

    @tl.core.extern
    def no_symbols(p, _semantic=None):
        return tl.extern_elementwise("libdevice", "", [p], {}, is_pure=True, _semantic=_semantic)

    @tilewright.aggregate
    class Sized:
        first: tl.tensor
        size: tl.constexpr

    @tilewright.aggregate
    class Unset:
        first: tl.tensor
        second: tl.tensor

        def __init__(self, first):
            self.first = first

    @tilewright.aggregate
    class Returning:
        first: tl.tensor

        def __init__(self, first):
            self.first = first
            return first

    return {name: value for name, value in locals().items() if name != "jit"}


def mistaken(program, jit, folder):
    """(kernel, the lines of its file on which the program stands)."""
    program = program.replace(" ;; ", "\n")
    kernel = kernel_of([("", program)], jit, folder, more_helpers)
    first = 1 + len(PRELUDE.strip().splitlines()) + 4
    return kernel, range(first, first + len(program.splitlines()))


def check(error, message, kernel, lines):
    """The message, and that it is placed on the program's lines, with the line and carets."""
    text = str(error)
    assert re.search(message, text), text
    assert any(f"{kernel.file_name}:{line}:" in text for line in lines), text
    assert "^" in text, text


@pytest.mark.parametrize(("program", "message"), rows(BOTH) + rows(COMPILED))
def test_compiler(program, message, tmp_path):
    pytest.importorskip("mlir")
    from tilewright.compiler.frontend import KernelFunction, build_module

    jit = lambda fn=None, **options: KernelFunction(fn, **options) if fn else lambda f: KernelFunction(f, **options)  # noqa: E731
    kernel, lines = mistaken(program, jit, str(tmp_path))
    with pytest.raises(CompilationError) as caught:
        build_module(kernel, {"X": "*fp32", "N": "*i32", "S": "*i32", "F": "*fp32", "OUT": "*fp64"}, {}, None, None)
    check(caught.value, message, kernel, lines)


@pytest.mark.parametrize(("program", "message"), rows(BOTH))
def test_interpreter(program, message, tmp_path):
    kernel, lines = mistaken(program, interpreted_jit, str(tmp_path))
    with pytest.raises((InterpreterError, CompilationError)) as caught:
        kernel[(1,)](*inputs(1).values())
    check(caught.value, message, kernel, lines)
