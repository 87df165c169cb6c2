"""A random program: statements, arguments, options; its text; and the kernel that the text defines."""

from __future__ import annotations

import linecache
import pprint
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .types import Type

_NAME = re.compile(r"\b[vh]\d+\b")


@dataclass(frozen=True)
class Array:
    """An array argument: `size` elements of a type code, filled as `data.fill` says."""

    dtype: str
    size: int
    fill: str
    seed: int


@dataclass(frozen=True)
class Statement:
    """One statement. A simple one is `text`; a compound one is headed by `text` and has a body, an `if` maybe a second one.

    `targets` are the variables that it sets, with their types.
    """

    text: str
    targets: tuple[tuple[str, Type], ...] = ()
    body: tuple[Statement, ...] = ()
    orelse: tuple[Statement, ...] = ()

    @property
    def uses(self) -> frozenset[str]:
        """Variables and helper functions that its own text mentions, those it sets included."""
        return frozenset(_NAME.findall(self.text))

    def lines(self, indent: str) -> Iterator[str]:
        """Its text, indented."""
        yield from (indent + line for line in self.text.splitlines())
        if self.text.endswith(":"):
            yield from block_lines(self.body, indent + "    ")
            if self.orelse:
                yield f"{indent}else:"
                yield from block_lines(self.orelse, indent + "    ")


def block_lines(statements: tuple[Statement, ...], indent: str) -> Iterator[str]:
    """The text of a block, `pass` if it is empty."""
    for statement in statements:
        yield from statement.lines(indent)
    if not statements:
        yield f"{indent}pass"


@dataclass(frozen=True)
class Helper:
    """A function that the kernel calls."""

    name: str
    text: str
    options: str = ""  # of its decorator

    @property
    def source(self) -> str:
        """Its definition."""
        return f"@jit({self.options})\n{self.text}" if self.options else f"@jit\n{self.text}"


@dataclass(frozen=True)
class Program:
    """A kernel with what it is launched with."""

    seed: int
    body: tuple[Statement, ...]
    arguments: dict[str, Any]
    constexprs: dict[str, Any] = field(default_factory=dict)
    helpers: tuple[Helper, ...] = ()
    grid: tuple[int, ...] = (1,)
    options: dict[str, Any] = field(default_factory=dict)

    def source(self) -> str:
        """The text of a module that defines `kernel`, ARGUMENTS, GRID and OPTIONS."""
        text = "\n".join(block_lines(self.body, "    "))
        used = set(re.findall(r"\b\w+\b", text))
        helpers = [h for h in self.helpers if h.name in used or any(h.name in other.text for other in self.helpers if other is not h)]
        arguments = {name: value for name, value in self.arguments.items() if name in used}
        constexprs = {name: value for name, value in self.constexprs.items() if name in used}
        parameters = ", ".join([*arguments, *(f"{name}: tl.constexpr" for name in constexprs)])
        parts = [
            f'"""Random program {self.seed}: `python tests/fuzz/run.py --file` this one. The runner provides jit and Array."""',
            "import tilewright.language as tl",
            *(f"\n{h.source}" for h in helpers),
            f"\n@jit\ndef kernel({parameters}):\n{text}\n",
            f"GRID = {self.grid!r}",
            f"OPTIONS = {self.options!r}",
            f"ARGUMENTS = {pprint.pformat(arguments | constexprs, sort_dicts=False, width=120)}",
        ]
        return "\n".join(parts) + "\n"

    def with_body(self, body: tuple[Statement, ...]) -> Program:
        """The program with other statements."""
        return replace(self, body=body)


def load(source: str, path: str, jit: Callable) -> dict[str, Any]:
    """What the text of a program defines, its functions decorated with `jit`. The text is made known under `path`, so that tracebacks and
    `inspect` find it whether the file exists or not."""
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    namespace = {"jit": jit, "Array": Array, "__name__": "random_program", "__file__": path}
    exec(compile(source, path, "exec"), namespace)  # noqa: S102
    return namespace
