"""What the arguments of a call become in a generated launch function (`launcher`).

From the arguments of one call: checks that a later call's are of the same classes, lines that read them, expressions of the key that they
are looked up by (all that a kernel is specialized on), and expressions of the values that are packed.
"""

from __future__ import annotations

from typing import Any

from tilewright.compiler.frontend.function import KernelFunction, KernelParam

from .arrays import gpu_pointer, is_array, on_gpu
from .launch import bf16_bits, format_of


class NotGenerated(Exception):
    """An argument that only the general path takes."""


def structure(value: Any) -> Any:
    """The class of an argument; of a tuple, with those of its parts."""
    return (type(value), *map(structure, value)) if isinstance(value, tuple) else type(value)


class ArgumentCode:
    """Code for arguments like those of one call, whose types are `kinds`. Raises NotGenerated.

    `values` and `formats` go together: one for each leaf, those of the type "constexpr" (an integer that is 1) included; `passed` are the
    numbers of those that the kernel takes. Beside the expressions of the key, `same` are conditions that hold where a call's key is that of
    this one, and `aligned` the values that must be multiples of 16.
    """

    def __init__(self, fn: KernelFunction, bound: dict[str, Any], kinds: list[Any]):
        self.guards: list[str] = []
        self.reads: list[str] = []
        self.key: list[str] = []
        self.same: list[str] = []
        self.same_constants: list[str] = []
        self.aligned: list[str] = []
        self.values: list[str] = []
        self.formats: list[str] = []
        self.passed: list[int] = []
        self.scope: dict[str, Any] = {"_tw_read": gpu_pointer, "_tw_bf16": bf16_bits}
        for param, kind in zip(fn.params, kinds, strict=True):
            self._argument(param.name, bound[param.name], kind, param)

    def lines(self) -> tuple[list[str], ...]:
        """All that a function is generated from but the classes: equal for calls that the same function serves."""
        return self.guards, self.reads, self.key, self.values, self.formats

    def _argument(self, text: str, value: Any, kind: Any, param: KernelParam | None) -> None:
        """Add the argument that the expression `text` gives; `param` is None for a part of a tuple."""
        cls = type(value)
        if value is None:
            self.guards.append(f"{text} is None")
        elif isinstance(value, tuple):
            self._class(text, cls)
            self.guards.append(f"_tw_len({text}) == {len(value)}")
            constant = param is not None and param.is_constexpr
            for i, part in enumerate(value):
                self._argument(f"{text}[{i}]", part, "constexpr" if constant else kind[i], param if constant else None)
        elif (param is not None and param.is_constexpr) or (kind == "constexpr" and cls is not int):
            self._constant(text, value, cls)
        elif cls is int:
            self._integer(text, value, kind, param)
        elif cls is bool or cls is float:
            self._class(text, cls)
            self._scalar(text, kind, kind)
        elif hasattr(value, "block_shape") and hasattr(value, "base"):
            self._descriptor(text, value)
        elif is_array(value) and on_gpu(value):
            aligned = param is None or not (param.do_not_specialize or param.do_not_specialize_on_alignment)
            self._array(text, value, aligned)
        else:
            raise NotGenerated

    def conditions(self) -> list[str]:
        """What holds of arguments whose key is that of the call that this was made from: first what most often does not."""
        aligned = [f"not ({' | '.join(self.aligned)}) & 15"] if self.aligned else []
        return [*self.same_constants, *aligned, *self.same]

    def _class(self, text: str, cls: type) -> None:
        self.guards.append(f"_tw_type({text}) is {self._name(cls)}")

    def _name(self, value: Any) -> str:
        """A name for an object in the generated code."""
        name = f"_tw_known{len(self.scope)}"
        self.scope[name] = value
        return name

    def _key(self, text: str, value: Any, compare: str = "==") -> None:
        """Add an expression to the key, which has this value in this call."""
        self.key.append(text)
        self.same.append(f"{text} {compare} {self._name(value)}")

    def _constant(self, text: str, value: Any, cls: type) -> None:
        """A value that is compiled in. Equal ones of the class must be the same constant: those of Python's scalars, dtypes, functions."""
        if not (cls in (int, bool, float, str) or cls.__name__ == "dtype" or cls.__hash__ is object.__hash__):
            raise NotGenerated
        self._class(text, cls)
        if cls is float:
            text, value = f"{text}.hex()", value.hex()  # 0.0 and -0.0 are equal, and NaN equals nothing
        self.key.append(text)
        self.same_constants.append(f"{text} == {self._name(value)}")

    def _integer(self, text: str, value: int, kind: str, param: KernelParam | None) -> None:
        self._class(text, int)
        forced = param.annotation_type if param is not None and not param.annotation_type.startswith("*") else ""
        if param is None or not param.do_not_specialize:
            if param is not None and param.do_not_specialize_on_alignment:
                self.key.append(f"{text} == 1")
                self.same.append(f"{text} == 1" if value == 1 else f"{text} != 1")
            else:
                self.key.append(f"None if {text} == 1 else not {text} & 15")
                if value == 1:
                    self.same.append(f"{text} == 1")
                elif value & 15:
                    self.same.append(f"{text} != 1 and {text} & 15")
                else:
                    self.aligned.append(text)
        if not forced and not -(2**31) <= value < 2**31:
            signed = value < 2**63
            low, high = (2**31, 2**63) if signed else (2**63, 2**64)
            self.guards.append(f"({low} <= {text} < {high}{f' or {-high} <= {text} < {-low}' if signed else ''})")
            self._scalar(text, kind, "i64" if signed else "u64")
        else:
            self._scalar(text, kind, forced or "i32")

    def _scalar(self, text: str, kind: str, packed: str) -> None:
        self._value(f"_tw_bf16({text})" if packed == "bf16" else text, format_of(packed), kind != "constexpr")

    def _value(self, text: str, code: str, passed: bool = True) -> None:
        if passed:
            self.passed.append(len(self.values))
        self.values.append(text)
        self.formats.append(code)

    def _array(self, text: str, value: Any, aligned: bool) -> None:
        """An array of any class: what is read of it says all, and what is none cannot be read."""
        pointer = f"_tw_p{len(self.values)}"
        if hasattr(value, "data_ptr") and hasattr(value, "get_device"):
            self.reads.append(f"{pointer} = {text}.data_ptr()")
            self._key(f"{text}.dtype", value.dtype, "is")
            self._key(f"{text}.get_device()", value.get_device())
        else:
            self.reads.append(f"{pointer}, _tw_t{len(self.values)} = _tw_read({text})")
            self._key(f"_tw_t{len(self.values)}", gpu_pointer(value)[1])
        if aligned:
            self.key.append(f"not {pointer} & 15")
            if gpu_pointer(value)[0] & 15:
                self.same.append(f"{pointer} & 15")
            else:
                self.aligned.append(pointer)
        self._value(pointer, "Q")

    def _descriptor(self, text: str, value: Any) -> None:
        """A host tensor descriptor: its array, and shape and strides as integers."""
        if not (is_array(value.base) and on_gpu(value.base)):
            raise NotGenerated
        self._class(text, type(value))
        self._array(f"{text}.base", value.base, aligned=False)
        self._key(f"_tw_tuple({text}.block_shape)", tuple(value.block_shape))
        self._key(f"{text}.padding", value.padding)
        self._key(f"{text}.round_f32_to_tf32", value.round_f32_to_tf32)
        for name, code in (("shape", "i"), ("strides", "q")):
            parts = [f"_tw_{name[:2]}{len(self.values)}_{i}" for i in range(len(getattr(value, name)))]
            self.reads.append(f"{', '.join(parts)}, = {text}.{name}")
            for part in parts:
                self._value(part, code)
