"""`compile`: from a source to a kernel that can be launched, through the backend's stages and the cache."""

from __future__ import annotations

import os
import threading
from typing import Any

from tilewright import knobs
from tilewright.errors import CompilationError, OutOfResources, TritonError

from .backends import GPUTarget, make_backend
from .backends.base import BaseBackend, Compilation
from .fingerprint import cache_key
from .host import Store, host
from .kernel import Artefacts, CompiledKernel
from .requirements import check_mlir
from .source import ASTSource, IRSource, signature_of

# MLIR's context and LLVM's are used by one thread at a time; ptxas runs beside them.
_lock = threading.RLock()


def compile(
    src: ASTSource | IRSource | str | os.PathLike,
    target: GPUTarget | None = None,
    options: dict[str, Any] | None = None,
    _env_vars: dict[str, str] | None = None,
) -> CompiledKernel:
    """Compile a kernel for `target` (default: the current GPU); no GPU is needed to compile.

    `src` is an ASTSource, an IRSource or the path of an IR file; `options` are those of the backend (`num_warps`, `num_stages`, ...).
    The result comes from the cache if it is there. Raises CompilationError, PTXASError, UnsupportedTarget, KeyError or ValueError for
    options, OutOfResources, ToolchainError for what is not installed.
    """
    if isinstance(src, str | os.PathLike):
        src = IRSource(src)
    if not isinstance(src, ASTSource | IRSource):
        raise TypeError(f"compile takes an ASTSource (kernel, types, constants), an IRSource or the path of an IR file, not {src!r}")
    target = target or host().current_target()
    backend = make_backend(target)
    parsed = backend.parse_options({**(options or {}), **src.parse_options()})
    override = getattr(parsed, "ir_override", None)
    source_hash = src.hash() + (IRSource(override).hash() if override else "")
    key = cache_key(source_hash, backend.hash(), parsed.hash(), _env_vars)
    stored = None if knobs.compilation.always_compile else host().store(key).load(src.name[:150], backend.binary_ext)
    if stored is not None:
        metadata = {**stored.metadata, "target": target}

        def text(ext: str) -> str:
            """Text that the cache has lost is made again."""
            kept = stored.text(ext)
            return _make(src, backend, parsed, key)[1][ext] if kept is None else kept

        artefacts = Artefacts({backend.binary_ext: stored.binary}, dict.fromkeys(stored.files, text), list(stored.files))
        times, files = {}, stored.files
    else:
        try:
            metadata, made, times, files = _make(src, backend, parsed, key)
        except OutOfResources as e:
            raise e.at(src.place) from None
        except CompilationError as e:
            if knobs.compilation.front_end_debugging:
                raise
            # The message says where in the kernel; our own frames would only hide it.
            raise e.with_traceback(None) from e.__cause__ and e.__cause__.with_traceback(None)
        artefacts = Artefacts(made)
    if knobs.compilation.listener is not None:
        knobs.compilation.listener(src=src, metadata=metadata, metadata_group=files, times=times, cache_hit=stored is not None)
    return CompiledKernel(src, metadata, artefacts, backend.binary_ext, times, options)


def _make(src: ASTSource | IRSource, backend: BaseBackend, options: Any, key: str) -> tuple[dict, dict, dict, dict[str, str]]:
    """Run the stages and keep what they make: (metadata, artefacts, milliseconds by stage, files in the cache by extension)."""
    store = host().store(key)
    metadata, made, times = _run_stages(src, backend, options, key, store)
    return metadata, made, times, store.save(src.name[:150], {**metadata, "target": list(backend.target)}, made)


def _run_stages(src: ASTSource | IRSource, backend: BaseBackend, options: Any, key: str, store: Store) -> tuple[dict, dict, dict]:
    """Run the stages after `src.ext`; returns (metadata, artefacts by extension, milliseconds by stage).

    IR is printed and written to the cache while ptxas runs.
    """
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, src.language)
    names = list(stages)
    first = names.index(src.ext) + (0 if isinstance(src, ASTSource) else 1)
    artefacts: dict[str, Any] = {}
    metadata = {
        "hash": key,
        "target": backend.target,
        "name": src.name,
        "shared": 0,
        "global_scratch_size": 0,
        "global_scratch_align": 1,
        "profile_scratch_size": 0,
        "profile_scratch_align": 1,
        "tmem_size": 0,
        **{name: getattr(options, name) for name in options.__dataclass_fields__},
        **(src.parse_metadata() if isinstance(src, IRSource) else {}),
    }

    def print_and_keep() -> None:
        with _lock:
            for ext, artefact in artefacts.items():
                if not isinstance(artefact, str | bytes):
                    artefacts[ext] = str(artefact)
        for ext, artefact in artefacts.items():
            store.keep(src.name[:150], ext, artefact)

    check_mlir()
    compilation = Compilation(backend.target, options, metadata, print_and_keep)
    backend.prepare(compilation)
    try:
        with _lock:
            value = compilation.timed("frontend", src.make_ir, backend.target, options)
            artefacts["source" if first == 0 else src.ext] = _snapshot(value)
            for name in names[first:-1]:
                value = compilation.timed(name, _stage, name, stages[name], value, metadata, compilation)
                value = _overridden(name, value, backend.target, options)
                artefacts[name] = _snapshot(value)
        artefacts[names[-1]] = compilation.timed(names[-1], _stage, names[-1], stages[names[-1]], value, metadata, compilation)
    finally:
        backend.finish(compilation)
    print_and_keep()
    return metadata, artefacts, compilation.timings


def _snapshot(value: Any) -> Any:
    """What is kept of a stage: text as it is; of a module, which the next stage changes, a copy, printed while ptxas runs."""
    return value if isinstance(value, str) else value.operation.clone()


def _overridden(name: str, value: Any, target: GPUTarget, options: Any) -> Any:
    """What the file of the option `ir_override` says if it is one of this stage, else `value`. Raises ValueError if the kernels in both do
    not take the same arguments."""
    path = getattr(options, "ir_override", None)
    if not path or not path.endswith(f".{name}"):
        return value
    source = IRSource(path)
    made = source.make_ir(target, options)
    if isinstance(value, str):
        wanted, given = (list(types.values()) for types in (signature_of(name, value, name)[1], source.signature))
    else:
        from .ir_text import kernel_parameters

        wanted, given = kernel_parameters(value.operation), kernel_parameters(made.operation)
    if given != wanted:
        raise ValueError(f"{path}: its kernel takes ({', '.join(given)}), but this one is launched with ({', '.join(wanted)})")
    return made


def _stage(name: str, function: Any, value: Any, metadata: dict[str, Any], compilation: Compilation) -> Any:
    try:
        return function(value, metadata, compilation)
    except (TritonError, MemoryError, KeyboardInterrupt):
        raise
    except Exception as e:
        if knobs.compilation.front_end_debugging or type(e).__name__ != "MLIRError":
            raise
        raise CompilationError(None, None, f"stage {name} of kernel {metadata['name']} failed: {e}") from e
