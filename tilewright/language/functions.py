"""Host functions usable on constants in kernels, and user types (`aggregate`)."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .core import active, base_value, constexpr, flatten, leaf, shown, tensor, type_of, unflatten, unwrap
from .core import tuple as language_tuple
from .dtypes import base_type
from .semantic.values import to_tensor


class ConstexprFunction:
    """A Python function that runs while the kernel is traced, on constexpr arguments; its result is a constant."""

    __tilewright_constexpr_function__ = True

    def __init__(self, fn: Callable):
        self.fn = fn
        functools.update_wrapper(self, fn)

    def __call__(self, *args, _semantic=None, _generator=None, **kwargs):
        return self.fn(*[unwrap(a) for a in args], **{k: unwrap(v) for k, v in kwargs.items()})

    def __get__(self, instance, owner):
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"ConstexprFunction({self.fn.__module__}:{self.fn.__qualname__})"

    @property
    def cache_key(self) -> str:
        """Text that changes with the function, for the key of a kernel that calls it."""
        import inspect

        try:
            return inspect.getsource(self.fn)
        except OSError:
            return self.fn.__code__.co_code.hex() + repr(self.fn.__code__.co_consts)


def constexpr_function(fn: Callable) -> ConstexprFunction:
    """Decorator: make the host function `fn` callable in kernels with constexpr arguments. On the host it stays as it is."""
    return ConstexprFunction(fn)


class aggregate_type(base_type):
    """Type of an aggregate: its class and the types of its fields."""

    def __init__(self, cls: type, fields: list[tuple[str, base_type]]):
        self.base_cls, self.fields = cls, fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, aggregate_type) and self.base_cls is other.base_cls and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((self.base_cls, *(name for name, _ in self.fields)))

    def mangle(self) -> str:
        return f"{self.base_cls.__name__}<{', '.join(ty.mangle() for _, ty in self.fields)}>"

    def __repr__(self) -> str:
        return f"{self.base_cls.__name__}({', '.join(f'{name}: {ty}' for name, ty in self.fields)})"


class _Aggregate(base_value):
    """Behaviour of all aggregates. The class attribute `__aggregate_fields__` maps fields to their annotations."""

    __aggregate_fields__: dict[str, Any] = {}  # replaced, never mutated
    __aggregate_defaults__: dict[str, Any] = {}

    @property
    def type(self) -> aggregate_type:
        return aggregate_type(type(self), [(name, type_of(getattr(self, name))) for name in self.__aggregate_fields__])

    def _leaves(self) -> list[leaf]:
        return [x for name in self.__aggregate_fields__ for x in flatten(getattr(self, name))]

    def _with_leaves(self, leaves: Iterator[leaf]) -> _Aggregate:
        return _build(type(self), {name: unflatten(getattr(self, name), leaves) for name in self.__aggregate_fields__})

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_frozen"):
            raise AttributeError(
                f"cannot assign to field {name!r} on immutable aggregate {type(self).__name__}; use aggregate_replace() for a changed copy"
            )
        if name not in self.__aggregate_fields__ and name != "_frozen":
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; its fields: {', '.join(self.__aggregate_fields__)}")
        object.__setattr__(self, name, value if name == "_frozen" else _as_field(type(self), name, value))


def _build(cls: type, values: dict[str, Any]) -> _Aggregate:
    """An aggregate of `cls` with these values of its fields, without its `__init__`."""
    instance = object.__new__(cls)
    for name, value in values.items():
        setattr(instance, name, value)
    instance._frozen = True
    return instance


def _as_field(cls: type, name: str, value: Any) -> Any:
    """`value` for a field, by the field's annotation; TypeError if it is of another kind."""
    wanted = cls.__aggregate_fields__[name]
    if wanted is constexpr:
        if flatten(value):
            raise TypeError(f"field {name} of {cls.__name__} is constexpr, got {shown(value)}")
        return constexpr(value)
    if wanted in (language_tuple, tuple) and isinstance(value, tuple):
        return value
    if isinstance(wanted, type) and issubclass(wanted, base_value):
        if wanted is tensor and isinstance(unwrap(value), (bool, int, float)):
            value = to_tensor(active(), unwrap(value))
        if not isinstance(value, wanted):
            raise TypeError(f"field {name} of {cls.__name__} must be {wanted.__name__}, got {shown(value)}")
    return value


def _default_init(self, *args, **kwargs):
    names = list(self.__aggregate_fields__)
    if len(args) > len(names):
        raise TypeError(f"{type(self).__name__} takes {len(names)} values, got {len(args)}")
    values = dict(zip(names, args))
    for name, value in kwargs.items():
        if name not in names or name in values:
            raise TypeError(f"{type(self).__name__} got {'an unknown' if name not in names else 'a second'} value for field {name!r}")
        values[name] = value
    for name in names:
        if name not in values and name not in self.__aggregate_defaults__:
            raise TypeError(f"{type(self).__name__} lacks a value for field {name!r}")
        setattr(self, name, values.get(name, self.__aggregate_defaults__.get(name)))


def _construct(cls: type, user_init: Callable, takes_semantic: bool) -> Callable:
    def __init__(self, *args, _semantic=None, **kwargs):
        if takes_semantic:
            kwargs["_semantic"] = _semantic if _semantic is not None else active()
        result = user_init(self, *args, **kwargs)
        if unwrap(result) is not None:
            raise TypeError(f"{cls.__name__}.__init__ must not return a value")
        missing = [name for name in cls.__aggregate_fields__ if name not in self.__dict__]
        if missing:
            raise AttributeError(f"{cls.__name__}.__init__ did not set {', '.join(missing)}")
        if type(self) is cls or type(self).__init__ is cls.__init__:
            object.__setattr__(self, "_frozen", True)

    return __init__


def aggregate(cls: type) -> type:
    """Class decorator: values of the class may be made, passed, returned and carried through control flow in kernels.

    Annotations are the fields (tl.tensor, tl.constexpr, tl.tuple, tl.tensor_descriptor, other aggregates). Without an `__init__` there is
    one that takes them in order or by name. Methods may be @jit functions, @constexpr_function or plain Python. Values are immutable."""
    import inspect

    for base in cls.__mro__[1:-1]:
        if base not in _Aggregate.__mro__ and not issubclass(base, _Aggregate):
            raise TypeError(f"aggregate {cls.__name__} inherits from {base.__name__}, which is no aggregate")
    fields, defaults = {}, {}
    for base in reversed(cls.__mro__):
        fields.update(getattr(base, "__aggregate_fields__", {}))
        defaults.update(getattr(base, "__aggregate_defaults__", {}))
    own = inspect.get_annotations(cls, eval_str=True)
    fields.update(own)
    defaults.update({name: cls.__dict__[name] for name in own if name in cls.__dict__})
    namespace = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__", "__init__") and k not in defaults}
    bases = cls.__bases__ if issubclass(cls, _Aggregate) else (_Aggregate,)
    for k, v in namespace.items():
        if getattr(v, "__tilewright_jit__", False):
            namespace[k] = _Method(v)
    made = type(cls.__name__, bases, namespace)
    made.__aggregate_fields__, made.__aggregate_defaults__ = fields, defaults
    _retarget_super(namespace.values(), cls.__dict__.get("__init__"), made)
    init = cls.__dict__.get("__init__") or (_inherited_init(cls) if not own else None) or _default_init
    made.__aggregate_init__ = None if init is _default_init else init
    takes_semantic = "_semantic" in inspect.signature(getattr(init, "fn", init)).parameters
    made.__init__ = _construct(made, init, takes_semantic)
    return made


def _inherited_init(cls: type) -> Callable | None:
    """The `__init__` that the nearest base was written with."""
    return next((b.__aggregate_init__ for b in cls.__mro__[1:] if getattr(b, "__aggregate_init__", None)), None)


def _retarget_super(members: Iterable[Any], init: Any, made: type) -> None:
    """`super()` without arguments finds its class in a closure cell: put the new class there."""
    for member in (*members, init):
        fn = getattr(member, "fn", member)
        if isinstance(fn, types.FunctionType) and "__class__" in fn.__code__.co_freevars:
            fn.__closure__[fn.__code__.co_freevars.index("__class__")].cell_contents = made


class _Method:
    """A @jit function in the body of an aggregate: bound to the value when it is looked up on one."""

    def __init__(self, fn: Any):
        self.fn = fn

    def __get__(self, instance, owner):
        return self.fn if instance is None else types.MethodType(self.fn, instance)


def is_aggregate(cls: object) -> bool:
    """Whether `cls` is a class made by `aggregate`."""
    return isinstance(cls, type) and issubclass(cls, _Aggregate)


def aggregate_replace(instance: _Aggregate, **changes: Any) -> _Aggregate:
    """A copy of the aggregate with some fields changed."""
    unknown = [name for name in changes if name not in instance.__aggregate_fields__]
    if unknown:
        raise TypeError(f"{type(instance).__name__} has no field {unknown[0]!r}; its fields: {', '.join(instance.__aggregate_fields__)}")
    return _build(type(instance), {name: changes.get(name, getattr(instance, name)) for name in instance.__aggregate_fields__})


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """x / y rounded up, for positive integers."""
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not less than n."""
    return 1 << (n - 1).bit_length() if n > 0 else 0
