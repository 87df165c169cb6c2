"""The language's session while a kernel is interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.language.core import tensor
from tilewright.language.semantic.session import Semantic

from .memory import Memory
from .numpy_builder import NumpyBuilder
from .regions import NotOneValue
from .values import Divergence, python_values


class InterpreterOptions:
    """Options that the language asks for; assertions are always on. `overrides` are launch options such as `sanitize_overflow`."""

    def __init__(self, overrides: dict[str, Any]):
        self.debug = True
        for name in ("sanitize_overflow", "num_warps", "num_ctas"):
            if name in overrides:
                setattr(self, name, overrides[name])


class InterpreterSession(Semantic):
    """Runs builtins on NumPy values and @jit functions as Python."""

    builder: NumpyBuilder

    def __init__(self, memory: Memory, grid: tuple[int, int, int], options: dict[str, Any]):
        super().__init__(NumpyBuilder(memory, grid), InterpreterOptions(options))

    def call_jit(self, fn: Any, args: tuple, kwargs: dict) -> Any:
        from .function import call_kernel_function

        return call_kernel_function(fn, args, kwargs)

    def concrete(self, value: tensor) -> bool | int | float:
        values = python_values(value.handle, value.type)
        if values.ndim > len(value.type.shape) and not self.builder.mapping:
            if (values != values[0]).any():
                raise Divergence
            values = values[0]
        if values.size != 1:
            if values.dtype == np.bool_:
                raise NotOneValue(
                    f"Boolean value of Tensor with more than one value is ambiguous: the condition has type {value.type}. "
                    "Use tl.where, a mask, or a reduction to a scalar"
                )
            raise NotOneValue(f"a Python number is needed here, and the tensor of type {value.type} has {values.size} elements")
        return values.item()

    def show(self, value: tensor) -> str:
        values = python_values(value.handle, value.type)
        if values.ndim > len(value.type.shape):
            raise Divergence
        shape = f"[{', '.join(map(str, value.type.shape))}]" if value.type.shape else ""
        return f"{value.dtype}{shape} {np.array2string(values, separator=', ')}"
