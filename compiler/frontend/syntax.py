"""Facts about syntax trees, found once per node and kept on it, and the table of visitors by class of node."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

# class of AST node -> visitor (generator, node) -> value; filled by `visits`
VISITORS: dict[type, Callable[[Any, Any], Any]] = {}


def visits(*classes: type) -> Callable:
    """Decorator: the function visits nodes of these classes."""

    def register(visitor: Callable) -> Callable:
        for cls in classes:
            VISITORS[cls] = visitor
        return visitor

    return register


def assigned_names(nodes: list[ast.AST], owner: ast.AST) -> tuple[str, ...]:
    """The names that `nodes`, a list of children of `owner`, may assign, in the order of the source. Kept on `owner`."""
    kept = getattr(owner, "_tilewright_assigned", None)
    if kept is None:
        names: dict[str, None] = {}
        for node in nodes:
            for name in _stores(node):
                names[name.id] = None
        kept = owner._tilewright_assigned = tuple(names)
    return kept


def last_assignment(nodes: list[ast.AST], name: str) -> ast.AST | None:
    """The last place in `nodes` where `name` is assigned."""
    found = None
    for node in nodes:
        for store in _stores(node):
            found = store if store.id == name else found
    return found


def _stores(node: ast.AST) -> Iterator[ast.Name]:
    """The names stored to in `node`; the target of a comprehension is its own."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.comprehension):
            yield from _stores(child.iter)
            continue
        yield from _stores(child)


def contains_return(node: ast.AST) -> bool:
    """Whether a `return` stands anywhere in a statement. Kept on it."""
    kept = getattr(node, "_tilewright_returns", None)
    if kept is None:
        kept = node._tilewright_returns = any(isinstance(child, ast.Return) for child in ast.walk(node))
    return kept


# what to write instead of Python that the language lacks
UNSUPPORTED = {
    ast.Lambda: "lambda is not supported in a kernel: define a @jit function at module level and pass it by name",
    ast.Dict: "dict is not supported in a kernel: use a tuple, a NamedTuple or an aggregate",
    ast.Set: "set is not supported in a kernel: use a tuple",
    ast.DictComp: "a dict comprehension is not supported in a kernel: use a tuple",
    ast.SetComp: "a set comprehension is not supported in a kernel: use a tuple",
    ast.GeneratorExp: "a generator is not supported in a kernel: use a list comprehension over a tuple",
    ast.Try: "try is not supported in a kernel: a kernel cannot raise; test a condition with `if`, or use tl.device_assert",
    ast.Raise: "raise is not supported in a kernel: use tl.static_assert for what is known at compile time, else tl.device_assert",
    ast.Import: "import is not supported in a kernel: import at module level",
    ast.ImportFrom: "import is not supported in a kernel: import at module level",
    ast.Global: "global is not supported in a kernel: pass the value as an argument and return it",
    ast.Nonlocal: "nonlocal is not supported in a kernel: pass the value as an argument and return it",
    ast.Delete: "del is not supported in a kernel: a name just goes out of use",
    ast.FunctionDef: "nested function definitions are not allowed inside a @triton.jit kernel: move it to module level, with @jit",
    ast.AsyncFunctionDef: "async is not supported in a kernel",
    ast.ClassDef: "class is not supported in a kernel: define an aggregate at module level",
    ast.Yield: "yield is not supported in a kernel: return a tuple",
    ast.YieldFrom: "yield is not supported in a kernel: return a tuple",
    ast.Await: "async is not supported in a kernel",
    ast.AsyncFor: "async is not supported in a kernel",
    ast.AsyncWith: "async is not supported in a kernel",
    ast.Match: "match is not supported in a kernel: use if/elif/else",
    ast.Break: "break is not supported in a kernel: use `while` with the whole condition, or mask the rest of the iterations",
    ast.Continue: "continue is not supported in a kernel: put the rest of the body under an `if`",
    ast.Starred: "a starred expression is supported only as an argument of a call",
}
