"""The C++ side of the dialects: one shared library, its C functions called by ctypes, and the process's context.

The library resolves MLIR's symbols in `libMLIRPythonCAPI`, so that must be in the global symbol scope before ours is loaded.
"""

import ctypes
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import mlir._mlir_libs
from mlir import ir

_SUFFIX = {"darwin": ".dylib"}.get(sys.platform, ".so")

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype = ctypes.py_object
_capsule_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_CONTEXT, _TYPE, _ATTRIBUTE = b"mlir.ir.Context._CAPIPtr", b"mlir.ir.Type._CAPIPtr", b"mlir.ir.Attribute._CAPIPtr"

_handle, _u32, _i32, _i64 = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int32, ctypes.c_int64
_out = ctypes.c_void_p

# Name: (result, arguments). MlirType and friends are structs of one pointer, which the C ABIs in use pass as the pointer itself.
_FUNCTIONS = {
    "LoadDialects": (None, [_handle]),
    "LastError": (ctypes.c_char_p, []),
    "PtrType": (_handle, [_handle, _u32]),
    "PtrSpace": (_u32, [_handle]),
    "PtrPointee": (_handle, [_handle]),
    "DescType": (_handle, [_out, _u32, _handle, _handle]),
    "DescInfo": (_i32, [_handle, _out, _out, _out]),
    "EnumAttr": (_handle, [_handle, ctypes.c_char_p, ctypes.c_char_p]),
    "LinearAttr": (_handle, [_handle, _u32, _out, _out]),
    "LinearInfo": (_i32, [_handle, _out, _out]),
    "SharedAttr": (_handle, [_handle, _u32, _u32, _out, _i32, _i32]),
    "SharedInfo": (_i32, [_handle, _out, _out, _out]),
    "BufferType": (_handle, [_out, _u32, _handle, _handle, _i64]),
    "BufferInfo": (_i32, [_handle, _out, _out, _out, _out]),
    "TokenType": (_handle, [_handle]),
}


def _package_dirs() -> Iterator[Path]:
    """The folders of `tilewright.dialects`: an editable install has one for sources and one for what was built."""
    return map(Path, sys.modules[__package__].__path__)


@functools.cache
def library() -> ctypes.CDLL:
    """Load the library once. Raises ImportError where it was not built."""
    mlir_libs = Path(next(iter(mlir._mlir_libs.__path__)))
    ctypes.CDLL(str(mlir_libs / f"libMLIRPythonCAPI{_SUFFIX}"), ctypes.RTLD_GLOBAL)
    name = f"libtilewright_dialects{_SUFFIX}"
    for folder in _package_dirs():
        path = folder / "_lib" / name
        if path.exists():
            lib = ctypes.CDLL(str(path))
            for function, (result, arguments) in _FUNCTIONS.items():
                entry = getattr(lib, f"tilewright{function}")
                entry.restype, entry.argtypes = result, arguments
            return lib
    raise ImportError(f"{name} is missing: build it with `pip install --no-build-isolation -e .`")


@functools.cache
def context() -> ir.Context:
    """The process's context: single-threaded, with every upstream dialect and ours loaded."""
    ctx = ir.Context()
    ctx.enable_multithreading(False)
    library().tilewrightLoadDialects(address(ctx, _CONTEXT))
    return ctx


def last_error() -> str:
    """Why the last getter returned no type or attribute."""
    return library().tilewrightLastError().decode()


def address(handle: ir.Context | ir.Type | ir.Attribute, kind: bytes) -> int:
    """The C++ pointer behind a Python handle."""
    return _pointer_of(handle._CAPIPtr, kind)


def context_address() -> int:
    """The C++ pointer of `context()`."""
    return address(context(), _CONTEXT)


def type_address(type: ir.Type) -> int:
    """The C++ pointer of a type."""
    return _pointer_of(type._CAPIPtr, _TYPE)


def attribute_address(attr: ir.Attribute) -> int:
    """The C++ pointer of an attribute."""
    return _pointer_of(attr._CAPIPtr, _ATTRIBUTE)


def type_at(pointer: int) -> ir.Type:
    """The type at a C++ pointer."""
    return ir.Type._CAPICreate(_capsule_new(pointer, _TYPE, None)).maybe_downcast()


def attribute_at(pointer: int) -> ir.Attribute:
    """The attribute at a C++ pointer."""
    return ir.Attribute._CAPICreate(_capsule_new(pointer, _ATTRIBUTE, None)).maybe_downcast()
