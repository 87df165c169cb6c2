"""Timing of kernels on the GPU: `do_bench` with a cold L2, `do_bench_cudagraph` without the cost of launching. Times in milliseconds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from .driver import driver

RETURN_MODES = ("min", "max", "mean", "median", "all")


def quantile(times: Sequence[float], q: float) -> float:
    """The value below which the fraction `q` of the times lies, interpolated between neighbours."""
    if not 0 <= q <= 1:
        raise ValueError(f"Quantiles must be in the range [0, 1], not {q}")
    ordered = sorted(times)
    at = q * (len(ordered) - 1)
    low, high = math.floor(at), math.ceil(at)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def summarize(times: Sequence[float], quantiles: Sequence[float] | None, return_mode: str) -> Any:
    """One number, or a list for several quantiles or for mode "all"."""
    if quantiles is not None:
        found = [quantile(times, q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return list(times)
    return getattr(statistics, return_mode)(times) if return_mode in ("mean", "median") else {"min": min, "max": max}[return_mode](times)


def _check_mode(return_mode: str) -> None:
    if return_mode not in RETURN_MODES:
        raise ValueError(f"return_mode must be one of {', '.join(RETURN_MODES)}, not {return_mode!r}")


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Time `fn` on the GPU in ms, with the L2 overwritten before each run.

    `warmup` and `rep` are ms to spend before and while timing; `grad_to_none` are tensors whose gradients are dropped before each run.
    Returns the mean (or `return_mode`: min, max, mean, median, all), or the `quantiles` asked for.
    """
    _check_mode(return_mode)
    active = driver.active
    device = active.get_device_interface()
    fn()
    device.synchronize()
    cache = active.get_empty_cache_for_benchmark()
    start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
    start.record()
    for _ in range(5):
        active.clear_cache(cache)
        fn()
    end.record()
    device.synchronize()
    estimate = max(start.elapsed_time(end) / 5, 1e-3)
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    events = [(device.Event(enable_timing=True), device.Event(enable_timing=True)) for _ in range(max(1, int(rep / estimate)))]
    for first, last in events:
        for tensor in grad_to_none or ():
            tensor.grad = None
        active.clear_cache(cache)
        first.record()
        fn()
        last.record()
    device.synchronize()
    return summarize([first.elapsed_time(last) for first, last in events], quantiles, return_mode)


def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Time `fn` on the GPU in ms within a CUDA graph of many runs (about `rep` ms), replayed ten times: without the cost of launching."""
    import torch

    _check_mode(return_mode)
    with torch.cuda.stream(torch.cuda.Stream()):
        fn()
        for tensor in grad_to_none or ():
            tensor.detach_()
            tensor.requires_grad_(True)
            tensor.grad = None
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(5):
            fn()
        end.record()
        torch.cuda.synchronize()
        estimate = start.elapsed_time(end) / 5
        runs = 1000 if estimate == 0 else max(1, int(rep / estimate))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(runs):
                for tensor in grad_to_none or ():
                    tensor.grad = None
                fn()
        torch.cuda.synchronize()
        times = []
        for _ in range(10):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) / runs)
    return summarize(times, quantiles, return_mode)
