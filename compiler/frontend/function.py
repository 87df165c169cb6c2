"""A Python function as the compiler sees it: source, syntax tree, parameters, the names it captures, and its cache key.

No MLIR here: the runtime, the cache and the interpreter use this module without loading the compiler.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import linecache
import re
from collections.abc import Callable
from functools import cached_property
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from tilewright.language.dtypes import canonicalize_type_name, pointer_type, type_canonicalisation_dict

_EMPTY = inspect.Parameter.empty
_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in the repr of an object: differs from process to process

_SYMBOL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

# every spelling of a dtype in an annotation or a signature -> its code in signatures
TYPE_CODES = type_canonicalisation_dict

# Modules whose functions say what the language means: never part of a kernel's own source.
_LANGUAGE_MODULES = ("tilewright", "triton", "math", "copy", "builtins")


class KernelParam:
    """One parameter of a kernel: its place, its annotation in canonical form and how a launch specializes on it."""

    def __init__(self, num: int, param: inspect.Parameter, scope: Callable[[str], Any], no_specialize: bool, no_alignment: bool):
        self.num = num
        self.name = param.name
        self.kind = param.kind
        self.default = param.default
        self.has_default = param.default is not _EMPTY
        self.is_varargs = param.kind is inspect.Parameter.VAR_POSITIONAL
        self.is_keyword_only = param.kind is inspect.Parameter.KEYWORD_ONLY
        self.do_not_specialize = no_specialize
        self.do_not_specialize_on_alignment = no_alignment
        self.annotation, self.is_constexpr, self.is_const = _read_annotation(param.annotation, scope)

    @cached_property
    def annotation_type(self) -> str:
        """The type that the annotation forces (`"u32"`, `"*fp16"`), or "" if it forces none."""
        pointer = self.annotation.startswith("*")
        element = self.annotation.lstrip("*")
        element = element[1:] if pointer and element.startswith("k") else element
        return self.annotation if element in TYPE_CODES.values() else ""

    def __repr__(self) -> str:
        return f"KernelParam({self.num}, {self.name!r}, annotation={self.annotation!r}, is_constexpr={self.is_constexpr})"


def _read_annotation(annotation: Any, scope: Callable[[str], Any]) -> tuple[str, bool, bool]:
    """(canonical text, is constexpr, is const) of a parameter's annotation, given as an object or as a string."""
    if annotation is _EMPTY:
        return "", False, False
    if isinstance(annotation, pointer_type):
        text = f"*{'k' if annotation.const else ''}{annotation.element_ty}"
    elif isinstance(annotation, str):
        text = annotation.strip().strip("'\"")
    else:
        text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    last = text.rpartition(".")[2]
    if last == "constexpr":
        return "constexpr", True, False
    if last == "const":
        return "const", False, True
    stars = text[: len(text) - len(text.lstrip("*"))]
    try:
        code = canonicalize_type_name(stars + (last if "." in text else text[len(stars) :]))
    except ValueError:
        pass
    else:
        return code, False, code.startswith("*k")
    if text.startswith("*const"):
        return text, False, True
    if isinstance(annotation, str) and text.replace(".", "").isidentifier():
        value = _dotted(text, scope)  # an alias such as `C = tl.constexpr` under `from __future__ import annotations`
        if value is not None and not isinstance(value, str):
            return _read_annotation(value, scope)
    return text, False, False


def _dotted(text: str, scope: Callable[[str], Any]) -> Any:
    """The value of `a.b.c` in a scope, or None."""
    first, *rest = text.split(".")
    try:
        value = scope(first)
    except NameError:
        return None
    for name in rest:
        value = getattr(value, name, None)
    return value


class KernelFunction:
    """The Python function behind `@jit`.

    Source is read when the object is made (so that a later edit of the file does not change the kernel), parsed when first needed.
    Raises ValueError if the function has no source file and TypeError if it is none, or takes `**kwargs`.
    """

    __tilewright_jit__ = True

    def __init__(
        self,
        fn: FunctionType,
        *,
        version: object = None,
        repr: Callable | None = None,
        launch_metadata: Callable | None = None,
        do_not_specialize: list[int | str] | None = None,
        do_not_specialize_on_alignment: list[int | str] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
    ):
        if not isinstance(fn, FunctionType) or fn.__code__.co_flags & _ASYNC:
            raise TypeError(f"@jit takes a Python function written with `def`, not {fn!r}")
        self.fn = fn
        self.module = fn.__module__
        self.version = version
        self.debug = debug
        self.noinline = bool(noinline)
        self.launch_metadata = launch_metadata
        for option, listed in (
            ("do_not_specialize", do_not_specialize),
            ("do_not_specialize_on_alignment", do_not_specialize_on_alignment),
        ):
            if isinstance(listed, str | int):
                raise TypeError(f"{option} must be a list of names or indices of parameters, not {listed!r}")
        self.do_not_specialize = do_not_specialize or []
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment or []
        self._fn_name = f"{fn.__module__}.{fn.__qualname__}"
        self.repr = (lambda _: self._fn_name) if repr is None else repr

        self.file_name = fn.__code__.co_filename
        self.starting_line_number = fn.__code__.co_firstlineno
        self._file_lines = _source_lines(fn)
        self._src_override: str | None = None
        self._closure = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))

        self.signature = inspect.signature(fn)
        self.params = self._make_params()
        self.arg_names = [p.name for p in self.params]
        self.constexprs = [p.num for p in self.params if p.is_constexpr]

        self.__doc__ = fn.__doc__
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__globals__ = fn.__globals__
        self.__module__ = fn.__module__

    def _make_params(self) -> list[KernelParam]:
        params = []
        for num, param in enumerate(self.signature.parameters.values()):
            if param.kind is inspect.Parameter.VAR_KEYWORD:
                raise TypeError("JIT functions do not support **kwargs parameters")
            no_specialize = num in self.do_not_specialize or param.name in self.do_not_specialize
            no_alignment = num in self.do_not_specialize_on_alignment or param.name in self.do_not_specialize_on_alignment
            params.append(KernelParam(num, param, self.resolve, no_specialize, no_alignment))
        return params

    def kernel_name(self, signature: dict[str, Any], constants: dict[tuple[int, ...], Any]) -> str:
        """The name in the binary: what `repr` makes of the types and, by name, the constants; raises ValueError for what is no name."""
        named = {self.arg_names[path[0]]: value for path, value in constants.items() if len(path) == 1}
        name = self.repr(SimpleNamespace(signature=signature, constants=named))
        name = name.rpartition(".")[2] if isinstance(name, str) else name
        if not isinstance(name, str) or not _SYMBOL.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a kernel: letters, digits and _ only, not a digit first (see `repr` of @jit)")
        return name

    # Source and syntax tree

    @cached_property
    def _block(self) -> _SourceBlock:
        return _find_block(self._file_lines, self.starting_line_number, self.fn)

    @property
    def raw_src(self) -> list[str]:
        """The lines of the function in its file, decorators included."""
        return self._file_lines[self.starting_line_number - 1 : self._block.end]

    @property
    def src(self) -> str:
        """The source from `def` on, dedented, without decorators."""
        return self._block.src if self._src_override is None else self._src_override

    @src.setter
    def src(self, value: str) -> None:
        raise AttributeError(
            "Cannot set attribute 'src' directly. Use '_unsafe_update_src()' and manually clear `.hash` of all callers instead."
        )

    def _unsafe_update_src(self, new_src: str) -> None:
        """Replace the source; callers that were hashed before keep their old key unless their `.hash` is reset too."""
        self._src_override = new_src
        self.__dict__.pop("_tree", None)
        self.hash = None

    @property
    def def_line(self) -> int:
        """The file's 1-based line of `def`: line 1 of `src`."""
        return self._block.def_line

    @property
    def def_col(self) -> int:
        """How far `def` is indented in its file: what was cut off each line of `src`."""
        return self._block.indent

    def_file_line_number = def_line
    def_file_col_number = def_col

    @cached_property
    def _tree(self) -> ast.FunctionDef:
        if self._src_override is None:
            return self._block.tree
        return ast.parse(self._src_override).body[0]

    def ast(self) -> ast.FunctionDef:
        """The function's syntax tree, parsed once; line 1 of it is `def_line` of the file. Shared: do not change it."""
        return self._tree

    def parse(self) -> ast.Module:
        """A module that holds only this function (a copy, under Triton's name)."""
        return ast.Module(body=[copy.deepcopy(self._tree)], type_ignores=[])

    # Names it captures

    def resolve(self, name: str) -> Any:
        """The value of a captured name: enclosing function first, then module globals, then Python's builtins. Raises NameError."""
        cell = self._closure.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                raise NameError(f"{name} is not defined yet: the enclosing function has not assigned it") from None
        scope = self.fn.__globals__
        if name in scope:
            return scope[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise NameError(f"{name} is not defined")

    def get_capture_scope(self) -> dict[str, Any]:
        """Globals and closure variables in one dict (a copy)."""
        return {**self.fn.__globals__, **{name: cell.cell_contents for name, cell in self._closure.items()}}

    # Identity

    @cached_property
    def _own(self) -> _Dependencies:
        return _Dependencies(self)

    @property
    def hash(self) -> str | None:
        return self.__dict__.get("_hash")

    @hash.setter
    def hash(self, value: str | None) -> None:
        self.__dict__["_hash"] = value
        if value is None:
            for name in ("_own", "_reachable", "used_global_vals"):
                self.__dict__.pop(name, None)

    @cached_property
    def _reachable(self) -> list[_Dependencies]:
        """This function and the jit functions it may call, each once, in the order of the source."""
        found = {id(self): self._own}
        pending = [self]
        while pending:
            for callee in pending.pop(0)._own.callees:
                if id(callee) not in found:
                    found[id(callee)] = callee._own
                    pending.append(callee)
        return list(found.values())

    @property
    def cache_key(self) -> str:
        """sha256 over the source of this function and its transitive callees, their place, and the constants they capture.

        The same in every process: nothing in it depends on addresses or on the hash seed.
        """
        if self.hash is None:
            import hashlib  # here, since its import is slow and not every process compiles

            digest = hashlib.sha256()
            for own in self._reachable:
                digest.update(own.text.encode())
            self.hash = digest.hexdigest()
        return self.hash

    @cached_property
    def used_global_vals(self) -> dict[tuple[str, int], tuple[Any, dict]]:
        """The constants captured here and in callees: (name, id of the scope) -> (value when hashed, the scope)."""
        return {key: value for own in self._reachable for key, value in own.constants.items()}

    def check_globals(self) -> None:
        """Raise RuntimeError if a captured constant has changed since the kernel was compiled."""
        for (name, _), (value, scope) in self.used_global_vals.items():
            now = scope.get(name, value)
            now = getattr(now, "cell_contents", now)
            if now is not value and not _same_constant(now, value):
                raise RuntimeError(f"Global variable {name} has changed since we compiled this kernel, from {value} to {now}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"Cannot call @triton.jit'd outside of the scope of a kernel: launch it with {self.__name__}[grid](...)")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._fn_name})"


def _same_constant(a: Any, b: Any) -> bool:
    """Equality of captured constants as Python objects (`constexpr.__eq__` builds another constexpr; 1 and 1.0 differ)."""
    a, b = getattr(a, "value", a), getattr(b, "value", b)
    return type(a) is type(b) and bool(a == b)


class _SourceBlock:
    """A function's lines in its file: `src`/`tree` dedented from `def` on, `end` the 1-based last line."""

    __slots__ = ("def_line", "end", "indent", "src", "tree")

    def __init__(self, src: str, tree: ast.FunctionDef, def_line: int, indent: int, end: int):
        self.src, self.tree, self.def_line, self.indent, self.end = src, tree, def_line, indent, end


def _source_lines(fn: FunctionType) -> list[str]:
    if fn.__name__ == "<lambda>":
        raise ValueError(f"@jit functions should be written with `def`: {fn.__qualname__} is not")
    linecache.checkcache(fn.__code__.co_filename)
    lines = linecache.getlines(fn.__code__.co_filename, fn.__globals__)
    if not lines:
        raise ValueError("@jit functions should be defined in a Python file")
    return lines


def _find_block(lines: list[str], first: int, fn: FunctionType) -> _SourceBlock:
    """Find where the function that starts at line `first` (its first decorator) ends, by growing the text until it parses.

    A cut inside brackets or a string never parses, so each dedented line is a candidate end and the first that parses is right.
    """
    start = first - 1
    while start < len(lines) and not lines[start].lstrip().startswith(("def ", "async def ")):
        start += 1
    if start == len(lines):
        raise ValueError(f"cannot find {fn.__qualname__} in {fn.__code__.co_filename}: was the file changed?")
    indent = len(lines[start]) - len(lines[start].lstrip())
    body: list[str] = []
    for number in range(start, len(lines) + 1):
        line = lines[number] if number < len(lines) else ""
        ends = number == len(lines) or (number > start and _ends_block(line, indent))
        if ends and (tree := _parse("".join(body))) is not None:
            last = start + len(body)
            while not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#"):
                last -= 1
            return _SourceBlock("".join(body[: last - start]), tree, start + 1, indent, last)
        body.append(line[indent:] if not line[:indent].strip() and len(line) > indent else line.lstrip(" \t"))
    raise ValueError(f"cannot find the end of {fn.__qualname__} in {fn.__code__.co_filename}")


def _ends_block(line: str, indent: int) -> bool:
    text = line.lstrip()
    return bool(text) and not text.startswith("#") and len(line) - len(text) <= indent


def _parse(text: str) -> ast.FunctionDef | None:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    return tree.body[0] if len(tree.body) == 1 else None


class _Dependencies:
    """What one function's meaning depends on, found in its syntax tree: its text, the jit functions it names, the constants it captures."""

    def __init__(self, function: KernelFunction):
        self.function = function
        self.callees: list[KernelFunction] = []
        self.constants: dict[tuple[str, int], tuple[Any, dict]] = {}
        self._seen: set[int] = set()
        self._facts: set[str] = set()
        tree = function.ast()
        local = set(function.arg_names)
        names, attributes = [], []
        for node in ast.walk(ast.Module(body=tree.body, type_ignores=[])):
            if type(node) is ast.Name:
                local.add(node.id) if type(node.ctx) is ast.Store else names.append(node)
            elif type(node) is ast.Attribute:
                attributes.append(node)
        for node in names:
            if node.id not in local:
                self._visit_name(node.id)
        for node in attributes:
            self._visit_attribute(node, local)
        facts = "\n".join(sorted(self._facts))
        self.text = f"{function.src}\n{function.noinline}\n{function.starting_line_number}\n{facts}\n"

    def _visit_name(self, name: str) -> None:
        function = self.function
        try:
            value = function.resolve(name)
        except NameError:
            return  # reported with its position when the kernel is compiled
        scope = function._closure if name in function._closure else function.fn.__globals__
        if name in scope:
            self._record(name, value, scope)

    def _visit_attribute(self, node: ast.Attribute, local: set[str]) -> None:
        """Follow `module.sub.name` to what it names; attributes of anything but modules and classes are not captures."""
        path = [node.attr]
        base = node.value
        while type(base) is ast.Attribute:
            path.append(base.attr)
            base = base.value
        if type(base) is not ast.Name or base.id in local:
            return
        try:
            value = self.function.resolve(base.id)
        except NameError:
            return
        holder = None
        for name in reversed(path):
            if not isinstance(value, ModuleType | type) or _is_language(value):
                return
            holder, value = value, getattr(value, name, None)
        if holder is not None and path[0] in vars(holder):
            self._record(path[0], value, vars(holder))

    def _record(self, name: str, value: Any, scope: Any) -> None:
        if isinstance(value, ModuleType) or id(value) in self._seen:
            return
        if isinstance(value, KernelFunction):
            self._seen.add(id(value))
            self.callees.append(value)
        elif isinstance(inner := getattr(value, "fn", None), KernelFunction):  # an autotuned or heuristic kernel used as a function
            self._seen.add(id(value))
            self.callees.append(inner)
        elif isinstance(value, type):
            self._record_class(value)
        elif callable(value) and not _holds_constant(value):
            self._record_host_function(value)
        else:
            self.constants[(name, id(scope))] = (_snapshot(value), scope)
            self._facts.add(f"{name}={_ADDRESS.sub('', repr(value))}")

    def _record_class(self, cls: type) -> None:
        """A user's class: its text, and the functions that its methods call."""
        if _is_language(cls) or id(cls) in self._seen:
            return
        self._seen.add(id(cls))
        for base in reversed(cls.__mro__[:-1]):
            if _is_language(base):
                continue
            try:
                self._facts.add(inspect.getsource(base))
            except (OSError, TypeError):
                self._facts.add(f"{base.__module__}.{base.__qualname__}")
            for name, member in vars(base).items():
                if isinstance(getattr(member, "fn", member), KernelFunction):
                    self._record(name, getattr(member, "fn", member), vars(base))

    def _record_host_function(self, value: Any) -> None:
        """A Python function run while compiling (constexpr_function, builtin, `__init__` of an aggregate): its source counts."""
        self._seen.add(id(value))
        inner = getattr(value, "fn", None) or getattr(value, "__wrapped__", None) or value
        if _is_language(inner):
            return
        try:
            self._facts.add(inspect.getsource(inner))
        except (OSError, TypeError):
            self._facts.add(f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', type(inner).__qualname__)}")


def _holds_constant(value: Any) -> bool:
    """Whether a callable object is a constexpr (it forwards calls to its value) around something that is not a function."""
    return type(value).__name__ == "constexpr" and not callable(value.value)


def _is_language(value: Any) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
    return name.partition(".")[0] in _LANGUAGE_MODULES


def _snapshot(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001  (an object that cannot be copied is compared by identity or equality)
        return value
