"""TMA copies: the instructions in PTX, accepted by ptxas."""

from __future__ import annotations

from dataclasses import dataclass

import ttgir_kernels as K
from lowering_harness import assemble

from tilewright.compiler import layouts as L

MBARRIER = "!tilegpu.buffer<1xi64, #tilegpu.shared<offset = [], rank = 1>>"


@dataclass
class Text:
    """A kernel given as text."""

    body: str
    num_warps: int = 4

    def text(self, arch: int) -> str:
        attributes = f'"tilegpu.target" = "cuda:{arch}", "tilegpu.num_warps" = {self.num_warps} : i32'
        return f"module attributes {{{attributes}}} {{\n{self.body}\n}}\n"


def test_load_and_store_of_two_boxes():
    """A bf16 tile of 128 columns is two boxes of 64 under the 128-byte swizzle."""
    shared = L.nvmma((64, 128), 16)
    kind = K.buffer(shared, "bf16")
    desc = "!tile.desc<64x128xbf16>"
    body = f"""
func.func public @kernel(%d: {desc}, %o: {desc}, %i: i32) {{
  %b = tilegpu.local_alloc : {kind} {{"tilegpu.offset" = 0 : i32}}
  %m = tilegpu.local_alloc : {MBARRIER} {{"tilegpu.offset" = 16384 : i32}}
  %zero = arith.constant 0 : i32
  tilegpu.mbarrier_init %m count = 1 : {MBARRIER}
  tilegpu.barrier
  tilegpu.mbarrier_expect %m bytes = 16384 : {MBARRIER}
  tilegpu.tma_load %d[%i, %zero], %b, %m : {desc}, {kind}, {MBARRIER}
  tilegpu.mbarrier_wait %m, %zero : {MBARRIER}
  tilegpu.tma_store %o[%i, %zero], %b : {desc}, {kind}
  tilegpu.tma_reduce fadd %o[%i, %zero], %b : {desc}, {kind}
  tilegpu.tma_store_wait num = 0 read
  return
}}"""
    assembled = assemble(Text(body))
    assert assembled.count("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes") == 2
    assert assembled.count("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group") == 2
    assert assembled.count("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group") == 2
    assert assembled.count("cp.async.bulk.commit_group") == 2
    assert assembled.count("cp.async.bulk.wait_group.read") == 1
