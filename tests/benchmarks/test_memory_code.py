"""What the memory-bound kernels become, counted in PTX: wide accesses, few barriers and shuffles, nothing through shared memory in vain."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from suite import implementations, memory, norms  # noqa: E402
from suite.cases import Launch, Problem  # noqa: E402

WIDE = r"\S*\.(?:v4\.b32|v2\.b64)"
#: What is counted; "narrow" accesses move less than 16 bytes.
PATTERNS = {
    "loads": rf"ld\.global{WIDE}",
    "narrow loads": rf"ld\.global(?!{WIDE})",
    "stores": rf"st\.global{WIDE}",
    "narrow stores": rf"st\.global(?!{WIDE})",
    "barriers": r"bar\.sync",
    "shuffles": r"shfl\.sync",
    "shared loads": r"ld\.shared",
    "shared stores": r"st\.shared",
    "copies": r"cp\.async\.c[ag]",
    "atomics": r"\b(?:red|atom)\.\S*global",
    "fences": r"fence\.acq_rel",
    "shared atomics": r"red\.shared",
}
F32, BF16 = torch.float32, torch.bfloat16


def reduction(times: int, shared_loads: int) -> dict[str, int]:
    """Of a row over the warps of a CTA: a barrier each time, partial results stored once and read by all."""
    return {"barriers": times, "shuffles": 5 * times, "shared loads": shared_loads, "shared stores": times}


#: kernel -> (its problem, what it becomes in its first configuration); what is not named does not occur
EXPECTED: dict[str, tuple[Callable[[], Problem], dict[str, int]]] = {
    "add": (lambda: memory.add("meta", 4096), {"loads": 4, "stores": 2}),
    "softmax": (lambda: norms.softmax("meta", 8, 4096), {"loads": 2, "stores": 2, **reduction(2, 4)}),
    "softmax of short rows": (lambda: norms.softmax("meta", 64, 128), {"loads": 2, "stores": 2, "shuffles": 16}),
    # the first loop loads ahead: 4 loads for its first iteration and 4 for the next; the second one stores
    "softmax of long rows": (lambda: norms.softmax("meta", 8, 131072), {"loads": 12, "stores": 4, **reduction(2, 4)}),
    "softmax backward": (lambda: norms.softmax_backward("meta", 8, 4096), {"loads": 4, "stores": 2, **reduction(1, 2)}),
    # bf16 in the layout of the fp32 weights: 8 bytes of x where there are 16 of w and b
    "layer norm": (
        lambda: norms.layernorm("meta", 8, 4096),
        {"loads": 8, "narrow loads": 4, "narrow stores": 4, **reduction(2, 4)},
    ),
    "layer norm backward": (
        lambda: norms.layernorm_backward("meta", 8, 1024),
        {"loads": 2, "narrow loads": 6, "stores": 4, "narrow stores": 2} | reduction(2, 2) | {"barriers": 2},
    ),
    "rms norm": (lambda: norms.rmsnorm("meta", 8, 4096), {"loads": 4, "stores": 2, "narrow stores": 1, **reduction(1, 2)}),
    "cross entropy": (
        lambda: norms.cross_entropy("meta", 8, 32768),
        {"loads": 12, "narrow loads": 2, "stores": 4, "narrow stores": 1, **reduction(2, 4)},
    ),
    "swiglu": (lambda: memory.swiglu("meta", 8, 8192), {"loads": 2, "stores": 1}),
    "swiglu interleaved": (lambda: memory.swiglu_interleaved("meta", 8, 8192), {"loads": 2, "narrow stores": 2}),
    "rotary": (lambda: memory.rotary("meta", 8, 32, 128), {"loads": 6, "stores": 4}),
    "dropout": (lambda: memory.dropout("meta", 8192, 1), {"loads": 1, "stores": 1}),
    "adam": (lambda: memory.adam("meta", 8192), {"loads": 6, "narrow loads": 2, "stores": 6}),
    # eight slots of 8 KB: 2 copies for each of seven iterations in front of the loop and for one in it, which has no barrier
    "sum of columns": (
        lambda: memory.sum_columns("meta", 8192, 8192),
        {"copies": 16, "stores": 1, "barriers": 2, "shuffles": 8, "shared loads": 10, "shared stores": 4},
    ),
    "argmax": (
        lambda: memory.argmax("meta", 8, 4096),
        {"loads": 8, "narrow stores": 1, "barriers": 1, "shuffles": 10, "shared loads": 2, "shared stores": 2},
    ),
    "cumsum of rows": (
        lambda: memory.cumsum_rows("meta", 8, 4096, F32),
        {"loads": 8, "stores": 8, "barriers": 1, "shuffles": 40, "shared loads": 8, "shared stores": 8},
    ),
    # four columns of eight rows a thread: only their totals are shuffled and exchanged
    "cumsum of columns": (
        lambda: memory.cumsum_columns("meta", 128, 8192),
        {"loads": 8, "stores": 8, "barriers": 1, "shuffles": 8, "shared loads": 4, "shared stores": 4},
    ),
    "transpose": (
        lambda: memory.transpose("meta", 8192, 8192, BF16),
        {"loads": 4, "stores": 4, "barriers": 1, "shared loads": 4, "shared stores": 4},
    ),
    "embedding": (lambda: memory.embedding("meta", 99, 64, 4096), {"loads": 4, "narrow loads": 1, "stores": 4}),
    "embedding backward": (
        lambda: memory.embedding_backward("meta", 99, 64, 4096, F32),
        {"loads": 4, "narrow loads": 1, "barriers": 1, "atomics": 4, "fences": 1},
    ),
    "sort": (lambda: memory.sort("meta", 64, 128), {"loads": 1, "stores": 1, "shuffles": 60}),
    "topk": (lambda: memory.topk("meta", 64, 128, 8), {"loads": 2, "stores": 2, "shuffles": 72}),
    "histogram": (
        lambda: memory.histogram("meta", 1 << 20, 256),
        {"loads": 2, "barriers": 4, "shared loads": 2, "shared stores": 2, "shared atomics": 16, "atomics": 2, "fences": 1},
    ),
    "quantize fp8": (lambda: memory.quantize_fp8("meta", 1024, 128), {"loads": 2, "narrow stores": 4, "shuffles": 8}),
    "dequantize fp8": (lambda: memory.dequantize_fp8("meta", 1024, 128), {"narrow loads": 4, "stores": 2}),
}


def ptx_of(problem: Problem) -> str:
    """The code of the problem's kernel in its first configuration."""
    (stage,) = problem.variants[0].stages
    (launch,) = (step for step in stage.steps(stage.configs[0]) if isinstance(step, Launch))
    with implementations.no_gpu("tilewright"):
        return implementations.compile_launch(launch, "tilewright").asm["ptx"]


@pytest.mark.parametrize("name", EXPECTED)
def test_instructions(name: str) -> None:
    build, expected = EXPECTED[name]
    ptx = ptx_of(build())
    found = {kind: number for kind, pattern in PATTERNS.items() if (number := len(re.findall(pattern, ptx)))}
    assert found == expected


def test_sorting_takes_minima_and_maxima() -> None:
    ptx = ptx_of(memory.sort("meta", 64, 128))
    assert not re.search(r"setp\.\S*(gt|lt)\.f32", ptx)
    # 13 exchanges within a thread's four elements, 15 with another lane, of which each takes the lesser or the greater
    assert len(re.findall(r"min\.s32", ptx)) == 13 * 2 + 15 * 4


def test_a_random_number_takes_half_of_the_products() -> None:
    ptx = ptx_of(memory.dropout("meta", 8192, 1))
    assert len(re.findall(r"mul\.wide\.u32", ptx)) > 8 * 12
    assert len(re.findall(r"mul\.lo\.s32", ptx)) <= 8
