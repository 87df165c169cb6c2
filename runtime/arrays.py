"""Arrays as kernel arguments: torch tensors, anything with `data_ptr()`, `__cuda_array_interface__` or DLPack."""

from __future__ import annotations

import ctypes
from typing import Any

from tilewright.compiler.frontend.function import TYPE_CODES

_CODES: dict[Any, str] = {}
_CAI_CODES = {"b1": "u1", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64"}
_CAI_CODES |= {"f2": "fp16", "f4": "fp32", "f8": "fp64"}
_DLPACK_CODES = {0: "i", 1: "u", 2: "fp", 4: "bf", 6: "u"}
_DLPACK_ON_GPU = (2, 3, 10, 13)  # CUDA, CUDA pinned, ROCm, CUDA managed


def dtype_code(dtype: Any) -> str:
    """The signature code of a dtype of torch, NumPy, JAX or the language: `torch.float32` -> "fp32". Raises TypeError."""
    try:
        return _CODES[dtype]
    except (KeyError, TypeError):
        pass
    name = str(dtype).rsplit(".", 1)[-1]
    name = getattr(dtype, "name", name) if name not in TYPE_CODES else name
    if name not in TYPE_CODES:
        raise TypeError(
            f"tensors of dtype {dtype} cannot be passed to a kernel; a kernel takes {', '.join(sorted({*TYPE_CODES.values()} - {'void'}))}"
        )
    code = TYPE_CODES[name]
    try:
        _CODES[dtype] = code
    except TypeError:
        pass
    return code


def is_array(value: Any) -> bool:
    """Whether `value` is passed as a pointer."""
    return hasattr(value, "data_ptr") or hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack__")


def pointer_and_code(value: Any) -> tuple[int, str]:
    """(address of the first element, dtype code) of an array. Raises TypeError for a dtype that kernels do not take."""
    if hasattr(value, "data_ptr"):
        return value.data_ptr(), dtype_code(value.dtype)
    if hasattr(value, "__cuda_array_interface__"):
        interface = value.__cuda_array_interface__
        typestr = interface["typestr"][1:]
        if typestr not in _CAI_CODES:
            return interface["data"][0], dtype_code(value.dtype)  # bfloat16 and fp8 have no typestr of their own
        return interface["data"][0], _CAI_CODES[typestr]
    return _from_dlpack(value)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int),
        ("device_id", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


def _from_dlpack(value: Any) -> tuple[int, str]:
    capsule = value.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _DLTensor.from_address(get(capsule, b"dltensor"))
    prefix = _DLPACK_CODES.get(tensor.code)
    code = f"{prefix}{tensor.bits}" if prefix else dtype_code(value.dtype)
    return (tensor.data or 0) + tensor.byte_offset, TYPE_CODES.get(code, "u1" if tensor.code == 6 else code)


def on_gpu(value: Any) -> bool | None:
    """Whether an array lies on a GPU; None if it does not say."""
    if hasattr(value, "get_device"):
        return value.get_device() >= 0
    if hasattr(value, "__cuda_array_interface__"):
        return True
    if hasattr(value, "__dlpack_device__"):
        return value.__dlpack_device__()[0] in _DLPACK_ON_GPU
    return None


def gpu_pointer(value: Any) -> tuple[int, str]:
    """`pointer_and_code` of an array that says that it lies on a GPU; raises ValueError for another."""
    if not on_gpu(value):
        raise ValueError("not in the memory of a GPU")
    return pointer_and_code(value)


class TensorWrapper:
    """A torch tensor seen with another dtype: what `reinterpret` returns."""

    def __init__(self, base: Any, dtype: Any):
        self.base = base
        self.dtype = dtype
        self.data = base.data
        self.device = base.device
        self.shape = base.shape

    def data_ptr(self) -> int:
        return self.base.data_ptr()

    def get_device(self) -> int:
        return self.base.get_device()

    def stride(self, *args: int) -> Any:
        return self.base.stride(*args)

    def element_size(self) -> int:
        return self.base.element_size()

    def cpu(self) -> TensorWrapper:
        return TensorWrapper(self.base.cpu(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        return TensorWrapper(self.base.to(device), self.dtype)

    def clone(self) -> TensorWrapper:
        return TensorWrapper(self.base.clone(), self.dtype)

    def copy_(self, other: TensorWrapper) -> None:
        self.base.copy_(other.base)

    def new_empty(self, sizes: tuple[int, ...]) -> TensorWrapper:
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def __repr__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """See a tensor's bits as another dtype of the same size, for a launch."""
    if isinstance(tensor, TensorWrapper):
        return tensor.base if dtype == tensor.base.dtype else TensorWrapper(tensor.base, dtype)
    if hasattr(tensor, "data_ptr"):
        return TensorWrapper(tensor, dtype)
    raise TypeError(f"Cannot reinterpret a {type(tensor)}.")


class MockTensor:
    """Stands for a tensor of a dtype in `warmup`: an aligned null pointer."""

    def __init__(self, dtype: Any, shape: tuple[int, ...] | None = None):
        self.dtype = dtype
        self.shape = shape if shape is not None else (1,)

    @staticmethod
    def wrap_dtype(value: Any) -> Any:
        """A MockTensor for a `torch.dtype`, any other value as it is."""
        cls = type(value)
        return MockTensor(value) if cls.__name__ == "dtype" and cls.__module__ == "torch" else value

    def stride(self) -> tuple[int, ...]:
        strides = [1]
        for size in reversed(self.shape[1:]):
            strides.append(strides[-1] * size)
        return tuple(reversed(strides))

    @staticmethod
    def data_ptr() -> int:
        return 0

    @staticmethod
    def ptr_range() -> int:
        return 0
