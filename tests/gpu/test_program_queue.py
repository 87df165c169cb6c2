"""Norms whose CTAs take rows from a queue, on a real GPU: each row is computed, once for each launch, whatever runs beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CDLL, byref, c_void_p

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.compiler import ASTSource
from tilewright.runtime.device_array import DeviceArray
from tilewright.runtime.drivers import counters, libcuda
from tilewright.runtime.drivers.cuda import CudaDriver

pytestmark = pytest.mark.skipif(not CudaDriver.is_active(), reason="needs an NVIDIA GPU")
torch = pytest.importorskip("torch") if CudaDriver.is_active() else None

COLUMNS = 8000


@triton.jit
def norm(x, o, w, count, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < n
    v = tl.load(x + r * n + c, mask=m, other=0.0)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / n)
    tl.store(count + r, tl.load(count + r) + 1)
    tl.store(o + r * n + c, v * scale * tl.load(w + c, mask=m) + tl.load(w + n + c, mask=m), mask=m)


def launch(rows: int, x, o, w, count, **options):
    return norm[(rows,)](x, o, w, count, COLUMNS, B=8192, num_warps=16, **options)


def arrays(rows: int, device: str = "cuda"):
    x, w = torch.randn(rows, COLUMNS, device=device), torch.randn(2, COLUMNS, device=device)
    expected = x * torch.rsqrt(x.square().mean(1, keepdim=True)) * w[0] + w[1]
    return x, torch.full_like(x, float("nan")), w, torch.zeros(rows, dtype=torch.int32, device=device), expected


def check(o, expected, count, launches: int) -> None:
    torch.cuda.synchronize()
    assert torch.allclose(o, expected, atol=2e-6) and (count == launches).all()


@pytest.mark.parametrize("rows", [1, 131, 133, 1000])
def test_launch_after_launch(rows):
    x, o, w, count, expected = arrays(rows)
    kernels = [launch(rows, x, o, w, count) for _ in range(5)]
    assert "global.inc" in kernels[0].asm["ptx"]
    check(o, expected, count, 5)


def test_launches_of_several_streams_at_a_time():
    streams, work = [torch.cuda.Stream() for _ in range(4)], [arrays(500) for _ in range(4)]
    torch.cuda.synchronize()
    for _ in range(5):
        for stream, (x, o, w, count, _) in zip(streams, work, strict=True):
            with torch.cuda.stream(stream):
                launch(500, x, o, w, count)
    for _, o, _, count, expected in work:
        check(o, expected, count, 5)


def test_two_graphs_at_a_time():
    graphs, work = [torch.cuda.CUDAGraph() for _ in range(2)], [arrays(500) for _ in range(2)]
    launch(500, *arrays(500)[:4])
    torch.cuda.synchronize()
    for graph, (x, o, w, count, _) in zip(graphs, work, strict=True):
        with torch.cuda.graph(graph):
            launch(500, x, o, w, count)
    streams = [torch.cuda.Stream() for _ in graphs]
    for _ in range(4):
        for stream, graph in zip(streams, graphs, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
    for _, o, _, count, expected in work:
        check(o, expected, count, 4)


def test_programmatic_dependent_launches():
    x, o, w, count, expected = arrays(700)
    for _ in range(4):
        launch(700, x, o, w, count, launch_pdl=True)
    check(o, expected, count, 4)


@pytest.mark.usefixtures("two_devices")
def test_two_devices_at_a_time():
    work = [arrays(500, f"cuda:{i % 2}") for i in range(4)]
    for _ in range(5):
        for i, (x, o, w, count, _) in enumerate(work):
            with torch.cuda.device(i % 2):
                launch(500, x, o, w, count)
    for i, (_, o, _, count, expected) in enumerate(work):
        with torch.cuda.device(i % 2):
            check(o, expected, count, 5)


@contextmanager
def another_context() -> Iterator[None]:
    """A context of device 0 beside the one that torch and the driver use, current in this thread. The parameters that cuda.bindings gives
    `cuCtxCreate` depend on its version."""
    library, context = CDLL(libcuda.library_name()), c_void_p()
    assert library.cuCtxCreate_v2(byref(context), 0, 0) == 0
    try:
        yield
    finally:
        assert library.cuCtxPopCurrent_v2(byref(c_void_p())) == 0 and library.cuCtxDestroy_v2(context) == 0


def test_two_contexts_of_a_device():
    """Each needs a word in memory of its own for its default stream."""
    x, o, w, count, expected = arrays(300)
    launch(300, x, o, w, count)
    word = counters.of_context()(0)
    assert word
    signature = {"x": "*fp32", "o": "*fp32", "w": "*fp32", "count": "*i32", "n": "i32", "B": "constexpr"}
    arguments = [x.cpu().numpy(), np.zeros((300, COLUMNS), np.float32), w.cpu().numpy(), np.zeros(300, np.int32)]
    with another_context():
        kernel = triton.compile(ASTSource(norm, signature, {"B": 8192}), options={"num_warps": 16})
        assert "global.inc" in kernel.asm["ptx"]
        given = [DeviceArray(a) for a in arguments]
        for _ in range(3):
            kernel[(300,)](*given, COLUMNS, 8192, stream=0)
        outcome, launches = given[1].numpy(), given[3].numpy()
        assert counters.of_context()(0) not in (0, word)
        del given
    assert np.allclose(outcome, expected.cpu().numpy(), atol=2e-6) and (launches == 3).all()
    launch(300, x, o, w, count)
    check(o, expected, count, 2)
