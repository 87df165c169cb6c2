"""Runs the language's tests in the interpreter, or compiled where there is a GPU; kernels are decorated with `jit` from here.

Tests hold their data in NumPy arrays, wrapped as `Typed` for the formats that NumPy lacks. `launch` moves them to the device and back.
TILEWRIGHT_INTERPRET=1 asks for the interpreter on a machine with a GPU.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright import knobs
from tilewright.runtime.interpreter import InterpretedFunction
from tilewright.runtime.interpreter.float_formats import FORMATS, decode, encode
from tilewright.tools.tensor_descriptor import TensorDescriptor


@functools.cache
def _torch_with_gpu():
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


INTERPRETED = knobs.runtime.interpret or _torch_with_gpu() is None

gpu_only = pytest.mark.skipif(INTERPRETED, reason="needs a GPU")
interpreter_only = pytest.mark.skipif(not INTERPRETED, reason="a property of the interpreter")


def jit(fn=None, **options):
    """`tilewright.jit` for this run: the interpreter's kernel or the compiled one."""
    if fn is None:
        return lambda f: jit(f, **options)
    return InterpretedFunction(fn, **options) if INTERPRETED else tilewright.jit(fn, **options)


class Typed:
    """A NumPy array of bits under a dtype of the language, such as tl.bfloat16."""

    def __init__(self, base: np.ndarray, dtype: tl.dtype):
        self.base = base
        self.dtype = dtype

    @property
    def __array_interface__(self):
        return self.base.__array_interface__

    @property
    def values(self) -> np.ndarray:
        """The numbers as float32."""
        return decode(self.base, self.dtype.name)


_NUMPY = {
    tl.int1: np.bool_, tl.int8: np.int8, tl.int16: np.int16, tl.int32: np.int32, tl.int64: np.int64,
    tl.uint8: np.uint8, tl.uint16: np.uint16, tl.uint32: np.uint32, tl.uint64: np.uint64,
    tl.float16: np.float16, tl.float32: np.float32, tl.float64: np.float64,
}  # fmt: skip

INTEGERS = [tl.int8, tl.int16, tl.int32, tl.int64, tl.uint8, tl.uint16, tl.uint32, tl.uint64]
FLOATS = [tl.float16, tl.bfloat16, tl.float32, tl.float64]
FP8 = [tl.float8e5, tl.float8e4nv, tl.float8e4b15] + ([tl.float8e5b16, tl.float8e4b8] if INTERPRETED else [])


def of(values, dtype: tl.dtype):
    """`values` rounded to a dtype of the language, as `launch` takes them."""
    if dtype in _NUMPY:
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(_NUMPY[dtype])
    return Typed(encode(np.asarray(values, np.float32), dtype.name), dtype)


def empty(shape, dtype: tl.dtype):
    """Zeros of a dtype of the language."""
    return np.zeros(shape, _NUMPY[dtype]) if dtype in _NUMPY else Typed(np.zeros(shape, FORMATS[dtype.name].storage), dtype)


def numbers(array) -> np.ndarray:
    """The numbers in an array made by `of` or `empty`."""
    return array.values if isinstance(array, Typed) else array


def sample(dtype: tl.dtype, n: int, seed: int = 0):
    """`n` numbers of a dtype: all magnitudes for integers, around 1 for floats."""
    rng = np.random.default_rng(seed)
    if dtype is tl.int1:
        return rng.integers(0, 2, n).astype(np.bool_)
    if dtype.is_int():
        low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
        return rng.integers(low, high, n, dtype=_NUMPY[dtype], endpoint=True)
    return of(rng.standard_normal(n) * 2, dtype)


def launch(kernel, grid, *args, **options) -> None:
    """Run `kernel` over `grid`; arrays among the arguments (in tuples too) hold the results afterwards."""
    if INTERPRETED:
        kernel[grid](*args, **options)
        return
    moved: list = []
    device_args = [_to_device(a, moved) for a in args]
    kernel[grid](*device_args, **options)
    for array, tensor in moved:
        host = tensor.cpu().numpy().view(array.dtype).reshape(array.shape)
        if array.flags.writeable:
            array[...] = host


def _to_device(value, moved: list):
    """`value` with its arrays on the GPU; (array, tensor of its bytes) pairs are added to `moved`."""
    torch = _torch_with_gpu()
    if isinstance(value, tuple):
        return (
            type(value)(*(_to_device(v, moved) for v in value)) if hasattr(value, "_fields") else tuple(_to_device(v, moved) for v in value)
        )
    if isinstance(value, TensorDescriptor):
        return replace(value, base=_to_device(value.base, moved))
    if not isinstance(value, (np.ndarray, Typed)):
        return value
    array = value.base if isinstance(value, Typed) else value
    data = np.ascontiguousarray(array)
    if not data.size:
        return torch.empty(0, dtype=getattr(torch, array.dtype.name), device="cuda")
    tensor = torch.from_numpy(data.view(np.uint8).reshape(-1).copy()).cuda()
    moved.append((array, tensor))
    if isinstance(value, Typed):
        carrier = tensor.view({1: torch.int8, 2: torch.int16}[array.dtype.itemsize])
        return tilewright.reinterpret(carrier, value.dtype)
    return tensor.view(getattr(torch, {"bool": "bool"}.get(array.dtype.name, array.dtype.name)))


def reports(message: str, kernel=None, *args, grid=(1,), **options) -> None:
    """Assert that launching `kernel` raises an error of this package whose text matches `message`."""
    with pytest.raises(tilewright.TritonError, match=message):
        launch(kernel, grid, *args, **options)
