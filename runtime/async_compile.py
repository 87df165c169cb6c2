"""`AsyncCompileMode`: kernels that are launched or warmed up inside it are compiled by an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from typing import Any

active_mode: ContextVar[AsyncCompileMode | None] = ContextVar("tilewright_async_compile", default=None)


class FutureKernel:
    """A kernel that is being compiled. `finalize(kernel)` runs once, in the thread that first asks for the result."""

    def __init__(self, finalize: Callable[[Any], None], future: Future):
        self.finalize = finalize
        self.future = future
        self.kernel: Any = None

    def result(self, ignore_errors: bool = False) -> Any:
        """The compiled kernel; waits for it. With `ignore_errors`, None if it cannot be compiled."""
        if self.kernel is None:
            try:
                kernel = self.future.result()
            except Exception:
                if ignore_errors:
                    return None
                raise
            self.finalize(kernel)
            self.kernel = kernel
        return self.kernel


class AsyncCompileMode:
    """Inside `with AsyncCompileMode(executor):` launches and warm-ups only submit compilations; leaving waits for all of them."""

    def __init__(self, executor: Executor, *, ignore_errors: bool = False):
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.futures: dict[Any, FutureKernel] = {}

    def submit(self, key: Any, compile: Callable[[], Any], finalize: Callable[[Any], None]) -> FutureKernel:
        """Compile in the executor, once per key."""
        if key not in self.futures:
            self.futures[key] = FutureKernel(finalize, self.executor.submit(compile))
        return self.futures[key]

    def __enter__(self) -> AsyncCompileMode:
        if active_mode.get() is not None:
            raise RuntimeError("AsyncCompileMode cannot be nested")
        self._token = active_mode.set(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        active_mode.reset(self._token)
        for future in self.futures.values():
            future.result(self.ignore_errors)
