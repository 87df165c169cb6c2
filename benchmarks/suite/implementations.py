"""The kernels under two implementations in one process, and their compilation ahead of time without a GPU."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from .cases import Launch, Problem

IMPLEMENTATIONS = ("tilewright", "triton")
_FOLDER = Path(__file__).parents[1]


def load(module: str, implementation: str) -> ModuleType:
    """An instance of benchmarks/<module>.py whose kernels belong to the implementation."""
    os.environ["TW_IMPL"] = implementation  # read by the module, at import only
    name = f"{module}_{implementation}"
    spec = importlib.util.spec_from_file_location(name, _FOLDER / f"{module}.py")
    assert spec is not None and spec.loader is not None
    instance = importlib.util.module_from_spec(spec)
    sys.modules[name] = instance
    spec.loader.exec_module(instance)
    return instance


kernels = lru_cache(maxsize=None)(load)


def available(implementation: str) -> bool:
    """Whether the implementation is installed."""
    return importlib.util.find_spec(implementation) is not None


def run(launch: Launch, implementation: str) -> Any:
    """Launch on the current device."""
    return getattr(kernels(launch.module, implementation), launch.kernel)[launch.grid](*launch.arguments, **launch.keywords)


class _Hopper:
    """Enough of a driver to compile for sm_90 where there is no GPU: kernels go to the same places of the cache as on one."""

    def __init__(self, implementation: str):
        self.target = importlib.import_module(f"{implementation}.backends.compiler").GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        return self.target


@contextlib.contextmanager
def no_gpu(implementation: str) -> Any:
    """`compile_launch` compiles for sm_90 in here, whatever there is. Kernels that the process has compiled stay with this target."""
    driver = importlib.import_module(f"{implementation}.runtime").driver
    driver.set_active(_Hopper(implementation))
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError):  # Triton without a GPU has no driver to go back to
            driver.reset_active()


def compile_launch(launch: Launch, implementation: str) -> Any:
    """The compiled kernel of a launch; tensors count as aligned."""
    arguments = [a.dtype if isinstance(a, torch.Tensor) else a for a in launch.arguments]
    kernel = getattr(kernels(launch.module, implementation), launch.kernel)
    return kernel.warmup(*arguments, grid=launch.grid, **launch.keywords)


def signature(launch: Launch) -> tuple:
    """Launches of equal signatures run the same machine code: integers matter by being 1 and by being multiples of 16."""
    kinds = [
        str(a.dtype) if isinstance(a, torch.Tensor) else (a == 1, a % 16 == 0) if isinstance(a, int) else type(a) for a in launch.arguments
    ]
    return launch.module, launch.kernel, tuple(kinds), tuple(sorted(launch.keywords.items()))


def launches(problems: Iterable[Problem]) -> list[Launch]:
    """Each kernel of the problems once."""
    found: dict[tuple, Launch] = {}
    for problem in problems:
        for stage in (stage for variant in problem.variants for stage in variant.stages):
            for step in (step for config in stage.configs for step in stage.steps(config)):
                if isinstance(step, Launch):
                    found.setdefault(signature(step), step)
    return list(found.values())
