"""Types of the language: scalars, pointers, blocks, and the types of compound values.

`dtype`, `pointer_type` and `block_type` are interned: equal types are the same object, so `==` and hashing are identity.
"""

from __future__ import annotations

import functools
import re
from enum import Enum

TRITON_MAX_TENSOR_NUMEL = 1048576

# name -> (bits, mantissa bits, exponent bias)
_FLOATS = {
    "fp8e4b15": (8, 3, 15),
    "fp8e4nv": (8, 3, 7),
    "fp8e4b8": (8, 3, 8),
    "fp8e5": (8, 2, 15),
    "fp8e5b16": (8, 2, 16),
    "fp16": (16, 10, 15),
    "bf16": (16, 7, 127),
    "fp32": (32, 23, 127),
    "fp64": (64, 52, 1023),
}
_SIGNED = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED = {"int1": 1, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
_interned: dict[object, object] = {}


class _SIGNEDNESS(Enum):
    SIGNED = 0
    UNSIGNED = 1


class _KIND(Enum):
    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2


class base_type:
    """Root of all types of values in a kernel."""

    def mangle(self) -> str:
        """A string that identifies the type in a symbol name."""
        raise NotImplementedError(type(self).__name__)

    def is_ptr(self) -> bool:
        return False

    def is_block(self) -> bool:
        return False


class dtype(base_type):
    """A scalar type, by its short name: `dtype("fp32")`, `dtype("int1")`, `dtype("void")`.

    Attributes: `name`, `primitive_bitwidth`, `itemsize` (bytes in memory), and for integers `int_signedness` and `int_bitwidth`, for floats
    `fp_mantissa_width` and `exponent_bias`."""

    SIGNEDNESS = _SIGNEDNESS
    KIND = _KIND
    SINT_TYPES = tuple(_SIGNED)
    UINT_TYPES = tuple(_UNSIGNED)
    FP_TYPES = tuple(_FLOATS)
    STANDARD_FP_TYPES = ("fp16", "bf16", "fp32", "fp64")
    OTHER_TYPES = ("void",)

    name: str
    primitive_bitwidth: int

    def __new__(cls, name: str):
        found = _interned.get(name)
        if found is None:
            found = object.__new__(cls)
            found._set(getattr(name, "value", name))
            _interned[name] = found
        return found

    def _set(self, name: str) -> None:
        self.name = name
        if name in _FLOATS:
            self.primitive_bitwidth, self.fp_mantissa_width, self.exponent_bias = _FLOATS[name]
        elif name in _SIGNED:
            self.primitive_bitwidth = self.int_bitwidth = _SIGNED[name]
            self.int_signedness = dtype.SIGNEDNESS.SIGNED
        elif name in _UNSIGNED:
            self.primitive_bitwidth = self.int_bitwidth = _UNSIGNED[name]
            self.int_signedness = dtype.SIGNEDNESS.UNSIGNED
        elif name == "void":
            self.primitive_bitwidth = 0
        else:
            known = ", ".join([*_UNSIGNED, *_SIGNED, *_FLOATS, "void"])
            raise TypeError(f"unknown dtype {name!r}; accepted: {known}")
        self._floating = name in _FLOATS
        self._integer = name in _SIGNED or name in _UNSIGNED

    def __reduce__(self):
        return dtype, (self.name,)

    @property
    def itemsize(self) -> int:
        return (self.primitive_bitwidth + 7) // 8

    @property
    def scalar(self) -> dtype:
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def cache_key_part(self) -> str:
        return self.name

    def with_element_ty(self, element_ty: dtype) -> dtype:
        """The same shape with another element type; for a scalar that is `element_ty`."""
        return element_ty

    def is_floating(self) -> bool:
        return self._floating

    def is_standard_floating(self) -> bool:
        return self.name in dtype.STANDARD_FP_TYPES

    def is_fp8(self) -> bool:
        return self.name.startswith("fp8")

    def is_int(self) -> bool:
        return self._integer

    def is_int_signed(self) -> bool:
        return self.name in _SIGNED

    def is_int_unsigned(self) -> bool:
        return self.name in _UNSIGNED

    def is_bool(self) -> bool:
        return self.name == "int1"

    def is_void(self) -> bool:
        return self.name == "void"

    def is_const(self) -> bool:
        return False

    @staticmethod
    def is_dtype(type_str: str) -> bool:
        """Whether `type_str` is the short name of a scalar type."""
        return type_str in _FLOATS or type_str in _SIGNED or type_str in _UNSIGNED or type_str == "void"

    def kind(self) -> _KIND:
        """BOOLEAN, INTEGRAL or FLOATING: promotion goes to the higher kind."""
        if self._floating:
            return dtype.KIND.FLOATING
        if not self._integer:
            raise TypeError(f"{self} has no arithmetic kind")
        return dtype.KIND.BOOLEAN if self.is_bool() else dtype.KIND.INTEGRAL

    def get_int_max_value(self) -> int:
        return 2 ** (self.int_bitwidth - (self.int_signedness is dtype.SIGNEDNESS.SIGNED)) - 1

    def get_int_min_value(self) -> int:
        return -(2 ** (self.int_bitwidth - 1)) if self.int_signedness is dtype.SIGNEDNESS.SIGNED else 0

    def codegen_name(self) -> str:
        """The name under which the type is found in `tl`: float32, bfloat16, int32, ..."""
        if self.name.startswith("fp"):
            return "float" + self.name[2:]
        return "bfloat" + self.name[2:] if self.name.startswith("bf") else self.name

    def mangle(self) -> str:
        if self._integer:
            return ("i" if self.is_int_signed() or self.is_bool() else "u") + str(self.int_bitwidth)
        return "V" if self.is_void() else self.name

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"triton.language.{self.codegen_name()}"


def _add_predicates() -> None:
    """`is_fp32`, `is_int1`, `is_uint8`, ...: one per scalar type."""
    for name in (*_FLOATS, *_SIGNED, *_UNSIGNED):
        setattr(dtype, f"is_{name}", lambda self, name=name: self.name == name)


_add_predicates()


class pointer_type(dtype):
    """Pointer to elements of `element_ty`; `address_space` 1 (or "global") is global memory, `const` forbids stores."""

    element_ty: dtype

    def __new__(cls, element_ty: dtype, address_space: int | str = 1, const: bool = False):
        element_ty = getattr(element_ty, "value", element_ty)
        if not isinstance(element_ty, dtype):
            raise TypeError(f"element_ty must be a dtype, got {type(element_ty).__name__}")
        address_space = {"global": 1, "shared": 3, "constant": 4}.get(address_space, address_space)
        key = (element_ty, address_space, bool(const))
        found = _interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.element_ty, found.address_space, found.const = key
            found.name = f"pointer<{element_ty}>" if not const else f"const_pointer<{element_ty}>"
            found.primitive_bitwidth = 64
            found._floating = found._integer = False
            _interned[key] = found
        return found

    def __reduce__(self):
        return pointer_type, (self.element_ty, self.address_space, self.const)

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const

    def mangle(self) -> str:
        return f"P{self.element_ty.mangle()}"

    def __repr__(self) -> str:
        return f"triton.language.pointer_type({self.element_ty!r}, {self.address_space}, {self.const})"


class block_type(dtype):
    """Tensor of rank 1 or more: `element_ty` (a scalar or pointer type) and `shape`, each dimension a power of two."""

    element_ty: dtype
    shape: tuple[int, ...] = ()

    def __new__(cls, element_ty: dtype, shape):
        shape = tuple(getattr(d, "value", d) for d in shape)
        if any(type(d) is not int for d in shape):  # 2.0 and True would find the types of 2 and 1
            validate_block_shape(shape)
        key = (element_ty, shape)
        found = _interned.get(key)
        if found is None:
            if not shape:
                raise TypeError("0d block_type is forbidden: a rank-0 value has a scalar type")
            found = object.__new__(cls)
            found.numel = validate_block_shape(shape)
            found.element_ty, found.shape = element_ty, shape
            found.name = f"<{'x'.join(map(str, shape))}x{element_ty}>"
            found.primitive_bitwidth = element_ty.primitive_bitwidth
            found._floating = found._integer = False
            _interned[key] = found
        return found

    def __reduce__(self):
        return block_type, (self.element_ty, self.shape)

    @property
    def scalar(self) -> dtype:
        return self.element_ty

    @property
    def nbytes(self) -> int:
        return self.numel * self.element_ty.primitive_bitwidth // 8

    def is_block(self) -> bool:
        return True

    def get_block_shapes(self) -> tuple[int, ...]:
        return self.shape

    def with_element_ty(self, element_ty: dtype) -> block_type:
        return block_type(element_ty, self.shape)

    def mangle(self) -> str:
        return f"{self.element_ty.mangle()}S{'_'.join(map(str, self.shape))}S"

    def __repr__(self) -> str:
        return f"triton.language.block_type({self.element_ty!r}, {list(self.shape)})"


def validate_block_shape(shape: tuple[int, ...]) -> int:
    """Number of elements; TypeError or ValueError if a dimension is no int or no power of two, or the product too large."""
    numel = 1
    for i, d in enumerate(shape):
        if not isinstance(d, int) or isinstance(d, bool):
            raise TypeError(f"Shape element {i} must have type `constexpr[int]`, got `{_describe(d)}`")
        if d <= 0 or d & (d - 1):
            raise ValueError(f"Shape element {i} must be a power of 2, got {d}")
        numel *= d
    if numel > TRITON_MAX_TENSOR_NUMEL:
        raise ValueError(f"numel ({numel}) exceeds triton maximum tensor numel ({TRITON_MAX_TENSOR_NUMEL})")
    return numel


def _describe(value: object) -> str:
    ty = getattr(value, "type", None)
    return str(ty) if isinstance(ty, base_type) else f"constexpr[{type(value).__name__}]"


def with_shape(element_ty: dtype, shape: tuple[int, ...]) -> dtype:
    """`block_type(element_ty, shape)`, or the scalar type for the empty shape."""
    return block_type(element_ty, shape) if shape else element_ty


class constexpr_type(base_type):
    """Type of a compile-time constant; two are equal if their values are."""

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr_type) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((constexpr_type, self.value))

    def mangle(self) -> str:
        return "c" + (repr(self.value) if not hasattr(self.value, "mangle") else self.value.mangle())

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value}]"


class slice_type(base_type):
    """Type of `tl.slice`."""

    def mangle(self) -> str:
        return "slice"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, slice_type)

    def __hash__(self) -> int:
        return hash(slice_type)

    def __repr__(self) -> str:
        return "slice"


class tuple_type(base_type):
    """Type of a tuple: the types of its items and, of a named tuple, the names of its fields."""

    def __init__(self, types, fields: list[str] | None = None):
        self.types = list(types)
        self.fields = list(fields) if fields else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple_type) and self.types == other.types and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((tuple_type, *self.types))

    def __iter__(self):
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __getitem__(self, index: int) -> base_type:
        return self.types[index]

    def mangle(self) -> str:
        return f"T{'_'.join(t.mangle() for t in self.types)}T"

    def __repr__(self) -> str:
        items = self.types if not self.fields else [f"{f}={t}" for f, t in zip(self.fields, self.types)]
        return f"[{', '.join(map(str, items))}]"


class tensor_descriptor_type(base_type):
    """Type of a tensor descriptor: the block that an access moves. The array has the block's rank."""

    def __init__(self, block: block_type):
        self.block_type = block

    @property
    def element_ty(self) -> dtype:
        return self.block_type.element_ty

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tensor_descriptor_type) and self.block_type is other.block_type

    def __hash__(self) -> int:
        return hash((tensor_descriptor_type, self.block_type))

    def mangle(self) -> str:
        return f"TD{self.block_type.mangle()}"

    def __repr__(self) -> str:
        return f"tensordesc<{self.element_ty}{list(self.block_type.shape)}>"


void = dtype("void")
int1, int8, int16, int32, int64 = (dtype(f"int{n}") for n in (1, 8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (dtype(f"uint{n}") for n in (8, 16, 32, 64))
float8e5, float8e5b16, float8e4nv, float8e4b8, float8e4b15 = (dtype(f"fp8{n}") for n in ("e5", "e5b16", "e4nv", "e4b8", "e4b15"))
float16, bfloat16, float32, float64 = (dtype(n) for n in ("fp16", "bf16", "fp32", "fp64"))
pi32_t = pointer_type(int32)

_INTEGER_CODES = {f"i{n}": dtype(f"int{n}") for n in (1, 8, 16, 32, 64)} | {f"u{n}": dtype(f"uint{n}") for n in (8, 16, 32, 64)}
_CODES = {n: dtype(n) for n in (*_FLOATS, "void")} | _INTEGER_CODES | {"u1": int1, "B": int1}

# every spelling of a type in an annotation or a signature -> its code in signatures
type_canonicalisation_dict = (
    {name: name for name in (*_FLOATS, "void")}
    | {f"{n}{w}": f"{n[0]}{w}" for n in ("int", "uint") for w in (8, 16, 32, 64)}
    | {f"{n}{w}": f"{n}{w}" for n in ("i", "u") for w in (8, 16, 32, 64)}
    | dict.fromkeys(("bool", "int1", "uint1", "i1", "u1", "B"), "u1")
    | {"int": "i32", "half": "fp16", "float": "fp32", "double": "fp64"}
    | {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
    | {f"float8{n}": f"fp8{n}" for n in ("e5", "e5b16", "e4nv", "e4b8", "e4b15")}
    | {"float8_e4m3fn": "fp8e4nv", "float8_e4m3fnuz": "fp8e4b8", "float8_e5m2": "fp8e5", "float8_e5m2fnuz": "fp8e5b16"}
)


def canonicalize_type_name(name: str) -> str:
    """The signature code of a type's spelling, pointers too: "float32" -> "fp32", "*const half" -> "*kfp16". ValueError if unknown."""
    stars = len(name) - len(name.lstrip("*"))
    if stars:
        inner = name[stars:].strip()
        const = inner.startswith(("const ", "k")) and inner not in type_canonicalisation_dict
        inner = inner.removeprefix("const").removeprefix("k").strip() if const else inner
        return "*" * stars + ("k" if const else "") + canonicalize_type_name(inner)
    name = name.removeprefix("tl.").removeprefix("triton.language.")
    if name not in type_canonicalisation_dict:
        raise ValueError(
            f"unknown type {name!r}; accepted: {', '.join(sorted(type_canonicalisation_dict))}, '*' before a type for a pointer"
        )
    return type_canonicalisation_dict[name]


_DESCRIPTOR = re.compile(r"tensordesc<([a-z0-9]+)\[([0-9, ]+)\].*>")


@functools.cache
def _parse(name: str) -> base_type:
    if name.startswith("*"):
        inner = name[1:].strip()
        const = inner.startswith(("k", "const "))
        inner = inner.removeprefix("const").removeprefix("k").strip() if const else inner
        return pointer_type(_parse(inner), 1, const)
    if match := _DESCRIPTOR.fullmatch(name):
        return tensor_descriptor_type(block_type(_parse(match[1]), [int(d) for d in match[2].split(",")]))
    if name in _CODES:
        return _CODES[name]
    return _CODES[canonicalize_type_name(name)]


def str_to_ty(name, c: object = None) -> base_type:
    """The type that a signature string stands for: "*fp32", "*kfp16", "i32", "u1", "tensordesc<fp16[128, 64]>"; "constexpr" is the type of
    the constant `c`; a tuple of strings is a tuple type."""
    if isinstance(name, tuple):
        items = c if isinstance(c, tuple) else (None,) * len(name)
        return tuple_type([str_to_ty(n, v) for n, v in zip(name, items)], getattr(name, "_fields", None))
    return constexpr_type(getattr(c, "value", c)) if name == "constexpr" else _parse(name)


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of 1, 8, 16, 32 or 64 bits."""
    return int1 if bitwidth == 1 else dtype(f"{'int' if signed else 'uint'}{bitwidth}")
