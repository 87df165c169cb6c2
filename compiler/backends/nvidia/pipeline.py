"""The passes of each stage, in order: this file is the documentation of the NVIDIA pipeline.

An entry is the name of one of our passes, a tuple (name, options), or text in MLIR's pipeline syntax for upstream passes.
"""

from __future__ import annotations

from ...passes.registry import Entry
from .options import NvidiaOptions


def ttir(options: NvidiaOptions) -> list[Entry]:
    """Clean up what the front end made: one function, no calls, no dead code."""
    return [
        "inline",
        "canonicalize",
        "cse",
        "symbol-dce",
    ]


def ttgir(options: NvidiaOptions) -> list[Entry]:
    """Give every tensor a layout, choose matrix instructions, pipeline loops."""
    return []


def llir(options: NvidiaOptions) -> list[Entry]:
    """Place shared memory and barriers, then lower to the LLVM dialect."""
    return []
