"""Tensor maps: made once for the same arguments, passed behind the other parameters, refused where TMA's rules are broken."""

from __future__ import annotations

import ctypes
import struct

import pytest
from fake_gpu import Tensor, active_gpu, fake_compile
from hypothesis import given
from hypothesis import strategies as st

import tilewright.language as tl
import tilewright.runtime.jit as jit_module
from tilewright.runtime.drivers import libcuda
from tilewright.runtime.jit import jit
from tilewright.runtime.tensor_maps import (
    _DATA_TYPES,
    _PROMOTIONS,
    _SWIZZLES,
    MAX_CACHED,
    TensorMapError,
    TensorMaps,
    divide,
    encode,
    remainder,
    wrap,
)
from tilewright.tools.tensor_descriptor import TensorDescriptor

LOAD = {
    "base": "a0",
    "shape": ["a2", "a3"],
    "strides": ["a3"],
    "element": "f16",
    "padding": "zero",
    "stores": False,
    "box": [64, 64],
    "swizzle": 128,
    "promotion": 256,
}
STORE = {**LOAD, "stores": True, "base": "(a1 + 2 * wrap(a3 * 32, 32))", "shape": ["a2", "64"], "strides": ["64"]}


def kernel(x, y, m, n, B: tl.constexpr):
    pass


def captures(x, y, m, n, B: tl.constexpr):
    m + WIDTH


WIDTH = 5


@pytest.fixture
def gpu(monkeypatch):
    yield from active_gpu(monkeypatch, [LOAD, STORE])


def bases(launch: dict) -> list[int]:
    return [struct.unpack_from("<Q", m)[0] for m in launch["maps"]]


def test_maps_are_made_once_for_the_same_arguments(gpu):
    x, y = Tensor(4096, "float16"), Tensor(65536, "float16")
    launch = jit(kernel)
    for _ in range(4):
        launch[(3,)](x, y, 128, 256, B=64)
    assert gpu.encoded == [(4096, (128, 256), (512,)), (65536 + 2 * 256 * 32, (128, 64), (128,))]
    assert all(seen["maps"] == gpu.launches[0]["maps"] and seen["values"] == [4096, 65536, 128, 256] for seen in gpu.launches)
    assert bases(gpu.launches[0]) == [4096, 65536 + 2 * 256 * 32]


def test_each_launch_gets_the_maps_of_its_arguments(gpu):
    launch = jit(kernel)
    y = Tensor(65536, "float16")
    for _ in range(2):
        for base in (4096, 8192, 12288):
            launch[(1,)](Tensor(base, "float16"), y, 128, 256, B=64)
            assert bases(gpu.launches[-1])[0] == base
    assert [base for base, _, _ in gpu.encoded] == [4096, 65536 + 2 * 256 * 32, 8192, 12288]
    launch[(1,)](Tensor(4096, "float16"), y, 160, 256, B=64)
    assert [shape for _, shape, _ in gpu.encoded[4:]] == [(160, 256), (160, 64)]


def test_generated_code_launches_known_arguments(gpu, monkeypatch):
    launch = jit(captures)
    monkeypatch.setitem(captures.__globals__, "WIDTH", tl.constexpr(5))
    arguments = [Tensor(base, "float16") for base in (4096, 8192)]
    for x in arguments:
        launch[(1,)](x, x, 128, 256, B=64)
    general = []
    monkeypatch.setattr(type(launch), "launch", lambda self, *args: general.append(args))
    for x in arguments:
        launch[(1,)](x, x, 128, 256, B=64)
    assert not general and len(gpu.launches) == 4


@pytest.mark.parametrize(
    ("x", "m", "n", "text"),
    [
        (4104, 128, 256, r"tensor descriptor of x cannot be used: its address 0x1008 is no multiple of 16 bytes"),
        (4096, 128, 260, r"of x cannot be used: stride 260 \(n\) of dimension 0, 520 bytes, is no multiple of 16 bytes"),
        (4096, -1, 256, r"of x cannot be used: size -1 of dimension 0 is not from 1 to 2\^32"),
    ],
)
def test_rules_of_tma(gpu, x, m, n, text):
    """Where they are broken, a kernel without TMA is launched."""
    launch = jit(kernel)
    arguments = Tensor(x, "float16"), Tensor(4096, "float16"), m, n
    plain = launch[(1,)](*arguments, B=64)
    assert not plain.metadata.tma and not gpu.launches[-1]["maps"]
    aligned = launch[(1,)](Tensor(4096, "float16"), Tensor(4096, "float16"), 128, 256, B=64)
    assert aligned.metadata.tma and len(gpu.launches[-1]["maps"]) == 2
    assert launch[(1,)](*arguments, B=64) is plain
    with pytest.raises(TensorMapError, match=text):
        aligned.run.maps.of([*(getattr(a, "pointer", a) for a in arguments)])
    aligned[(1,)](*arguments, 64)
    assert not gpu.launches[-1]["kernel"].metadata.tma and not gpu.launches[-1]["maps"]


def refuse(self, *_):
    raise AssertionError("the general path")


def test_generated_code_chooses_the_variant(gpu, monkeypatch):
    """The kernel without TMA is as cheap to launch as the other; maps of new arrays are made on the way."""
    launch = jit(kernel)
    y = Tensor(65536, "float16")
    by_tma = launch[(1,)](Tensor(4096, "float16"), y, 128, 256, B=64)
    plain = launch[(1,)](Tensor(4096, "float16"), y, -16, 256, B=64)
    assert by_tma.metadata.tma and not plain.metadata.tma
    monkeypatch.setattr(type(launch), "launch", refuse)
    for x, m, kernel_ in ((8192, 128, by_tma), (4096, -16, plain), (8192, -32, plain), (4096, 128, by_tma), (12288, 160, by_tma)):
        assert launch[(1,)](Tensor(x, "float16"), y, m, 256, B=64) is kernel_
        assert gpu.launches[-1]["kernel"] is kernel_ and gpu.launches[-1]["values"] == [x, 65536, m, 256]
        assert bases(gpu.launches[-1])[:1] == ([x] if kernel_ is by_tma else [])


def test_conditions(gpu, monkeypatch):
    """What a kernel was compiled for decides like TMA's rules."""
    recipe = {**LOAD, "conditions": ["a2 > 0", "a2 % 128 == 0"]}
    monkeypatch.setattr(jit_module, "compile", fake_compile(gpu.compiled, [recipe]))
    launch = jit(kernel)
    x = Tensor(4096, "float16")
    for m, tma in ((128, True), (144, False), (256, True), (160, False), (-128, False)):
        assert launch[(1,)](x, x, m, 256, B=64).metadata.tma == tma
    assert [options.get("tma", True) for _, options in gpu.compiled] == [True, False]
    with pytest.raises(TensorMapError, match=r"kernel was compiled for arguments with m % 128 == 0"):
        launch[(1,)](x, x, 128, 256, B=64).run.maps.of([4096, 4096, 144, 256])


def test_a_map_that_the_driver_refuses(gpu, monkeypatch):
    monkeypatch.setattr(gpu, "encode_tensor_map", lambda *_: (_ for _ in ()).throw(RuntimeError("cuTensorMapEncodeTiled: invalid value")))
    assert not jit(kernel)[(1,)](Tensor(4096, "float16"), Tensor(4096, "float16"), 128, 256, B=64).metadata.tma


def test_rows_that_are_stored_end_with_16_bytes():
    for stores, takes in ((False, True), (True, False)):
        maps = TensorMaps("k", [{**LOAD, "stores": stores, "strides": ["1024"]}], ["*fp16"] * 2 + ["i32"] * 2, "xymn", lambda *_: b"map")
        if takes:
            assert maps.of([4096, 0, 8, 210]) == (b"map",)
        else:
            with pytest.raises(TensorMapError, match="rows of 420 bytes, which are stored, are no multiple of 16 bytes"):
                maps.of([4096, 0, 8, 210])
        assert maps.of([4096, 0, 8, 208]) == (b"map",)


def test_no_map_of_no_array(gpu):
    jit(kernel)[(1,)](Tensor(4096, "float16"), Tensor(4096, "float16"), 0, 256, B=64)
    assert gpu.encoded == [] and gpu.launches[0]["maps"] == [bytes(128)] * 2


def test_dictionaries_do_not_grow_for_ever():
    maps = TensorMaps("k", [LOAD], ["*fp16", "*fp16", "i32", "i32"], "xymn", lambda *_: bytes(128))
    for base in range(0, 16 * (MAX_CACHED + 10), 16):
        maps.of([base, 0, 128, 256])
    assert len(maps.made) <= MAX_CACHED


def test_unsigned_parameters_are_signed_in_expressions():
    seen = []
    descriptor = {**LOAD, "shape": ["max(a2, 7)", "a3"]}
    maps = TensorMaps("k", [descriptor], ["*fp16", "*fp16", "u32", "i32"], "xymn", lambda *args: seen.append(args) or b"")
    maps.of([16, 0, 2**32 - 1, 256])
    assert seen[0][2] == [7, 256]


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_arithmetic_is_that_of_the_device(a, b):
    assert wrap(a + b, 32) == struct.unpack("<i", struct.pack("<I", (a + b) & 0xFFFFFFFF))[0]
    if b:
        assert divide(a, b) * b + remainder(a, b) == a
        assert abs(remainder(a, b)) < abs(b) and remainder(a, b) * a >= 0


def on_descriptors(x, y, n, B: tl.constexpr):
    pass


def test_descriptors_made_on_the_host(gpu, monkeypatch):
    recipe = {**LOAD, "shape": ["a1", "a2"], "strides": ["a3"]}
    monkeypatch.setattr(jit_module, "compile", fake_compile([], [recipe]))
    launch = jit(on_descriptors)
    general = []
    run = type(launch).launch
    monkeypatch.setattr(type(launch), "launch", lambda self, *args: general.append(args) or run(self, *args))

    def descriptor(base: int, rows: int, block: tuple[int, int] = (64, 64)) -> TensorDescriptor:
        return TensorDescriptor(DescribedTensor(base, "float16"), [rows, 256], [256, 1], list(block))

    for _ in range(3):
        for base, rows in ((4096, 128), (8192, 128), (4096, 160)):
            launch[(2,)](descriptor(base, rows), descriptor(65536, 64), 7, B=64)
            assert gpu.launches[-1]["values"] == [base, rows, 256, 256, 1, 65536, 64, 256, 256, 1, 7]
            assert bases(gpu.launches[-1]) == [base]
    assert gpu.encoded == [(4096, (128, 256), (512,)), (8192, (128, 256), (512,)), (4096, (160, 256), (512,))]
    assert len(general) == 1
    kernels = {launch[(2,)](descriptor(4096, 128, block), descriptor(65536, 64), 7, B=64) for block in ((64, 64), (32, 64)) * 2}
    assert len(kernels) == 2
    padded = descriptor(4096, 128)
    padded.padding = "nan"
    assert launch[(2,)](padded, descriptor(65536, 64), 7, B=64) not in kernels


class DescribedTensor(Tensor):
    """A tensor with what TensorDescriptor asks of it."""

    def element_size(self) -> int:
        return 2


def test_what_the_driver_is_told(monkeypatch):
    """`encode` over a function that plays the driver's, with the values of its enumerations."""
    seen = []

    def driver(at, kind, rank, base, *rest):
        assert at % 64 == 0
        sizes, strides = (list((ctypes.c_uint64 * n).from_address(place)) for n, place in zip((rank, rank - 1), rest))
        box, steps = (list((ctypes.c_uint32 * rank).from_address(place)) for place in rest[2:4])
        seen.append((kind, base, sizes, strides, box, steps, rest[4:]))
        ctypes.memset(at, 7, 128)
        return 0

    monkeypatch.setattr(libcuda, "encode_function", lambda: libcuda.ENCODE(driver))
    descriptor = {**LOAD, "element": "bf16", "padding": "nan", "box": [64, 32], "swizzle": 64}
    assert encode(descriptor, 1 << 40, [128, 1 << 31], [512]) == bytes([7] * 128)
    assert seen == [(9, 1 << 40, [1 << 31, 128], [512], [32, 64], [1, 1], (0, 2, 3, 1))]
    assert encode({**LOAD, "box": [64], "swizzle": 0}, 4096, [7], []) == bytes([7] * 128)


def test_the_drivers_enumerations():
    cuda = pytest.importorskip("cuda.bindings.driver")
    for value, name in enumerate(_DATA_TYPES):
        assert getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{name}") == value
    for value, size in enumerate(_SWIZZLES):
        assert getattr(cuda.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{f'{size}B' if size else 'NONE'}") == value
    assert cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA == 1
    for value, size in enumerate(_PROMOTIONS):
        name = f"L2_{size}B" if size else "NONE"
        assert getattr(cuda.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{name}") == value
