"""Every case of the benchmark suite is right in the interpreter, at small sizes, with one configuration of each stage."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from suite import attention, gemm, implementations, measure  # noqa: E402
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
        errors = [measure.relative_error(output, value) for output, value in zip(problem.outputs, expected)]
        assert max(errors) <= problem.tolerance, (variant.name, errors)
        assert set(range(len(expected))) == {i for stage in variant.stages for i in stage.outputs}


def test_relative_error_sees_nan():
    ones = torch.ones(4)
    assert measure.relative_error(ones, ones) == 0
    assert not measure.relative_error(torch.tensor([1.0, 1, 1, float("nan")]), ones) <= 1


def test_each_kernel_is_compiled_once():
    """Sizes do not matter, only which integers are 1 or multiples of 16."""
    cases = [Case("", "", lambda device, n=n: gemm.plain(device, n, n, n)) for n in (256, 512, 200)]
    of_two, of_three = (implementations.launches(case.build("meta") for case in cases[:n]) for n in (2, 3))
    assert len(of_two) == len(gemm._POINTERS) + len(gemm._DESCRIPTORS) and len(of_three) == 2 * len(of_two)
