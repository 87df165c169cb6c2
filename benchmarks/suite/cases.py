"""What a case of the suite is: inputs, the ways to compute the result with one source, the reference, and the vendor's way.

A case is built on a device: "cuda" to measure it, "meta" to compile its kernels without memory, "cpu" for the interpreter. Sizes are
parameters of the function that builds it, so tests build the same cases small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Config = dict[str, Any]

#: What the entries of a configuration that are no constants of the kernel are called.
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


@dataclass(frozen=True)
class Launch:
    """One launch: module of the kernel and its name, grid, arguments, then constants and options together."""

    module: str
    kernel: str
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    keywords: Config


Step = Launch | Callable[[], Any]


@dataclass(frozen=True)
class Stage:
    """A part of a computation whose configuration is chosen by itself: launches and plain functions (a fill, a sum) in order, and the
    numbers of the problem's outputs that they compute."""

    configs: list[Config]
    steps: Callable[[Config], list[Step]]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Variant:
    """A way to compute the result, in stages that follow each other."""

    name: str
    stages: list[Stage]


@dataclass
class Problem:
    """A case on a device.

    `outputs` are filled with NaN (integers: with the lowest value) before each check and compared with what `reference` returns, in that
    order; a variant need not compute all. The relative error is that of the whole array (Frobenius norm). `work` is the number of
    operations or bytes, `unit` "TFLOP/s" or "GB/s". `vendors` makes, by name, functions that compute the same with a library; one that
    cannot be made raises.
    """

    outputs: tuple[Any, ...]
    variants: list[Variant]
    reference: Callable[[], tuple[Any, ...]]
    work: float
    unit: str
    vendors: dict[str, Callable[[], Callable[[], Any]]] = field(default_factory=dict)
    tolerance: float = 1e-2


@dataclass(frozen=True)
class Case:
    """A line of the table: `build(device)` makes the problem. `quick`: it is also part of the short run."""

    group: str
    name: str
    build: Callable[[str], Problem]
    quick: bool = False


def variant(name: str, configs: list[Config], steps: Callable[[Config], list[Step]], outputs: int = 1) -> Variant:
    """A variant of one stage, which computes all outputs."""
    return Variant(name, [Stage(configs, steps, tuple(range(outputs)))])


def config(constants: str, values: tuple[Any, ...], warps: int, stages: int, **more: Any) -> Config:
    """`config("BM BN", (128, 256), 8, 3)` is {"BM": 128, "BN": 256, "num_warps": 8, "num_stages": 3}."""
    return {**dict(zip(constants.split(), values, strict=True)), "num_warps": warps, "num_stages": stages, **more}


def label(config: Config) -> str:
    """A configuration in short: `128x256x64 w8 s3 WS`, block sizes first."""
    sizes = [str(v) for k, v in config.items() if k[0] == "B" and isinstance(v, int)]
    others = [k if v is True else f"{k}{v}" for k, v in config.items() if k not in OPTIONS and k[0] != "B" and v is not False]
    short = {"num_warps": "w", "num_stages": "s", "num_ctas": "c", "maxnreg": "r"}
    return " ".join(["x".join(sizes), *(f"{short[k]}{config[k]}" for k in OPTIONS if k in config), *others])


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)
