"""`tilegpu-prefetch-loads`: loops without matrix products load one iteration ahead, into registers.

Before: innermost `scf.for` loops that stream through global memory: `tile.load`s at addresses that cheap computations give, whose values
reach no dot; `tilegpu-pipeline` has run.
After: such a loop carries what the loads of its next iteration return:

    values = loads of the first iteration
    for …:
        next = loads for the iteration after, masked off behind the last one
        the body, on values
        yield next

While an iteration reduces, waits at barriers or stores, the loads of the next one are on their way. That takes registers for the loaded
elements; loops that would then leave a multiprocessor fewer than two CTAs or 16 warps stay as they are. Arguments may be the same memory
(in place), so loops that write memory stay as well, unless they ask for stages (`tile.num_stages`) or are over programs.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import GLOBAL_WRITES, PROGRAMS, Loop
from tilewright.compiler.analysis.register_pressure import live_words, words_of
from tilewright.compiler.multiprocessor import REGISTERS

from .building import Builder, collect
from .loop_expansion import Track, masked_load
from .registry import register
from .rings import SGT, compare

_FEWEST_CTAS, _FEWEST_THREADS = 2, 512  # on a multiprocessor
_OVERHEAD = 24  # registers for addresses, masks and the temporary values of reductions
#: Loops with one of these are about something else than streaming, or are pipelined already.
_OTHERS = frozenset(
    {
        "scf.for",
        "scf.while",
        "tile.dot",
        "tilegpu.mma",
        "tilegpu.wgmma",
        "tilegpu.async_copy",
        "tilegpu.tma_load",
        "tilegpu.warp_specialize",
    }
)


@register("tilegpu-prefetch-loads", only_for=("scf.for",))
def prefetch_loads(module: ir.Operation, *, num_warps: int = 4, num_stages: int = 3) -> None:
    """Run on a module; see the file's docstring. `num_stages` 1 asks for no prefetching, of one loop with its attribute
    `tile.num_stages`."""
    budget = REGISTERS // max(_FEWEST_CTAS * 32 * num_warps, _FEWEST_THREADS) - _OVERHEAD
    for op in collect(module, "scf.for"):
        asked = "tile.num_stages" in op.attributes
        stages = ir.IntegerAttr(op.attributes["tile.num_stages"]).value if asked else num_stages
        stays = not asked and PROGRAMS not in op.attributes and collect(op, *GLOBAL_WRITES)
        if stages < 2 or stays or collect(op, *_OTHERS):
            continue
        loop = Loop(op)
        loads = [i for i, name in enumerate(loop.names) if name == "tile.load" and _may_run_ahead(loop, loop.ops[i])]
        if any(isinstance(loop.ops[i].results[0].type, ir.RankedTensorType) for i in loads):
            taken = sum(words_of(loop.ops[i].results[0].type) for i in loads)
            if live_words(loop) + taken <= budget:
                _prefetch(loop, loads)


def _may_run_ahead(loop: Loop, load: ir.Operation) -> bool:
    return "is_volatile" not in load.attributes and loop.slice_of(load.operands) is not None and loop.may_reorder(load)


def _prefetch(loop: Loop, positions: list[int]) -> None:
    """Rewrite a loop; the old one is gone afterwards."""
    old, loads = loop.op, [loop.ops[i] for i in positions]
    track = Track(loop, loop.slice_of([v for load in loads for v in load.operands]))
    build = Builder.before(old)
    more = compare(build, SGT, loop.upper, loop.lower)
    values = track.step(build, loop.lower, {})
    fetched = [masked_load(build, load, values, more) for load in loads]
    inits = [*loop.inits, *track.current, *fetched]
    types = [v.type for v in inits]
    new = build.op(
        "scf.for", types, [loop.lower, loop.upper, loop.step, *inits], {name: old.attributes[name] for name in old.attributes}, regions=1
    )
    block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[old.location] * (len(types) + 1))
    iv, *carried = block.arguments
    arguments, state = carried[: len(loop.inits)], carried[len(loop.inits) :]
    track.current, arrived = state[: len(track.carried)], state[len(track.carried) :]
    build = Builder(ir.InsertionPoint(block), old.location)
    # upper - iv does not overflow inside the loop, iv + step might
    more = compare(build, SGT, build.binary("arith.subi", loop.upper, iv), loop.step)
    values = track.step(build, build.binary("arith.addi", iv, loop.step), {})
    following = [masked_load(build, load, values, more) for load in loads]
    taken = set(positions)
    for i, op in enumerate(loop.ops[:-1]):
        if i not in taken:
            block.append(op)
    build.op("scf.yield", [], [*loop.yields, *track.current, *following])
    for load, value in zip(loads, arrived, strict=True):
        load.results[0].replace_all_uses_with(value)
    loop.iv.replace_all_uses_with(iv)
    for argument, value in zip(loop.args, arguments, strict=True):
        argument.replace_all_uses_with(value)
    for i, result in enumerate(old.results):
        result.replace_all_uses_with(new.results[i])
    old.erase()
