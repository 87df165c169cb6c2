"""The registry of passes, and the one way to run a list of them.

A pass is a function `f(module: ir.Operation, **options) -> None`, registered under its name. A pipeline is a sequence of entries: the name
of one of our passes, a tuple (name, options), or text in MLIR's pipeline syntax for upstream passes ("canonicalize", "cse").
An exception raised by a pass reaches the caller unchanged.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Protocol

from mlir import ir
from mlir.passmanager import PassManager

from .building import walk

Pass = Callable[..., None]
Entry = str | tuple[str, dict[str, Any]]

_passes: dict[str, Pass] = {}
_wanted: dict[str, frozenset[str]] = {}


class Hooks(Protocol):
    """Observes a pipeline: called around each pass with its name and the operation that it runs on."""

    def before(self, name: str, op: ir.Operation) -> None: ...

    def after(self, name: str, op: ir.Operation) -> None: ...


def register(name: str, *, only_for: Iterable[str] = ()) -> Callable[[Pass], Pass]:
    """Register the decorated function as the pass `name`.

    A pass with `only_for` is skipped where the module holds none of these ops when its pipeline begins: no pass of that pipeline may make
    the first one. Most kernels have neither descriptors nor dots, and reading a module once for all such passes is cheaper.
    """

    def decorate(function: Pass) -> Pass:
        if name in _passes:
            raise ValueError(f"pass '{name}' is registered twice")
        _passes[name] = function
        _wanted[name] = frozenset(only_for)
        return function

    return decorate


@lru_cache(maxsize=1)
def load() -> None:
    """Import every module of this package, so that all passes are registered."""
    package = importlib.import_module(__package__)
    for info in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{__package__}.{info.name}")


def lookup(name: str) -> Pass | None:
    """Return the pass of ours that is registered under `name`, or None."""
    if name not in _passes:
        load()
    return _passes.get(name)


def names() -> list[str]:
    """Return the names of all passes of ours, sorted."""
    load()
    return sorted(_passes)


def run(module: ir.Operation, pipeline: Sequence[Entry], verify: bool = False, hooks: Hooks | None = None) -> None:
    """Run `pipeline` on `module`.

    `verify` switches MLIR's verifier on after each pass. Raises ValueError for a name that neither we nor upstream know, and whatever a
    pass raises. Python handles into the module are dangling afterwards.
    """
    key = tuple((e, ()) if isinstance(e, str) else (e[0], tuple(sorted(e[1].items()))) for e in pipeline)
    # A manager is kept for each pipeline: upstream passes build their pattern sets on the first run only.
    manager, present = _manager(key) if hooks is None else _build(key, hooks)
    present.names = None
    manager.enable_verifier(verify)
    manager.run(module)


class _Present:
    """The names of the ops that a pipeline's module holds, read when a pass first asks in a run."""

    names: set[str] | None = None

    def any_of(self, wanted: frozenset[str], module: ir.Operation) -> bool:
        if self.names is None:
            self.names = {op.name for op in walk(module)}
        return not wanted.isdisjoint(self.names)


@lru_cache(maxsize=64)
def _manager(key: tuple) -> tuple[PassManager, _Present]:
    return _build(key, None)


def _build(key: tuple, hooks: Hooks | None) -> tuple[PassManager, _Present]:
    manager, present = PassManager("any"), _Present()
    for name, options in key:
        function = lookup(name)
        if hooks is not None:
            manager.add(_observer(hooks.before, name), name=f"before {name}")
        if function is not None:
            manager.add(_bind(function, dict(options), _wanted[name], present), name=name)
        elif options:
            raise ValueError(f"no pass is named '{name}'; ours are {', '.join(names())}")
        else:
            manager.add(name)
        if hooks is not None:
            manager.add(_observer(hooks.after, name), name=f"after {name}")
    return manager, present


def _bind(function: Pass, options: dict[str, Any], wanted: frozenset[str], present: _Present) -> Callable[[ir.Operation, Any], None]:
    def call(op: ir.Operation, _: Any) -> None:
        if not wanted or present.any_of(wanted, op):
            function(op, **options)

    return call


def _observer(callback: Callable[[str, ir.Operation], None], name: str) -> Callable[[ir.Operation, Any], None]:
    def call(op: ir.Operation, _: Any) -> None:
        callback(name, op)

    return call
