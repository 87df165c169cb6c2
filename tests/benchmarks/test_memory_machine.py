"""The memory-bound kernels through all passes on the test machine, at small sizes, beside torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import simt  # noqa: E402
from kernel_harness import passes_of  # noqa: E402
from suite import implementations, measure, memory, norms  # noqa: E402
from suite.cases import OPTIONS, Launch  # noqa: E402

from tilewright.compiler.backends import GPUTarget  # noqa: E402
from tilewright.compiler.lowering.lower import lower_to_llvm  # noqa: E402
from tilewright.dialects import context  # noqa: E402

F32, BF16 = torch.float32, torch.bfloat16
TYPES = {F32: "fp32", BF16: "bf16", torch.int32: "i32", torch.int64: "i64", torch.int8: "i8", torch.uint8: "u8"}

#: Sizes are multiples of 16, as the harness takes all integers to be.
SMALL = {
    "add": lambda: memory.add("cpu", 2048),
    "swiglu": lambda: memory.swiglu("cpu", 2, 1504),
    "rotary": lambda: memory.rotary("cpu", 2, 4, 64),
    "dropout": lambda: memory.dropout("cpu", 2048, 1),
    "softmax": lambda: norms.softmax("cpu", 2, 1008),
    "softmax of short rows": lambda: norms.softmax("cpu", 64, 128),
    "softmax of long rows": lambda: norms.softmax("cpu", 1, 70000),
    "layer norm": lambda: norms.layernorm("cpu", 2, 1008),
    "layer norm backward": lambda: norms.layernorm_backward("cpu", 16, 1008),
    "rms norm": lambda: norms.rmsnorm("cpu", 2, 1008),
    "sum of columns": lambda: memory.sum_columns("cpu", 112, 208),
    "sum of rows": lambda: memory.sum_rows("cpu", 48, 1504),
    "argmax": lambda: memory.argmax("cpu", 2, 1008),
    "cumsum of rows": lambda: memory.cumsum_rows("cpu", 2, 1008, F32),
    "cumsum of columns": lambda: memory.cumsum_columns("cpu", 128, 208),
    "transpose": lambda: memory.transpose("cpu", 144, 80, BF16),
    "gather": lambda: memory.gather("cpu", 2, 256),
    "sort": lambda: memory.sort("cpu", 16, 128),
    "topk": lambda: memory.topk("cpu", 64, 128, 8),
    "histogram": lambda: memory.histogram("cpu", 70000, 256),
    "quantize int8": lambda: memory.quantize_int8("cpu", 2, 1024),
}


def run(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile a launch for sm_90 and run all its programs; tensors are changed in place."""
    kernel = getattr(implementations.load(launch.module, "tilewright"), launch.kernel)
    names = kernel.arg_names[: len(launch.arguments)]
    options = {k: v for k, v in launch.keywords.items() if k in OPTIONS}
    constants = {k: v for k, v in launch.keywords.items() if k not in OPTIONS}
    types = {
        n: f"*{TYPES[a.dtype]}" if isinstance(a, torch.Tensor) else "fp32" if isinstance(a, float) else "i32"
        for n, a in zip(names, launch.arguments)
    }
    module, parsed = passes_of(kernel, types, constants, **options)
    lowered = lower_to_llvm(module, GPUTarget("cuda", 90, 32), parsed)
    known = simt.special_register
    grid = (*launch.grid, 1, 1)[:3]

    def special_register(simulator: simt.Simulator, name: str) -> Any:
        register, _, dimension = name.rpartition(".")
        return np.int32(grid["xyz".index(dimension)]) if register.endswith("nctaid") else known(simulator, name)

    monkeypatch.setattr(simt, "special_register", special_register)
    with context():
        machine = simt.Simulator(lowered, 32 * parsed.num_warps)
        for x, y, z in np.ndindex(grid):
            machine.program = (x, y, z)
            machine.launch(launch.kernel, *(in_numpy(a) for a in launch.arguments))


def in_numpy(argument: Any) -> Any:
    """The memory of a tensor as an array, as bytes where NumPy lacks the type."""
    if not isinstance(argument, torch.Tensor):
        return argument
    return argument.view(torch.uint8).numpy() if argument.dtype == BF16 else argument.numpy()


@pytest.mark.parametrize("name", SMALL)
def test_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norms, "PROGRAMS", 3)
    problem = SMALL[name]()
    expected = problem.reference()
    measure.spoil(problem.outputs)
    (stage,) = problem.variants[0].stages
    for step in stage.steps(stage.configs[0]):
        if isinstance(step, Launch):
            run(step, monkeypatch)
        else:
            step()
    errors = [measure.relative_error(output, value) for output, value in zip(problem.outputs, expected)]
    assert max(errors) <= max(problem.tolerance, 1e-6), errors
