"""The CUDA driver's logic over a `cuda.bindings.driver` that is played by Python: contexts, loading, limits, errors, launches."""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from fake_gpu import Tensor, fake_compile

import tilewright.runtime.jit as jit_module
from tilewright.errors import OutOfResources, ToolchainError
from tilewright.runtime import driver
from tilewright.runtime.drivers import cuda, libcuda
from tilewright.runtime.jit import jit

DEVICE_ATTRIBUTES = {"COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448}
DEVICE_ATTRIBUTES["MULTIPROCESSOR_COUNT"] = 132
FUNCTION_ATTRIBUTES = {
    "NUM_REGS": 40,
    "LOCAL_SIZE_BYTES": 8,
    "MAX_THREADS_PER_BLOCK": 768,
    "SHARED_SIZE_BYTES": 16,
    "REQUIRED_CLUSTER_WIDTH": 0,
}


class FakeBindings:
    """`cuda.bindings.driver` with two devices. `fail` maps a function to the status that it returns."""

    CUdevice_attribute = SimpleNamespace(**{f"CU_DEVICE_ATTRIBUTE_{name}": value for name, value in DEVICE_ATTRIBUTES.items()})
    CUfunction_attribute = SimpleNamespace(
        **{f"CU_FUNC_ATTRIBUTE_{name}": value for name, value in FUNCTION_ATTRIBUTES.items()},
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic",
    )
    CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_DEVICE_POINTER=3)

    def __init__(self) -> None:
        self.context, self.calls, self.fail, self.launched = 0, [], {}, []
        self._launch = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(self.launch)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*args: Any) -> tuple:
            self.calls.append(name)
            status = self.fail.get(name, 0)
            return (status,) if status else self.answer(name, args)

        return call

    @staticmethod
    def CUresult(status: int) -> int:
        if status > 1000:
            raise ValueError(f"{status} is not a valid CUresult")
        return status

    def answer(self, name: str, args: tuple) -> tuple:
        if name == "cuOccupancyMaxActiveBlocksPerMultiprocessor":
            return 0, 65536 // (64 * args[1])
        if name == "cuDeviceGetCount":
            return 0, 2
        if name in ("cuDeviceGet", "cuDeviceGetAttribute", "cuFuncGetAttribute"):
            return 0, args[0]  # an attribute is its own value here
        if name == "cuCtxGetCurrent":
            return 0, self.context
        if name == "cuDevicePrimaryCtxRetain":
            return 0, 500 + args[0]
        if name == "cuCtxSetCurrent":
            self.context = args[0]
        if name == "cuCtxGetDevice":
            return 0, self.context - 500
        if name in ("cuModuleLoadData", "cuModuleGetFunction"):
            return 0, 700 + len(self.calls)
        if name == "cuPointerGetAttribute":
            return (0, args[1]) if args[1] >= 4096 else (1,)
        if name == "cuGetProcAddress":
            return 0, ctypes.cast(self._launch, ctypes.c_void_p).value, 0
        if name in ("cuGetErrorName", "cuGetErrorString"):
            return 0, b"CUDA_ERROR_SOMETHING"
        return (0,)

    def launch(self, config: int, function: int, pointers: int, extra: int | None) -> int:
        if "cuLaunchKernelEx" in self.fail:
            return self.fail["cuLaunchKernelEx"]
        if not self.context:
            return libcuda.NO_CONTEXT[1]
        grid = tuple(libcuda.LaunchConfig.from_address(config).grid)
        self.launched.append((self.context - 500, grid))
        return 1 if 0 in grid else 0


def clear_caches() -> None:
    for cached in (cuda.device_count, cuda._attribute, libcuda.api, libcuda.launch_function):
        cached.cache_clear()


def install(monkeypatch, bindings: Any, version: str = "12.8.0") -> None:
    """Make `bindings` what `from cuda.bindings import driver` gives; None: cuda-bindings is not installed."""
    package, parent = ModuleType("cuda.bindings"), ModuleType("cuda")
    package.__version__, package.driver, parent.bindings = version, bindings, package
    monkeypatch.setitem(sys.modules, "cuda", parent if bindings else None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", package if bindings else None)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", bindings)
    monkeypatch.setattr(libcuda, "library_name", lambda: None)  # ctypes gives the process itself
    monkeypatch.setattr(cuda, "_torch", lambda: None)


@pytest.fixture
def lib(monkeypatch):
    clear_caches()
    fake = FakeBindings()
    install(monkeypatch, fake)
    yield fake
    clear_caches()


@pytest.fixture
def active(lib, monkeypatch):
    monkeypatch.setattr(jit_module, "compile", fake_compile([]))
    driver.set_active(cuda.CudaDriver())
    yield lib
    driver.reset_active()


def test_the_target_is_that_of_the_current_device(lib):
    assert cuda.CudaDriver().get_current_target() == ("cuda", 90, 32)


def test_a_thread_without_a_context_gets_the_primary_one(lib):
    assert cuda.ensure_context() == 0 and lib.context == 500
    cuda.use_device(1)
    assert cuda.ensure_context() == 1


def test_loading_a_kernel(lib):
    module, function, n_regs, n_spills, n_max_threads = cuda.load_binary("k", b"ELF", 60000, 1)
    assert module != function and (n_regs, n_spills, n_max_threads) == (40, 2, 768)
    assert lib.context == 501 and "cuFuncSetAttribute" in lib.calls
    lib.calls.clear()
    cuda.load_binary("k", b"ELF", 40000, 1)
    assert "cuFuncSetAttribute" not in lib.calls


@pytest.mark.parametrize("shared", [300_000, 232_440])
def test_more_shared_memory_than_a_block_may_use(lib, shared):
    with pytest.raises(OutOfResources, match="out of resource: shared memory"):
        cuda.load_binary("k", b"ELF", shared, 0)


def test_more_threads_than_the_registers_allow(active):
    with pytest.raises(OutOfResources, match="out of resource: threads, Required: 1024, Hardware limit: 768"):
        jit(fill)[(1,)](Tensor(), 5, num_warps=32)


def test_errors_say_what_failed_and_what_to_do(active):
    kernel = jit(fill)
    kernel[(1,)](Tensor(), 5)
    active.fail["cuLaunchKernelEx"] = 700
    for _ in range(2):
        with pytest.raises(
            RuntimeError, match=r"Triton Error \[CUDA\]: CUDA_ERROR_SOMETHING.*out of bounds.*compute-sanitizer.*launch of fill"
        ):
            kernel[(1,)](Tensor(), 5)


def test_a_cluster_that_cannot_run_is_named(active):
    kernel = jit(fill)
    active.fail["cuLaunchKernelEx"] = 912
    with pytest.raises(
        RuntimeError, match=r"launch of fill, grid \(3, 1, 1\), clusters of 8 CTAs of 4 warps, 128 bytes of shared memory each"
    ):
        kernel[(3,)](Tensor(), 5, num_ctas=8)


def test_a_failed_launch_names_the_grid_in_full(active):
    """Also where the arguments are known, and the grid is that of the call."""
    kernel = jit(fill)
    kernel[(1,)](Tensor(), 5)
    active.fail["cuLaunchKernelEx"] = 1
    with pytest.raises(RuntimeError, match=r"launch of fill, grid \(3, 70000, 1\)"):
        kernel[(3, 70000)](Tensor(), 5)


def test_a_new_thread_without_a_context_can_launch(active):
    kernel = jit(fill)
    kernel[(1,)](Tensor(), 5)
    active.context = 0
    kernel[(2,)](Tensor(), 5)
    assert active.launched == [(0, (1, 1, 1)), (0, (2, 1, 1))]


def test_an_empty_grid_is_no_error(active):
    kernel = jit(fill)
    for _ in range(3):
        kernel[(1, 0)](Tensor(), 5)
        kernel[(1,)](Tensor(), 5)
    assert [grid for _, grid in active.launched if 0 not in grid] == [(1, 1, 1)] * 3


def test_each_device_has_its_own_module(active):
    kernel = jit(fill)
    for device in (0, 1, 0, 1):
        cuda.use_device(device)
        kernel[(1,)](Tensor(device=device), 5)
    assert [device for device, _ in active.launched] == [0, 1, 0, 1]
    assert active.calls.count("cuModuleLoadData") == 2


def fill(x, n):
    pass


def test_no_driver(monkeypatch):
    clear_caches()
    monkeypatch.setattr(libcuda, "library_name", lambda: "libno-such-driver.so.1")
    with pytest.raises(RuntimeError, match="no NVIDIA driver: libno-such-driver.so.1 cannot be loaded.*TRITON_INTERPRET=1"):
        libcuda.api()
    assert not cuda.CudaDriver.is_active() or "torch" in sys.modules


@pytest.mark.parametrize(
    ("bindings", "version", "message"),
    [
        (None, "", "cuda-bindings is needed to use an NVIDIA GPU.*pip install 'cuda-bindings>=12.8'"),
        (FakeBindings(), "11.8.7", "cuda-bindings 11.8.7 is installed, and 12.8 or newer is needed: pip install 'cuda-bindings>=12.8'"),
    ],
)
def test_cuda_bindings_missing_or_too_old(monkeypatch, bindings, version, message):
    clear_caches()
    install(monkeypatch, bindings, version)
    with pytest.raises(ToolchainError, match=message):
        libcuda.api()


def test_no_visible_gpu(lib):
    lib.fail["cuInit"] = 100
    with pytest.raises(RuntimeError, match="CUDA_ERROR_SOMETHING.*no GPU is visible.*in cuInit"):
        libcuda.api()
    assert not cuda.CudaDriver.is_active() or "torch" in sys.modules


def test_an_error_that_the_bindings_do_not_know(lib):
    with pytest.raises(RuntimeError, match=r"Triton Error \[CUDA\]: error 4321 \(in something\)"):
        libcuda.check(4321, "something")


def test_is_accessible(lib):
    assert libcuda.is_accessible(8192) and not libcuda.is_accessible(16)


def test_how_many_programs_run_at_a_time(active):
    kernel = SimpleNamespace(function=7, metadata=SimpleNamespace(num_warps=8, shared=4096, num_ctas=1))
    assert cuda.CudaDriver().resident_programs(kernel) == 4 * 132
    kernel.metadata.num_warps = 64
    assert cuda.CudaDriver().resident_programs(kernel) == 132


@pytest.mark.parametrize("fitting", [33, 0])
def test_how_many_clusters_run_at_a_time(active, monkeypatch, fitting):
    asked = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_void_p, ctypes.POINTER(libcuda.LaunchConfig))
    def count(result, function, config):
        c = config[0]
        attribute = libcuda.LaunchAttribute.from_address(c.attributes)
        asked.append((function, tuple(c.grid), tuple(c.block), c.shared, c.count, attribute.id, tuple(attribute.value[:3])))
        result[0] = fitting
        return 0

    monkeypatch.setattr(libcuda, "_address", lambda name: ctypes.cast(count, ctypes.c_void_p).value)
    kernel = SimpleNamespace(function=7, metadata=SimpleNamespace(num_warps=8, shared=4096, num_ctas=4))
    assert cuda.CudaDriver().resident_programs(kernel) == max(1, fitting)
    assert asked == [(7, (4, 1, 1), (256, 1, 1), 4096, 1, libcuda.LAUNCH_CLUSTER_DIMENSION, (4, 1, 1))]


def test_device_properties(lib):
    lib.CUdevice_attribute = SimpleNamespace(**vars(FakeBindings.CUdevice_attribute))
    for i, name in enumerate(
        ("MAX_REGISTERS_PER_BLOCK", "MULTIPROCESSOR_COUNT", "WARP_SIZE", "CLOCK_RATE", "MEMORY_CLOCK_RATE", "GLOBAL_MEMORY_BUS_WIDTH")
    ):
        setattr(lib.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}", i)
    properties = cuda.CudaUtils.get_device_properties(0)
    assert properties["max_shared_mem"] == 232448 and properties["warpSize"] == 2 and len(properties) == 7


def test_attribute_structure():
    assert ctypes.sizeof(libcuda.LaunchAttribute) == 72
