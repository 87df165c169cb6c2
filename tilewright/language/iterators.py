"""Loops: `tl.range`, `tl.static_range`, and `tl.condition` of a `while`. The front end reads their attributes; an interpreter iterates."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from .core import active, base_value, shown, tensor, unwrap
from .semantic.cast import convert
from .semantic.promotion import integer_type
from .semantic.values import is_number, number_type


def _bounds(arg1: Any, arg2: Any, step: Any) -> tuple[Any, Any, Any]:
    """start, end and step of a range's arguments."""
    start, end = (0, arg1) if arg2 is None else (arg1, arg2)
    return unwrap(start), unwrap(end), 1 if step is None else unwrap(step)


class range(base_value):
    """A counting loop `for i in tl.range(start, end, step)`, run by the kernel, with hints for the compiler.

    `num_stages` pipelines the loads over so many iterations, `loop_unroll_factor` unrolls, `flatten` merges a nest of loops into one,
    `warp_specialize` gives loads and products to different warps (False forbids it, None leaves it to the compiler),
    `disallow_acc_multi_buffer` keeps one accumulator, `disable_licm` keeps invariant code inside. `arg1` is the end if it is alone."""

    def __init__(
        self,
        arg1,
        arg2=None,
        step=None,
        num_stages=None,
        loop_unroll_factor=None,
        disallow_acc_multi_buffer=False,
        flatten=False,
        warp_specialize=None,
        disable_licm=False,
        _semantic=None,
    ):
        self.start, self.end, self.step = _bounds(arg1, arg2, step)
        for v in (self.start, self.end, self.step):
            if not (isinstance(v, tensor) and v.dtype.is_int() and not v.type.is_block()) and not isinstance(v, int):
                raise TypeError(f"range needs integer scalars, got {shown(v)}")
        if is_number(self.step) and self.step == 0:
            raise ValueError("range: step must not be 0")
        self.num_stages, self.loop_unroll_factor = unwrap(num_stages), unwrap(loop_unroll_factor)
        for what in ("num_stages", "loop_unroll_factor"):
            v = getattr(self, what)
            if v is not None and (not isinstance(v, int) or v < 0):
                raise ValueError(f"range: {what} must be a non-negative constexpr int, got {shown(v)}")
        self.disallow_acc_multi_buffer = bool(unwrap(disallow_acc_multi_buffer))
        self.flatten = bool(unwrap(flatten))
        self.warp_specialize = unwrap(warp_specialize)
        self.disable_licm = bool(unwrap(disable_licm))

    def counter_type(self):
        """The type of the loop variable: the common integer type of the bounds."""
        tys = [number_type(v) if is_number(v) else v.dtype for v in (self.start, self.end, self.step)]
        return integer_type(integer_type(tys[0], tys[1]), tys[2])

    def __iter__(self) -> Iterator[tensor]:
        s, ty = active(), self.counter_type()
        for i in builtins.range(*(int(s.known(v)) for v in (self.start, self.end, self.step))):
            yield convert(s, i, ty)


class static_range(base_value):
    """A loop that is unrolled while the kernel is traced; all arguments are constexpr, and so is the loop variable."""

    def __init__(self, arg1, arg2=None, step=None, _semantic=None):
        self.start, self.end, self.step = _bounds(arg1, arg2, step)
        for v in (self.start, self.end, self.step):
            if not isinstance(v, int):
                raise TypeError(f"static_range needs constexpr integers, got {shown(v)}; use tl.range for bounds known at run time")
        if self.step == 0:
            raise ValueError("static_range: step must not be 0")

    def __iter__(self) -> Iterator[int]:
        return iter(builtins.range(self.start, self.end, self.step))


class condition(base_value):
    """The condition of a `while` with hints: `while tl.condition(i < n, disable_licm=True)`."""

    def __init__(self, arg1, disable_licm=False, _semantic=None):
        self.condition = arg1
        self.disable_licm = bool(unwrap(disable_licm))

    def __bool__(self) -> bool:
        return bool(self.condition)
