"""Benchmarks and comparisons: `do_bench`, `perf_report`, `assert_close`, peak numbers of the device."""

from __future__ import annotations

import contextlib
import functools
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .runtime.benchmark import do_bench, do_bench_cudagraph

__all__ = [
    "Benchmark",
    "Mark",
    "assert_close",
    "cuda_graph_without_gc",
    "cuda_memcheck",
    "do_bench",
    "do_bench_cudagraph",
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
    "set_gpu_clock",
]


def _as_numpy(x: Any) -> Any:
    """A NumPy array of a number, an array, or a torch tensor on any device; bfloat16 as float32."""
    import numpy as np

    if hasattr(x, "detach"):
        x = x.detach()
        x = (x.float() if str(x.dtype) == "torch.bfloat16" else x).cpu().numpy()
    return np.asarray(x)


def assert_close(x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """AssertionError unless |x - y| <= atol + rtol * |y| everywhere; by default atol is 1e-2 and rtol 0. NaN equals NaN.

    `atol` and `rtol` may be functions of the larger dtype of the two."""
    import numpy as np

    x, y = _as_numpy(x), _as_numpy(y)
    wide = x.dtype if x.dtype.itemsize >= y.dtype.itemsize else y.dtype
    atol, rtol = (t(wide) if callable(t) else t for t in (atol, rtol))
    np.testing.assert_allclose(
        x, y, atol=1e-2 if atol is None else atol, rtol=0.0 if rtol is None else rtol, err_msg=err_msg, equal_nan=True
    )


class Benchmark:
    """What `perf_report` plots: one line per value of `line_arg`, over the values `x_vals` of the arguments `x_names`.

    `args` are further arguments of the benchmarked function, `plot_name` names the plot and its files."""

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Sequence[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: dict[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: Sequence[tuple[str, str]] | None = None,
    ):
        self.x_names, self.x_vals, self.x_log = list(x_names), list(x_vals), x_log
        self.line_arg, self.line_vals, self.line_names = line_arg, list(line_vals), list(line_names)
        self.y_log, self.styles = y_log, styles
        self.xlabel, self.ylabel, self.plot_name, self.args = xlabel, ylabel, plot_name, args


class Mark:
    """A function with benchmarks; `run` measures them. The function returns a number, or (value, lowest, highest)."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]):
        self.fn = fn
        self.benchmarks = benchmarks

    def _measure(self, bench: Benchmark, **kwargs: Any) -> Any:
        """A pandas table: the arguments of x, then for each line its value and, if the function gives them, its bounds."""
        import pandas

        names = bench.line_names
        rows = []
        for x in bench.x_vals:
            x_args = x if isinstance(x, (tuple, list)) else (x,) * len(bench.x_names)
            if len(x_args) != len(bench.x_names):
                raise ValueError(f"Expected {len(bench.x_names)} values for {bench.x_names}, got {x}")
            results = []
            for line in bench.line_vals:
                point = dict(zip(bench.x_names, x_args)) | {bench.line_arg: line} | bench.args | kwargs
                result = self.fn(**point)
                results.append(result if isinstance(result, (tuple, list)) else (result, None, None))
            rows.append([*x_args, *(column for part in zip(*results) for column in part)])
        columns = [*bench.x_names, *names, *(f"{n}-min" for n in names), *(f"{n}-max" for n in names)]
        return pandas.DataFrame(rows, columns=columns)

    def _plot(self, bench: Benchmark, table: Any, show_plots: bool, save_path: str) -> None:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots()
        x = table[bench.x_names[0]]
        for i, name in enumerate(bench.line_names):
            color, style = bench.styles[i] if bench.styles else (None, None)
            axes.plot(x, table[name], label=name, color=color, ls=style)
            low, high = table[f"{name}-min"], table[f"{name}-max"]
            if not low.isnull().all() and not high.isnull().all():
                axes.fill_between(x, low.astype(float), high.astype(float), alpha=0.15, color=color)
        axes.legend()
        axes.set(xlabel=bench.xlabel or bench.x_names[0], ylabel=bench.ylabel)
        axes.set_xscale("log" if bench.x_log else "linear")
        axes.set_yscale("log" if bench.y_log else "linear")
        if save_path:
            figure.savefig(Path(save_path) / f"{bench.plot_name}.png")
        if show_plots:
            plt.show()
        plt.close(figure)

    def run(self, show_plots: bool = False, print_data: bool = False, save_path: str = "", return_df: bool = False, **kwargs: Any) -> Any:
        """Measure; print tables, show plots, write `<plot_name>.csv`, `.png` and `results.html` to `save_path`, return tables."""
        several = not isinstance(self.benchmarks, Benchmark)
        benchmarks = list(self.benchmarks) if several else [self.benchmarks]
        tables = []
        if save_path:
            Path(save_path).mkdir(parents=True, exist_ok=True)
        for bench in benchmarks:
            table = self._measure(bench, **kwargs)
            if bench.plot_name and (show_plots or save_path):
                self._plot(bench, table, show_plots, save_path)
            table = table[[*bench.x_names, *bench.line_names]]
            if print_data:
                print(f"{bench.plot_name}:")
                print(table.to_string())
            if save_path:
                table.to_csv(Path(save_path) / f"{bench.plot_name}.csv", index=False)
            tables.append(table)
        if save_path:
            images = "".join(f'<image src="{b.plot_name}.png"/>\n' for b in benchmarks if b.plot_name)
            (Path(save_path) / "results.html").write_text(f"<html><body>\n{images}</body></html>\n", encoding="utf-8")
        return (tables if several else tables[0]) if return_df else None


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable], Mark]:
    """Decorator: benchmark a function that returns a time or throughput; `.run(print_data=True)` measures."""
    return lambda fn: Mark(fn, benchmarks)


# ---- peak numbers -------------------------------------------------------------------------------------------------------------


def _properties(device: int | None) -> tuple[dict[str, int], tuple[int, int]]:
    from .runtime.driver import driver

    active = driver.active
    device = active.get_current_device() if device is None else device
    return active.utils.get_device_properties(device), active.get_device_capability(device)


def get_dram_gbps(device: int | None = None) -> float:
    """Peak bandwidth of the device's memory in GB/s."""
    properties, _ = _properties(device)
    return properties["mem_clock_rate"] * properties["mem_bus_width"] * 2 / 1e6 / 8


def _bits(dtype: Any) -> tuple[str, int]:
    """("int" or "float", width) of a dtype of torch, NumPy or the language."""
    name = str(getattr(dtype, "name", dtype)).rsplit(".", 1)[-1]
    kind = "int" if "int" in name else "float"
    if "8" in name.split("_")[0] and "16" not in name:
        return kind, 8
    return kind, next((b for b in (64, 32, 16) if str(b) in name), 32)


# operations of the tensor cores per multiprocessor and cycle for 16-bit floats, by (major, minor)
_TENSOR_16BIT = {(8, 0): 2048, (8, 6): 512, (8, 7): 1024, (8, 9): 1024, (9, 0): 4096, (10, 0): 8192, (10, 3): 8192, (12, 0): 1024}


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """Peak of the device's tensor cores in TFLOP/s for operands of `dtype` (float32: as tf32) at `clock_rate` in kHz."""
    properties, capability = _properties(device)
    if capability not in _TENSOR_16BIT:
        raise ValueError(f"no peak is known for compute capability {capability}; known: {', '.join(map(str, _TENSOR_16BIT))}")
    _, bits = _bits(dtype)
    if bits not in (8, 16, 32):
        raise ValueError(f"tensor cores have no {dtype} product here; 8, 16 and 32 bits are known")
    per_cycle = _TENSOR_16BIT[capability] * 16 // bits
    return properties["multiprocessor_count"] * per_cycle * clock_rate * 1e3 / 1e12


# fused multiply-adds per multiprocessor and cycle on fp32, by compute capability
_SIMD_FP32 = {(8, 0): 64, (8, 6): 128, (8, 7): 128, (8, 9): 128, (9, 0): 128, (10, 0): 128, (10, 3): 128, (12, 0): 128}


def get_max_simd_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """Peak of the device without its tensor cores in TFLOP/s for `dtype` (32- or 16-bit floats) at `clock_rate` in kHz."""
    properties, capability = _properties(device)
    if capability not in _SIMD_FP32:
        raise ValueError(f"no peak is known for compute capability {capability}; known: {', '.join(map(str, _SIMD_FP32))}")
    _, bits = _bits(dtype)
    if bits not in (16, 32):
        raise ValueError(f"no peak is known for {dtype}; float32, float16 and bfloat16 are")
    rate = 256 if bits == 16 and capability == (8, 0) else _SIMD_FP32[capability] * (2 if bits == 16 and capability >= (9, 0) else 1)
    return properties["multiprocessor_count"] * rate * 2 * clock_rate * 1e3 / 1e12


# ---- the machine ----------------------------------------------------------------------------------------------------------------


def nvsmi(attrs: Sequence[str]) -> list[int]:
    """Attributes of GPU 0 as nvidia-smi names them ("clocks.max.sm", ...), as integers."""
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(attrs)}", "--format=csv,noheader,nounits"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [int(field) for field in text.strip().split(",")]


@contextlib.contextmanager
def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215) -> Iterator[tuple[float, float]]:
    """Fix the clocks (MHz) of GPU 0 inside the `with`, which needs root; gives (fp32 TFLOP/s, GB/s) at them."""
    lock = ["nvidia-smi", "-i", "0"]
    subprocess.run([*lock, f"--lock-gpu-clocks={ref_sm_clock},{ref_sm_clock}"], check=True, capture_output=True)
    try:
        subprocess.run([*lock, f"--lock-memory-clocks={ref_mem_clock},{ref_mem_clock}"], check=True, capture_output=True)
        properties, _ = _properties(0)
        yield get_max_simd_tflops("float32", ref_sm_clock * 1e3, 0), ref_mem_clock * properties["mem_bus_width"] * 2 / 1e3 / 8
    finally:
        subprocess.run([*lock, "--reset-gpu-clocks"], check=False, capture_output=True)
        subprocess.run([*lock, "--reset-memory-clocks"], check=False, capture_output=True)


def cuda_memcheck(**target_kwargs: Any) -> Callable[[Callable], Callable]:
    """Decorator of a pytest test: run it under compute-sanitizer when called with all of `target_kwargs`, and fail on its findings."""

    def decorator(test: Callable) -> Callable:
        @functools.wraps(test)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            import os
            import sys

            request = kwargs.get("request")
            wanted = all(kwargs.get(name) == value for name, value in target_kwargs.items())
            if request is None or not wanted or os.environ.get("TILEWRIGHT_UNDER_MEMCHECK"):
                return test(*args, **kwargs)
            command = ["compute-sanitizer", "--error-exitcode", "99", sys.executable, "-m", "pytest", "-q", request.node.nodeid]
            done = subprocess.run(
                command, capture_output=True, text=True, env={**os.environ, "TILEWRIGHT_UNDER_MEMCHECK": "1"}, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return None

        return wrapper

    return decorator


@contextlib.contextmanager
def cuda_graph_without_gc(graph: Any, **kwargs: Any) -> Iterator[None]:
    """`torch.cuda.graph(graph)` with garbage collection held off, which could free memory while the graph is captured."""
    import gc

    import torch

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(graph, **kwargs):
            yield
    finally:
        if was_enabled:
            gc.enable()
