"""What a kernel is compiled for: from the arguments of a call to types, constants and divisibility.

One argument gives a pair (type, key): the type string of the signature and what else the kernel is specialized on. "D" says that a value is
a multiple of 16, "N" that a tensor descriptor pads with NaN, "R" that it rounds to tf32; a type "constexpr" that the value itself is
compiled in, `key` then being the value. A tuple gives a tuple of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.compiler.frontend.function import KernelParam
from tilewright.compiler.source import constant_key

from .arrays import is_array, pointer_and_code

Path = tuple[int, ...]


def specialize_value(value: Any, is_const: bool = False, specialize: bool = True, align: bool = True) -> tuple[Any, Any]:
    """(type, key) of an argument whose parameter has no annotation. Raises TypeError for what no kernel takes, OverflowError beyond u64."""
    cls = type(value)
    if value is None:
        return "constexpr", None
    if cls is bool:
        return "u1", None
    if cls is int:
        return _specialize_int(value, specialize, align)
    if isinstance(value, float):
        return "fp32", None
    if is_array(value):
        pointer, code = pointer_and_code(value)
        return ("*k" if is_const else "*") + code, ("D" if align and pointer % 16 == 0 else "") if specialize else None
    if isinstance(value, tuple):
        pairs = [specialize_value(v) for v in value]
        make = cls._make if hasattr(cls, "_make") else tuple
        return make(t for t, _ in pairs), make(k for _, k in pairs)
    if cls.__name__ == "constexpr" and hasattr(value, "value"):
        return "constexpr", value
    if hasattr(value, "block_shape") and hasattr(value, "base"):  # a host tensor descriptor
        element = pointer_and_code(value.base)[1]
        key = ("N" if value.padding == "nan" else "") + ("R" if value.round_f32_to_tf32 else "")
        return f"tensordesc<{element}[{', '.join(map(str, value.block_shape))}]>", key or None
    if getattr(value, "__tilewright_jit__", False) or _is_language_object(value):
        return "constexpr", value
    if hasattr(cls, "__index__"):
        return _specialize_int(value.__index__(), specialize, align)
    raise TypeError(
        f"failed to specialize argument of type: {cls.__name__}; kernels take arrays and tensors, bool, int, float, None, "
        "tuples of these, tensor descriptors and constants"
    )


def _specialize_int(value: int, specialize: bool, align: bool) -> tuple[str, Any]:
    if specialize and value == 1:
        return "constexpr", 1
    key = ("D" if align and value % 16 == 0 else "") if specialize else None
    if -(2**31) <= value < 2**31:
        return "i32", key
    if -(2**63) <= value < 2**63:
        return "i64", key
    if 0 <= value < 2**64:
        return "u64", key
    raise OverflowError(f"integer argument {value} does not fit in 64 bits")


def _is_language_object(value: Any) -> bool:
    """A dtype of the language, a constexpr function, an aggregate type: compiled in."""
    return hasattr(value, "__triton_constexpr_function__") or type(value).__module__.partition(".")[0] in ("tilewright", "triton")


def specialize_param(param: KernelParam, value: Any) -> tuple[Any, Any]:
    """(type, key) of the argument of a parameter."""
    if param.is_constexpr:
        return "constexpr", value
    forced = param.annotation_type
    if forced and not forced.startswith("*") and type(value) in (bool, float, int):
        if forced == "u1" or forced.startswith(("fp", "bf")) or type(value) is not int:
            return forced, None
        # the annotation keeps an argument of value 1 an argument
        key = _specialize_int(value, not param.do_not_specialize, not param.do_not_specialize_on_alignment)[1]
        return forced, key if isinstance(key, str) else None
    found, key = specialize_value(value, param.is_const, not param.do_not_specialize, not param.do_not_specialize_on_alignment)
    return (forced if forced.startswith("*") and isinstance(found, str) and found.startswith("*") else found), key


def key_text(pairs: list[tuple[Any, Any]], options: Any) -> str:
    """The text that tells the specializations of one kernel apart; constants by type and value, functions by their source."""
    return f"{[(kind, constant_key(key)) for kind, key in pairs]}{options}"


def collect(
    names: list[str], pairs: list[tuple[Any, Any]], parse_attr: Callable[[str], list]
) -> tuple[dict[str, Any], dict[Path, Any], dict]:
    """(signature by name, constants by path, attributes by path) for an ASTSource."""
    signature = dict(zip(names, (kind for kind, _ in pairs), strict=True))
    constants: dict[Path, Any] = {}
    attrs: dict[Path, list] = {}

    def visit(kind: Any, key: Any, path: Path) -> None:
        if isinstance(kind, tuple):
            for i, (k, v) in enumerate(zip(kind, key, strict=True)):
                visit(k, v, (*path, i))
        elif kind == "constexpr":
            constants[path] = key
        elif key and (found := parse_attr(key)):
            attrs[path] = found

    for i, (kind, key) in enumerate(pairs):
        visit(kind, key, (i,))
    return signature, constants, attrs
