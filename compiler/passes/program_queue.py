"""A loop over programs that takes them from a queue: the CTAs of a launch count on in memory that they share.

`tile-loop-programs` gives loops of norms the attribute `tile.queue`, and their kernel the argument of that attribute: the address of a
counter that is zero in front of the launch and behind it, or null. The pipeline makes of the loop, whose CTA starts with every
`num_programs`-th program like others,

    while program < programs:
        wait for its row, copy that of a program further on
        ... first reduction
        cell = the program that was asked for in the iteration before          one thread
        ask for another: atom.inc                                              one thread, looked at an iteration later
        ... other reductions, stores
        program, next, … = next, …, cell

Multiprocessors are not equally fast: those of larger GPCs share as much bandwidth. What one of them does not get done others take. An
iteration counts on once, and `atom.inc` starts over behind the last program, so that the counter is zero again when all are done. Where the
argument is null (launches that may run beside others of their stream, or be repeated by a graph) the CTA goes on with every
`num_programs`-th program.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.encoding import buffer_type, with_layout
from tilewright.compiler.layouts import LinearLayout, f2, identity

from .building import Builder, i32_array, i32_attr
from .loop_expansion import Expansion, Plan
from .rings import NE, SLT, compare

#: Unit attribute of a loop over programs that may take them from a queue, and of the pointer argument that is its counter.
QUEUE = "tile.queue"
_REDUCE = "tile.reduce"
_LANES = 32
#: Counts on at $2 where the element's number, $1, is zero and there is a counter; back to zero behind $3.
COUNT_ON = (
    "{ .reg .pred P; setp.eq.u32 P, $1, 0; setp.ne.and.u64 P, $2, 0, P; mov.b32 $0, 0; @P atom.relaxed.gpu.global.inc.u32 $0, [$2], $3; }"
)


def takes_from_queue(loop: Loop, plan: Plan) -> bool:
    """Whether the expansion of a loop can take programs from a queue: its threads meet in the loop, and only copies run ahead."""
    simple = not plan.delayed and not plan.lag and all(not c.by_tma and not c.addresses(loop).loads for c in plan.copies)
    return QUEUE in loop.op.attributes and simple and not len(loop.op.results) and _REDUCE in loop.names


class _Queue:
    """What a CTA asks for programs with: values with an element for each thread, of which the first one does it, and the `cell`, through
    which the other threads get what it was told. `turns`: programs of each CTA that are known without asking."""

    def __init__(self, build: Builder, loop: Loop, turns: int):
        context, i32 = loop.op.context, loop.iv.type
        self.i32, i1, i64 = i32, *(ir.IntegerType.get_signless(bits, context) for bits in (1, 64))
        warps = ir.IntegerAttr(_enclosing(loop.op, "builtin.module").attributes["tilegpu.num_warps"]).value
        threads, lanes, others = _LANES * warps, _LANES.bit_length() - 1, warps.bit_length() - 1
        each = LinearLayout.from_columns(
            {"register": (), "lane": f2.identity(lanes), "warp": tuple(_LANES << i for i in range(others)), "block": ()}, (threads,)
        )
        copies = LinearLayout.from_columns({"register": (), "lane": (0,) * lanes, "warp": (0,) * others, "block": ()}, (1,))
        self.numbers, self.flags, self.addresses = (with_layout(ir.RankedTensorType.get([threads], t), each) for t in (i32, i1, i64))
        self.one = with_layout(ir.RankedTensorType.get([1], i32), copies)
        self.cell = build.value("tilegpu.local_alloc", buffer_type(identity((threads,)), i32), [])
        self.thread = build.value("tile.range", self.numbers, [], {"start": i32_attr(0, context), "end": i32_attr(threads, context)})
        counter = build.value("tile.ptr_to_int", i64, [_counter_of(loop.op)])
        self.exists = build.splat(compare(build, NE, counter, build.integer(i64, 0)), self.flags)
        self.counter = build.splat(counter, self.addresses)
        self.last = build.splat(build.binary("arith.subi", loop.upper, build.i32(1)), self.numbers)
        self.known = build.splat(build.binary("arith.muli", loop.step, build.i32(turns)), self.numbers)

    def ask(self, build: Builder) -> ir.Value:
        """Count on; return how many programs were asked for before, which takes a microsecond to arrive."""
        context = self.i32.context
        text, constraints = (ir.StringAttr.get(t, context) for t in (COUNT_ON, "=&r,r,l,r"))
        attributes = {"asm_string": text, "constraints": constraints, "pack": i32_attr(1, context)}
        return build.value("tile.inline_asm", self.numbers, [self.thread, self.counter, self.last], attributes)

    def pass_on(self, build: Builder, asked: ir.Value, turn: ir.Value) -> None:
        """Write the program that was `asked` for to the cell, or, without a counter, that of this `turn`."""
        counted = build.binary("arith.addi", self.known, asked)
        program = build.value("arith.select", self.numbers, [self.exists, counted, build.splat(turn, self.numbers)])
        build.op("tilegpu.local_store", [], [program, self.cell])

    def receive(self, build: Builder) -> ir.Value:
        """Read the cell."""
        offsets = {"offsets": i32_array([0], self.i32.context)}
        first = build.value("tilegpu.view", buffer_type(identity((1,)), self.i32), [self.cell], offsets)
        return build.value("tile.unsplat", self.i32, [build.value("tilegpu.local_load", self.one, [first])])


class QueuedExpansion(Expansion):
    """The rewriting of a loop whose programs come from a queue. The loop carries the `programs` that are known, this one first and last
    the one whose row is copied next, then the one of the next turn, and what was `asked` for."""

    def make_loop(self, build: Builder, types: list[ir.Type], inits: list[ir.Value]) -> tuple[ir.Operation, ir.Block, list[ir.Value]]:
        loop = self.loop
        programs = [loop.lower]
        for _ in range(self.distance + 1):
            programs.append(build.binary("arith.addi", programs[-1], loop.step))
        self.queue = _Queue(build, loop, len(programs))
        # As if the counter had said so: then the first that is passed on is the program of the next turn.
        asked = build.splat(build.binary("arith.subi", loop.lower, loop.step), self.queue.numbers)
        types = [*(p.type for p in programs), asked.type, *types]
        attributes = {name: loop.op.attributes[name] for name in loop.op.attributes}
        new = build.op("scf.while", types, [*programs, asked, *inits], attributes, regions=2)
        locations = [loop.op.location] * len(types)
        head, body = (region.blocks.append(*types, arg_locs=locations) for region in new.regions)
        build = Builder(ir.InsertionPoint(head), loop.op.location)
        build.op("scf.condition", [], [compare(build, SLT, head.arguments[0], loop.upper), *head.arguments])
        *self.programs, self.turn, self.asked = body.arguments[: len(programs) + 1]
        return new, body, [self.programs[0], *body.arguments[len(programs) + 1 :]]

    def iteration_ahead(self, build: Builder, iv: ir.Value, delay: int) -> tuple[ir.Value, ir.Value]:
        self.asking = self.queue.ask(build)
        return self.programs[-1], compare(build, SLT, self.programs[-1], self.loop.upper)

    def behind(self, build: Builder, position: int) -> None:
        if position == self.loop.names.index(_REDUCE):
            self.queue.pass_on(build, self.asked, self.turn)

    def carried_on(self, build: Builder) -> list[ir.Value]:
        turn = build.binary("arith.addi", self.turn, self.loop.step)
        return [*self.programs[1:], self.queue.receive(build), turn, self.asking]


def _enclosing(op: ir.Operation, name: str) -> ir.Operation:
    while op.name != name:
        op = op.parent.operation
    return op


def _counter_of(op: ir.Operation) -> ir.Value:
    """The argument of the kernel that is the counter."""
    function = _enclosing(op, "func.func")
    facts = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    return function.regions[0].blocks[0].arguments[next(i for i, known in enumerate(facts) if QUEUE in known)]
