"""A GPU driver that records launches instead of making them, and a compiler that makes empty kernels: for tests of the runtime."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tilewright.runtime.jit as jit_module
from tilewright.compiler.backends.base import GPUTarget
from tilewright.compiler.kernel import Artefacts, CompiledKernel
from tilewright.runtime import driver
from tilewright.runtime.drivers import libcuda
from tilewright.runtime.drivers.base import GPUDriver
from tilewright.runtime.launch import FORMATS, GenericLauncher


class Tensor:
    """Stands for a tensor on a GPU."""

    def __init__(self, pointer: int = 4096, dtype: str = "float32", device: int = 0):
        self.pointer, self.dtype, self.index = pointer, dtype, device
        self.device = "cpu" if device < 0 else f"cuda:{device}"

    def data_ptr(self) -> int:
        return self.pointer

    def get_device(self) -> int:
        return self.index


class FakeDriver(GPUDriver):
    """One or more GPUs of sm_90 on which every address from 4096 on is accessible."""

    def __init__(self, devices: int = 1):
        self.devices, self.device, self.stream, self.status = devices, 0, 77, 0
        self.launches: list[dict[str, Any]] = []
        self.kernels: dict[int, CompiledKernel] = {}
        self.loads = 0
        self.encoded: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []

    @staticmethod
    def is_active() -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return self.device

    def set_current_device(self, device: int) -> None:
        self.device = device

    def get_current_stream(self, device: int) -> int:
        return self.stream

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        return 9, 0

    def get_active_torch_device(self) -> Any:
        raise NotImplementedError

    def get_benchmarker(self) -> Any:
        return lambda call, quantiles, **_: [call() or 1.0] * len(quantiles)

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        self.loads += 1
        return 1, 1000 + self.loads, 32, 0, 1024

    def is_accessible(self, pointer: int) -> bool:
        return pointer >= 4096

    def resident_programs(self, kernel: CompiledKernel) -> int:
        return 264

    def program_counters(self) -> Callable[[int], int]:
        return lambda stream: 64 * stream

    def launcher_cls(self, kernel: CompiledKernel) -> GenericLauncher:
        self.kernels[kernel.function] = kernel
        return GenericLauncher(kernel, self)

    def encode_tensor_map(self, descriptor: dict[str, Any], base: int, shape: list[int], strides: list[int]) -> bytes:
        self.encoded.append((base, tuple(shape), tuple(strides)))
        return struct.pack("<2Q", base, len(self.encoded)).ljust(128, b"\0")

    def launch_function(self) -> Any:
        return self._launch

    def launch_failed(self, status: int, kernel: Any, frame: tuple, grid: tuple, function: Any) -> None:
        if 0 not in grid:
            raise RuntimeError(f"status {status}")

    def device_and_stream(self, scope: dict[str, Any], tables: dict) -> tuple[list[str], str]:
        scope.update(_tw_tables=tables, _tw_driver=self)
        return ["_tw_table = _tw_tables[_tw_driver.device]"], "_tw_driver.stream"

    def _launch(self, config: Any, function: Any, pointers: Any, extra: None) -> int:
        c = libcuda.LaunchConfig.from_address(ctypes.addressof(config._obj))
        kernel = self.kernels[ctypes.addressof(function._obj)]
        kinds = [kernel.src.signature[name] for name in kernel.src.fn.arg_names]
        leaves = leaf_kinds(tuple(kinds)) + ["*"] * bool(getattr(kernel.metadata, "global_scratch_size", 0))
        behind_maps = len(leaves) + len(getattr(kernel.metadata, "tma_descriptors", ()))
        axes = len(getattr(kernel.metadata, "grid_arguments", ()))
        queue = bool(getattr(kernel.metadata, "program_queue", False))
        table = (ctypes.c_void_p * (behind_maps + axes + queue)).from_address(ctypes.addressof(pointers._obj))
        values = []
        for kind, at in zip(leaves, table):
            code = "Q" if kind.startswith("*") else FORMATS[kind]
            values.append(struct.unpack("<" + code, ctypes.string_at(at, struct.calcsize("<" + code)))[0])
        attributes = (libcuda.LaunchAttribute * c.count).from_address(c.attributes) if c.count else ()
        self.launches.append(
            {
                "values": values,
                "maps": [ctypes.string_at(at, 128) for at in table[len(leaves) : behind_maps]],
                "programs": tuple(struct.unpack("<I", ctypes.string_at(at, 4))[0] for at in table[behind_maps : behind_maps + axes]),
                "counter": struct.unpack("<Q", ctypes.string_at(table[-1], 8))[0] if queue else None,
                "grid": tuple(c.grid),
                "block": tuple(c.block),
                "shared": c.shared,
                "stream": c.stream,
                "attributes": {a.id: tuple(a.value[:3]) for a in attributes},
                "kernel": kernel,
            }
        )
        return self.status if 0 not in tuple(c.grid) else 1


def leaf_kinds(kind: Any) -> list[str]:
    """The types of what is passed for one parameter."""
    if isinstance(kind, tuple):
        return [leaf for part in kind for leaf in leaf_kinds(part)]
    if kind.startswith("tensordesc<"):  # address, shape, strides
        rank = kind.count(",") + 1
        return ["*", *["i32"] * rank, *["i64"] * rank]
    return [] if kind == "constexpr" else [kind]


def fake_compile(
    compiled: list, descriptors: list[dict[str, Any]] | None = None, scratch: int = 0, axes: tuple[int, ...] = (), queue: bool = False
) -> Any:
    """A stand-in for `compile` that appends (source, options) to `compiled`; its kernels take so many bytes of `scratch` memory
    for each CTA, tensor maps for `descriptors`, the sizes of `axes` of the grid, and the counter of a `queue` of programs."""

    def compile(src: Any, target: Any = None, options: dict[str, Any] | None = None) -> CompiledKernel:
        from tilewright.compiler.backends import make_backend

        parsed = make_backend(target).parse_options(options or {})
        compiled.append((src, dict(options or {})))
        metadata = {"hash": src.hash(), "target": target, "name": src.name, "shared": 128, "n_regs": 8, **vars(parsed)}
        metadata["tma_descriptors"] = descriptors if descriptors and parsed.tma else []
        metadata |= {"global_scratch_size": scratch, "global_scratch_align": 128, "grid_arguments": list(axes)}
        metadata |= {"program_queue": queue, "programs_alike": bool(axes)}
        return CompiledKernel(src, metadata, Artefacts({"cubin": b""}), "cubin")

    return compile


def active_gpu(monkeypatch: pytest.MonkeyPatch, descriptors: list[dict[str, Any]] | None = None) -> Iterator[FakeDriver]:
    """What a fixture yields: a `FakeDriver` that is the active one until the test ends; `compiled` records what was compiled for it."""
    fake = FakeDriver()
    driver.set_active(fake)
    fake.compiled = []
    monkeypatch.setattr(jit_module, "compile", fake_compile(fake.compiled, descriptors))
    yield fake
    driver.reset_active()
