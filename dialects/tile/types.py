"""Types of the tile dialect. Every function is a dictionary look-up after its first call with the same argument."""

import ctypes
from collections.abc import Sequence

from mlir import ir

from tilewright.dialects import _library

_ptr_types: dict[tuple[ir.Type, int], ir.Type] = {}
_pointers: dict[ir.Type, tuple[ir.Type, int] | None] = {}
_desc_types: dict[tuple[tuple[int, ...], ir.Type, ir.Attribute | None], ir.Type] = {}
_descs: dict[ir.Type, tuple[tuple[int, ...], ir.Type, ir.Attribute | None] | None] = {}


def ptr_type(elem: ir.Type, space: int = 1) -> ir.Type:
    """`!tile.ptr<elem, space>`. Raises ValueError where nothing can point to `elem`."""
    result = _ptr_types.get((elem, space))
    if result is None:
        pointer = _library.library().tilewrightPtrType(_library.type_address(elem), space)
        if not pointer:
            raise ValueError(_library.last_error())
        result = _ptr_types[elem, space] = _library.type_at(pointer)
    return result


def _pointer(type: ir.Type) -> tuple[ir.Type, int] | None:
    try:
        return _pointers[type]
    except KeyError:
        pass
    lib, address = _library.library(), _library.type_address(type)
    space = lib.tilewrightPtrSpace(address)
    result = (_library.type_at(lib.tilewrightPtrPointee(address)), space - 1) if space else None
    _pointers[type] = result
    return result


def is_ptr(type: ir.Type) -> bool:
    """True for `!tile.ptr`; false for a tensor of pointers."""
    return _pointer(type) is not None


def _of_pointer(type: ir.Type) -> tuple[ir.Type, int]:
    info = _pointer(type)
    if info is None:
        raise TypeError(f"{type} is not a pointer")
    return info


def pointee(type: ir.Type) -> ir.Type:
    """What a pointer points to. Raises TypeError for any other type."""
    return _of_pointer(type)[0]


def ptr_space(type: ir.Type) -> int:
    """The address space of a pointer. Raises TypeError for any other type."""
    return _of_pointer(type)[1]


def element_bits(type: ir.Type) -> int:
    """Bits of an integer, float or pointer in registers."""
    return 64 if is_ptr(type) else type.width


def desc_type(shape: Sequence[int], elem: ir.Type, layout: ir.Attribute | None = None) -> ir.Type:
    """`!tile.desc<shape x elem, layout>`. Raises ValueError for a bad block shape or element."""
    key = (tuple(shape), elem, layout)
    result = _desc_types.get(key)
    if result is None:
        dims = (ctypes.c_int64 * len(shape))(*shape)
        layout_address = _library.attribute_address(layout) if layout is not None else None
        pointer = _library.library().tilewrightDescType(dims, len(shape), _library.type_address(elem), layout_address)
        if not pointer:
            raise ValueError(_library.last_error())
        result = _desc_types[key] = _library.type_at(pointer)
    return result


def _desc(type: ir.Type) -> tuple[tuple[int, ...], ir.Type, ir.Attribute | None] | None:
    try:
        return _descs[type]
    except KeyError:
        pass
    shape, elem, layout = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_void_p(), ctypes.c_void_p()
    rank = _library.library().tilewrightDescInfo(_library.type_address(type), ctypes.byref(shape), ctypes.byref(elem), ctypes.byref(layout))
    result = None
    if rank >= 0:
        result = (tuple(shape[:rank]), _library.type_at(elem.value), _library.attribute_at(layout.value) if layout.value else None)
    _descs[type] = result
    return result


def is_desc(type: ir.Type) -> bool:
    """True for `!tile.desc`."""
    return _desc(type) is not None


def desc_info(type: ir.Type) -> tuple[tuple[int, ...], ir.Type, ir.Attribute | None]:
    """(block shape, element type, shared layout or None) of a descriptor. Raises TypeError for any other type."""
    info = _desc(type)
    if info is None:
        raise TypeError(f"{type} is not a tensor descriptor")
    return info
