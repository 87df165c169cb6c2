"""Every case of the benchmark suite is right in the interpreter, at small sizes, with one configuration of each stage."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from suite import attention, gemm, implementations, measure, memory, norms  # noqa: E402
from suite.cases import Case  # noqa: E402

SMALL = {
    "gemm": lambda device: gemm.plain(device, 200, 144, 144),
    "gemm fp8": lambda device: gemm.float8(device, 128, 256, 256),
    "gemm int8": lambda device: gemm.int8(device, 128, 256, 256),
    "linear": lambda device: gemm.linear(device, 16, 128, 256),
    "split-k": lambda device: gemm.split_k(device, 128, 256, 512),
    "grouped": lambda device: gemm.grouped(device, [100, 28, 1, 60], 192, 128),
    "attention": lambda device: attention.forward(device, 1, 2, 256, 64, False),
    "attention, causal": lambda device: attention.forward(device, 1, 1, 256, 128, True),
    "attention, wide heads": lambda device: attention.forward(device, 1, 1, 128, 256, True),
    "attention, grouped heads": lambda device: attention.grouped_heads(device, 2, 4, 2, 128, 64, True),
    "attention backward": lambda device: attention.backward(device, 1, 2, 256, 64, False),
    "attention backward, causal": lambda device: attention.backward(device, 1, 1, 256, 64, True),
    "add": lambda device: memory.add(device, 4096),
    "swiglu": lambda device: memory.swiglu(device, 3, 1500),
    "swiglu interleaved": lambda device: memory.swiglu_interleaved(device, 2, 2048),
    "swiglu backward": lambda device: memory.swiglu_backward(device, 3, 1500),
    "rotary": lambda device: memory.rotary(device, 3, 4, 64),
    "dropout": lambda device: memory.dropout(device, 4096, 1),
    "dropout, 4 a call": lambda device: memory.dropout(device, 8192, 4),
    "adam": lambda device: memory.adam(device, 2048),
    "softmax": lambda device: norms.softmax(device, 3, 1000),
    "softmax of short rows": lambda device: norms.softmax(device, 70, 128),
    "softmax of long rows": lambda device: norms.softmax(device, 2, 70000),
    "softmax backward": lambda device: norms.softmax_backward(device, 3, 1000),
    "layer norm": lambda device: norms.layernorm(device, 3, 1000),
    "layer norm backward": lambda device: norms.layernorm_backward(device, 5, 1000),
    "rms norm": lambda device: norms.rmsnorm(device, 3, 1000),
    "rms norm of a sum": lambda device: norms.rmsnorm_residual(device, 3, 1000),
    "rms norm backward": lambda device: norms.rmsnorm_backward(device, 5, 1000),
    "cross entropy": lambda device: norms.cross_entropy(device, 3, 20000),
    "sum of columns": lambda device: memory.sum_columns(device, 100, 200),
    "sum of rows": lambda device: memory.sum_rows(device, 50, 1500),
    "argmax": lambda device: memory.argmax(device, 5, 1000),
    "cumsum of rows": lambda device: memory.cumsum_rows(device, 3, 1000, torch.float32),
    "cumsum of columns": lambda device: memory.cumsum_columns(device, 128, 200),
    "transpose": lambda device: memory.transpose(device, 130, 70, torch.bfloat16),
    "embedding": lambda device: memory.embedding(device, 50, 9, 5000),
    "embedding backward": lambda device: memory.embedding_backward(device, 50, 9, 5000, torch.float32),
    "gather": lambda device: memory.gather(device, 3, 256),
    "sort": lambda device: memory.sort(device, 16, 128),
    "topk": lambda device: memory.topk(device, 64, 128, 8),
    "histogram": lambda device: memory.histogram(device, 70000, 256),
    "quantize int8": lambda device: memory.quantize_int8(device, 3, 1024),
    "dequantize int8": lambda device: memory.dequantize_int8(device, 3, 1024),
    "quantize fp8": lambda device: memory.quantize_fp8(device, 100, 128),
    "dequantize fp8": lambda device: memory.dequantize_fp8(device, 100, 128),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("place", [0, -1])
def test_case(monkeypatch, name, place):
    """`place`: the first or the last configuration of each stage."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(implementations, "kernels", implementations.load)
    problem = SMALL[name]("cpu")
    expected = problem.reference()
    assert problem.tolerance < 0.05 and len(expected) == len(problem.outputs)
    for variant in problem.variants:
        measure.spoil(problem.outputs)
        for stage in variant.stages:
            measure.steps_call(stage.steps(stage.configs[place]), "tilewright")()
        computed = sorted(i for stage in variant.stages for i in stage.outputs)
        errors = [measure.relative_error(problem.outputs[i], expected[i]) for i in computed]
        assert max(errors) <= problem.tolerance, (variant.name, errors)
        assert len({*computed}) == len(computed) and len(computed) >= len(expected) - 1


def test_relative_error_sees_nan():
    ones = torch.ones(4)
    assert measure.relative_error(ones, ones) == 0
    assert not measure.relative_error(torch.tensor([1.0, 1, 1, float("nan")]), ones) <= 1


def test_each_kernel_is_compiled_once():
    """Sizes do not matter that make as many programs, only which integers are 1 or multiples of 16."""
    cases = [Case("", "", lambda device, n=n: gemm.plain(device, n, n, n)) for n in (4096, 8192, 4104)]
    of_two, of_three = (implementations.launches(case.build("meta") for case in cases[:n]) for n in (2, 3))
    assert len(of_two) == len(gemm._POINTERS) + len(gemm._DESCRIPTORS) and len(of_three) == 2 * len(of_two)
