"""Whether programs that reduce rows should run one after the other in a CTA: the cost model of `tile-loop-programs` for norms.

A program loads a row, reduces it, and scales it by weights that are the same in every program. If a multiprocessor holds three of them
or more, some load while others reduce, and the weights come from the L1 cache. Where registers leave room for two or one, memory waits
for the reductions. Then the weights may as well stay in registers, and a loop over programs, which come from a queue
(`passes/program_queue.py`), loads rows ahead into shared memory. On the H200, a layer norm of 12000 columns took 50.5 us instead of 62, one
of 16384 columns 66.8 instead of 73.2, an RMS norm of 12000 columns, with a quarter of the weights, 49.8 instead of 54.0, and of 16384
columns as long as without a loop.
The CTAs of a cluster hold different parts of a row, so those on a multiprocessor share no weights in its L1 cache: for clusters a loop
always pays. Layer norms of 32768 to 262144 columns took 139 to 153 us instead of 175 to 225.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilewright.compiler.multiprocessor import REGISTERS, THREAD_REGISTERS

from .axis_info import element_bytes
from .loop_slice import is_cheap

_FEW_CTAS, _LEAST_ROW = 2, 16
_LEAST_SHARE = 1  # bytes of weights that a program loads for each byte of its row
#: Scalars that are the same in every program that a CTA runs.
_COMMON = frozenset({"tile.num_programs", "tile.cluster_rank"})
#: Registers that a program takes for addresses and masks, but for those of weights on their way: one for each byte of them that meets an
#: element of the row. And what it takes where the weights are there.
_OVERHEAD, _OVERHEAD_IN_LOOP = 20, 16


def rows_pay(ops: list[ir.Operation], num_warps: int, num_ctas: int = 1) -> bool:
    """Whether a loop over programs pays for a kernel of these operations, given in program order; those of one CTA, of clusters of
    `num_ctas`."""
    names = {op.name for op in ops}
    if "tile.reduce" not in names or any(name.startswith(("scf.", "tile.dot")) for name in names):
        return False
    loads = [op for op in ops if op.name == "tile.load" and isinstance(op.results[0].type, ir.RankedTensorType)]
    if len(loads) < 2:
        return False
    varying = varying_values(ops)
    own = [op for op in loads if any(v in varying for v in op.operands)]
    common = [op for op in loads if not any(v in varying for v in op.operands)]
    if not own or _bytes_of(common) < _LEAST_SHARE * _bytes_of(own):
        return False
    threads = 32 * num_warps
    elements = max(prod(op.results[0].type.shape) for op in own)
    row = elements // threads  # a register for each element, computed with as fp32
    weights = _bytes_of(common) // 4 // threads
    fits = row + weights + _OVERHEAD_IN_LOOP <= min(THREAD_REGISTERS, REGISTERS // threads)
    registers = _rounded(row + _OVERHEAD + _bytes_of(common) // elements)
    return fits and row >= _LEAST_ROW and (num_ctas > 1 or REGISTERS // (threads * registers) <= _FEW_CTAS)


def varying_values(ops: list[ir.Operation]) -> set[ir.Value]:
    """Return the values that may differ from program to program, of operations in program order."""
    out: set[ir.Value] = set()
    for op in ops:
        if not (is_cheap(op.name) or op.name in _COMMON) or any(v in out for v in op.operands):
            out.update(op.results)
            out.update(a for region in op.regions for block in region.blocks for a in block.arguments)
    return out


def _bytes_of(loads: list[ir.Operation]) -> int:
    return sum(prod(op.results[0].type.shape) * element_bytes(op.results[0].type.element_type) for op in loads)


def _rounded(registers: int) -> int:
    """Registers are given out by eight."""
    return -(-registers // 8) * 8
