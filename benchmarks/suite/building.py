"""What the cases of memory-bound kernels are built with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from .cases import Case, Config, Launch, Problem, Step, config, variant

Data = torch.Tensor
Tensors = tuple[Data, ...]


def size_of(*tensors: Data) -> int:
    """Bytes of all tensors together."""
    return sum(t.numel() * t.element_size() for t in tensors)


def normal(device: str, *shape: int, dtype: torch.dtype = torch.bfloat16) -> Data:
    return torch.randn(*shape, device=device, dtype=dtype)


def empty(device: str, *shape: int, dtype: torch.dtype = torch.bfloat16) -> Data:
    return torch.empty(*shape, device=device, dtype=dtype)


def integers(device: str, high: int, *shape: int, dtype: torch.dtype = torch.int32) -> Data:
    return torch.randint(0, high, shape, device=device, dtype=dtype)


#: Elements of a row from which on a cluster of CTAs may share it.
_LONG_ROW = 32768


def block(n: int) -> int:
    """The power of two that covers n."""
    return 1 << (n - 1).bit_length()


def configs(constants: str, *values: tuple[int, ...]) -> list[Config]:
    """`configs("R C", (64, 32, 8))`: R = 64, C = 32, eight warps."""
    return [config(constants, v[:-1], v[-1], 3) for v in values]


def row_configs(n: int, held: int = 1) -> list[Config]:
    """Numbers of warps for one row of n elements a program, and of CTAs for long rows. `held`: rows that stay in registers, for which four
    warps have room for 8192 elements."""
    warps = (4, 8) if n <= 2048 else (8, 16) if n <= 8192 else (8, 16, 32)
    if 2048 < n <= 8192 // held:
        warps += (4,)
    found = configs("", *((w,) for w in warps))
    if n < _LONG_ROW:
        return found
    ctas = [config("", (), w, 3, num_ctas=c) for c in (2, 4, 8, 16) for w in (4, 8, 16) if 32 <= n // (32 * w * c) <= 64]
    return [*(cf for cf in found if n // (32 * cf["num_warps"]) <= 128), *ctas]


def problem(
    kernel: str,
    choices: list[Config],
    grid: Callable[[Config], tuple[int, ...]],
    arguments: tuple,
    constants: Config,
    outputs: Tensors,
    reference: Callable[[], Tensors],
    traffic: int,
    vendor: Callable[[], Callable[[], object]] | None = None,
    tolerance: float = 1e-2,
    before: tuple[Callable[[], object], ...] = (),
    module: str = "kernels_memory",
) -> Problem:
    """A problem of one kernel, with plain functions `before` its launch."""

    def steps(cf: Config) -> list[Step]:
        return [*before, Launch(module, kernel, grid(cf), arguments, {**constants, **cf})]

    vendors = {} if vendor is None else {"torch": vendor}
    return Problem(outputs, [variant("pointers", choices, steps, len(outputs))], reference, traffic, "GB/s", vendors, tolerance)


def by_shape(name: str, build: Callable[..., Problem], shapes: tuple[tuple[int, ...], ...], quick: int = 1) -> list[Case]:
    """A case for each shape; number `quick` is part of the short run."""
    return [case(f"{name} {'x'.join(map(str, shape))}", build, *shape, quick=i == quick % len(shapes)) for i, shape in enumerate(shapes)]


def case(name: str, build: Callable[..., Problem], *sizes: object, quick: bool = False) -> Case:
    """A case that `in_group` puts into its group."""
    return Case("", name, partial(_on, build, sizes), quick)


def in_group(name: str, *cases: Case) -> list[Case]:
    return [replace(case, group=name) for case in cases]


def _on(build: Callable[..., Problem], sizes: tuple, device: str) -> Problem:
    return build(device, *sizes)
