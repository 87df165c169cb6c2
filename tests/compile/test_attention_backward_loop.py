"""Attention's derivative in one pass (`benchmarks/kernels_attention.py`): what its loop is made of."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import tilewright.compiler
from tilewright.backends.compiler import GPUTarget


@pytest.fixture(scope="module")
def kernel():
    """The kernel, for this implementation."""
    path = Path(__file__).parents[2] / "benchmarks" / "kernels_attention.py"
    if not path.exists():
        pytest.skip("the benchmarks are not beside the tests")
    spec = importlib.util.spec_from_file_location("attention_kernels_of_tilewright", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TW_IMPL", "tilewright")
        spec.loader.exec_module(module)
    return module.attention_backward_kernel


def test_products_run_beside_the_work_on_others(kernel):
    """No spills, no serialized products, addresses in uniform registers; each wait but the last leaves a product in flight."""
    constants = {"D": 128, "BM": 64, "BN": 128, "CAUSAL": False, "WS": True}
    names = kernel.arg_names
    types = {**dict.fromkeys(("Q", "K", "V", "DO", "DK", "DV"), "*bf16"), **dict.fromkeys(("DQ", "LSE", "DELTA"), "*fp32"), "sm": "fp32"}
    signature = {name: "constexpr" if name in constants else types.get(name, "i32") for name in names}
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in (*types, "H", "S") if name != "sm"}
    source = tilewright.compiler.ASTSource(kernel, signature, constants, attrs)
    compiled = tilewright.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8, "num_stages": 2})
    assert compiled.n_spills == 0 and not compiled.metadata.ptxas_warnings
    ptx = compiled.asm["ptx"]
    assert ptx.count("wgmma.mma_async") == 32
    loop = ptx[ptx.index("wgmma.mma_async") : ptx.rindex("wgmma.mma_async")]
    assert re.findall(r"wgmma.wait_group.sync.aligned (\d);", loop) == ["1", "1"]
    assert loop.count("cp.reduce.async.bulk") == 0 and ptx.count("cp.reduce.async.bulk") == 4
    assert "elect.sync" in ptx
