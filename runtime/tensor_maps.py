"""Tensor maps (CUtensorMap): what TMA must know of an array, made on the host for the descriptors of a kernel.

The compiler leaves `tma_descriptors` in a kernel's metadata: for each of the parameters of 128 bytes that follow the others, expressions
over those for the array's address, shape and strides (`compiler/analysis/host_values.py`), conditions that they must meet, and the box that
the kernel's copies move. A map is made when arguments are seen for the first time; launches with the same ones find it in a dictionary.
Where TMA's rules forbid one, or a condition does not hold, a kernel is launched that was compiled with `tma=False`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from ctypes import addressof, create_string_buffer, string_at
from functools import lru_cache
from typing import Any

TENSOR_MAP_BYTES = 128
_MAP_ALIGNMENT = 64
#: Elements of a kernel's dictionaries of tensor maps; pointers that never repeat would fill them.
MAX_CACHED = 4096

_MAX_STRIDE_BYTES = 1 << 40
_MAX_SIZE = 1 << 32
#: `CUtensorMapDataType`, `CUtensorMapSwizzle` and `CUtensorMapL2promotion` (bytes), by value.
_DATA_TYPES = (
    "UINT8",
    "UINT16",
    "UINT32",
    "INT32",
    "UINT64",
    "INT64",
    "FLOAT16",
    "FLOAT32",
    "FLOAT64",
    "BFLOAT16",
    "FLOAT32_FTZ",
    "TFLOAT32",
)
_SWIZZLES = (0, 32, 64, 128)
_PROMOTIONS = (0, 64, 128, 256)
#: Element -> bytes, name in `CUtensorMapDataType`.
_ELEMENTS = {"u8": (1, "UINT8"), "u16": (2, "UINT16"), "u32": (4, "UINT32"), "u64": (8, "UINT64"), "i32": (4, "INT32"), "i64": (8, "INT64")}
_ELEMENTS |= {"f16": (2, "FLOAT16"), "bf16": (2, "BFLOAT16"), "f32": (4, "FLOAT32"), "tf32": (4, "TFLOAT32"), "f64": (8, "FLOAT64")}

Encode = Callable[[dict[str, Any], int, list[int], list[int]], bytes]
"""(entry of `tma_descriptors`, address, shape, strides in bytes without the last) -> the tensor map."""


class TensorMapError(ValueError):
    """An array that TMA cannot access, or not as the kernel does."""


class TensorMaps:
    """The tensor maps of one kernel. `used` are the numbers of the parameters that they depend on."""

    def __init__(self, kernel: str, descriptors: Sequence[dict[str, Any]], kinds: Sequence[str], names: Sequence[str], encode: Encode):
        self.kernel, self.descriptors, self.names, self.encode = kernel, descriptors, names, encode
        self.conditions = list(dict.fromkeys(text for d in descriptors for text in d.get("conditions", ())))
        self.check = _Expressions(self.conditions, kinds)
        self.arrays = [_Expressions([d["base"], *d["shape"], *d["strides"]], kinds) for d in descriptors]
        self.used = sorted({number for e in (self.check, *self.arrays) for number in e.used})
        self.made: dict[tuple[int, ...], tuple[bytes, ...]] = {}

    def key(self, values: Sequence[Any]) -> tuple[int, ...]:
        """Those of the values of the kernel's parameters that the maps depend on."""
        return tuple([values[number] for number in self.used])

    def of(self, values: Sequence[Any]) -> tuple[bytes, ...]:
        """The maps for the values of the kernel's parameters. Raises TensorMapError, naming the argument."""
        return self.of_key(self.key(values))

    def of_key(self, key: tuple[int, ...]) -> tuple[bytes, ...]:
        """The maps for values that have this key."""
        found = self.made.get(key)
        if found is None:
            if len(self.made) >= MAX_CACHED:
                self.made.clear()
            found = self.made[key] = self._make(dict(zip(self.used, key, strict=True)))
        return found

    def _make(self, values: dict[int, int]) -> tuple[bytes, ...]:
        key = self.check.key(values)
        holds = self.check.known.get(key)
        if holds is None:
            holds = self.check.keep(key, self.check.function(*key))
        if False in holds:
            condition = self._named(self.conditions[holds.index(False)])
            raise TensorMapError(f"kernel {self.kernel} was compiled for arguments with {condition}")
        out = []
        for descriptor, array in zip(self.descriptors, self.arrays, strict=True):
            key = array.key(values)
            found = array.known.get(key)
            if found is None:
                base, *rest = array.function(*key)
                rank = len(descriptor["shape"])
                found = array.keep(key, self._encoded(descriptor, base, rest[:rank], rest[rank:]))
            out.append(found)
        return tuple(out)

    def _encoded(self, descriptor: dict[str, Any], base: int, shape: list[int], strides: list[int]) -> bytes:
        if base == 0 or 0 in shape:
            return bytes(TENSOR_MAP_BYTES)  # no array: an access would be an error of the kernel
        size = _ELEMENTS[descriptor["element"]][0]
        if base % 16:
            raise self._error(descriptor, f"its address {base:#x} is no multiple of 16 bytes")
        for dim, extent in enumerate(shape):
            if not 0 < extent <= _MAX_SIZE:
                raise self._error(descriptor, f"size {extent} of dimension {dim} is not from 1 to 2^32")
        for dim, stride in enumerate(strides):
            if stride * size % 16 or not 0 <= stride * size < _MAX_STRIDE_BYTES:
                text = self._named(descriptor["strides"][dim])
                of = f" ({text})" if text != str(stride) else ""
                raise self._error(
                    descriptor,
                    f"stride {stride}{of} of dimension {dim}, {stride * size} bytes, is no multiple of 16 bytes from 0 to 2^40",
                )
        if descriptor["stores"] and shape[-1] * size % 16:
            # The H200 then writes beyond the array, up to the end of the last 16 bytes.
            raise self._error(descriptor, f"its rows of {shape[-1] * size} bytes, which are stored, are no multiple of 16 bytes")
        try:
            return self.encode(descriptor, base, shape, [stride * size for stride in strides])
        except RuntimeError as e:
            raise self._error(descriptor, str(e)) from e

    def _error(self, descriptor: dict[str, Any], what: str) -> TensorMapError:
        return TensorMapError(f"kernel {self.kernel}: the tensor descriptor of {self._named(descriptor['base'])} cannot be used: {what}")

    def _named(self, expression: str) -> str:
        """An expression with the names of the arguments."""
        return re.sub(r"\ba(\d+)\b", lambda match: self.names[int(match[1])], expression)


class _Expressions:
    """Expressions over parameters, whose numbers are `used`; `known` keeps what somebody makes of their values."""

    def __init__(self, texts: Sequence[str], kinds: Sequence[str]):
        self.used = sorted({int(number) for text in texts for number in re.findall(r"\ba(\d+)\b", text)})
        joined = ", ".join(texts)
        for number in self.used:
            if re.fullmatch(r"u(8|16|32|64)", kinds[number]):
                joined = re.sub(rf"\ba{number}\b", f"wrap(a{number}, {kinds[number][1:]})", joined)
        parameters = ", ".join(f"a{number}" for number in self.used)
        self.function = eval(f"lambda {parameters}: [{joined}]", dict(_FUNCTIONS))
        self.known: dict[tuple[int, ...], Any] = {}

    def key(self, values: dict[int, int]) -> tuple[int, ...]:
        """The values that `function`, which returns the list of those of the expressions, takes."""
        return tuple([values[number] for number in self.used])

    def keep(self, key: tuple[int, ...], made: Any) -> Any:
        """Remember, and return, what was made for a key."""
        if len(self.known) >= MAX_CACHED:
            self.known.clear()
        self.known[key] = made
        return made


def wrap(value: int, bits: int) -> int:
    """The signed integer of `bits` bits that equals `value` modulo 2^bits."""
    half = 1 << bits - 1
    return ((value + half) & (2 * half - 1)) - half


def divide(a: int, b: int) -> int:
    """Division toward zero; 0 by 0, whose result no kernel uses."""
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    """What `divide` leaves: it has the sign of `a`."""
    return a - b * divide(a, b)


_FUNCTIONS = {"wrap": wrap, "divide": divide, "remainder": remainder, "max": max, "min": min, "__builtins__": {}}


def encode(descriptor: dict[str, Any], base: int, shape: list[int], strides: list[int]) -> bytes:
    """The tensor map that the CUDA driver makes. Raises RuntimeError if it refuses."""
    from .drivers import libcuda

    # Arrays of one shape are many: what the driver is told of them beside the address is kept.
    lists, sizes_at = _lists(tuple(shape), tuple(strides), tuple(descriptor["box"]))
    rank = len(shape)
    memory = create_string_buffer(TENSOR_MAP_BYTES + _MAP_ALIGNMENT)
    at = addressof(memory)
    at += -at % _MAP_ALIGNMENT
    status = libcuda.encode_function()(
        at,
        _DATA_TYPES.index(_ELEMENTS[descriptor["element"]][1]),
        rank,
        base,
        sizes_at,
        sizes_at + 8 * rank,
        sizes_at + 16 * rank,
        sizes_at + 20 * rank,
        0,  # no interleaving
        _SWIZZLES.index(descriptor["swizzle"]),
        _PROMOTIONS.index(descriptor["promotion"]),
        int(descriptor["padding"] == "nan"),
    )
    if status:
        libcuda.check(status, "cuTensorMapEncodeTiled")
    return string_at(at, TENSOR_MAP_BYTES)


@lru_cache(maxsize=MAX_CACHED)
def _lists(shape: tuple[int, ...], strides: tuple[int, ...], box: tuple[int, ...]) -> tuple[Any, int]:
    """(memory, its address) of sizes, strides in bytes (one more than are used), box, and steps, contiguous dimension first."""
    rank = len(shape)
    numbers = (*reversed(shape), *reversed(strides), 16, *reversed(box), *[1] * rank)
    memory = create_string_buffer(struct.pack(f"<{2 * rank}Q{2 * rank}I", *numbers))
    return memory, addressof(memory)
