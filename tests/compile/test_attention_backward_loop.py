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


def compiled(kernel, **options) -> tilewright.compiler.CompiledKernel:
    """The kernel for heads of 128, with blocks of 64 rows and 128 columns; `options` are constants and options."""
    constants = {"D": 128, "BM": 64, "BN": 128, "CAUSAL": False, "WS": False} | {n: v for n, v in options.items() if n.isupper()}
    names = kernel.arg_names
    types = {**dict.fromkeys(("Q", "K", "V", "DO", "DK", "DV"), "*bf16"), **dict.fromkeys(("DQ", "LSE", "DELTA"), "*fp32"), "sm": "fp32"}
    signature = {name: "constexpr" if name in constants else types.get(name, "i32") for name in names}
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in (*types, "H", "S") if name != "sm"}
    source = tilewright.compiler.ASTSource(kernel, signature, constants, attrs)
    return tilewright.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8, "num_stages": 2})


def test_products_run_beside_the_work_on_others(kernel):
    """With roles: no spills, no serialized products, addresses in uniform registers; each wait but the last leaves a product in flight."""
    made = compiled(kernel, WS=True)
    assert made.n_spills == 0 and not made.metadata.ptxas_warnings
    ptx = made.asm["ptx"]
    assert ptx.count("wgmma.mma_async") == 32
    loop = ptx[ptx.index("wgmma.mma_async") : ptx.rindex("wgmma.mma_async")]
    assert re.findall(r"wgmma.wait_group.sync.aligned (\d);", loop) == ["1", "1"]
    assert loop.count("cp.reduce.async.bulk") == 0 and ptx.count("cp.reduce.async.bulk") == 2
    assert "elect.sync" in ptx


@pytest.mark.parametrize("causal", [False, True])
def test_first_product_is_early(kernel, causal):
    """Without roles the next iteration's scores run while ds is computed, dv and dk while dq is stored; dp runs beside the exponentials.
    All blocks and vectors come by TMA, and two barriers are left in an iteration: ds is there; its readers are done."""
    made = compiled(kernel, CAUSAL=causal)
    assert made.n_spills == 0 and not made.metadata.ptxas_warnings
    ttgir = made.asm["ttgir"]
    assert ttgir.count("tilegpu.late = -1") == 2, "the first one stands in front of the loop"
    body = ttgir[ttgir.index("scf.for") : ttgir.rindex("scf.yield")]
    assert re.findall(r"wgmma_wait num = (\d)", body) == ["1", "2", "0"]
    assert body.count("tilegpu.tma_load") == 4 and "tile.load" not in body
    ptx = made.asm["ptx"]
    loop = ptx[ptx.index("wgmma.commit_group") : ptx.index("st.global") if "st.global" in ptx else len(ptx)]
    assert "ld.global" not in loop and loop.count("cp.async.bulk.shared::cluster.global") == 2
    start = ptx.rindex("$L__BB", 0, ptx.index("ex2.approx"))
    end = ptx.index("cp.reduce.async.bulk")
    assert len(re.findall(r"barrier\.sync|bar\.sync", ptx[start:end])) <= 2
