"""Exceptions that users see. Everything derives from `TritonError`, but for the ones that are a Python error too."""

from __future__ import annotations

import ast


class TritonError(Exception):
    """Root of all errors of the compiler and the runtime."""


class CompilationError(TritonError):
    """A mistake in a kernel, at a place of the user's source.

    `src` is the kernel's source text, `node` the AST node at fault (None: no place known; its line numbers count within `src`, from 1),
    `error_message` the text. `file_name` and `first_line` (the line of the file on which `src` begins) make the place absolute.
    `call_sites` are (file, line, function) of the calls that led there, outermost first."""

    source_line_count_max_in_message = 12

    def __init__(
        self,
        src: str | None,
        node: ast.AST | None,
        error_message: str | None = None,
        *,
        file_name: str | None = None,
        first_line: int = 1,
        call_sites: tuple[tuple[str, int, str], ...] = (),
    ):
        self.src = src
        self.node = node
        self.error_message = error_message
        self.file_name = file_name
        self.first_line = first_line
        self.call_sites = tuple(call_sites)
        self.message = self._format()
        super().__init__(self.message)

    @property
    def lineno(self) -> int | None:
        """Line of the file, or of `src` if the file is not known."""
        line = getattr(self.node, "lineno", None)
        return None if line is None else line + self.first_line - 1

    @property
    def col(self) -> int | None:
        """Column of the node, from 0."""
        return getattr(self.node, "col_offset", None)

    def _format(self) -> str:
        line = getattr(self.node, "lineno", None)
        text = self.error_message or ""
        if line is None:
            return text
        parts = [f"  called from {file}:{at} in {function}" for file, at, function in self.call_sites]
        where = f"{self.file_name}:{self.lineno}:" if self.file_name else f"at {line}:{self.col}:"
        parts.append(where)
        if self.src is not None:
            parts += self.src.split("\n")[:line][-self.source_line_count_max_in_message :]
            parts.append(" " * (self.col or 0) + "^")
        return "\n".join([*parts, text])

    def __str__(self) -> str:
        return self.message

    def __reduce__(self):
        return _restore, (type(self), self.src, self.node, self.error_message, self.file_name, self.first_line, self.call_sites)


def _restore(cls, src, node, error_message, file_name, first_line, call_sites):
    return cls(src, node, error_message, file_name=file_name, first_line=first_line, call_sites=call_sites)


class UnsupportedLanguageConstruct(CompilationError):
    """Python that kernels do not have."""


class CompileTimeAssertionFailure(CompilationError):
    """A `tl.static_assert` that does not hold."""


class OutOfResources(TritonError):
    """A kernel needs more of a resource than the device has: `required` and `limit` in the resource's unit."""

    def __init__(self, required: int, limit: int, name: str):
        self.required, self.limit, self.name = required, limit, name
        super().__init__(
            f"out of resource: {name}, Required: {required}, Hardware limit: {limit}. Reducing block sizes or `num_stages` may help."
        )

    def __reduce__(self):
        return OutOfResources, (self.required, self.limit, self.name)


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


class ToolchainError(TritonError):
    """A package or tool is missing or of the wrong version; the message says which, and how to install it."""


class UnsupportedTarget(TritonError, ValueError):
    """No backend compiles for this target; the message names the accepted ones."""
