"""`InterpretedFunction`: what `@jit` makes of a function when TILEWRIGHT_INTERPRET=1 or TRITON_INTERPRET=1."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from tilewright import knobs
from tilewright.compiler.backends import check_option_names
from tilewright.compiler.frontend.function import KernelFunction, KernelParam
from tilewright.compiler.kernel import evaluate_grid
from tilewright.language import core
from tilewright.language.dtypes import block_type, int32, int64, pointer_type, str_to_ty, tensor_descriptor_type
from tilewright.language.semantic.cast import convert
from tilewright.language.semantic.descriptor import tensor_descriptor
from tilewright.language.semantic.memory import read_only
from tilewright.language.semantic.values import constant

from ..jit import KernelInterface
from ..launcher import OPTIONS
from ..specialize import specialize_param, specialize_value
from .arrays import LaunchArrays, is_array
from .checks import CheckedMemory, requested
from .diagnostics import kernel_error, passes_through
from .memory import Memory
from .rewrite import rewrite, talks
from .session import InterpreterSession
from .values import Divergence, Pointers

# Programs that run at once, so that the cost of an operation in Python is shared while their blocks still fit in a cache.
BATCH = 16

COMMON_OPTIONS = frozenset(OPTIONS)


class InterpretedFunction(KernelInterface, KernelFunction):
    """A kernel that runs in Python. `kernel[grid](*arguments, **options)` runs every program of the grid.

    The result is that of programs that run one after another, x fastest. Launch options such as `num_warps` change nothing; an unknown
    one is a KeyError. An error inside the kernel is raised as InterpreterError at the user's line.
    """

    def __init__(self, fn: FunctionType, **options: Any):
        super().__init__(fn, **options)
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self._python: tuple[object, FunctionType] | None = None

    @property
    def python(self) -> FunctionType:
        """The function that carries out the kernel's body; made again if the source is replaced."""
        if self._python is None or self._python[0] is not self.ast():
            self._python = self.ast(), rewrite(self)
        return self._python[1]

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook(*arguments, **options)` before each launch."""
        if not callable(hook):
            raise TypeError(f"a pre-run hook must be a function, not {hook!r}")
        self.pre_run_hooks.append(hook)

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> None:
        """Nothing to compile."""

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        """Run the kernel over `grid`, a tuple or a function of the arguments by name."""
        if warmup:
            return
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        options = {name: value for name, value in kwargs.items() if name not in self.arg_names}
        if not COMMON_OPTIONS.issuperset(options):
            check_option_names(options)
        try:
            bound = self.signature.bind(*args, **{name: value for name, value in kwargs.items() if name in self.arg_names})
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}; its parameters are {', '.join(self.arg_names)}") from None
        bound.apply_defaults()
        size = evaluate_grid(grid, bound.arguments, self.__name__)
        checks = requested(knobs.runtime.interpret_check)
        memory = CheckedMemory(checks, size) if checks else Memory()
        session = InterpreterSession(memory, size, options)
        arrays = LaunchArrays(memory)
        with core.activate(session), np.errstate(all="ignore"):
            values = _Arguments(session, arrays).of(self, bound.arguments)
            try:
                self._run_programs(session, size, values)
            finally:
                arrays.finish()

    def _run_programs(self, session: InterpreterSession, size: tuple[int, int, int], values: dict[str, Any]) -> None:
        python, builder = self.python, session.builder
        positional, keywords = [], {}
        for param in self.params:
            if param.is_varargs:
                positional += values[param.name]
            elif param.is_keyword_only:
                keywords[param.name] = values[param.name]
            else:
                positional.append(values[param.name])
        programs = [(x, y, z) for z in range(size[2]) for y in range(size[1]) for x in range(size[0])]
        alone = sys.gettrace() is not None or talks(python) or isinstance(builder.memory, CheckedMemory)
        batch = 1 if alone else BATCH
        done = 0
        while done < len(programs):
            some = programs[done : done + batch]
            builder.place(some)
            if len(some) > 1 and self._run_batch(session, positional, keywords):
                done += len(some)
                continue
            if len(some) > 1:
                batch = 1 if batch < 4 else batch // 4  # where programs part ways once, they mostly do again
            for program in some:
                builder.place([program])
                try:
                    python(*positional, **keywords)
                except BaseException as error:
                    if passes_through(error) or knobs.compilation.front_end_debugging:
                        raise
                    raise kernel_error(error, program, size) from error
            done += len(some)
        builder.memory.finish()

    def _run_batch(self, session: InterpreterSession, positional: list[Any], keywords: dict[str, Any]) -> bool:
        """Run the programs of a batch at once; False, with memory as it was, if they cannot: they part ways, print, or meet an error."""
        memory = session.builder.memory
        memory.begin()
        try:
            self.python(*positional, **keywords)
        except Exception:  # noqa: BLE001  (a true error comes again, in the program that makes it)
            memory.rollback()
            return False
        except BaseException:
            memory.rollback()
            raise
        memory.commit()
        return True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call from another kernel."""
        if not core.is_active():
            return super().__call__(*args, **kwargs)
        return call_kernel_function(self, args, kwargs)


def call_kernel_function(fn: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a @jit function, or a wrapper around one such as an autotuner, from a running kernel."""
    while not isinstance(fn, KernelFunction):
        fn = fn.fn
    if not isinstance(fn, InterpretedFunction):
        raise TypeError(
            f"{fn.__name__} was decorated for compilation and cannot be called by an interpreted kernel: set TRITON_INTERPRET=1 before"
        )
    args = [core.unwrap(a) for a in args]
    kwargs = {name: core.unwrap(value) for name, value in kwargs.items()}
    positional = list(itertools.takewhile(lambda p: not (p.is_varargs or p.is_keyword_only), fn.params))
    for param, value in [*zip(positional, args), *((p, kwargs[p.name]) for p in fn.params if p.name in kwargs)]:
        if param.is_constexpr and core.flatten(value):
            raise TypeError(
                f"argument {param.name} of {fn.__name__}() is annotated tl.constexpr, but gets {core.type_of(value)}, a value of the run"
            )
    for i, param in enumerate(positional[: len(args)]):
        if param.is_const:
            args[i] = read_only(args[i])
    for param in fn.params:
        if param.is_const and param.name in kwargs:
            kwargs[param.name] = read_only(kwargs[param.name])
    if core.active().builder.batch and talks(fn.python):
        raise Divergence
    return fn.python(*args, **kwargs)


class _Arguments:
    """Turns what the caller passed into values of the kernel, typed as a compiled launch types them."""

    def __init__(self, session: InterpreterSession, arrays: LaunchArrays):
        self.session = session
        self.arrays = arrays

    def of(self, kernel: KernelFunction, bound: dict[str, Any]) -> dict[str, Any]:
        """Value by parameter name. Raises TypeError that names an argument no kernel can take."""
        values = {}
        for param in kernel.params:
            value = bound[param.name]
            try:
                if param.is_varargs:
                    values[param.name] = tuple(self._free(f"{param.name}[{i}]", v) for i, v in enumerate(value))
                else:
                    values[param.name] = self._parameter(param, value)
            except (TypeError, OverflowError) as error:
                raise type(error)(f"argument {param.name} of {kernel.__name__}: {error}") from error
        return values

    def _parameter(self, param: KernelParam, value: Any) -> Any:
        if param.is_constexpr:
            return core.unwrap(value)
        if is_array(value):
            forced = param.annotation_type
            element = str_to_ty(forced.lstrip("*").removeprefix("k")) if forced.startswith("*") else None
            return self._pointer(param.name, value, element, param.is_const)
        if isinstance(value, tuple) or _is_descriptor(value):
            return self._free(param.name, value)
        return self._scalar(value, *specialize_param(param, value))

    def _free(self, name: str, value: Any) -> Any:
        """A value whose type nothing forces: an item of a tuple."""
        if is_array(value):
            return self._pointer(name, value, None, False)
        if isinstance(value, tuple):
            fields = getattr(value, "_fields", None) or range(len(value))
            items = [self._free(f"{name}.{f}" if isinstance(f, str) else f"{name}[{f}]", v) for f, v in zip(fields, value, strict=True)]
            return type(value)(*items) if hasattr(value, "_fields") else core.tuple(items)
        if _is_descriptor(value):
            return self._descriptor(name, value)
        return self._scalar(value, *specialize_value(value))

    def _scalar(self, value: Any, kind: str, key: Any) -> Any:
        if kind == "constexpr":
            return core.unwrap(value)
        ty = str_to_ty(kind)
        if not ty.is_floating() and not ty.is_bool() and not hasattr(value, "__index__"):
            raise TypeError(f"{kind} needs an integer, not {value!r}")
        return constant(self.session, float(value), ty) if ty.is_floating() else convert(self.session, int(value), ty)

    def _pointer(self, name: str, array: Any, element: Any, const: bool) -> core.tensor:
        code, base = self.arrays.attach(name, array)
        ty = pointer_type(element if element is not None else str_to_ty(code), 1, const)
        return core.tensor(Pointers(np.array(base.address, np.int64), base), ty)

    def _descriptor(self, name: str, desc: Any) -> tensor_descriptor:
        base = self._pointer(name, desc.base, None, False)
        ty = tensor_descriptor_type(block_type(base.dtype.element_ty, tuple(desc.block_shape)))
        shape = [constant(self.session, int(n), int32) for n in desc.shape]
        strides = [constant(self.session, int(n), int64) for n in desc.strides]
        handle = self.session.builder.make_descriptor(
            base.handle, [n.handle for n in shape], [n.handle for n in strides], getattr(desc, "padding", "zero"), ty.block_type
        )
        if getattr(desc, "round_f32_to_tf32", False):
            handle = replace(handle, tf32=True)
        return tensor_descriptor(handle, shape, strides, ty)


def _is_descriptor(value: Any) -> bool:
    """Whether `value` is a host tensor descriptor."""
    return hasattr(value, "block_shape") and hasattr(value, "base")
