"""Values of a kernel and how builtins reach whoever carries them out.

A value is a `tensor` (a scalar is a tensor of rank 0), a `tensor_descriptor`, an aggregate, a tuple of values, or any Python object, which
then is a compile-time constant. The last may be wrapped as `constexpr`; builtins see it unwrapped.

`active()` is the `Semantic` object (`language/semantic/session.py`) that the front end or the interpreter pushed for this thread.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

from .dtypes import base_type, constexpr_type, dtype, slice_type, tuple_type

if TYPE_CHECKING:
    from .semantic.session import Semantic

_VARARGS = 0x04  # inspect.CO_VARARGS, without importing inspect

# ---- who carries it out -------------------------------------------------------------------------------------------------


class _Stack(threading.local):
    def __init__(self):
        self.items: list[Semantic] = []


_stack = _Stack()


def active() -> Semantic:
    """The innermost active `Semantic` of this thread; RuntimeError outside a kernel."""
    if not _stack.items:
        raise RuntimeError(
            "no kernel is being traced: functions of tilewright.language work only inside a @jit function (is a @jit missing?)"
        )
    return _stack.items[-1]


@contextlib.contextmanager
def activate(semantic: Semantic) -> Iterator[Semantic]:
    """Make `semantic` what `active()` returns in the body of the `with`."""
    _stack.items.append(semantic)
    try:
        yield semantic
    finally:
        _stack.items.pop()


def is_active() -> bool:
    """Whether a kernel is being traced or interpreted on this thread."""
    return bool(_stack.items)


def unwrap(value: Any) -> Any:
    """`value` without constexpr wrappers, those inside tuples and lists included (a list becomes a tuple)."""
    if isinstance(value, constexpr):
        return value.value
    if isinstance(value, (builtins.tuple, list)):
        items = [unwrap(v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def builtin(fn: Callable) -> Callable:
    """Mark `fn(..., _semantic)` as a function of the language: callable in kernels with its constexpr arguments unwrapped. Callers need not
    pass `_semantic`, and the spellings `_builder` and `_generator` of older releases are accepted and replaced."""
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount + fn.__code__.co_kwonlyargcount]
    hidden = [n for n in ("_semantic", "_builder", "_generator") if n in names]
    positional = [n for n in names[: fn.__code__.co_argcount] if n not in hidden]
    most = len(positional) if not fn.__code__.co_flags & _VARARGS else 1 << 30

    @functools.wraps(fn)
    def call(*args, _semantic=None, _builder=None, _generator=None, **kwargs):
        if len(args) > most:
            raise TypeError(f"{fn.__name__}() takes {most} positional arguments ({', '.join(positional)}) but {len(args)} were given")
        semantic = _semantic if _semantic is not None else active()
        for name in hidden:
            kwargs[name] = semantic
        return fn(*[unwrap(a) for a in args], **{k: v if k in hidden else unwrap(v) for k, v in kwargs.items()})

    call.__tilewright_builtin__ = True
    return call


def is_builtin(fn: object) -> bool:
    return getattr(fn, "__tilewright_builtin__", False)


def extern(fn: Callable) -> Callable:
    """Decorator for a user's wrapper of `extern_elementwise`."""
    return builtin(fn)


def must_use_result(x, s=True):
    """Decorator: a call whose result is dropped is an error in a kernel. `@must_use_result` or `@must_use_result("why")`."""
    if isinstance(x, str):
        return lambda fn: must_use_result(fn, x)
    x._must_use_result = s
    return x


# ---- constants ----------------------------------------------------------------------------------------------------------


class constexpr:
    """A compile-time constant. Arithmetic on constants gives constants by Python's rules; mixed with a tensor it gives a tensor."""

    __slots__ = ("value",)
    value: Any

    def __init__(self, value):
        while isinstance(value, constexpr):
            value = value.value
        self.value = value

    @property
    def type(self) -> constexpr_type:
        return constexpr_type(self.value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def __index__(self) -> int:
        return self.value.__index__()

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self):
        return iter(self.value)

    def __call__(self, *args, **kwargs):
        return self.value(*args, **kwargs)

    def __getitem__(self, item):
        return constexpr(self.value[unwrap(item)])

    def __neg__(self):
        return constexpr(-self.value)

    def __pos__(self):
        return constexpr(+self.value)

    def __invert__(self):
        return constexpr(~self.value)

    def __not__(self):
        return constexpr(not self.value)

    def logical_and(self, other):
        return constexpr(self.value and unwrap(other))

    def logical_or(self, other):
        return constexpr(self.value or unwrap(other))

    def __reduce__(self):
        return constexpr, (self.value,)


def _add_constexpr_operators() -> None:
    import operator

    def define(name: str, op: Callable, reflected: bool) -> None:
        def method(self, other):
            if isinstance(other, base_value):
                return NotImplemented
            other = unwrap(other)
            return constexpr(op(other, self.value) if reflected else op(self.value, other))

        method.__name__ = name
        setattr(constexpr, name, method)

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"):
        stem = name.rstrip("_")
        define(f"__{stem}__", getattr(operator, name), False)
        define(f"__r{stem}__", getattr(operator, name), True)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        define(f"__{name}__", getattr(operator, name), False)


class const:
    """Annotation of a pointer parameter that the kernel does not store to."""


# ---- values with handles ------------------------------------------------------------------------------------------------


class base_value:
    """Root of the values that carry builder handles."""

    type: base_type

    def _leaves(self) -> list[base_value]:
        """The values with one handle each that make up this one, in a fixed order."""
        raise NotImplementedError(type(self).__name__)

    def _with_leaves(self, leaves: Iterator[base_value]) -> base_value:
        """This value with its leaves replaced by the next ones of `leaves`."""
        raise NotImplementedError(type(self).__name__)


class leaf(base_value):
    """One builder handle and its type."""

    def __init__(self, handle: Any, type: base_type):
        self.handle = handle
        self.type = type

    def _leaves(self) -> list[base_value]:
        return [self]

    def _with_leaves(self, leaves: Iterator[base_value]) -> base_value:
        return next(leaves)


class tensor(leaf):
    """An N-dimensional array of scalars or pointers in a kernel; rank 0 is a scalar. Operators and methods are added by `methods.py`.

    `handle` is the builder's value, `type` a `block_type` or a scalar type, `dtype` its element type."""

    type: dtype

    @property
    def dtype(self) -> dtype:
        return self.type.scalar

    @property
    def shape(self) -> tuple:
        return tuple(constexpr(d) for d in self.type.shape)

    @property
    def numel(self) -> constexpr:
        return constexpr(self.type.numel if self.type.is_block() else 1)

    def __str__(self) -> str:
        return active().show(self) if is_active() else shown(self)

    __repr__ = __str__

    # a Python value of the tensor exists only where the program is interpreted; the front end raises with the reason

    def __bool__(self) -> bool:
        return bool(active().concrete(self))

    def __index__(self) -> int:
        return int(active().concrete(self))

    def __int__(self) -> int:
        return int(active().concrete(self))

    def __float__(self) -> float:
        return float(active().concrete(self))

    __hash__ = object.__hash__


def shown(value: Any) -> str:
    """A value in a message: a tensor by its type and shape, anything else as Python writes it."""
    if isinstance(value, tensor):
        return f"{value.dtype}[{', '.join(map(str, value.type.shape))}]"
    return repr(value)


class tuple(builtins.tuple):
    """A tuple in a kernel: Python's, also indexed by constexpr and with the type at hand. Named tuples keep their own class."""

    def __new__(cls, args=()):
        return builtins.tuple.__new__(cls, args)

    @property
    def values(self) -> builtins.tuple:
        return builtins.tuple(self)

    @property
    def type(self) -> tuple_type:
        return type_of(self)

    def __getitem__(self, item):
        found = builtins.tuple.__getitem__(self, _plain_index(item))
        return tuple(found) if type(found) is builtins.tuple else found

    def __add__(self, other):
        return tuple(builtins.tuple.__add__(self, builtins.tuple(unwrap(other) if isinstance(other, constexpr) else other)))

    def __mul__(self, times):
        return tuple(builtins.tuple.__mul__(self, unwrap(times)))

    __rmul__ = __mul__


class slice:
    """A slice in a kernel: `x[start:stop:step]`."""

    def __init__(self, start=None, stop=None, step=None):
        self.start, self.stop, self.step = unwrap(start), unwrap(stop), unwrap(step)
        self.type = slice_type()


def _plain_index(item):
    if isinstance(item, slice):
        return builtins.slice(item.start, item.stop, item.step)
    return unwrap(item)


def type_of(value: Any) -> base_type:
    """The type of any value of a kernel; Python objects are constants."""
    if isinstance(value, base_value):
        return value.type
    if isinstance(value, builtins.tuple):
        return tuple_type([type_of(v) for v in value], getattr(value, "_fields", None))
    if isinstance(value, slice):
        return value.type
    return constexpr_type(unwrap(value))


def flatten(value: Any) -> list[leaf]:
    """The leaves (values with one handle) of a value, in a fixed order; constants have none."""
    if isinstance(value, base_value):
        return value._leaves()
    if isinstance(value, (builtins.tuple, list)):
        return [x for v in value for x in flatten(v)]
    return []


def unflatten(template: Any, leaves: Iterator[leaf]) -> Any:
    """`template` with its leaves replaced, in the order of `flatten`, by the next ones of `leaves`; constants stay."""
    if isinstance(template, base_value):
        return template._with_leaves(leaves)
    if isinstance(template, (builtins.tuple, list)):
        items = [unflatten(v, leaves) for v in template]
        return type(template)(*items) if hasattr(template, "_fields") else type(template)(items)
    return template


class PropagateNan(Enum):
    """What minimum, maximum and clamp give if an operand is NaN: the other operand (NONE) or NaN (ALL)."""

    NONE = 0
    ALL = 0xFFFF


_add_constexpr_operators()


def __getattr__(name: str):
    """Triton keeps its types and builtins in this module: hand out those of the package."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _lookup

    return _lookup(name)
