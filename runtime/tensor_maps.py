"""Tensor maps (CUtensorMap): what TMA must know of an array, made on the host for the descriptors of a kernel.

The compiler leaves `tma_descriptors` in a kernel's metadata: for each of the parameters of 128 bytes that follow the others, expressions
over those for the array's address, shape and strides (`compiler/analysis/host_values.py`), conditions that they must meet, and the box that
the kernel's copies move. A map is made when arguments are seen for the first time; launches with the same ones find it in a dictionary.
Where TMA's rules forbid one, or a condition does not hold, a kernel is launched that was compiled with `tma=False`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

TENSOR_MAP_BYTES = 128
#: Elements of a kernel's dictionaries of tensor maps; pointers that never repeat would fill them.
MAX_CACHED = 4096

_MAX_STRIDE_BYTES = 1 << 40
_MAX_SIZE = 1 << 32
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
        conditions = list(dict.fromkeys(text for d in descriptors for text in d.get("conditions", ())))
        texts = [*conditions, *(text for d in descriptors for text in (d["base"], *d["shape"], *d["strides"]))]
        self.used = sorted({int(number) for text in texts for number in re.findall(r"\ba(\d+)\b", text)})
        self.unsigned = {number: int(kinds[number][1:]) for number in self.used if re.fullmatch(r"u(8|16|32|64)", kinds[number])}
        self.conditions = [(text, _compiled([text])) for text in conditions]
        self.code = [[_compiled(part) for part in ([d["base"]], d["shape"], d["strides"])] for d in descriptors]
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
            found = self.made[key] = self._make(key)
        return found

    def _make(self, key: tuple[int, ...]) -> tuple[bytes, ...]:
        scope = dict(_FUNCTIONS)
        for number, value in zip(self.used, key, strict=True):
            bits = self.unsigned.get(number)
            scope[f"a{number}"] = wrap(value, bits) if bits else value
        for text, code in self.conditions:
            if eval(code, scope) != [True]:
                raise TensorMapError(f"kernel {self.kernel} was compiled for arguments with {self._named(text)}")
        out = []
        for descriptor, code in zip(self.descriptors, self.code, strict=True):
            (base,), shape, strides = (eval(c, scope) for c in code)
            out.append(self._encoded(descriptor, base, shape, strides))
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


def _compiled(expressions: Sequence[str]) -> Any:
    """The code of a list of expressions."""
    return compile(f"[{', '.join(expressions)}]", "<tensor map>", "eval")


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

    cuda = libcuda.api()
    box, swizzle = descriptor["box"], descriptor["swizzle"]
    fill = "NAN_REQUEST_ZERO_FMA" if descriptor["padding"] == "nan" else "NONE"
    made = libcuda.call(
        "cuTensorMapEncodeTiled",
        getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_ELEMENTS[descriptor['element']][1]}"),
        len(shape),
        base,
        [cuda.cuuint64_t(extent) for extent in reversed(shape)],
        [cuda.cuuint64_t(stride) for stride in reversed(strides or [16])],  # of one dimension: unused, but not a null pointer
        [cuda.cuuint32_t(extent) for extent in reversed(box)],
        [cuda.cuuint32_t(1)] * len(shape),
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cuda.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{f'{swizzle}B' if swizzle else 'NONE'}"),
        cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        getattr(cuda.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill}"),
    )
    return b"".join(int(word).to_bytes(8, "little") for word in made.opaque)
