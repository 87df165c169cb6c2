"""Launching on a real GPU: values of every argument type, streams, devices, graphs, errors. Skipped without one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import knobs
from tilewright.errors import OutOfResources
from tilewright.runtime.drivers.cuda import CudaDriver
from tilewright.tools.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.skipif(not CudaDriver.is_active(), reason="needs an NVIDIA GPU")
torch = pytest.importorskip("torch") if CudaDriver.is_active() else None


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def fill(o, value, B: tl.constexpr):
    tl.store(o + tl.arange(0, B), value)


@triton.jit
def fill_typed(o, a: tl.int64, b: tl.float16, c: tl.bfloat16, d: tl.uint8, e: tl.float64):
    tl.store(o, a.to(tl.float64))
    tl.store(o + 1, b.to(tl.float64))
    tl.store(o + 2, c.to(tl.float64))
    tl.store(o + 3, d.to(tl.float64))
    tl.store(o + 4, e)


@triton.jit
def copy_block(source, target):
    target.store([0, 0], source.load([0, 0]))


@triton.jit
def programs(o):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(o + (z * tl.num_programs(1) + y) * tl.num_programs(0) + x, x + 10 * y + 100 * z)


@triton.jit
def spin(o, n):
    total = 0.0
    for i in range(n):
        total += tl.sqrt(i.to(tl.float32))
    tl.store(o, total)


@pytest.fixture
def empty_cache(tmp_path):
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        yield tmp_path


def data(n: int, device: str = "cuda"):
    return torch.randn(n, device=device), torch.randn(n, device=device), torch.full((n,), float("nan"), device=device)


@pytest.mark.parametrize("n", [1, 15, 16, 1000, 4096])
def test_every_specialization_of_a_length(n):
    for _ in range(3):
        x, y, o = data(n)
        add[(triton.cdiv(n, 256),)](x, y, o, n, B=256)
        assert torch.equal(o, x + y)


def test_unaligned_pointers():
    x, y, o = (t[1:] for t in data(1025))
    for _ in range(2):
        add[lambda meta: (triton.cdiv(1024, meta["B"]),)](x, y, o, 1024, B=128)
        assert torch.equal(o, x + y)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(5, "int32"), (1, "int32"), (-3, "int32"), (2**40, "int64"), (2**63 + 5, "uint64"), (2.5, "float32"), (True, "bool"), (False, "bool")],
)
def test_scalars(value, dtype):
    o = torch.zeros(16, device="cuda", dtype=getattr(torch, dtype))
    for _ in range(2):
        fill[(1,)](o, value, B=16)
        assert (o.cpu().numpy() == np.asarray(value, dtype=dtype)).all()


def test_annotated_scalars():
    o = torch.zeros(5, device="cuda", dtype=torch.float64)
    for _ in range(2):
        fill_typed[(1,)](o, 1, 1.5, 3.140625, 200, 0.1)
        assert o.tolist() == [1.0, 1.5, 3.140625, 200.0, 0.1]


@pytest.mark.parametrize("grid", [(3,), (3, 2), (3, 2, 4)])
def test_grids(grid):
    full = (*grid, 1, 1)[:3]
    o = torch.full((full[0] * full[1] * full[2],), -1, device="cuda", dtype=torch.int32)
    programs[grid](o)
    z, y, x = np.indices(full[::-1])
    assert (o.cpu().numpy() == (x + 10 * y + 100 * z).ravel()).all()


def test_an_empty_grid():
    x, y, o = data(16)
    for _ in range(2):
        add[(0,)](x, y, o, 16, B=16)
        add[(4, 0)](x, y, o, 16, B=16)
    torch.cuda.synchronize()
    assert o.isnan().all()


def test_too_large_a_grid_says_so():
    x, y, o = data(16)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"Triton Error \[CUDA\].*launch of add, grid \(1, 70000, 1\)"):
            add[(1, 70000)](x, y, o, 16, B=16)
    add[(1,)](x, y, o, 16, B=16)
    assert torch.equal(o, x + y)


def test_the_current_stream_is_used():
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    slow, x, y, o = torch.zeros(1, device="cuda"), *data(1024)
    spin[(1,)](slow, 10)
    add[(4,)](x, y, o, 1024, B=256)
    torch.cuda.synchronize()
    o.fill_(float("nan"))
    torch.cuda.synchronize()
    with torch.cuda.stream(a):
        spin[(1,)](slow, 20_000_000)
    with torch.cuda.stream(b):
        add[(4,)](x, y, o, 1024, B=256)
    b.synchronize()
    assert not a.query(), "the launch on one stream waited for the other"
    assert torch.equal(o, x + y)


def test_cuda_graphs_capture_launches():
    x, y, o = data(1024)
    add[(4,)](x, y, o, 1024, B=256)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            add[(4,)](x, y, o, 1024, B=256)
            add[(4,)](o, y, x, 1024, B=256)
    expected_x = x.clone()
    for _ in range(3):
        expected_x = expected_x + y + y
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(x, expected_x)


def test_threads():
    results = []

    def work(n: int) -> None:
        x, y, o = data(n)
        for _ in range(50):
            add[(triton.cdiv(n, 256),)](x, y, o, n, B=256)
        torch.cuda.synchronize()
        results.append(torch.equal(o, x + y))

    threads = [threading.Thread(target=work, args=(1000 + i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8


needs_two = pytest.mark.usefixtures("two_devices")


def add_on(device: int, times: int = 1) -> bool:
    with torch.cuda.device(device):
        x, y, o = data(1000, f"cuda:{device}")
        for _ in range(times):
            add[(4,)](x, y, o, 1000, B=256)
        torch.cuda.synchronize()
        return torch.equal(o, x + y)


@needs_two
def test_several_devices():
    assert all(add_on(device) for device in (0, 1, 0, 1))


@needs_two
def test_a_thread_for_each_device():
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda i: add_on(i % 2, times=20), range(16)))


@needs_two
def test_descriptors_on_the_second_device():
    with torch.cuda.device(1):
        x = torch.randn(64, 64, device="cuda:1")
        o = torch.empty_like(x)
        copy_block[(1,)](TensorDescriptor.from_tensor(x, [64, 64]), TensorDescriptor.from_tensor(o, [64, 64]))
        torch.cuda.synchronize()
        assert torch.equal(o, x)


@needs_two
def test_streams_of_the_second_device():
    with torch.cuda.device(1):
        x, y, o = data(1000, "cuda:1")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            add[(4,)](x, y, o, 1000, B=256)
        stream.synchronize()
        assert torch.equal(o, x + y)


def test_a_cpu_tensor_is_refused_and_the_gpu_stays_usable():
    x, y, o = data(64)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"argument y: Pointer argument cannot be accessed from Triton \(cpu tensor\?\)"):
            add[(1,)](x, torch.zeros(64), o, 64, B=64)
        add[(1,)](x, y, o, 64, B=64)
    assert torch.equal(o, x + y)


def test_pinned_memory_is_accepted():
    x, _, o = data(64)
    y = torch.randn(64).pin_memory()
    for _ in range(2):
        add[(1,)](x, y, o, 64, B=64)
    torch.testing.assert_close(o.cpu(), x.cpu() + y)


class Interface:
    """An array that offers only `__cuda_array_interface__`."""

    def __init__(self, tensor):
        self.tensor = tensor

    @property
    def __cuda_array_interface__(self):
        return self.tensor.__cuda_array_interface__


class Dlpack:
    """An array that offers only DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@triton.jit
def scale_all(o, inputs, factors, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(inputs[0] + i) * factors[0] + tl.load(inputs[1] + i) * factors[1])


def test_tuples():
    x, y, o = data(64)
    for factors in ((2.0, 3), (2.0, 3), (0.5, 1), (2, 2.5)):
        scale_all[(1,)](o, (x, y), factors, B=64)
        torch.testing.assert_close(o, x * factors[0] + y * factors[1])


def test_all_options():
    x, y, o = data(1024)
    for options in ({"num_warps": 8}, {"maxnreg": 64, "launch_pdl": True}, {"enable_fp_fusion": False, "num_stages": 2}):
        for _ in range(2):
            o.fill_(float("nan"))
            add[(4,)](x, y, o, 1024, B=256, **options)
            assert torch.equal(o, x + y)


@pytest.mark.parametrize("wrap", [Interface, Dlpack])
def test_other_arrays(wrap):
    x, y, o = data(64)
    for _ in range(2):
        add[(1,)](wrap(x), y, wrap(o), 64, B=64)
    assert torch.equal(o, x + y)


def test_arrays_without_torch():
    from tilewright.runtime.device_array import DeviceArray

    x = np.arange(64, dtype=np.float32)
    a, o = DeviceArray(x), DeviceArray(np.zeros_like(x))
    for _ in range(2):
        add[(1,)](a, a, o, 64, B=64)
    assert (o.numpy() == 2 * x).all()


def test_reinterpret():
    x = torch.zeros(16, device="cuda", dtype=torch.int32)
    for _ in range(2):
        fill[(1,)](triton.reinterpret(x, tl.float32), 1.5, B=16)
    assert (x.view(torch.float32) == 1.5).all()


def test_what_a_kernel_needs_is_known(empty_cache):
    x, y, o = data(1024)
    kernel = add[(1,)](x, y, o, 1024, B=1024)
    assert 0 < kernel.n_regs < 256 and kernel.n_spills == 0 and kernel.n_max_threads >= 128
    assert kernel.metadata.num_warps == 4 and kernel.metadata.target.backend == "cuda"
    assert set(kernel.asm) >= {"ttir", "ttgir", "llir", "ptx", "cubin"}
    kernel[(1, 1, 1)](x, y, o, 1024, 1024)
    assert torch.equal(o, x + y)


@triton.jit
def big_dot(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i[:, None] * N + i[None, :]), tl.load(b + i[:, None] * N + i[None, :])
    tl.store(c + i[:, None] * N + i[None, :], tl.dot(x, y))


def test_too_much_shared_memory():
    a = torch.zeros(512, 512, device="cuda", dtype=torch.float16)
    with pytest.raises(OutOfResources, match="shared memory, Required: .*Reducing block sizes or `num_stages` may help"):
        big_dot[(1,)](a, a, torch.zeros(512, 512, device="cuda"), N=512, num_warps=16)


def test_autotuning_measures_on_the_gpu():
    kernel = triton.autotune([triton.Config({"B": b}, num_warps=w) for b, w in ((64, 1), (1024, 4))], key=["n"])(add)
    x, y, o = data(1 << 16)
    kernel[lambda meta: (triton.cdiv(1 << 16, meta["B"]),)](x, y, o, 1 << 16)
    assert torch.equal(o, x + y) and kernel.best_config in kernel.configs and len(kernel.configs_timings) == 2


def test_benchmarks_return_milliseconds():
    from tilewright.testing import do_bench, do_bench_cudagraph

    x, y, o = data(1 << 24)

    def call() -> None:
        add[(1 << 14,)](x, y, o, 1 << 24, B=1024)

    assert 0.01 < do_bench(call) < 10
    low, high = do_bench(call, quantiles=(0.2, 0.8))
    assert low <= high
    assert 0.01 < do_bench_cudagraph(call) < 10


def test_a_second_process_takes_kernels_from_the_cache_without_the_compiler(empty_cache):
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import torch, test_runtime as t
x, y, o = t.data(1000)
t.add[(4,)](x, y, o, 1000, B=256)
assert torch.equal(o, x + y)
print(sorted(m for m in ("mlir", "llvmlite") if m in sys.modules))
"""
    env = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(empty_cache)}
    run = [subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True) for _ in range(2)]
    seen = [done.stdout.splitlines()[-1] for done in run]
    assert seen == ["['llvmlite', 'mlir']", "[]"]
