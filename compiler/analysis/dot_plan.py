"""Which instruction computes a dot, and the layout of its accumulator.

- wgmma (sm_90): whole warpgroups, 64 rows each; bf16, f16, tf32, fp8 and int8; at least 256 bits of K.
- mma.sync (sm_80 and newer): m16n8, or m8n8k4 for f64.
- fma: everything else, on a blocked accumulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from mlir import ir

from tilewright.compiler.encoding import layout_of
from tilewright.compiler.layouts import (
    LinearLayout,
    blocked,
    drop_register_copies,
    mma_accumulator,
    mma_shape,
    spread,
    wgmma_accumulator,
    wgmma_instruction,
)
from tilewright.compiler.multiprocessor import REGISTERS, THREAD_REGISTERS

from .machine import Machine

_FP8 = frozenset({"f8E5M2", "f8E4M3FN"})
_HALF = frozenset({"f16", "bf16"})
# Registers of a multiprocessor; those a thread needs beside an accumulator, which wgmma cannot spill.
_OTHER_REGISTERS = 32


@dataclass(frozen=True)
class DotPlan:
    """How a dot is computed: "wgmma", "mma" or "fma"; its accumulator's layout; the instruction's (m, n, k); warps by dimension of
    the accumulator (mma only)."""

    kind: str
    layout: LinearLayout
    instr: tuple[int, int, int] = (1, 1, 1)
    warps: tuple[int, ...] = ()


def plan_dot(op: ir.Operation, machine: Machine, rows_first: bool = False) -> DotPlan:
    """Choose for a `tile.dot`. `rows_first`: rows of the result should lie within one warp, since a reduction or another dot follows."""
    a, b, acc = (op.operands[i].type for i in range(3))
    precision = str(op.attributes["precision"])
    return _plan(
        tuple(a.shape), tuple(acc.shape), str(a.element_type), str(b.element_type), str(acc.element_type), precision, machine, rows_first
    )


@lru_cache(maxsize=512)
def _plan(
    a_shape: tuple[int, ...], shape: tuple[int, ...], a: str, b: str, acc: str, precision: str, machine: Machine, rows_first: bool
) -> DotPlan:
    bits = _operand_bits(a, b, acc, "tf32" in precision, machine)
    k = a_shape[-1]
    if bits is None:
        return DotPlan("fma", _fma_layout(shape, machine))
    if machine.capability // 10 == 9 and _wgmma_fits(shape, k, bits, machine):
        return DotPlan("wgmma", wgmma_accumulator(shape, machine.num_warps), wgmma_instruction(shape, machine.num_warps, bits))
    instr = mma_shape(bits)
    if k < instr[2]:
        return DotPlan("fma", _fma_layout(shape, machine))
    warps = _mma_warps(shape, machine.num_warps, instr, rows_first)
    return DotPlan("mma", mma_accumulator(shape, warps, 64 if bits == 64 else 32), instr, warps)


def _operand_bits(a: str, b: str, acc: str, tf32: bool, machine: Machine) -> int | None:
    """Return the operand width of the matrix instruction for these types, or None if the target has none."""
    if machine.capability < 80:
        return None
    if a in _HALF and a == b:
        return 16 if acc == "f32" or (acc == a == "f16") else None
    if a in _FP8 and b in _FP8:
        return 8 if acc == "f32" and machine.capability >= 89 else None
    if a == b == "i8":
        return 8 if acc == "i32" else None
    if a == b == acc == "f32":
        return 32 if tf32 else None
    if a == b == acc == "f64":
        return 64
    return None


def _wgmma_fits(shape: tuple[int, ...], k: int, bits: int, machine: Machine) -> bool:
    if len(shape) != 2 or bits == 64 or machine.num_warps % 4 or shape[0] % 64 or k * bits < 256:
        return False
    registers = min(THREAD_REGISTERS, REGISTERS // machine.threads)
    if prod(shape) // machine.threads + _OTHER_REGISTERS > registers:
        return False
    groups = machine.num_warps // 4
    along_n = groups // min(groups, shape[0] // 64)
    return shape[1] // along_n >= 8


def _mma_warps(shape: tuple[int, ...], num_warps: int, instr: tuple[int, int, int], rows_first: bool) -> tuple[int, ...]:
    """Tile the warps: batches first, then M and N so that a warp's tile is as square as the operands' traffic wants it."""
    warps = [1] * len(shape)
    for dim in range(len(shape) - 2):
        warps[dim] = min(num_warps, shape[dim])
        num_warps //= warps[dim]
    m, n = len(shape) - 2, len(shape) - 1
    while num_warps > 1:
        rows, cols = shape[m] // warps[m], shape[n] // warps[n]
        can_m, can_n = rows > instr[0], cols > instr[1]
        along_m = can_m and (rows_first or rows >= cols or not can_n)
        warps[m if along_m or not can_n else n] *= 2
        num_warps //= 2
    return tuple(warps)


def _fma_layout(shape: tuple[int, ...], machine: Machine) -> LinearLayout:
    """Return a blocked accumulator of up to 4x4 elements a thread, which reads 8 operand elements for 16 products."""
    per_thread = max(1, prod(shape) // machine.threads)
    side = 4 if per_thread >= 16 else 2 if per_thread >= 4 else 1
    order = tuple(reversed(range(len(shape))))
    block = tuple(1 if d < len(shape) - 2 else min(side, s) for d, s in enumerate(shape))
    lanes, warps = spread(shape, block, order, machine.num_warps, machine.threads_per_warp)
    return blocked(shape, block, lanes, warps, order)


def plan_of(op: ir.Operation, machine: Machine) -> DotPlan:
    """Return the plan by which the accumulator of a `tile.dot` got its layout. Raises ValueError if it has none of the possible ones."""
    layout = layout_of(op.results[0].type)
    for rows_first in (False, True):
        plan = plan_dot(op, machine, rows_first)
        if plan.layout == layout:
            return plan
    raise ValueError(f"the accumulator of {op} has a layout that belongs to no instruction of {machine.target}")


def fma_operand(accumulator: LinearLayout, k: int, operand: int) -> LinearLayout:
    """Return the layout of operand A ([.., M, K], 0) or B ([.., K, N], 1) of which each thread holds what its part of the accumulator
    needs."""
    rank = accumulator.rank
    lost = rank - 1 if operand == 0 else rank - 2
    shape = tuple(k if d == lost else s for d, s in enumerate(accumulator.out_sizes))
    bases = {}
    for name in accumulator.names:
        bases[name] = [tuple(0 if d == lost else c for d, c in enumerate(basis)) for basis in accumulator.bases[name]]
    along_k = [tuple(1 << i if d == lost else 0 for d in range(rank)) for i in range(k.bit_length() - 1)]
    bases["register"] = along_k + bases["register"]
    return drop_register_copies(LinearLayout(bases, shape))
