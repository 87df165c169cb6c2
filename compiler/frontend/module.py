"""Build the module of a kernel: the entry of the front end.

After it: one public `func.func` with the kernel's flattened run-time arguments, one private function per `noinline` call target; ops of
`tile`, `arith`, `math`, `scf` and `func`, each with a file location; no layouts.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

from mlir import ir

from tilewright import dialects
from tilewright.language import core, dtypes
from tilewright.language.semantic.cast import convert
from tilewright.language.semantic.descriptor import tensor_descriptor

# the visitors register themselves
from . import calls, control_flow, expressions, functions, statements  # noqa: F401
from .function import KernelFunction
from .generator import Frame, Generator

# constexprs and attrs name an argument by its path: (2,) is the third parameter, (2, 0) the first item of a tuple in it
Path = tuple[int, ...]

# Python frames that visiting one level of a kernel's syntax takes, times its depth, times MAX_CALL_DEPTH
_RECURSION_LIMIT = 20000


def build_module(
    fn: KernelFunction,
    signature: dict[str, Any],
    constexprs: dict[str | Path, Any] | None = None,
    attrs: dict[Path, list] | None = None,
    options: Any = None,
    target: Any = None,
) -> ir.Module:
    """The `tile` module of kernel `fn`.

    `signature` maps parameters to type strings ("*fp32", "i32", "constexpr"; a tuple of them for a tuple), `constexprs` gives the constants
    by parameter or path, `attrs` lists pairs such as ["tt.divisibility", 16] by path. Raises CompilationError for a mistake in the kernel
    and ValueError for a signature that does not fit it."""
    constants = {_path(fn, key): core.unwrap(value) for key, value in (constexprs or {}).items()}
    kernel = _Kernel(fn, {_path(fn, key): value for key, value in (attrs or {}).items()}, constants)
    scope = kernel.bind(signature)
    symbol = fn.kernel_name(signature, constants)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    try:
        with dialects.context():
            return _build(fn, kernel, scope, symbol, options, target)
    finally:
        sys.setrecursionlimit(limit)


def _build(fn: KernelFunction, kernel: _Kernel, scope: dict[str, Any], symbol: str, options: Any, target: Any) -> ir.Module:
    module = ir.Module.create(ir.Location.file(fn.file_name, fn.def_line, fn.def_col + 1))
    gen = Generator(module)
    gen.semantic = functions.KernelSemantic(gen, options, target)
    gen.enter(Frame(fn, {}, None, None, None), fn.ast())
    try:
        with core.activate(gen.semantic):
            _emit(gen, kernel, scope, symbol)
        _verify(gen)
    except Exception as error:  # noqa: BLE001  (whatever goes wrong is reported at the expression that caused it)
        placed = gen.place(error)
        raise placed from placed.__cause__
    return module


def _emit(gen: Generator, kernel: _Kernel, scope: dict[str, Any], symbol: str) -> None:
    builder = gen.builder
    types = [builder.types(ty) for _, ty, _ in kernel.arguments]
    attributes = [ir.DictAttr.get({k: builder.i32_attr(v) for k, v in facts.items()}) for _, _, facts in kernel.arguments]
    function = functions.declare(gen, symbol, types, {"arg_attrs": ir.ArrayAttr.get(attributes)} if attributes else {})
    loc = gen.locate()
    locations = [ir.Location.name(name, loc) for name, _, _ in kernel.arguments]
    entry = function.regions[0].blocks.append(*types, arg_locs=locations)
    saved = builder.enter_function(entry)
    place = iter(list(entry.arguments))
    gen.frame.scope = {name: _with_arguments(value, place) for name, value in scope.items()}
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    tree = gen.frame.function.ast()
    result = functions.run(gen, tree.body)
    if result is not None:
        raise gen.error("a kernel returns nothing: store its results through a pointer, and write `return` alone", _last_return(tree))
    gen.node = tree
    builder.op("func.return", [], [])
    builder.leave_function(saved)


def _verify(gen: Generator) -> None:
    """What comes out here is valid: later stages assume it, and MLIR aborts on some of what its verifier would refuse."""
    try:
        gen.module.operation.verify()
    except ir.MLIRError as error:
        raise gen.error(f"internal error: the front end made an operation that does not verify: {error}") from error


def _last_return(tree: ast.FunctionDef) -> ast.AST:
    returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None]
    return returns[-1] if returns else tree


def _with_arguments(value: Any, place: Any) -> Any:
    count = len(core.flatten(value))
    return control_flow.with_handles(value, [next(place) for _ in range(count)]) if count else value


def _path(fn: KernelFunction, key: str | int | Path) -> Path:
    if isinstance(key, str):
        if key not in fn.arg_names:
            raise ValueError(f"{fn.__name__} has no parameter {key!r}; its parameters: {', '.join(fn.arg_names)}")
        return (fn.arg_names.index(key),)
    return (key,) if isinstance(key, int) else tuple(key)


class _Kernel:
    """The kernel's parameters as values without handles, and its run-time arguments in order: (name, type, facts)."""

    def __init__(self, fn: KernelFunction, attrs: dict[Path, list], constants: dict[Path, Any]):
        self.fn, self.attrs, self.constants = fn, attrs, constants
        self.arguments: list[tuple[str, dtypes.base_type, dict[str, int]]] = []

    def bind(self, signature: dict[str, Any]) -> dict[str, Any]:
        for name in signature:
            if name not in self.fn.arg_names:
                raise ValueError(f"{self.fn.__name__} has no parameter {name!r}; its parameters: {', '.join(self.fn.arg_names)}")
        scope = {}
        for param in self.fn.params:
            path = (param.num,)
            if path in self.constants:
                scope[param.name] = _as_constant(self.constants[path])
            elif param.name in signature and signature[param.name] != "constexpr":
                scope[param.name] = self._value(param.name, signature[param.name], path)
            elif param.has_default:
                scope[param.name] = core.unwrap(param.default)
            else:
                raise ValueError(f"signature and constexprs of {self.fn.__name__} lack the parameter {param.name!r}")
        return scope

    def _value(self, name: str, ty: Any, path: Path) -> Any:
        if path in self.constants:
            return _as_constant(self.constants[path])
        if isinstance(ty, (tuple, list)):
            items = [self._value(f"{name}_{i}", t, (*path, i)) for i, t in enumerate(ty)]
            return type(ty)(*items) if hasattr(ty, "_fields") else core.tuple(items)
        if ty == "constexpr":
            raise ValueError(f"{name} is constexpr in the signature of {self.fn.__name__}, but constexprs lack {path}")
        parsed = dtypes.str_to_ty(ty)
        if isinstance(parsed, dtypes.tensor_descriptor_type):
            return self._descriptor(name, parsed, {key for key, _ in self.attrs.get(path, ())})
        facts = {_FACTS[key]: int(value) for key, value in self.attrs.get(path, ()) if key in _FACTS}
        return self._argument(name, parsed, facts)

    def _argument(self, name: str, ty: dtypes.base_type, facts: dict[str, int]) -> core.tensor:
        self.arguments.append((name, ty, facts))
        return core.tensor(None, ty)

    def _descriptor(self, name: str, ty: dtypes.tensor_descriptor_type, attrs: set[str]) -> _HostDescriptor:
        """The arguments that a descriptor made on the host is passed as: base, shape, strides. TensorDescriptor checks their alignment."""
        rank, size = len(ty.block_type.shape), max(8, ty.element_ty.primitive_bitwidth) // 8
        base = self._argument(name, dtypes.pointer_type(ty.element_ty), {"tile.divisibility": 16})
        shape = [self._argument(f"{name}_shape_{i}", dtypes.int32, {}) for i in range(rank)]
        aligned = {"tile.divisibility": 16 // size} if size < 16 else {}
        strides = [self._argument(f"{name}_stride_{i}", dtypes.int64, aligned if i < rank - 1 else {}) for i in range(rank)]
        return _HostDescriptor(base, shape, strides, ty, attrs)


class _HostDescriptor(core.base_value):
    """A descriptor parameter until the arguments that it is passed as are there."""

    def __init__(self, base: core.tensor, shape: list[core.tensor], strides: list[core.tensor], ty: Any, attrs: set[str]):
        self.base, self.shape, self.strides, self.type, self.attrs = base, shape, strides, ty, attrs

    def _leaves(self) -> list[core.leaf]:
        return [self.base, *self.shape, *self.strides]

    def _with_leaves(self, leaves: Iterator[core.leaf]) -> tensor_descriptor:
        """The descriptor, made of its arguments. The last stride is 1, whatever is passed."""
        s = core.active()
        base = next(leaves)
        shape = [next(leaves) for _ in self.shape]
        *strides, _ = [next(leaves) for _ in self.strides]
        strides.append(convert(s, 1, dtypes.int64))
        padding = "nan" if "tt.nan_padding" in self.attrs else "zero"
        handles = [[v.handle for v in values] for values in (shape, strides)]
        handle = s.builder.make_descriptor(base.handle, *handles, padding, self.type.block_type)
        if "tt.round_tf32" in self.attrs:
            handle.owner.attributes["tile.round_tf32"] = s.builder.types.unit
        return tensor_descriptor(handle, shape, strides, self.type)


_FACTS = {"tt.divisibility": "tile.divisibility", "tt.pointer_range": "tile.pointer_range"}


def _as_constant(value: Any) -> Any:
    return core.tuple(value) if type(value) in (tuple, list) else value
