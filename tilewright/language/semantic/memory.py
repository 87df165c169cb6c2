"""Loads and stores through pointers, tensors of pointers, and block pointers."""

from __future__ import annotations

from typing import Any

from ..builder import EVICTION, LOAD_CACHE, STORE_CACHE
from ..core import builtin, flatten, tensor, unflatten
from ..dtypes import block_type, int1, int8, pointer_type
from .block_pointer import block_pointer
from .cast import cast, check_supported, convert
from .session import Semantic
from .values import broadcast_shape, broadcast_to, to_tensor

PADDING = ("", "zero", "nan")


def modifier(text: Any, accepted: tuple[str, ...], what: str, prefix: str = "") -> str:
    """A cache or eviction modifier as the builder takes it. ValueError that names the accepted ones."""
    text = text or ""
    name = text.removeprefix(prefix) if isinstance(text, str) else None
    if name not in accepted or (prefix and text and not text.startswith(prefix)):
        known = ", ".join(repr(prefix + a if a else "") for a in accepted)
        raise ValueError(f"{what} {text} not supported; accepted: {known}")
    return name


def pointer_argument(ptr: Any, what: str) -> tensor:
    """`ptr` as a pointer or tensor of pointers, else ValueError."""
    if not isinstance(ptr, tensor) or not ptr.dtype.is_ptr():
        shown = ptr if isinstance(ptr, tensor) else type(ptr).__name__
        raise ValueError(f"Unsupported ptr type {shown} in `tl.{what}`; a pointer or a tensor of pointers is needed")
    return ptr


def writable(ptr: tensor) -> None:
    if ptr.dtype.is_const():
        raise ValueError("Cannot store to a constant pointer: it comes from a parameter annotated tl.const, which is only read")


def read_only(value: Any) -> Any:
    """`value` with pointers that forbid stores, tuples of them too: what a parameter annotated `tl.const` holds."""
    return unflatten(value, iter([_constant(leaf) for leaf in flatten(value)]))


def _constant(value: Any) -> Any:
    if not isinstance(value, tensor) or not value.dtype.is_ptr() or value.dtype.is_const():
        return value
    pointer = pointer_type(value.dtype.element_ty, value.dtype.address_space, True)
    return tensor(value.handle, block_type(pointer, value.type.shape) if value.type.is_block() else pointer)


def mask_argument(s: Semantic, mask: Any, shape: tuple[int, ...]) -> tensor | None:
    """The mask as int1 of `shape`; None, or a constant True, is none."""
    if mask is None or mask is True:
        return None
    mask = to_tensor(s, mask)
    if not mask.dtype.is_bool():
        raise ValueError(f"Mask must have boolean scalar type, got {mask.dtype}")
    if not shape and mask.type.is_block():
        raise ValueError("Mask argument cannot be block type if pointer argument is not a block")
    return broadcast_to(s, mask, shape)


def in_memory(s: Semantic, ptr: tensor) -> tensor:
    """A pointer to booleans as a pointer to their bytes."""
    if not ptr.dtype.element_ty.is_bool():
        return ptr
    return cast(s, ptr, pointer_type(int8, ptr.dtype.address_space, ptr.dtype.const))


def load_at(
    s: Semantic, ptr: tensor, mask: tensor | None, other: Any, *, cache: str = "", evict: str = "", volatile: bool = False
) -> tensor:
    """Load with all operands checked and of the pointer's shape; `other` is a number or tensor, converted here."""
    element = ptr.dtype.element_ty
    check_supported(s, element)
    ptr = in_memory(s, ptr)
    ty = ptr.type.with_element_ty(ptr.dtype.element_ty)
    if mask is None:
        other = None
    if other is not None:
        other = broadcast_to(s, convert(s, other, ty.scalar, ty.shape), ty.shape)
    handle = s.builder.load(
        ptr.handle,
        None if mask is None else mask.handle,
        None if other is None else other.handle,
        ty,
        cache=cache,
        evict=evict,
        volatile=volatile,
    )
    loaded = tensor(handle, ty)
    return cast(s, loaded, int1) if element.is_bool() else loaded


def store_at(s: Semantic, ptr: tensor, value: Any, mask: tensor | None, *, cache: str = "", evict: str = "") -> None:
    """Store with the mask checked and of the pointer's shape; the value is converted and broadcast here."""
    element = ptr.dtype.element_ty
    value = convert(s, value, element, ptr.type.shape)
    if element.is_bool():
        value = cast(s, value, int8)
    ptr = in_memory(s, ptr)
    value = broadcast_to(s, value, ptr.type.shape)
    s.builder.store(ptr.handle, value.handle, None if mask is None else mask.handle, value.type, cache=cache, evict=evict)


def _check_plain(boundary_check: Any, padding_option: str) -> None:
    if boundary_check or padding_option:
        raise ValueError("`padding_option` and `boundary_check` are for block pointers; use `mask` and `other` with tensors of pointers")


@builtin
def load(
    pointer,
    mask=None,
    other=None,
    boundary_check=(),
    padding_option="",
    cache_modifier="",
    eviction_policy="",
    volatile=False,
    _semantic=None,
):
    """Read memory at a pointer, at a tensor of pointers, or the block of a block pointer.

    Elements where `mask` is false are not accessed and take `other`, or are undefined without it; both broadcast to the pointer's shape.
    For a block pointer, `boundary_check` names the dimensions that may reach out of the array, and `padding_option` ("zero", "nan") what is
    read there. `cache_modifier`: "", ".ca", ".cg", ".cs", ".cv". `eviction_policy`: "", "evict_first", "evict_last", "evict_normal"."""
    s = _semantic
    cache = modifier(cache_modifier, LOAD_CACHE, "Cache modifier", ".")
    evict = modifier(eviction_policy, EVICTION, "Eviction policy")
    modifiers = {"cache": cache, "evict": evict, "volatile": bool(volatile)}
    padding = modifier(padding_option, PADDING, "Padding option")
    if isinstance(pointer, block_pointer):
        if mask is not None or other is not None:
            raise ValueError("`mask` and `other` arguments cannot be specified for loading block pointers; use `boundary_check`")
        ptr, in_bounds = pointer.addresses(s, boundary_check)
        if padding == "nan" and not pointer.element_ty.is_floating():
            raise ValueError(f"padding_option 'nan' needs floats, the block pointer has {pointer.element_ty}")
        fill = float("nan") if padding == "nan" else 0
        return load_at(s, ptr, in_bounds, fill, **modifiers)
    ptr = pointer_argument(pointer, "load")
    _check_plain(boundary_check, padding_option)
    if mask is None and other is not None:
        raise ValueError("`other` cannot be provided without `mask`")
    shape = ptr.type.shape
    if shape:
        for operand in (mask, other):
            if isinstance(operand, tensor):
                shape = broadcast_shape(shape, operand.type.shape)
        ptr = broadcast_to(s, ptr, shape)
    elif isinstance(other, tensor) and other.type.is_block():
        raise ValueError("Other argument cannot be block type if pointer argument is not a block")
    return load_at(s, ptr, mask_argument(s, mask, shape), other, **modifiers)


@builtin
def store(pointer, value, mask=None, boundary_check=(), cache_modifier="", eviction_policy="", _semantic=None):
    """Write `value`, converted to the pointer's element type, where `mask` is set.

    `value` and `mask` broadcast to the pointer's shape, not the other way round. `cache_modifier`: "", ".wb", ".cg", ".cs", ".wt";
    `boundary_check` as in `load`."""
    s = _semantic
    modifiers = {
        "cache": modifier(cache_modifier, STORE_CACHE, "Cache modifier", "."),
        "evict": modifier(eviction_policy, EVICTION, "Eviction policy"),
    }
    if isinstance(pointer, block_pointer):
        if mask is not None:
            raise ValueError("`mask` argument cannot be specified for storing block pointers; use `boundary_check`")
        ptr, in_bounds = pointer.addresses(s, boundary_check)
        writable(ptr)
        _check_fits(pointer.block_shape, value, "value")
        return store_at(s, ptr, value, in_bounds, **modifiers)
    ptr = pointer_argument(pointer, "store")
    writable(ptr)
    _check_plain(boundary_check, "")
    _check_fits(ptr.type.shape, value, "value")
    _check_fits(ptr.type.shape, mask, "mask")
    return store_at(s, ptr, value, mask_argument(s, mask, ptr.type.shape), **modifiers)


def _check_fits(shape: tuple[int, ...], operand: Any, what: str) -> None:
    """The operand of a store must not be larger than the pointer."""
    if not isinstance(operand, tensor) or not operand.type.is_block():
        return
    if not shape:
        article = "Value" if what == "value" else "Mask"
        raise ValueError(f"{article} argument cannot be block type if pointer argument is not a block")
    common = broadcast_shape(shape, operand.type.shape)
    if common != shape:
        raise ValueError(f"Expected pointer argument to have shape {list(common)} like the {what}, but got {list(shape)}")
