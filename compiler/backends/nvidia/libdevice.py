"""Linking of bitcode libraries into a kernel: libdevice when `__nv_*` functions are used, and what the user names."""

from __future__ import annotations

import glob
import os
import re
from functools import lru_cache, partial
from typing import Any

from tilewright import knobs
from tilewright.errors import CompilationError, ToolchainError

from .locate import package_folders, toolkit_folders

_FILE = "libdevice.10.bc"


@lru_cache(maxsize=1)
def find_libdevice() -> str:
    """Path of libdevice: `TRITON_LIBDEVICE_PATH`, the package nvidia-nvvm, a CUDA toolkit. Raises ToolchainError."""
    if path := knobs.nvidia.libdevice_path:
        if not os.path.isfile(path):
            raise ToolchainError(f"TRITON_LIBDEVICE_PATH={path} is not a file")
        return path
    candidates = [os.path.join(folder, "nvvm", "libdevice", _FILE) for folder in package_folders() + toolkit_folders()]
    candidates += [
        path for folder in toolkit_folders() for path in sorted(glob.glob(os.path.join(folder, "nvvm", "libdevice", "libdevice.*.bc")))
    ]
    for path in candidates:
        if os.path.isfile(path):
            return path
    raise ToolchainError(
        f"{_FILE} (CUDA's math library) is needed by this kernel and was not found: pip install nvidia-nvvm, or set CUDA_HOME"
    )


@lru_cache(maxsize=8)
def _library(path: str, layout: str) -> Any:
    """A parsed bitcode library, kept for the process."""
    from .toolchain import TRIPLE, llvm

    try:
        with open(path, "rb") as file:
            module = llvm().parse_bitcode(file.read())
    except (OSError, RuntimeError) as e:
        raise ToolchainError(f"cannot read the bitcode library {path}: {e}") from e
    module.triple = TRIPLE
    module.data_layout = layout
    return module


def link(binding: Any, module: Any, layout: str, libraries: tuple[tuple[str, str], ...], reflect: dict[str, int]) -> bool:
    """Link into `module` what it calls and does not define, and make it private. Returns whether a library of the user was linked.

    `reflect` answers what libdevice asks of its target ("__CUDA_FTZ", "__CUDA_ARCH"); any other question gets 0.
    Raises CompilationError for a function found nowhere.
    """
    missing = _undefined(module)
    if not missing:
        return False
    foreign = False
    own = {f.name for f in module.functions if not f.is_declaration}
    searched = [path for name, path in libraries if name != "libdevice"]
    for path in searched:
        if missing & _defined(path, layout):
            binding.link_modules(module, _library(path, layout).clone())
            foreign = True
    missing = _undefined(module)
    if any(name.startswith("__nv_") for name in missing):
        path = dict(libraries).get("libdevice") or find_libdevice()
        searched.append(path)
        if wanted := missing & _defined(path, layout):
            part = binding.parse_assembly(_extract(path, layout, frozenset(wanted), tuple(sorted(reflect.items()))))
            part.triple, part.data_layout = module.triple, layout
            binding.link_modules(module, part)
        missing = _undefined(module)
    if missing:
        where = f" in {', '.join(searched)}" if searched else ""
        raise CompilationError(
            None, None, f"undefined device functions{where}: {', '.join(sorted(missing))}. Name their library with extern_libs="
        )
    for function in module.functions:
        if not function.is_declaration and function.name not in own:
            function.linkage = "internal"
    return foreign


@lru_cache(maxsize=64)
def _extract(path: str, layout: str, names: frozenset[str], reflect: tuple[tuple[str, int], ...] = ()) -> str:
    """LLVM text of some functions of libdevice and of what they need: linking all of it costs 130 ms a kernel, this 2.

    Calls of `__nvvm_reflect` are replaced by their value.
    Attribute groups and metadata (source positions, unroll hints) are left out; what is `alwaysinline` stays so.
    """
    symbols = _symbols(path, layout)
    texts: dict[str, str] = {}
    pending = sorted(names)
    while pending:
        name = pending.pop()
        if name in texts:
            continue
        text = str(symbols[name])
        inline = " alwaysinline nounwind" if text.startswith("; Function Attrs: alwaysinline") else ""
        text = re.sub(r"(, )?!\w+(\.\w+)* !\d+", "", text)
        text = re.sub(r"^(define .*\)) (?:#\d+ )?\{", rf"\1{inline} {{", text, flags=re.MULTILINE)
        text = re.sub(r"\) #\d+", ")", text)
        texts[name] = re.sub(r"call i32 @__nvvm_reflect\(ptr @([\w.]+)\)", partial(_answer, symbols, dict(reflect)), text)
        pending += set(re.findall(r"@([\w.$]+)", texts[name])) - texts.keys()
    body = "\n".join(texts.values())
    return "\n".join((*_struct_types(path, layout), body)) if "%struct." in body else body


def _answer(symbols: dict[str, Any], reflect: dict[str, int], call: re.Match[str]) -> str:
    question = re.search(r'c"(\w+)\\00"', str(symbols[call[1]]))
    return f"add i32 0, {reflect.get(question[1], 0)}"


@lru_cache(maxsize=8)
def _struct_types(path: str, layout: str) -> tuple[str, ...]:
    return tuple(re.findall(r"^%struct\..* = type .*$", str(_library(path, layout)), re.MULTILINE))


@lru_cache(maxsize=8)
def _symbols(path: str, layout: str) -> dict[str, Any]:
    library = _library(path, layout)
    return {value.name: value for values in (library.functions, library.global_variables) for value in values}


@lru_cache(maxsize=8)
def _defined(path: str, layout: str) -> frozenset[str]:
    return frozenset(f.name for f in _library(path, layout).functions if not f.is_declaration)


def _undefined(module: Any) -> set[str]:
    """Functions declared but not defined, other than LLVM's intrinsics and what the CUDA driver provides."""
    names = {f.name for f in module.functions if f.is_declaration}
    return {n for n in names if not re.match(r"llvm\.|vprintf$|__assertfail$|malloc$|free$|__nvvm_reflect$", n)}
