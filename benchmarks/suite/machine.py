"""What machine it is, and how its clocks and power go while it works: from nvidia-smi."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import statistics
import subprocess
import threading
import time
from typing import Any

_FACTS = ("name", "driver_version", "clocks.max.sm", "clocks.max.mem", "power.limit", "memory.total")
_SAMPLED = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")
_PACKAGES = ("torch", "triton", "tilewright", "llvmlite", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cublas-cu12", "nvidia-cublas")


def _query(names: tuple[str, ...]) -> list[str]:
    return ["nvidia-smi", "--id=0", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits"]


def describe() -> dict[str, Any]:
    """Date, GPU, driver, limits and versions."""
    try:
        line = subprocess.run(_query(_FACTS), capture_output=True, text=True, check=True, timeout=20).stdout.splitlines()[0]
        gpu = dict(zip(_FACTS, (cell.strip() for cell in line.split(","))))
    except (OSError, subprocess.SubprocessError, IndexError):
        gpu = {}
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return {"date": date, "gpu": gpu, "python": platform.python_version(), "versions": versions}


class Sampler:
    """Reads clocks, power and temperature a few times a second until `close`."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, list[float]]] = []
        try:
            self._process = subprocess.Popen(
                [*_query(_SAMPLED), "-lms", "200"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except OSError:
            self._process = None
            return
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._samples.append((time.monotonic(), [float(cell) for cell in line.split(",")]))
            except ValueError:  # "[N/A]"
                continue

    def since(self, begin: float) -> dict[str, float]:
        """Medians of what was sampled from a time of `time.monotonic` on."""
        rows = [values for at, values in self._samples if at >= begin]
        return {name: statistics.median(column) for name, column in zip(_SAMPLED, zip(*rows))} if rows else {}

    def close(self) -> None:
        """Stop sampling."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
