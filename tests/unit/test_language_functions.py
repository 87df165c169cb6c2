"""Shapes, products, reductions, standard functions, hints, user types: operations and refusals."""

from __future__ import annotations

from collections import namedtuple

import pytest
from recording_builder import Kernel

import tilewright as triton
import tilewright.language as tl

PTR = tl.pointer_type(tl.float32)


@pytest.fixture
def k():
    with Kernel(debug=False) as kernel:
        yield kernel


# ---- calling a builtin -----------------------------------------------------------------------------------------------


def test_builtins_need_a_kernel():
    with pytest.raises(RuntimeError, match="work only inside a @jit function"):
        tl.arange(0, 4)


def test_constexpr_arguments_are_unwrapped(k):
    c = tl.constexpr
    assert tl.full((c(4), c(8)), c(1), c(tl.float16)).type is tl.block_type(tl.float16, (4, 8))
    assert tl.arange(c(0), c(4), _semantic=k).type.shape == (4,)


def test_extern_functions_of_older_releases(k):
    @tl.core.extern
    def mine(x, _builder=None):
        return tl.core.extern_elementwise("lib", "", [x], {(tl.float32,): ("f", tl.float32)}, is_pure=True, _builder=_builder)

    assert mine(k.value(tl.float32, 4)).dtype is tl.float32
    assert k.last()[1][:3] == ("f", "lib", "")


# ---- constexpr, tuples -----------------------------------------------------------------------------------------------


def test_constexpr_arithmetic():
    c = tl.constexpr
    assert (c(7) // 2 * c(3) - 1).value == 8
    assert (2 ** c(3)).value == 8
    assert bool(c(3) == 3)
    assert not bool(c("a") != "a")
    assert c(c(5)).value == 5
    assert (-c(3)).value == -3
    assert [10, 20, 30][c(1)] == 20
    assert c((1, 2))[c(1)].value == 2
    assert hash(c(1)) != hash(c(1.0)) != hash(c(True))
    assert c(0).__not__().value is True


def test_tuples(k):
    t = tl.tuple((1, k.value(tl.int32), 3))
    assert t[tl.constexpr(0)] == 1
    assert isinstance(t[tl.slice(0, 2)], tl.tuple)
    assert len(t + (4,)) == 4
    assert t.type.types[1] is tl.int32
    Pair = namedtuple("Pair", "a b")
    pair = Pair(k.value(tl.float32, 4), (k.value(tl.int32), "text"))
    leaves = tl.core.flatten(pair)
    assert [x.type for x in leaves] == [tl.block_type(tl.float32, (4,)), tl.int32]
    back = tl.core.unflatten(pair, iter(leaves))
    assert isinstance(back, Pair)
    assert back.b[1] == "text"
    assert tl.core.type_of(pair).fields == ["a", "b"]


# ---- shapes -----------------------------------------------------------------------------------------------

SHAPES = [
    (lambda x: x[:, None, :], (4, 1, 8)),
    (lambda x: x[None], (1, 4, 8)),
    (lambda x: tl.expand_dims(x, (0, -1)), (1, 4, 8, 1)),
    (lambda x: x.reshape(8, 4), (8, 4)),
    (lambda x: x.reshape((2, 2, 8)), (2, 2, 8)),
    (lambda x: tl.view(x, [32]), (32,)),
    (lambda x: tl.ravel(x), (32,)),
    (lambda x: x.T, (8, 4)),
    (lambda x: tl.trans(x), (8, 4)),
    (lambda x: tl.permute(x, (1, 0)), (8, 4)),
    (lambda x: tl.permute(x[None], 2, 0, 1), (8, 1, 4)),
    (lambda x: x[:, :, None].broadcast_to(4, 8, 2), (4, 8, 2)),
    (lambda x: tl.join(x, x), (4, 8, 2)),
    (lambda x: tl.interleave(x, x), (4, 16)),
    (lambda x: tl.split(x.reshape(16, 2))[1], (16,)),
    (lambda x: tl.cat(x, x, dim=1), (4, 16)),
    (lambda x: tl.cat(x, x), (8, 8)),
    (lambda x: tl.squeeze(x[None], 0), (4, 8)),
    (lambda x: tl.unsqueeze(x, -1), (4, 8, 1)),
    (lambda x: tl.flip(x, 0), (4, 8)),
    (lambda x: tl.sum(x, 0), (8,)),
    (lambda x: tl.sum(x, 1, keep_dims=True), (4, 1)),
    (lambda x: tl.sum(x), ()),
    (lambda x: tl.max(x, keep_dims=True), (1, 1)),
    (lambda x: tl.sum(x, None).reshape(1, 1), (1, 1)),
    (lambda x: tl.max(x, 1, return_indices=True)[1], (4,)),
    (lambda x: tl.cumsum(x, 1, reverse=True), (4, 8)),
    (lambda x: tl.sort(x), (4, 8)),
    (lambda x: tl.topk(x, 2), (4, 2)),
    (lambda x: tl.softmax(x, 1), (4, 8)),
    (lambda x: tl.gather(x, (x * 0).to(tl.int32), 1), (4, 8)),
    (lambda x: tl.zeros_like(x), (4, 8)),
    (lambda x: tl.broadcast(x, x[None])[0], (1, 4, 8)),
    (lambda x: tl.full((), 0, tl.int32), ()),
]


@pytest.mark.parametrize(("function", "shape"), SHAPES, ids=range(len(SHAPES)))
def test_shape(k, function, shape):
    assert function(k.value(tl.float32, 4, 8)).type.shape == shape


def test_split_of_two_elements_gives_scalars(k):
    a, b = tl.split(tl.join(k.value(tl.int32), k.value(tl.int32)))
    assert a.type is b.type is tl.int32


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (
            lambda k: tl.maximum(1, 2, None, 4),
            TypeError,
            r"maximum\(\) takes 3 positional arguments \(x, y, propagate_nan\) but 4 were given",
        ),
        (lambda k: tl.arange(0, 3), ValueError, "arange's range must be a power of 2"),
        (lambda k: tl.arange(4, 4), ValueError, "arange's end argument must be greater than the start argument"),
        (lambda k: tl.arange(0, k.value(tl.int32)), ValueError, "arange's arguments must be of type tl.constexpr"),
        (lambda k: tl.arange(0, 2**32), ValueError, "arange must fit in int32"),
        (lambda k: tl.program_id(3), ValueError, "program_id axis must be 0, 1, or 2 but got 3"),
        (lambda k: tl.zeros((k.value(tl.int32),), tl.int32), TypeError, r"must have type `constexpr\[int\]`, got `int32`"),
        (lambda k: tl.full((4,), 1.5, tl.int32), ValueError, "1.5 is no integer"),
        (lambda k: tl.full((4,), 256, tl.uint8), ValueError, "Scalar 256 is out of range for type uint8"),
        (lambda k: tl.full((4,), 0, "fp32"), TypeError, "dtype must be a type such as tl.float32"),
        (lambda k: k.value(tl.int32, 4)[:, :], ValueError, "too many indices for tensor of rank 1"),
        (lambda k: k.value(tl.int32, 4)[0], ValueError, "unsupported tensor index: 0"),
        (lambda k: k.value(tl.int32, 4)[1:2], ValueError, "unsupported tensor index: 1:2"),
        (lambda k: k.value(tl.int32, 4).reshape(8), ValueError, "cannot reshape"),
        (lambda k: k.value(tl.int32, 4, 8).permute(0, 0), ValueError, "must be a permutation of 0 to 1"),
        (lambda k: k.value(tl.int32, 4, 8).broadcast_to(4, 4), ValueError, "cannot broadcast"),
        (lambda k: tl.split(k.value(tl.int32, 4)), ValueError, "last dimension of size 2"),
        (lambda k: tl.expand_dims(k.value(tl.int32, 4), (0, 0)), ValueError, "duplicate axes"),
        (lambda k: tl.sum(k.value(tl.int32, 4), 1), ValueError, "invalid axis 1: a tensor of rank 1 has -1 to 0"),
        (lambda k: tl.sum(k.value(tl.int32)), ValueError, "reduce needs tensors of rank 1 or more"),
        (lambda k: tl.xor_sum(k.value(tl.float32, 4)), ValueError, "xor_sum only supported for integers"),
        (lambda k: tl.sort(k.value(tl.int32, 4, 4), 0), ValueError, r"the last dimension \(1\)"),
        (lambda k: tl.topk(k.value(tl.int32, 4), 3), ValueError, "k must be a power of 2 from 1 to 4"),
        (lambda k: tl.histogram(k.value(tl.float32, 4), 4), ValueError, "1-D tensor of int32 or uint32"),
        (lambda k: tl.gather(k.value(tl.int32, 4), k.value(tl.float32, 4), 0), TypeError, "integer index"),
        (lambda k: k.value(tl.int32, 4).item(), ValueError, "one element"),
        (lambda k: tl.multiple_of(k.value(tl.int32, 4), (16, 16)), ValueError, "does not match the length of values"),
        (lambda k: tl.static_assert(k.value(tl.int1)), NotImplementedError, "could not be determined at compile-time"),
        (lambda k: tl.static_assert(False, "why"), AssertionError, "why"),
        (lambda k: tl.device_print("tab\t"), ValueError, "printable ASCII"),
        (lambda k: tl.range(0, 1.5), TypeError, "range needs integer scalars"),
        (lambda k: tl.range(0, 4, 0), ValueError, "step must not be 0"),
        (lambda k: tl.static_range(k.value(tl.int32)), TypeError, "use tl.range"),
    ],
)
def test_refused(k, function, error, message):
    with pytest.raises(error, match=message):
        function(k)


# ---- reductions and scans -----------------------------------------------------------------------------------------------

REDUCTIONS = [
    (tl.sum, tl.int1, tl.uint32, "addi"),
    (tl.sum, tl.int8, tl.int32, "addi"),
    (tl.sum, tl.uint16, tl.uint32, "addi"),
    (tl.sum, tl.bfloat16, tl.bfloat16, "addf"),
    (lambda x, axis: tl.sum(x, axis, dtype=tl.float32), tl.bfloat16, tl.float32, "addf"),
    (tl.max, tl.float16, tl.float32, "maxnumf"),
    (tl.min, tl.uint8, tl.int32, "minsi"),
    (tl.max, tl.uint32, tl.uint32, "maxui"),
    (tl.xor_sum, tl.int8, tl.int8, "xori"),
    (tl.reduce_or, tl.int1, tl.int1, "ori"),
    (tl.cumsum, tl.int1, tl.uint32, "addi"),
    (tl.cumprod, tl.float32, tl.float32, "mulf"),
]


@pytest.mark.parametrize(("function", "source", "result", "kind"), REDUCTIONS, ids=lambda v: getattr(v, "__name__", str(v)))
def test_reduction_types(k, function, source, result, kind):
    assert function(k.value(source, 16), 0).dtype is result
    assert k.names()[-1] == kind


def test_reduction_of_a_tuple(k):
    a, b = k.value(tl.float32, 4, 8), k.value(tl.int32, 4, 8)
    r = tl.reduce((a, b), 1, lambda a1, b1, a2, b2: (a1 + a2, b1 * b2))
    assert [x.type for x in r] == [tl.block_type(tl.float32, (4,)), tl.block_type(tl.int32, (4,))]


@pytest.mark.parametrize(
    ("combine", "error", "message"),
    [
        (lambda a, b: (a, b), ValueError, "must return 1 values"),
        (lambda a, b: a < b, TypeError, "must be fp32 like its operand, got int1"),
        (3, TypeError, "expected a function"),
    ],
)
def test_bad_combine_functions(k, combine, error, message):
    with pytest.raises(error, match=message):
        tl.reduce(k.value(tl.float32, 4), 0, combine)


def test_map_elementwise(k):
    x = k.value(tl.int32, 8)
    r = tl.map_elementwise(lambda a, b: (a + b, a < b), x, x)
    assert [t.dtype for t in r] == [tl.int32, tl.int1]
    assert tl.map_elementwise(lambda a0, a1: (a0 + a1, a0 - a1), x, pack=2).type is x.type


# ---- products -----------------------------------------------------------------------------------------------

DOTS = [
    (tl.float16, tl.float16, {}, tl.float32),
    (tl.float16, tl.float16, {"out_dtype": tl.float16}, tl.float16),
    (tl.bfloat16, tl.bfloat16, {}, tl.float32),
    (tl.int8, tl.uint8, {}, tl.int32),
    (tl.int8, tl.int8, {"out_dtype": tl.float32}, tl.int32),
    (tl.float64, tl.float64, {}, tl.float64),
    (tl.float8e5, tl.float8e4nv, {}, tl.float32),
    (tl.float32, tl.float32, {"input_precision": "tf32x3"}, tl.float32),
]


@pytest.mark.parametrize(("a", "b", "keywords", "result"), DOTS)
def test_dot(k, a, b, keywords, result):
    r = tl.dot(k.value(a, 16, 32), k.value(b, 32, 8), **keywords)
    assert r.type is tl.block_type(result, (16, 8))
    assert k.last()[2]["precision"] == keywords.get("input_precision", "tf32")


def test_dot_of_batches_and_accumulators(k):
    a, b = k.value(tl.float16, 2, 4, 16, 32), k.value(tl.float16, 2, 4, 32, 8)
    assert tl.dot(a, b).type.shape == (2, 4, 16, 8)
    acc = k.value(tl.float16, 16, 8)
    assert tl.dot(k.value(tl.float16, 16, 32), k.value(tl.float16, 32, 8), acc).type is acc.type
    assert k.last()[1][2] == acc.handle


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda k: tl.dot(k.value(tl.float16, 16, 8), k.value(tl.float16, 8, 16)), "M >= 1, N >= 1 and K >= 16"),
        (lambda k: tl.dot(k.value(tl.float16, 16, 16), k.value(tl.float32, 16, 16)), "Both operands must be same dtype. Got fp16 and fp32"),
        (lambda k: tl.dot(k.value(tl.int32, 16, 16), k.value(tl.int32, 16, 16)), "dot does not support int32; accepted: int8"),
        (lambda k: tl.dot(k.value(tl.float16, 16, 16), k.value(tl.float16, 32, 16)), "are not compatible for matmul"),
        (
            lambda k: tl.dot(k.value(tl.float16, 16, 16), k.value(tl.float16, 16, 16), out_dtype=tl.bfloat16),
            "bfloat16 is unsupported",
        ),
        (
            lambda k: tl.dot(k.value(tl.float16, 16, 16), k.value(tl.float16, 16, 16), k.value(tl.float32, 8, 16)),
            r"acc must be fp32\[16, 16\]",
        ),
        (lambda k: tl.dot(k.value(tl.float32, 16, 16), k.value(tl.float32, 16, 16), input_precision="x"), "input_precision must be one of"),
        (
            lambda k: tl.dot(k.value(tl.float32, 16, 16), k.value(tl.float32, 16, 16), input_precision="ieee", allow_tf32=True),
            "only one of input_precision and allow_tf32",
        ),
    ],
)
def test_refused_dots(k, function, message):
    with pytest.raises(ValueError, match=message):
        function(k)


def test_dot_scaled(k):
    a, b = k.value(tl.uint8, 16, 32), k.value(tl.float8e4nv, 64, 8)
    r = tl.dot_scaled(a, k.value(tl.uint8, 16, 2), "e2m1", b, k.value(tl.uint8, 8, 2), "e4m3")
    assert r.type is tl.block_type(tl.float32, (16, 8))
    with pytest.raises(ValueError, match=r"lhs_scale must have shape \[16, 2\] or \[16, 4\]"):
        tl.dot_scaled(a, k.value(tl.uint8, 8, 2), "e2m1", b, None, "e4m3")
    with pytest.raises(ValueError, match="format 'e3m2' of rhs not supported"):
        tl.dot_scaled(a, None, "e2m1", b, None, "e3m2")


# ---- libraries, targets, hints -----------------------------------------------------------------------------------------------


def test_libdevice_chooses_by_type_and_target():
    with Kernel() as k:
        lib = tl.extra.libdevice
        assert lib.pow(k.value(tl.float32, 4), 2).dtype is tl.float32
        assert k.last()[1][:2] == ("__nv_powif", "libdevice")
        assert lib.float2ll_rn(k.value(tl.float32, 4)).dtype is tl.int64
        assert lib.atan2(k.value(tl.float64, 4), k.value(tl.float32, 4)).dtype is tl.float64
        with pytest.raises(ValueError, match=r"Expect one of \(fp32\), \(fp64\), got \(fp16\)"):
            lib.sin(k.value(tl.float16, 4))
        with pytest.raises(ValueError, match="Expect 2, got 1"):
            lib.fmod(k.value(tl.float32, 4))
    with Kernel(target=("hip", "gfx942")) as k:
        tl.extra.libdevice.sin(k.value(tl.float32, 4))
        assert k.last()[1][:2] == ("__ocml_sin_f32", "ocml")
        with pytest.raises(NotImplementedError, match="libdevice has no brev on hip"):
            tl.extra.libdevice.brev(k.value(tl.int32, 4))


def test_target_info():
    with Kernel(target=("cuda", 90)):
        assert tl.target_info.is_cuda()
        assert tl.target_info.cuda_capability_geq(9)
        assert not tl.target_info.cuda_capability_geq(10, 0)
    with Kernel(target=("hip", "gfx950:sramecc+")):
        assert tl.target_info.is_hip_cdna4()
    assert tl.target_info.current_target() is None


def test_hints_are_on_the_value_itself(k):
    x = k.value(tl.int32, 4, 8)
    assert tl.max_contiguous(tl.multiple_of(x, [16, 8]), (1, 8)) is x
    assert [(c[1][0], c[1][1], c[1][2]) for c in k.builder.calls] == [
        (x.handle, "tile.divisibility", (16, 8)),
        (x.handle, "tile.contiguity", (1, 8)),
    ]
    assert tl.multiple_of(8, 8) == 8


def test_device_assert_only_in_debug(k):
    tl.device_assert(k.value(tl.int1, 4), "no")
    assert not k.builder.calls
    with Kernel(debug=True) as debug:
        tl.device_assert(debug.value(tl.int32, 4), "no", mask=debug.value(tl.int1, 4))
        assert debug.last()[0] == "assert_"


def test_print(k):
    tl.device_print("x", k.value(tl.uint8, 4), 3)
    _, (prefix, values, _), keywords = k.last()
    assert prefix == " x: "
    assert len(values) == 2
    assert keywords == {"hex": False, "is_signed": [False, True]}


def test_loops(k):
    r = tl.range(0, k.value(tl.int64), 2, num_stages=3)
    assert (r.start, r.step, r.num_stages, r.counter_type()) == (0, 2, 3, tl.int64)
    assert list(tl.static_range(tl.constexpr(4), 0, -2)) == [4, 2]
    with pytest.raises(TypeError, match="known only at run time"):
        bool(k.value(tl.int1))


# ---- user types -----------------------------------------------------------------------------------------------


@triton.aggregate
class Span:
    start: tl.tensor
    size: tl.constexpr

    @triton.constexpr_function
    def __init__(self, start, size=4):
        self.start = start
        self.size = size

    def end(self):
        return self.start + self.size

    def __add__(self, by):
        return Span(self.start + by, self.size)


@triton.aggregate
class Named(Span):
    name: tl.constexpr

    def __init__(self, start, name, _semantic=None):
        super().__init__(start)
        self.name = name


@triton.aggregate
class Plain:
    x: tl.tensor
    label: tl.constexpr = "none"


def test_aggregates(k):
    span = Span(k.value(tl.int32), 8)
    assert span.size.value == 8
    assert span.end().dtype is tl.int32
    assert (span + 1).type == span.type
    assert tl.core.flatten(span) == [span.start] or tl.core.flatten(span)[0] is span.start
    fresh = k.value(tl.int32)
    assert tl.core.unflatten(span, iter([fresh])).start is fresh
    with pytest.raises(AttributeError, match="cannot assign to field 'size' on immutable aggregate Span; use aggregate_replace"):
        span.size = 3
    assert tl.aggregate_replace(span, size=2).size.value == 2


def test_aggregates_inherit_and_default(k):
    named = Named(k.value(tl.int32), "n")
    assert (named.size.value, named.name.value) == (4, "n")
    assert named.end().dtype is tl.int32
    plain = Plain(1.0)
    assert plain.x.dtype is tl.float32
    assert plain.label.value == "none"
    assert Plain(x=k.value(tl.int32), label="b").label.value == "b"
    with pytest.raises(TypeError, match="lacks a value for field 'x'"):
        Plain()
    with pytest.raises(TypeError, match="field x of Plain must be tensor"):
        Plain("text")


def test_constexpr_functions():
    assert triton.cdiv(tl.constexpr(7), 2) == 4
    assert [triton.next_power_of_2(n) for n in (0, 1, 2, 3, 1000)] == [0, 1, 2, 4, 1024]
