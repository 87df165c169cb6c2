"""The exceptions that Tilewright raises on a user's mistake or a missing tool, in one small hierarchy.

Every message says what is wrong, where, and what to do. Nothing here imports the compiler, so host code can catch these cheaply.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any


class TritonError(Exception):
    """Base class of every error of this package (the name is Triton's, so that existing `except` clauses work)."""


@dataclass(frozen=True)
class SourceSite:
    """A place in the user's source: absolute 1-based `line`, 0-based `col` and `end_col` in characters."""

    file_name: str
    line: int
    col: int
    end_col: int
    text: str
    function: str = ""

    def render(self) -> str:
        """`file:line:col`, the source line, and carets under the expression."""
        stripped = self.text.lstrip()
        margin = len(self.text) - len(stripped)
        start = max(self.col - margin, 0)
        width = max(1, min(self.end_col, len(self.text)) - self.col)
        where = f"{self.file_name}:{self.line}:{self.col + 1}"
        inside = f" in {self.function}" if self.function else ""
        return f"{where}:{inside}\n    {stripped}\n    {' ' * start}{'^' * width}"


def source_site(
    src: str | None, node: ast.AST | None, file_name: str = "", first_line: int = 1, indent: int = 0, function: str = ""
) -> SourceSite | None:
    """Locate `node` in `src`; `first_line` is the file's line of the first line of `src`, `indent` the columns cut off by dedenting.

    Returns None for a node without a position.
    """
    line = getattr(node, "lineno", None)
    if line is None:
        return None
    lines = (src or "").splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    raw = text.encode()
    col = len(raw[: node.col_offset].decode(errors="ignore"))
    one_line = getattr(node, "end_lineno", line) == line and getattr(node, "end_col_offset", None) is not None
    end = len(raw[: node.end_col_offset].decode(errors="ignore")) if one_line else len(text)
    pad = " " * indent
    return SourceSite(file_name or "<kernel>", first_line + line - 1, indent + col, indent + end, pad + text, function)


class CompilationError(TritonError):
    """A mistake in a kernel.

    `error_message` is the bare text, `message` the rendering with file, line, caret and the chain of call sites; `lineno` and `col` are
    the position in the file (1-based line, 0-based column), or None when the error belongs to no expression.
    """

    def __init__(
        self,
        src: str | None,
        node: ast.AST | None = None,
        error_message: object | None = None,
        *,
        site: SourceSite | None = None,
        callers: tuple[SourceSite, ...] = (),
    ):
        self.src = src
        self.node = node
        self.error_message = "" if error_message is None else str(error_message)
        self.site = site if site is not None else source_site(src, node)
        self.callers = callers
        self.lineno = self.site.line if self.site else None
        self.col = self.site.col if self.site else None
        self.message = self._render()
        super().__init__(self.message)

    def _render(self) -> str:
        parts = [self.site.render()] if self.site else []
        if self.error_message or not parts:
            parts.append(self.error_message or type(self).__name__)
        parts.extend(f"called from {site.render()}" for site in self.callers)
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple:
        return _rebuild_compilation_error, (type(self), self.src, self.node, self.error_message, self.site, self.callers)


def _rebuild_compilation_error(cls: type, src: Any, node: Any, message: str, site: Any, callers: tuple) -> CompilationError:
    return cls(src, node, message, site=site, callers=callers)


class UnsupportedLanguageConstruct(CompilationError):
    """Python that the Triton language does not have; the message names what to write instead."""


class CompileTimeAssertionFailure(CompilationError):
    """A `tl.static_assert` whose condition is false."""


class OutOfResources(TritonError):
    """A kernel needs more of a hardware resource than a block may use; `required` and `limit` in the unit of `name`."""

    def __init__(self, required: int, limit: int, name: str):
        self.required, self.limit, self.name = required, limit, name
        super().__init__(
            f"out of resource: {name}, Required: {required}, Hardware limit: {limit}. Reducing block sizes or `num_stages` may help."
        )

    def __reduce__(self) -> tuple:
        return type(self), (self.required, self.limit, self.name)


class PTXASError(TritonError):
    """ptxas refused the PTX that was made for a kernel."""


class InterpreterError(TritonError):
    """An exception inside a kernel that the interpreter runs."""


class AutotunerError(TritonError):
    """The autotuner has no configuration left to try."""


class ToolchainError(TritonError):
    """A package or program that the compiler needs is missing or of the wrong version; the message says how to install it."""


class UnsupportedTarget(ValueError):
    """A GPU target that no backend compiles for."""
