"""Exceptions that users see. Everything derives from `TritonError`, but for the ones that are a Python error too."""

from __future__ import annotations

import ast
from typing import NamedTuple

#: A message shows the innermost and the outermost half of so many calls.
MAX_CALL_SITES = 8


class TritonError(Exception):
    """Root of all errors of the compiler and the runtime."""


class SourceSite(NamedTuple):
    """An expression's place in the user's file: 1-based `line`, 0-based `col` and `end_col` in characters, the line's `text`."""

    file_name: str
    line: int
    col: int
    end_col: int
    text: str
    function: str = ""

    def render(self) -> str:
        """`file:line:column`, the source line if it is known, and carets under the expression."""
        code = self.text.lstrip()
        start = max(self.col - (len(self.text) - len(code)), 0)
        width = max(1, min(self.end_col, len(self.text)) - self.col)
        inside = f" in {self.function}" if self.function else ""
        place = f"{self.file_name}:{self.line}:{self.col + 1}:{inside}"
        if not code:
            return place
        return f"{place}\n    {code}\n    {' ' * start}{'^' * width}"


def source_site(
    src: str | None, node: ast.AST | None, file_name: str | None = None, first_line: int = 1, indent: int = 0, function: str = ""
) -> SourceSite | None:
    """The place of `node`, whose positions count within `src`; None if it has none.

    `src` begins on line `first_line` of the file and has been dedented by `indent` columns."""
    line = getattr(node, "lineno", None)
    if line is None:
        return None
    lines = (src or "").splitlines()
    text = lines[line - 1].rstrip() if line <= len(lines) else ""
    raw = text.encode()  # ast counts columns in bytes of UTF-8
    col = len(raw[: node.col_offset].decode(errors="ignore"))
    end_byte = getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", line) == line else None
    end = len(text) if end_byte is None else len(raw[:end_byte].decode(errors="ignore"))
    return SourceSite(file_name or "<kernel>", first_line + line - 1, indent + col, indent + end, " " * indent + text, function)


class CompilationError(TritonError):
    """A mistake in a kernel, at a place of the user's source.

    `src` is the kernel's source text, `node` the AST node at fault (None: no place known; its line numbers count within `src`, from 1),
    `error_message` the bare text, `message` the whole rendering. `file_name`, `first_line` (the line of the file on which `src` begins) and
    `indent` (how far `src` was dedented) make the place absolute; `call_sites` are the calls that led there, innermost first."""

    def __init__(
        self,
        src: str | None,
        node: ast.AST | None,
        error_message: object = None,
        *,
        file_name: str | None = None,
        first_line: int = 1,
        indent: int = 0,
        function: str = "",
        call_sites: tuple[SourceSite, ...] = (),
    ):
        self.src = src
        self.node = node
        self.error_message = None if error_message is None else str(error_message)
        self.file_name = file_name
        self.first_line = first_line
        self.indent = indent
        self.function = function
        self.call_sites = tuple(call_sites)
        self.site = source_site(src, node, file_name, first_line, indent, function)
        self.message = self._format()
        super().__init__(self.message)

    @property
    def lineno(self) -> int | None:
        """Line of the file, or of `src` if the file is not known."""
        return self.site.line if self.site else None

    @property
    def col(self) -> int | None:
        """Column of the file, from 0."""
        return self.site.col if self.site else None

    def _format(self) -> str:
        parts = [self.site.render()] if self.site else []
        if self.error_message:
            parts.append(self.error_message)
        sites = [f"called from {site.render()}" for site in self.call_sites]
        if len(sites) > MAX_CALL_SITES:  # a recursion
            half = MAX_CALL_SITES // 2
            sites[half:-half] = [f"... {len(sites) - 2 * half} more calls ..."]
        parts += sites
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self):
        place = (self.file_name, self.first_line, self.indent, self.function, self.call_sites)
        return _restore, (type(self), self.src, self.node, self.error_message, place)


def _restore(cls, src, node, error_message, place):
    file_name, first_line, indent, function, call_sites = place
    return cls(
        src,
        node,
        error_message,
        file_name=file_name,
        first_line=first_line,
        indent=indent,
        function=function,
        call_sites=call_sites,
    )


class UnsupportedLanguageConstruct(CompilationError):
    """Python that kernels do not have."""


class CompileTimeAssertionFailure(CompilationError):
    """A `tl.static_assert` that does not hold."""


class OutOfResources(TritonError):
    """A kernel needs more of a resource than the device has: `required` and `limit` in the resource's unit; `place` names the kernel."""

    def __init__(self, required: int, limit: int, name: str, place: str = ""):
        self.required, self.limit, self.name, self.place = required, limit, name, place
        text = f"out of resource: {name}, Required: {required}, Hardware limit: {limit}. Reducing block sizes or `num_stages` may help."
        super().__init__(f"{place}: {text}" if place else text)

    def at(self, place: str) -> OutOfResources:
        """The same error with the kernel's place, for who knows it."""
        return OutOfResources(self.required, self.limit, self.name, place)

    def __reduce__(self):
        return OutOfResources, (self.required, self.limit, self.name, self.place)


class PTXASError(TritonError):
    """ptxas refused the PTX, or crashed."""

    def __init__(self, error_message: str | None = None):
        self.error_message = error_message or ""
        super().__init__(f"PTXAS error: {self.error_message}")

    def __reduce__(self):
        return PTXASError, (self.error_message,)


class AutotunerError(TritonError):
    """No configuration of an autotuned kernel can run."""

    def __init__(self, error_message: str | None = None):
        self.error_message = error_message or ""
        super().__init__(f"Autotuner error: {self.error_message}")

    def __reduce__(self):
        return AutotunerError, (self.error_message,)


class InterpreterError(TritonError):
    """A mistake in a kernel, found while interpreting it."""

    def __init__(self, error_message: str | None = None):
        self.error_message = error_message or ""
        super().__init__(self.error_message)


class InterpreterWarning(UserWarning):
    """What the checks of `TILEWRIGHT_INTERPRET_CHECK` found: a race between programs, an output that is not all written."""


class ToolchainError(TritonError):
    """A package or tool is missing or of the wrong version; the message says which, and how to install it."""


class UnsupportedTarget(TritonError, ValueError):
    """No backend compiles for this target; the message names the accepted ones."""
