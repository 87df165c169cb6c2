"""What can be compiled: a kernel with the types of its arguments, or a file with IR of some stage."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .backends.base import GPUTarget, Language

if TYPE_CHECKING:
    from .frontend.function import KernelFunction

Path = tuple[int, ...]


class ASTSource:
    """A kernel and the types it is compiled for.

    `signature` is parameter name -> type ("*fp32", "i32", "constexpr", a tuple of types); `constexprs` gives the values of the constexpr
    parameters, by name or by path (`(3,)`, `(3, 0)` within a tuple); `attrs` is path -> `[["tt.divisibility", 16]]`.
    """

    ext = "ttir"
    language = Language.TRITON

    def __init__(
        self,
        fn: KernelFunction,
        signature: dict[str, Any],
        constexprs: dict[str | Path, Any] | None = None,
        attrs: dict[Path, list] | None = None,
        *,
        constants: dict[str | Path, Any] | None = None,
    ):
        if not getattr(fn, "__tilewright_jit__", False):
            raise TypeError(f"ASTSource takes a function decorated with @jit, not {fn!r}")
        self.fn = fn
        self.name = fn.__name__
        if not isinstance(signature, Mapping):
            raise TypeError(f"the signature of {self.name} must be a dict from parameters to types, not {signature!r}")
        for key, value in signature.items():
            if not isinstance(key, str):
                raise TypeError(f"Signature keys must be string: names of parameters of {self.name}, not {key!r}")
            if not isinstance(value, str | tuple | list):
                raise TypeError(f"the type of parameter {key} of {self.name} must be a string such as '*fp32', not {value!r}")
        names = {name: num for num, name in enumerate(fn.arg_names)}
        unknown = [key for key in (*signature, *(constexprs or {})) if isinstance(key, str) and key not in names]
        if unknown:
            raise ValueError(f"{self.name} has no parameter {', '.join(unknown)}; its parameters are {', '.join(names)}")
        given = constexprs if constexprs is not None else constants or {}
        self.constants = {(names[key],) if isinstance(key, str) else tuple(key): value for key, value in given.items()}
        self.signature = dict(signature)
        for num, name in enumerate(fn.arg_names):
            if name not in self.signature:
                if (num,) not in self.constants:
                    raise ValueError(f"the signature of {self.name} has no type for parameter {name}")
                self.signature[name] = "constexpr"
            elif self.signature[name] == "constexpr" and (num,) not in self.constants:
                raise ValueError(f"parameter {name} of {self.name} is constexpr but has no value in constexprs")
        self.attrs = {tuple(key): value for key, value in (attrs or {}).items()}

    @property
    def place(self) -> str:
        """Where the kernel is defined, for messages: file:line and name."""
        return f"{self.fn.file_name}:{self.fn.def_line}: kernel {self.name}"

    @property
    def constexprs(self) -> dict[Path, Any]:
        """Values of the constexpr parameters, by path."""
        return self.constants

    def hash(self) -> str:
        """sha256 over the kernel's source and what it calls, the types, the constants and the attributes."""
        signature = [(name, str(self.signature[name])) for name in self.fn.arg_names]
        constants = sorted((path, constant_key(value)) for path, value in self.constants.items())
        attrs = sorted((path, str(value)) for path, value in self.attrs.items() if value)
        name = self.fn.kernel_name(self.signature, self.constants)
        text = f"{self.fn.cache_key}-{name}-{signature}-{constants}-{attrs}"
        return hashlib.sha256(text.encode()).hexdigest()

    def make_ir(self, target: GPUTarget, options: Any) -> Any:
        """The kernel in the tile dialect. Raises CompilationError."""
        from .frontend import build_module

        return build_module(self.fn, self.signature, self.constants, self.attrs, options, target)

    def parse_options(self) -> dict[str, Any]:
        """Options that the source itself fixes."""
        return {"debug": True} if self.fn.debug else {}


def constant_key(value: Any) -> str:
    """Text that tells constants apart as the compiler does: 1, 1.0 and True differ; functions count by their source."""
    if getattr(value, "__tilewright_jit__", False):
        return f"jit:{value.cache_key}"
    if type(value).__name__ == "constexpr" and hasattr(value, "value"):
        return constant_key(value.value)
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(constant_key(v) for v in value)})"
    return f"{type(value).__name__}:{value!r}"


_PTX_TYPES = {"u64": "*u8", "b64": "*u8", "s64": "i64", "u32": "i32", "s32": "i32", "b32": "i32", "f32": "fp32", "f64": "fp64"}
_PTX_TYPES |= {"u16": "i16", "s16": "i16", "b16": "i16", "f16": "fp16", "u8": "i8", "s8": "i8", "b8": "i8"}
_LLVM_TYPES = {"float": "fp32", "double": "fp64", "half": "fp16", "bfloat": "bf16", "i1": "u1"}

LEVELS = ("ttir", "ttgir", "llir", "ptx")


class IRSource:
    """A file `.ttir`, `.ttgir`, `.llir` or `.ptx` with one kernel, compiled from that stage on.

    The numbers of warps and blocks come from the file. A kernel in `.llir` or `.ptx` that uses dynamic shared memory says how much in a
    comment `shared = N` (bytes).
    """

    language = Language.TRITON

    def __init__(self, path: str | os.PathLike, context: Any = None, backend: Any = None):
        self.path = os.fspath(path)
        self.ext = os.path.splitext(self.path)[1][1:]
        if self.ext not in LEVELS:
            raise ValueError(f"cannot compile {self.path}: its extension must be one of {', '.join('.' + level for level in LEVELS)}")
        with open(self.path, "rb") as file:
            contents = file.read()
        try:
            self.src = contents.decode()
        except UnicodeDecodeError as e:
            raise ValueError(f"{self.path} is no text: {e}") from None
        self.name, self.signature = signature_of(self.ext, self.src, self.path)
        self.constants: dict[Path, Any] = {}
        self.attrs: dict[Path, list] = {}

    @property
    def place(self) -> str:
        """Where the kernel is defined, for messages: the file and its name."""
        return f"{self.path}: kernel {self.name}"

    def hash(self) -> str:
        """sha256 of the text."""
        return hashlib.sha256(f"{self.ext}\n{self.src}".encode()).hexdigest()

    def make_ir(self, target: GPUTarget, options: Any) -> Any:
        """The parsed module, or the text for the levels from LLVM on.

        Raises ValueError for text that does not parse, and for layouts made for another target.
        """
        if self.ext in ("llir", "ptx"):
            return self.src
        from mlir import ir

        from tilewright.dialects import context

        from .ir_text import parse_module
        from .passes.descriptor_arguments import check_descriptors

        with context():
            try:
                module = parse_module(self.src)
                check_descriptors(module.operation)
            except (ir.MLIRError, ValueError) as e:
                raise ValueError(f"{self.path} does not parse: {e}") from e
            made_for = module.operation.attributes.get("tilegpu.target")
            if made_for is not None and made_for != ir.StringAttr.get(f"{target.backend}:{target.arch}"):
                raise ValueError(f"{self.path} was made for {made_for}, not for {target.backend}:{target.arch}")
            return module

    def parse_options(self) -> dict[str, Any]:
        """Options that the file fixes: numbers of warps and of blocks in a cluster."""
        found = {}
        for option in ("num_warps", "num_ctas"):
            if match := re.search(rf"tilegpu\.{option} = (\d+)", self.src):
                found[option] = int(match[1])
        threads = re.search(r'\.(?:req|max)ntid\s+(\d+)|"nvvm\.(?:req|max)ntid"="(\d+)', self.src)
        if threads and "num_warps" not in found:
            found["num_warps"] = max(1, int(threads[1] or threads[2]) // 32)
        return found

    def parse_metadata(self) -> dict[str, Any]:
        """What later stages do not find out: shared memory of a kernel given as LLVM IR or PTX."""
        match = re.search(r"(?:;|//)\s*shared = (\d+)", self.src)
        return {"shared": int(match[1])} if match else {}


def _ptx_signature(text: str, path: str) -> tuple[str, dict[str, str]]:
    match = re.search(r"\.visible\s+\.entry\s+([\w$]+)\s*\(([^)]*)\)", text)
    if not match:
        raise ValueError(f"{path} has no '.visible .entry'")
    types = [_PTX_TYPES.get(t, "i32") for t in re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)", match[2])]
    return match[1], {f"arg{i}": t for i, t in enumerate(types)}


def _llvm_signature(text: str, path: str) -> tuple[str, dict[str, str]]:
    match = re.search(r"define\s+(?:[\w ]+ )?ptx_kernel\s+void\s+@([\w.$]+)\((.*)\)", text)
    if not match:
        raise ValueError(f"{path} has no 'define ptx_kernel void @name(...)'")
    words = [argument.split()[0] for argument in match[2].split(",") if argument.strip()]
    types = ["*u8" if word == "ptr" else _LLVM_TYPES.get(word, word) for word in words]
    return match[1], {f"arg{i}": t for i, t in enumerate(types)}


def _mlir_signature(text: str, path: str) -> tuple[str, dict[str, str]]:
    match = re.search(r"func\.func\s+(?:public\s+)?@([\w.$]+)\((.*)", text)
    if not match:
        raise ValueError(f"{path} has no public 'func.func'")
    types = []
    for argument in re.findall(r"%[\w.$]+:\s*(!tile\.ptr<[^>]*>|\w+)(?! \{tile\.grid)", match[2]):
        pointer = argument.startswith("!tile.ptr<")
        element = argument[len("!tile.ptr<") : -1].split(",")[0] if pointer else argument
        element = re.sub(r"^f(\d+)$", r"fp\1", element)
        types.append(f"*{element}" if pointer else element)
    return match[1], {f"arg{i}": t for i, t in enumerate(types)}


_SIGNATURES = {"ptx": _ptx_signature, "llir": _llvm_signature, "ttir": _mlir_signature, "ttgir": _mlir_signature}


def signature_of(ext: str, text: str, path: str) -> tuple[str, dict[str, str]]:
    """The name of the kernel in a text of this stage, and the types of what it takes, by name. Raises ValueError, which names `path`, where
    there is none."""
    return _SIGNATURES[ext](text, path)
