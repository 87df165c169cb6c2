"""Loads, stores, atomics, block pointers, tensor descriptors: operations and refusals."""

from __future__ import annotations

import pytest
from recording_builder import Kernel

import tilewright.language as tl

PTR = tl.pointer_type(tl.float32)


@pytest.fixture
def k():
    with Kernel(debug=False) as kernel:
        yield kernel


def made(k, method):
    """Arguments and keywords of the only call of `method`."""
    calls = [(args, kwargs) for name, args, kwargs in k.builder.calls if name == method]
    assert len(calls) == 1, k.names()
    return calls[0]


# ---- loads and stores -------------------------------------------------------------------------------------------------------------


def test_load(k):
    p, m = k.value(PTR, 16), k.value(tl.int1, 16)
    r = tl.load(p, m, other=0, cache_modifier=".cg", eviction_policy="evict_last", volatile=True)
    (ptr, mask, other, ty), keywords = made(k, "load")
    assert (ptr, mask, ty) == (p.handle, m.handle, r.type)
    assert other is not None
    assert keywords == {"cache": "cg", "evict": "evict_last", "volatile": True}
    assert r.type is tl.block_type(tl.float32, (16,))


def test_scalar_load_without_mask(k):
    assert tl.load(k.value(PTR)).type is tl.float32
    assert made(k, "load")[0][1:3] == (None, None)


def test_mask_broadcasts_and_a_constant_true_mask_is_none(k):
    p = k.value(PTR, 16, 32)
    assert tl.load(p, k.value(tl.int1, 16, 1)).type.shape == (16, 32)
    k.builder.calls.clear()
    tl.load(p, True)
    assert made(k, "load")[0][1] is None


def test_booleans_are_bytes_in_memory(k):
    p = k.value(tl.pointer_type(tl.int1), 16)
    assert tl.load(p).dtype is tl.int1
    assert k.names() == ["bitcast", "load", "constant", "ne"]
    k.builder.calls.clear()
    tl.store(p, k.value(tl.int32, 16))
    assert k.names() == ["constant", "ne", "extui", "bitcast", "store"]
    assert made(k, "store")[0][3] is tl.block_type(tl.int8, (16,))


def test_stored_values_are_converted(k):
    p = k.value(tl.pointer_type(tl.float16), 4, 8)
    tl.store(p, k.value(tl.int32, 8))
    assert k.names() == ["sitofp", "expand_dims", "broadcast", "store"]
    k.builder.calls.clear()
    tl.store(p, 1.5)
    assert k.names() == ["constant", "store"]


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (lambda k: tl.load(k.value(tl.float32, 4)), r"Unsupported ptr type fp32\[4\] in `tl.load`"),
        (lambda k: tl.load(k.value(PTR, 4), other=1.0), "`other` cannot be provided without `mask`"),
        (lambda k: tl.load(k.value(PTR, 4), k.value(tl.int32, 4)), "Mask must have boolean scalar type, got int32"),
        (lambda k: tl.load(k.value(PTR), k.value(tl.int1, 4)), "Mask argument cannot be block type"),
        (lambda k: tl.load(k.value(PTR), k.value(tl.int1), k.value(tl.float32, 4)), "Other argument cannot be block type"),
        (
            lambda k: tl.load(k.value(PTR, 4), cache_modifier=".xx"),
            "Cache modifier .xx not supported; accepted: '', '.ca', '.cg', '.cs', '.cv'",
        ),
        (lambda k: tl.store(k.value(PTR, 4), 1, cache_modifier=".ca"), "Cache modifier .ca not supported; accepted: '', '.wb'"),
        (lambda k: tl.load(k.value(PTR, 4), eviction_policy="first"), "Eviction policy first not supported; accepted: '', 'evict_first'"),
        (lambda k: tl.load(k.value(PTR, 4), boundary_check=(0,)), "are for block pointers"),
        (lambda k: tl.store(k.value(tl.pointer_type(tl.int8, const=True)), 1), "Cannot store to a constant pointer"),
        (lambda k: tl.store(k.value(PTR), k.value(tl.float32, 4)), "Value argument cannot be block type"),
        (lambda k: tl.store(k.value(PTR, 4), k.value(tl.float32, 8, 4)), r"Expected pointer argument to have shape \[8, 4\]"),
    ],
)
def test_refused_accesses(k, access, message):
    with pytest.raises(ValueError, match=message):
        access(k)


# ---- atomics ------------------------------------------------------------------------------------------------------------------------

ATOMICS = [
    (tl.atomic_add, tl.int32, ["add"]),
    (tl.atomic_add, tl.bfloat16, ["fadd"]),
    (tl.atomic_max, tl.int64, ["max"]),
    (tl.atomic_min, tl.uint32, ["umin"]),
    (tl.atomic_and, tl.uint64, ["and"]),
    (tl.atomic_xor, tl.int32, ["xor"]),
    (tl.atomic_xchg, tl.int32, ["xchg"]),
    (tl.atomic_max, tl.float32, ["max", "umin"]),
    (tl.atomic_min, tl.float64, ["min", "umax"]),
]


@pytest.mark.parametrize(("function", "ty", "kinds"), ATOMICS, ids=lambda v: getattr(v, "__name__", str(v)))
def test_atomic(k, function, ty, kinds):
    r = function(k.value(tl.pointer_type(ty), 16), k.value(ty, 16), mask=k.value(tl.int1, 16), sem="relaxed", scope="cta")
    assert r.type is tl.block_type(ty, (16,))
    calls = [c for c in k.builder.calls if c[0] == "atomic_rmw"]
    assert [c[1][0] for c in calls] == kinds
    for _, args, keywords in calls:
        assert args[3] is not None
        assert keywords == {"sem": "relaxed", "scope": "cta"}


def test_float_exchange_and_compare_are_on_bits(k):
    p = k.value(PTR)
    assert tl.atomic_xchg(p, 1.0).type is tl.float32
    assert made(k, "atomic_rmw")[0][4] is tl.int32
    assert tl.atomic_cas(p, 0.0, 1.0).type is tl.float32
    assert made(k, "atomic_cas")[0][3] is tl.int32


def test_atomic_load_store_poll(k):
    p = k.value(tl.pointer_type(tl.int32))
    assert tl.atomic_load(p).type is tl.int32
    assert made(k, "atomic_load")[1] == {"sem": "acquire", "scope": "gpu"}
    tl.atomic_store(p, 1, sem="relaxed", scope="sys")
    assert made(k, "atomic_store")[1] == {"sem": "relaxed", "scope": "sys"}
    assert tl.atomic_poll(p, 1, timeout_ns=1000).type is tl.int1


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (lambda p: tl.atomic_add(p(tl.int16), 1), "atomic_add does not support int16; accepted: int32, uint32"),
        (lambda p: tl.atomic_max(p(tl.float16), 1.0), "atomic_max does not support fp16"),
        (lambda p: tl.atomic_and(p(tl.float32), 1), "atomic_and does not support fp32"),
        (lambda p: tl.atomic_cas(p(tl.int8), 1, 2), "atomic_cas only supports elements with width"),
        (
            lambda p: tl.atomic_add(p(tl.int32), 1, sem="seq"),
            "Memory semantic seq not supported; accepted: relaxed, acquire, release, acq_rel",
        ),
        (lambda p: tl.atomic_add(p(tl.int32), 1, scope="all"), "Memory scope all not supported; accepted: cta, gpu, sys"),
        (lambda p: tl.atomic_load(p(tl.int32), sem="release"), "Memory semantic release not supported; accepted: acquire, relaxed"),
    ],
)
def test_refused_atomics(k, access, message):
    with pytest.raises(ValueError, match=message):
        access(lambda ty: k.value(tl.pointer_type(ty)))


# ---- block pointers -------------------------------------------------------------------------------------------------------------------


def block(k, **changes):
    arguments = {"shape": (k.value(tl.int32), 64), "strides": (64, 1), "offsets": (0, 0), "block_shape": (16, 32), "order": (1, 0)}
    return tl.make_block_ptr(k.value(PTR), **{**arguments, **changes})


def test_block_pointer(k):
    p = block(k)
    assert p.dtype.element_ty is tl.float32
    moved = tl.advance(p, (0, 32))
    assert moved.type == p.type
    k.builder.calls.clear()
    r = tl.load(moved, boundary_check=(-1,), padding_option="zero")
    assert r.type is tl.block_type(tl.float32, (16, 32))
    assert made(k, "load")[0][1] is not None
    k.builder.calls.clear()
    tl.store(moved, r)
    assert made(k, "store")[0][2] is None


def test_block_pointer_is_carried_by_its_leaves(k):
    p = block(k)
    leaves = tl.core.flatten(p)
    assert [x.type for x in leaves] == [PTR] + [tl.int64] * 4 + [tl.int32] * 2
    fresh = [k.value(x.type) for x in leaves]
    rebuilt = tl.core.unflatten(p, iter(fresh))
    assert rebuilt.type == p.type
    assert tl.core.flatten(rebuilt) == fresh or [x.handle for x in tl.core.flatten(rebuilt)] == [x.handle for x in fresh]


@pytest.mark.parametrize(
    ("access", "error", "message"),
    [
        (lambda k: block(k, order=(0, 0)), ValueError, "order must be a permutation of 0 to 1"),
        (lambda k: block(k, strides=(1,)), ValueError, "strides has 1 items, block_shape has 2"),
        (lambda k: block(k, block_shape=(3, 8)), ValueError, "must be a power of 2"),
        (lambda k: block(k, offsets=(1.0, 0)), TypeError, "offsets must be integer scalars"),
        (lambda k: tl.load(block(k), k.value(tl.int1)), ValueError, "cannot be specified for loading block pointers"),
        (lambda k: tl.load(block(k), boundary_check=(2,)), ValueError, "invalid boundary_check dimension 2"),
        (lambda k: tl.load(block(k), padding_option="one"), ValueError, "Padding option one not supported"),
        (lambda k: tl.advance(k.value(PTR), (0,)), TypeError, "advance needs a block pointer"),
    ],
)
def test_refused_block_pointers(k, access, error, message):
    with pytest.raises(error, match=message):
        access(k)


# ---- tensor descriptors -----------------------------------------------------------------------------------------------------------------


def descriptor(k, ty=tl.float16, block_shape=(16, 32), **changes):
    arguments = {"shape": [k.value(tl.int32), 64], "strides": [64, 1], "block_shape": block_shape}
    return tl.make_tensor_descriptor(k.value(tl.pointer_type(ty)), **{**arguments, **changes})


def test_descriptor(k):
    d = descriptor(k)
    assert (d.dtype, d.block_shape) == (tl.float16, [16, 32])
    assert [x.type for x in d.shape] == [tl.int32] * 2
    assert [x.type for x in d.strides] == [tl.int64] * 2
    r = d.load([0, k.value(tl.int64)])
    assert r.type is tl.block_type(tl.float16, (16, 32))
    d.store([0, 0], k.value(tl.float32, 16, 32))
    assert made(k, "descriptor_store")[0][3] is r.type
    d.atomic_add([0, 0], r)
    assert made(k, "descriptor_reduce")[0][0] == "add"
    assert tl.core.unflatten(d, iter(tl.core.flatten(d))).type == d.type


def test_gather_and_scatter(k):
    d = descriptor(k, block_shape=(1, 32))
    rows = k.value(tl.int16, 8)
    assert d.gather(rows, 0).type is tl.block_type(tl.float16, (8, 32))
    d.scatter(k.value(tl.float16, 8, 32), rows, 0)
    assert "descriptor_scatter" in k.names()


@pytest.mark.parametrize(
    ("access", "error", "message"),
    [
        (lambda k: descriptor(k, strides=[64, 2]), ValueError, "last dim must be 1 but got 2"),
        (lambda k: descriptor(k, strides=[64, k.value(tl.int32)]), ValueError, "pass the constant 1"),
        (lambda k: descriptor(k, strides=[7, 1]), ValueError, "multiples of 16 bytes"),
        (lambda k: descriptor(k, block_shape=(16, 4)), ValueError, "at least 16 bytes in the last dimension"),
        (lambda k: descriptor(k, shape=[4]), ValueError, "must be as long"),
        (lambda k: descriptor(k, padding_option="one"), ValueError, "accepted: 'zero', 'nan'"),
        (lambda k: descriptor(k, tl.int16, padding_option="nan"), ValueError, "needs floats"),
        (lambda k: descriptor(k).load([0]), ValueError, "expected 2 offsets"),
        (lambda k: descriptor(k).load([0, 1.0]), TypeError, "must be integer scalars"),
        (lambda k: descriptor(k).store([0, 0], k.value(tl.float16, 8, 32)), ValueError, r"block shape \[16, 32\]"),
        (lambda k: descriptor(k, tl.int16).atomic_add([0, 0], k.value(tl.int16, 16, 32)), ValueError, "does not support int16; accepted"),
        (lambda k: descriptor(k).gather(k.value(tl.int32, 8), 0), ValueError, r"block shape \[1, N\], got \[16, 32\]"),
        (lambda k: descriptor(k, block_shape=(1, 32)).gather(k.value(tl.int32, 4), 0), ValueError, "at least 8 rows"),
        (lambda k: tl.make_tensor_descriptor(k.value(tl.int32), [1], [1], [16]), TypeError, "base must be a scalar pointer"),
    ],
)
def test_refused_descriptors(k, access, error, message):
    with pytest.raises(error, match=message):
        access(k)
