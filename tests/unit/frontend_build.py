"""Helpers of the front end's tests: kernels without the runtime."""

from __future__ import annotations

import pytest

pytest.importorskip("mlir")

from tilewright.compiler.frontend import KernelFunction, build_module
from tilewright.errors import CompilationError

# the decorator of the kernels under test
jit = KernelFunction


def module(fn, signature, attrs=None, options=None, **constexprs):
    """The verified module of a kernel; `signature` is one string of types for the parameters that are not in `constexprs`."""
    names = [p.name for p in fn.params if p.name not in constexprs]
    types = signature.split() if isinstance(signature, str) else signature
    built = build_module(fn, dict(zip(names, types)), constexprs, attrs, options)
    assert built.operation.verify()
    return built


def text(fn, signature, attrs=None, options=None, **constexprs):
    """The module as text."""
    return str(module(fn, signature, attrs, options, **constexprs))


def failure(fn, signature, **constexprs) -> CompilationError:
    """The CompilationError that a kernel gives."""
    with pytest.raises(CompilationError) as caught:
        module(fn, signature, **constexprs)
    return caught.value


def line_of(fn, needle):
    """1-based line of the file on which `needle` stands in `fn`."""
    matches = [i for i, line in enumerate(fn.src.splitlines()) if needle in line]
    assert len(matches) == 1, (needle, matches)
    return fn.def_line + matches[0]
