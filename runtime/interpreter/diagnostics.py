"""Errors of interpreted kernels, reported at the user's line."""

from __future__ import annotations

import ast
import bdb
import linecache
from types import TracebackType

from tilewright.errors import CompileTimeAssertionFailure, InterpreterError, SourceSite, TritonError
from tilewright.language.semantic.debug import StaticAssertionError

from .memory import MemoryFault
from .numpy_builder import DeviceAssertion
from .rewrite import KERNEL_CODES

# errors of the language: their text says all, the class adds nothing
_PLAIN = (MemoryFault, DeviceAssertion, TypeError, ValueError, NotImplementedError)


def passes_through(error: BaseException) -> bool:
    """Whether `error` is no mistake of the kernel: the user leaving the debugger, or an error that is placed already."""
    return isinstance(error, (bdb.BdbQuit, TritonError)) or not isinstance(error, Exception)


def kernel_error(error: Exception, program: tuple[int, int, int], grid: tuple[int, int, int]) -> TritonError:
    """`error`, raised inside a kernel, with the user's file, line and caret, the chain of calls and the program that met it."""
    sites = _sites(error.__traceback__)
    callers = sites[-2::-1]
    if isinstance(error, StaticAssertionError):
        return _static_assertion(str(error) or "static_assert failed", sites)
    text = str(error) if isinstance(error, _PLAIN) and str(error) else f"{type(error).__name__}: {error}"
    parts = [sites[-1].render()] if sites else []
    parts.append(text)
    parts.append(f"in program {program} of grid {grid}")
    parts += [f"called from {site.render()}" for site in callers]
    return InterpreterError("\n".join(parts))


def _static_assertion(message: str, sites: list[SourceSite]) -> CompileTimeAssertionFailure:
    """What the compiler raises for a failed `tl.static_assert`, at the same place."""
    if not sites:
        return CompileTimeAssertionFailure(None, None, message)
    site = sites[-1]
    start, end = (len(site.text[:col].encode()) for col in (site.col, site.end_col))
    node = ast.Pass(lineno=1, col_offset=start, end_lineno=1, end_col_offset=end)
    return CompileTimeAssertionFailure(
        site.text, node, message, file_name=site.file_name, first_line=site.line, function=site.function, call_sites=tuple(sites[-2::-1])
    )


def _sites(traceback: TracebackType | None) -> list[SourceSite]:
    """The kernel's frames of a traceback, outermost first."""
    sites = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code in KERNEL_CODES:
            sites.append(_site(traceback, KERNEL_CODES[code]))
        traceback = traceback.tb_next
    return sites


def _site(traceback: TracebackType, function: str) -> SourceSite:
    code = traceback.tb_frame.f_code
    text = linecache.getline(code.co_filename, traceback.tb_lineno).rstrip("\n")
    start, end = len(text) - len(text.lstrip()), len(text)
    if hasattr(code, "co_positions"):  # Python 3.11
        line, last, first_col, last_col = list(code.co_positions())[traceback.tb_lasti // 2]
        if line == last == traceback.tb_lineno and first_col is not None:
            raw = text.encode()
            start, end = (len(raw[:col].decode(errors="ignore")) for col in (first_col, last_col))
    return SourceSite(code.co_filename, traceback.tb_lineno, start, end, text, function.rpartition(".")[2])
