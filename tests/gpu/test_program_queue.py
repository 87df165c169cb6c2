"""Norms whose CTAs take rows from a queue, on a real GPU: each row is computed, once for each launch, whatever runs beside it."""

from __future__ import annotations

import pytest

import tilewright as triton
import tilewright.language as tl
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


def arrays(rows: int):
    x, w = torch.randn(rows, COLUMNS, device="cuda"), torch.randn(2, COLUMNS, device="cuda")
    expected = x * torch.rsqrt(x.square().mean(1, keepdim=True)) * w[0] + w[1]
    return x, torch.full_like(x, float("nan")), w, torch.zeros(rows, dtype=torch.int32, device="cuda"), expected


def check(o, expected, count, launches: int) -> None:
    torch.cuda.synchronize()
    assert torch.allclose(o, expected, atol=1e-3) and (count == launches).all()


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
