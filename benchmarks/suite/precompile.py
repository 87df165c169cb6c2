"""Compiling every kernel of some cases before the GPU is used: processes share the work and fill the caches of both implementations."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed

from .catalogue import CASES
from .implementations import compile_launch, launches, no_gpu, signature

#: (implementation, text of the launch's signature) -> why its kernel does not compile.
Failures = dict[tuple[str, str], str]


def _share(implementation: str, cases: list[int], share: int, of: int) -> Failures:
    """In a process: every `of`-th kernel from number `share` on."""
    failures: Failures = {}
    with no_gpu(implementation):
        for launch in launches(CASES[i].build("meta") for i in cases)[share::of]:
            try:
                compile_launch(launch, implementation)
            except Exception as e:  # noqa: BLE001  (whatever a compiler raises is a line of the report)
                failures[implementation, repr(signature(launch))] = f"{type(e).__name__}: {str(e)[:300]}"
    return failures


def precompile(implementations: list[str], cases: list[int], progress: Callable[[int, int], None], jobs: int | None = None) -> Failures:
    """Compile, and return what fails. `progress` is told of (shares done, shares). A process that dies leaves its share to the run."""
    jobs = jobs or os.cpu_count() or 1
    failures: Failures = {}
    shares = [(implementation, cases, i, 2 * jobs) for i in range(2 * jobs) for implementation in implementations]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(_share, *share) for share in shares]
        for done, future in enumerate(as_completed(futures), 1):
            progress(done, len(shares))
            if future.exception() is None:
                failures |= future.result()
    return failures
