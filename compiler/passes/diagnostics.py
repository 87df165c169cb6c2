"""Errors that a pass finds in the user's kernel, at the line that the operation's location names."""

from __future__ import annotations

import ast
import linecache
import re

from mlir import ir

from tilewright.errors import CompilationError

_PLACE = re.compile(r'"([^"]+)":(\d+):(\d+)')


def user_error(op: ir.Operation, message: str) -> CompilationError:
    """Return (to be raised) the error `message` about what `op` was made from; without a place if the location names no file."""
    found = _PLACE.search(str(op.location))
    if found is None:
        return CompilationError(None, None, message)
    file_name, line, column = found[1], int(found[2]), int(found[3])
    text = linecache.getline(file_name, line).rstrip("\n")
    place = ast.Constant(value=None, lineno=1, col_offset=max(0, column - 1), end_lineno=1, end_col_offset=len(text.encode()))
    return CompilationError(text, place, message, file_name=file_name, first_line=line)
