"""`tilegpu-limit-registers`: programs that hold rows in registers leave room for each other.

Before: straight-line code on tensors with layouts. After: where a program loads rows, reduces them, and loads no more behind the first
reduction (softmax and its gradient, quantization), the module says how many CTAs a multiprocessor must hold, `tilegpu.min_ctas`: three
or four, where the rows leave room for them without spilling. ptxas is told, and stays within the registers that this leaves to a thread.

While the warps of some programs wait for each other's parts of a reduction, others must load. Left alone, ptxas takes registers as it
likes: 40 in a softmax of 8192 columns with 16 warps, and three CTAs run. With 32 there are four, and on the H200 it took 64.8 us instead of
68.6; an RMS norm of as many columns 65.9 instead of 66.9.
Loads behind a reduction (weights) want registers to arrive in: norms were slower under a limit, but where all threads that a
multiprocessor holds have room for the row and the weights.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.register_pressure import row_words, words_across, words_of
from tilewright.compiler.multiprocessor import REGISTERS, THREADS

from .building import i32_attr, is_public
from .registry import register

#: Module attribute: how many CTAs a multiprocessor must hold.
MIN_CTAS = "tilegpu.min_ctas"
_FEWEST_CTAS, _MOST_CTAS = 3, 4
_OVERHEAD = 12  # registers for addresses, masks, and the exchange of a reduction
_OVERHEAD_BEHIND = 8  # for addresses and masks alone
_REDUCE = "tile.reduce"
_LOADS = frozenset({"tile.load", "tile.descriptor_load"})
_MOVES = frozenset({"tilegpu.convert_layout", "tilegpu.local_load"})


@register("tilegpu-limit-registers", only_for=("tile.reduce",))
def limit_registers(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    threads = 32 * ir.IntegerAttr(module.attributes["tilegpu.num_warps"]).value
    for function in [op.operation for op in module.regions[0].blocks[0].operations]:
        if function.name == "func.func" and len(function.regions[0].blocks) and is_public(function):
            ops = [op.operation for op in function.regions[0].blocks[0].operations]
            if _holds_rows(ops):
                ctas = min(_MOST_CTAS, THREADS // threads, REGISTERS // (threads * (row_words(ops) + _OVERHEAD)))
                late = sum(words_of(op.results[0].type) for op in _behind(ops) if op.name in _LOADS)
                if late:
                    ctas = THREADS // threads if words_across(ops) + late + _OVERHEAD_BEHIND <= REGISTERS // THREADS else 0
                if ctas >= _FEWEST_CTAS:
                    module.attributes[MIN_CTAS] = i32_attr(ctas, module.context)


def _holds_rows(ops: list[ir.Operation]) -> bool:
    """Whether a kernel reduces what it has loaded, and then does nothing but elementwise work and loads."""
    names = [op.name for op in ops]
    if _REDUCE not in names or any(len(op.regions) and op.name != _REDUCE for op in ops):
        return False
    return not _LOADS.isdisjoint(names[: names.index(_REDUCE)]) and _MOVES.isdisjoint(op.name for op in _behind(ops))


def _behind(ops: list[ir.Operation]) -> list[ir.Operation]:
    """What makes tensors behind the first reduction."""
    first = [op.name for op in ops].index(_REDUCE)
    return [op for op in ops[first:] if any(isinstance(r.type, ir.RankedTensorType) for r in op.results)]
