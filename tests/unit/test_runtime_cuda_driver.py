"""The CUDA driver's logic over a library that is played by Python: contexts, loading, limits, errors, launches in new threads."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from fake_gpu import Tensor, fake_compile

import tilewright.runtime.jit as jit_module
from tilewright.errors import OutOfResources
from tilewright.runtime import driver
from tilewright.runtime.drivers import cuda, libcuda
from tilewright.runtime.jit import jit

FUNCTION_ATTRIBUTES = {libcuda.FUNC_NUM_REGS: 40, libcuda.FUNC_LOCAL_SIZE: 8, libcuda.FUNC_MAX_THREADS: 768, libcuda.FUNC_STATIC_SHARED: 16}
DEVICE_ATTRIBUTES = {libcuda.CAPABILITY_MAJOR: 9, libcuda.CAPABILITY_MINOR: 0, libcuda.MAX_SHARED_PER_BLOCK_OPTIN: 232448}


class FakeLibrary:
    """libcuda with two devices. `fail` maps a function to the status that it returns."""

    def __init__(self) -> None:
        self.context, self.calls, self.fail, self.launched = 0, [], {}, []

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*args: Any) -> int:
            self.calls.append(name)
            return self.fail.get(name, 0) or self.answer(name, args)

        return call

    def answer(self, name: str, args: tuple) -> int:
        out = getattr(args[0], "_obj", None) if args else None
        if name == "cuDeviceGetCount":
            out.value = 2
        elif name == "cuDeviceGet":
            out.value = args[1]
        elif name == "cuDeviceGetAttribute":
            out.value = DEVICE_ATTRIBUTES[args[1]]
        elif name == "cuCtxGetCurrent":
            out.value = self.context
        elif name == "cuDevicePrimaryCtxRetain":
            out.value = 500 + args[1].value
        elif name == "cuCtxSetCurrent":
            self.context = args[0].value
        elif name == "cuCtxGetDevice":
            out.value = self.context - 500
        elif name in ("cuModuleLoadData", "cuModuleGetFunction"):
            out.value = 700 + len(self.calls)
        elif name == "cuFuncGetAttribute":
            out.value = FUNCTION_ATTRIBUTES[args[1]]
        elif name == "cuPointerGetAttribute":
            return 0 if args[2] >= 4096 else 1
        elif name == "cuLaunchKernelEx":
            if not self.context:
                return libcuda.NO_CONTEXT[1]
            config = libcuda.LaunchConfig.from_address(args[0].value)
            self.launched.append((self.context - 500, tuple(config.grid)))
            return 1 if 0 in tuple(config.grid) else 0
        elif name in ("cuGetErrorName", "cuGetErrorString"):
            args[1]._obj.value = b"CUDA_ERROR_SOMETHING"
        return 0


@pytest.fixture
def lib(monkeypatch):
    fake = FakeLibrary()
    monkeypatch.setattr(libcuda, "library", lambda: fake)
    monkeypatch.setattr(cuda, "_torch", lambda: None)
    for cached in (cuda.device_count, cuda._attribute):
        cached.cache_clear()
    yield fake
    for cached in (cuda.device_count, cuda._attribute):
        cached.cache_clear()


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
    libcuda.library.cache_clear()
    monkeypatch.setattr(libcuda, "library_name", lambda: "libno-such-driver.so.1")
    with pytest.raises(RuntimeError, match="no NVIDIA driver: libno-such-driver.so.1 cannot be loaded.*TRITON_INTERPRET=1"):
        libcuda.library()
    assert not cuda.CudaDriver.is_active() or "torch" in __import__("sys").modules
    libcuda.library.cache_clear()


def test_is_accessible(lib):
    assert libcuda.is_accessible(8192) and not libcuda.is_accessible(16)


def test_attribute_structure():
    assert ctypes.sizeof(libcuda.LaunchAttribute) == 72
