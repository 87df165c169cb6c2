"""Tensor descriptors made on the host, as arguments of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_PADDING = ("zero", "nan")


@dataclass
class TensorDescriptor:
    """An array of 1 to 5 dimensions to be accessed in blocks of `block_shape`; in the kernel it is a `tl.tensor_descriptor`.

    `base` is the array, aligned to 16 bytes; `strides` are in elements, the last one 1 and the others multiples of 16 bytes. `padding`
    ("zero" or, for floats, "nan") is what loads give outside `shape`. `round_f32_to_tf32` rounds fp32 elements when they are loaded."""

    base: Any
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self):
        rank = len(self.shape)
        if not 1 <= rank <= 5:
            raise ValueError(f"a tensor descriptor has 1 to 5 dimensions, got shape {self.shape}")
        if len(self.strides) != rank or len(self.block_shape) != rank:
            raise ValueError(f"shape, strides and block_shape must be as long: {self.shape}, {self.strides}, {self.block_shape}")
        if any(d < 1 or d & (d - 1) for d in self.block_shape):
            raise ValueError(f"block_shape must be powers of 2, got {self.block_shape}")
        if self.strides[-1] != 1:
            raise ValueError(f"the last dimension must be contiguous (stride 1), got strides {self.strides}")
        if self.padding not in _PADDING:
            raise ValueError(f"padding must be one of {', '.join(_PADDING)}, got {self.padding!r}")
        if self.padding == "nan" and not _is_floating(self.base):
            raise ValueError(f"padding 'nan' needs a floating-point array, got {self.base.dtype}")
        if self.round_f32_to_tf32 and not str(self.base.dtype).endswith("float32"):
            raise ValueError(f"round_f32_to_tf32 needs a float32 array, got {self.base.dtype}")
        if _address(self.base) % 16:
            raise ValueError("base must be aligned to 16 bytes")
        size = _element_size(self.base)
        for stride in self.strides[:-1]:
            if stride * size % 16:
                raise ValueError(f"strides must be multiples of 16 bytes, got {stride} elements of {size} bytes")

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Sequence[int], padding: str = "zero", round_f32_to_tf32: bool = False) -> TensorDescriptor:
        """The descriptor of a whole torch tensor or NumPy array."""
        strides = tensor.stride() if hasattr(tensor, "stride") else [s // tensor.itemsize for s in tensor.strides]
        return TensorDescriptor(tensor, list(tensor.shape), list(strides), list(block_shape), padding, round_f32_to_tf32)


def _address(base: Any) -> int:
    return base.data_ptr() if hasattr(base, "data_ptr") else base.__array_interface__["data"][0]


def _element_size(base: Any) -> int:
    if hasattr(base, "element_size"):
        return base.element_size()
    return base.dtype.itemsize


def _is_floating(base: Any) -> bool:
    dtype = getattr(base, "dtype", None)
    return dtype.is_floating_point if hasattr(dtype, "is_floating_point") else "float" in str(dtype)
