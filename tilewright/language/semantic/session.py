"""`Semantic`: what the functions of the language need to know about the program that is being built or interpreted."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

from ..builder import Builder
from ..core import shown, tensor
from ..dtypes import dtype

# what an option means if the backend's options object does not have it
DEFAULT_OPTIONS = {
    "debug": False,
    "sanitize_overflow": False,
    "num_warps": 4,
    "num_ctas": 1,
    "default_dot_input_precision": "tf32",
    "allowed_dot_input_precisions": ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    "max_num_imprecise_acc_default": 0,
    "deprecated_fp8_dot_operand_dtypes": (),
    "supported_fp8_dtypes": ("fp8e5", "fp8e4nv", "fp8e4b15", "fp8e5b16", "fp8e4b8"),
    "extern_libs": (),
}


class Semantic:
    """The state behind `language.core.active()`. The front end and the interpreter each derive from it.

    `builder` carries out the operations, `options` is the backend's options object (attributes of DEFAULT_OPTIONS), `target` has `backend`
    ("cuda" or "hip"), `arch` (an int such as 90, or a string such as "gfx942") and `warp_size`."""

    def __init__(self, builder: Builder, options: Any = None, target: Any = None):
        self.builder = builder
        self.options = options
        self.target = target if target is not None else SimpleNamespace(backend="cuda", arch=90, warp_size=32)

    def option(self, name: str) -> Any:
        """The option `name`, or its default if the options object lacks it."""
        return getattr(self.options, name, DEFAULT_OPTIONS.get(name))

    def tensor(self, handle: Any, ty: dtype) -> tensor:
        return tensor(handle, ty)

    def call(self, fn: Any, args: tuple, kwargs: dict | None = None) -> Any:
        """Call a function that the user passed to a builtin: a @jit function, or any callable, which is called as it is."""
        if getattr(fn, "__tilewright_jit__", False):
            return self.call_jit(fn, args, kwargs or {})
        if not callable(fn):
            raise TypeError(f"expected a function (@jit, a builtin, or a plain Python function), got {fn!r}")
        return fn(*args, **(kwargs or {}))

    def call_jit(self, fn: Any, args: tuple, kwargs: dict) -> Any:
        """Carry out a @jit function on values; returns what it returns."""
        raise NotImplementedError

    def concrete(self, value: tensor) -> bool | int | float:
        """The number that a scalar tensor holds. Only an interpreter has one; TypeError where the program is being compiled."""
        raise TypeError(
            f"the value of a {value.dtype} tensor is known only at run time; a Python number is needed here "
            "(a range, shape or index must be constexpr, a condition must be an `if` of the kernel)"
        )

    def known(self, value: Any) -> Any:
        """The number behind a Python number or a scalar tensor, None if it is known only at run time."""
        if not isinstance(value, tensor):
            return value
        try:
            return self.concrete(value)
        except TypeError:
            return None

    def show(self, value: tensor) -> str:
        """Text for `str(tensor)` and static_print."""
        return shown(value)

    def warn(self, message: str) -> None:
        """Tell the user; the front end adds the line."""
        warnings.warn(message, UserWarning, stacklevel=3)
