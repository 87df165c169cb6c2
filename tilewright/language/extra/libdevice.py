"""Functions of the device library of the kernel's target: libdevice on NVIDIA, ocml and ockl on AMD."""

from __future__ import annotations

from collections.abc import Callable

from ..core import builtin
from ..dtypes import dtype, float32, float64, int32, int64, uint32, uint64
from ..semantic.asm import call_extern
from ..semantic.math import exp
from .libdevice_table import TABLE

_TYPES = {"i": int32, "u": uint32, "l": int64, "m": uint64, "f": float32, "d": float64}
Rows = dict[tuple[dtype, ...], tuple[str, dtype]]


def _rows(text: str, prefix: str) -> Rows:
    rows = {}
    for row in text.split():
        types, symbol = row.split(":")
        *args, result = (_TYPES[t] for t in types)
        rows[tuple(args)] = (prefix + symbol, result)
    return rows


def _library(backend: str, symbol: str) -> str:
    if backend == "cuda":
        return "libdevice"
    return next((lib for lib in ("ocml", "ockl") if symbol.startswith(f"__{lib}_")), "")


def _function(name: str, rows: dict[str, Rows], only: str | None) -> Callable:
    def function(*args, _semantic=None):
        backend = only or _semantic.target.backend
        if not rows.get(backend):
            raise NotImplementedError(f"libdevice has no {name} on {backend}")
        symbol = next(iter(rows[backend].values()))[0]
        return call_extern(_semantic, _library(backend, symbol), "", args, rows[backend], True)

    function.__name__ = function.__qualname__ = name
    types = [", ".join(map(str, row)) for row in next(r for r in rows.values() if r)]
    function.__doc__ = f"`{name}` of the device library, elementwise, on ({') or ('.join(types)})."
    return builtin(function)


@builtin
def _fast_tanhf(x, _semantic=None):
    """tanh of fp32, with few instructions: 1 - 2 / (exp(2x) + 1)."""
    return 1 - 2 / (exp(x * 2.0) + 1)


def functions(only: str | None = None) -> dict[str, Callable]:
    """All functions by name: for the backend `only` ("cuda", "hip"; those that it has), or for the kernel's target."""
    found = {}
    for line in TABLE.strip().splitlines():
        name, _, rest = line.partition(" ")
        cuda, _, hip = rest.partition("|")
        rows = {"cuda": _rows(cuda, "__nv_"), "hip": _rows(hip, "__")}
        if only is None or rows[only]:
            found[name] = _function(name, rows, only)
    if only == "cuda" or only is None:
        found["fast_tanhf"] = _fast_tanhf if only else _on_target(found["fast_tanhf"])
    return found


def _on_target(hip: Callable) -> Callable:
    @builtin
    def fast_tanhf(x, _semantic=None):
        """tanh of fp32, with few instructions."""
        return (hip if _semantic.target.backend == "hip" else _fast_tanhf)(x, _semantic=_semantic)

    return fast_tanhf


globals().update(functions())
