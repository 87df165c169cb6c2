"""`tilegpu-overlap-programs`: the first products of a program run while the one before it ends.

Before: consumers work on one program after the other (`tile-loop-programs`); a program issues its first products, waits for them, and works
on in a loop that issues later ones late (`delayed_loop`). Behind the last of these it has only elementwise work and stores left, and
between them and the first products of the next program the tensor cores have nothing to do:

    for programs, iter_args(places):
        wait for the blocks of the first products; first products; wait for them; release their blocks          `front`
        while: ...
        last products; wait for them
        the end of the program

After: the loop carries the first products' results, and issues those of the next program in front of the wait for the last ones:

    front
    for programs, iter_args(places, results):
        while: ...
        last products
        if there is a next program, wait for its blocks;  its first products
        wait for the last products
        the end of the program
        wait for the next one's first products; release their blocks

Where no program follows, the products read what is left in the slots, and nothing reads their results: a branch around products in flight
would make ptxas wait for them. `front` runs in all programs or in none, so the branch around it becomes one around the loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilewright.compiler.analysis.loop_slice import PROGRAMS, Loop, is_cheap
from tilewright.compiler.analysis.tree import key
from tilewright.dialects import tilegpu

from .building import Builder, Values, collect, defining, i32_attr, walk
from .registry import register
from .rings import SLT, compare

_WGMMA, _WAIT, _WHILE = "tilegpu.wgmma", "tilegpu.wgmma_wait", "scf.while"
_FULL, _EMPTY = "tilegpu.mbarrier_wait", "tilegpu.mbarrier_arrive"
_TURNS = ("tilegpu.named_barrier_sync", "tilegpu.named_barrier_arrive")
_EFFECTS = (_WGMMA, _WAIT, _FULL, _EMPTY, *_TURNS)
_ALLOC = "tilegpu.local_alloc"
_VIEWS = ("tilegpu.slot", "tilegpu.view")


@register("tilegpu-overlap-programs", only_for=("tile.program_id",))
def overlap_programs(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for op in collect(module, "scf.for"):
        if PROGRAMS in op.attributes and not any(True for result in op.results for _ in result.uses):
            parts = _parts(Loop(op))
            if parts is not None:
                _Rewriting(parts).run()


@dataclass
class _Parts:
    """A loop over programs: the operation around a program's products; `front`, what it does up to the results of the first products, in
    program order; the wait for these, which is in `front`, and the one for the last products."""

    loop: Loop
    branch: ir.Operation
    front: list[ir.Operation]
    wait: ir.Operation
    last_wait: ir.Operation


def _parts(loop: Loop) -> _Parts | None:
    """Read a loop over programs; None if it is built in another way."""
    branches = [op for op in loop.ops if any(inner.name in (_WGMMA, _WHILE) for inner in (op, *walk(op)))]
    if len(branches) != 1 or branches[0].name != "scf.if" or not _is_invariant(loop, branches[0].operands[0]):
        return None
    branch = branches[0]
    loop = Loop(loop.op)
    inner = [o.operation for o in branch.regions[0].blocks[0].operations]
    loops = [i for i, op in enumerate(inner) if op.name == _WHILE]
    if len(loops) != 1:
        return None
    before, behind = inner[: loops[0]], inner[loops[0] + 1 :]
    (waits, last_waits) = ([op for op in part if op.name == _WAIT] for part in (before, behind))
    outer = loop.ops[: loop.position(branch)]
    front = _front(loop, outer, before)
    late = {key(op) for op in (*inner[inner.index(last_waits[0]) :], *loop.ops[loop.position(branch) + 1 :])} if last_waits else set()
    if (
        front is None
        or not _can_lift(loop, branch, front, late)
        or len(waits) != 1
        or len(last_waits) != 1
        or any(_number(op) for op in (*waits, *last_waits))
    ):
        return None
    return _Parts(loop, branch, front, waits[0], last_waits[0])


def _front(loop: Loop, outer: list[ir.Operation], before: list[ir.Operation]) -> list[ir.Operation] | None:
    """Return what a program does up to the results of its first products: waits for blocks and what is `before` its loop, with what these
    are made of. None if that depends on the program, or if two programs would need more slots than there are."""
    effects = {key(op) for op in outer if op.name == _FULL} | {key(op) for op in before if op.name in _EFFECTS}
    needed, pending = set(effects), [op for op in (*outer, *before) if key(op) in effects]
    inside = {key(op) for op in (*outer, *before)}
    while pending:
        for value in pending.pop().operands:
            op = defining(value)
            if value == loop.iv:
                return None
            if op is not None and key(op) in inside and key(op) not in needed:
                needed.add(key(op))
                pending.append(op)
    front = [op for op in (*outer, *before) if key(op) in needed]
    for op in front:
        if key(op) not in effects and op.name not in _VIEWS and not is_cheap(op.name):
            return None
        if op.name in (_FULL, _EMPTY) and len(op.operands) != (2 if op.name == _FULL else 1):
            return None
    rings = [defining(op.operands[0]) for op in front if op.name == _FULL]
    if any(ring is None or ring.name != "tilegpu.slot" or tilegpu.buffer_info(ring.operands[0].type)[3] < 2 for ring in rings):
        return None
    return front


def _can_lift(loop: Loop, branch: ir.Operation, front: list[ir.Operation], late: set[int]) -> bool:
    """Whether what the next program's `front` reads of this one is made by cheap operations alone where these are `late`."""
    read = {i for op in front for v in op.operands if (i := loop.carried_index(v)) is not None}
    pending = [loop.yields[i] for i in read]
    results = dict(zip(branch.results, list(branch.regions[0].blocks[0].operations)[-1].operands, strict=True))
    while pending:
        value = pending.pop()
        value = results.get(value, value)
        op = defining(value)
        if op is not None and key(op) in late:
            if not is_cheap(op.name):
                return False
            pending += op.operands
    return True


def _is_invariant(loop: Loop, value: ir.Value) -> bool:
    """Whether a value is the same in all programs, by one operation at most; that moves in front of the loop."""
    position = loop.definition(value)
    if position is None:
        return loop.is_outside(value)
    op = loop.ops[position]
    if not is_cheap(op.name) or not all(loop.is_outside(v) for v in op.operands):
        return False
    op.move_before(loop.op)
    return True


def _number(wait: ir.Operation) -> int:
    return ir.IntegerAttr(wait.attributes["num"]).value


class _Rewriting:
    """The rewriting of one loop."""

    def __init__(self, parts: _Parts):
        self.parts = parts
        self.context = parts.loop.op.context

    def run(self) -> None:
        """Do it: two loops, of which the one without products is as it was."""
        parts, loop = self.parts, self.parts.loop
        outer = Builder.before(loop.op)
        for op in loop.ops:
            if op.name == _ALLOC and not len(op.operands):
                op.move_before(loop.op)  # both loops use it
        loop = parts.loop = Loop(loop.op)
        choice = outer.op("scf.if", [], [parts.branch.operands[0]], regions=2)
        with_products, without = (Builder(ir.InsertionPoint(region.blocks.append()), loop.op.location) for region in choice.regions)
        self._keep_without(without)
        self._pipeline(with_products)
        for build in (with_products, without):
            build.op("scf.yield", [], [])
        loop.op.erase()

    def _keep_without(self, build: Builder) -> None:
        """Copy the loop for programs that have no products."""
        position = self.parts.loop.position(self.parts.branch)
        copy = self.parts.loop.op.clone(ip=build.ip)
        branch = copy.regions[0].blocks[0].operations[position].operation
        i1 = ir.IntegerType.get_signless(1, self.context)
        branch.operands[0] = Builder.before(copy).integer(i1, 0)

    def _pipeline(self, build: Builder) -> None:
        """Build the loop that carries the first products' results."""
        parts, loop = self.parts, self.parts.loop
        any_ = compare(build, SLT, loop.lower, loop.upper)
        values: Values = dict(zip(loop.args, loop.inits, strict=True))
        self._issue(build, values, any_)
        first = self._results(build, values, any_)
        inits = [*loop.inits, *first]
        attributes = {name: loop.op.attributes[name] for name in loop.op.attributes}
        types = [v.type for v in inits]
        new = build.op("scf.for", types, [loop.lower, loop.upper, loop.step, *inits], attributes, regions=1)
        block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[loop.op.location] * (len(types) + 1))
        iv, *args = block.arguments
        yields = self._move_body(block)
        for old, argument in zip((loop.iv, *loop.args, *parts.wait.results), (iv, *args), strict=True):
            old.replace_all_uses_with(argument)
        for arg, value in zip(args, yields, strict=False):
            if arg in self._reads():
                self._lift(value)
        early = Builder.before(parts.last_wait)
        more = compare(early, SLT, early.binary("arith.addi", iv, loop.step), loop.upper)
        values = dict(zip(args, yields, strict=False))
        self._issue(early, values, more)
        issued = sum(op.name == _WGMMA for op in parts.front)
        parts.last_wait.attributes["num"] = i32_attr(issued, self.context)
        end = Builder(ir.InsertionPoint(block), loop.op.location)
        end.op("scf.yield", [], [*yields, *self._results(end, values, more)])
        for op in reversed(parts.front):
            if op.name in _EFFECTS:
                op.erase()

    def _move_body(self, block: ir.Block) -> list[ir.Value]:
        """Move the body to the new loop, without the branch around the products; return the next carried values."""
        branch = self.parts.branch
        for op in self.parts.loop.ops[:-1]:
            if op != branch:
                block.append(op)
                continue
            *inner, end = [o.operation for o in branch.regions[0].blocks[0].operations]
            for result, value in zip(branch.results, list(end.operands), strict=True):
                result.replace_all_uses_with(value)
            for moved in inner:
                block.append(moved)
        return list(self.parts.loop.ops[-1].operands)

    def _reads(self) -> set[ir.Value]:
        return {v for op in self.parts.front for v in op.operands}

    def _lift(self, value: ir.Value) -> None:
        """Make a value in front of the wait for the last products."""
        op = defining(value)
        wait = self.parts.last_wait
        if op is not None and op.block == wait.block and wait.is_before_in_block(op):
            for operand in op.operands:
                self._lift(operand)
            op.move_before(wait)

    def _issue(self, build: Builder, values: Values, condition: ir.Value) -> None:
        """Wait for the first products' blocks under a condition, and issue these."""
        for op in self.parts.front[: self._split()]:
            if op.name == _FULL:
                build.op(_FULL, [], [*(values.get(v, v) for v in op.operands), condition])
            else:
                build.clone(op, values)

    def _results(self, build: Builder, values: Values, condition: ir.Value) -> list[ir.Value]:
        """Wait for the first products, and release their blocks under a condition; return the products."""
        for op in self.parts.front[self._split() :]:
            if op.name == _EMPTY:
                attributes = {name: op.attributes[name] for name in op.attributes}
                build.op(_EMPTY, [], [values.get(op.operands[0], op.operands[0]), condition], attributes)
            else:
                build.clone(op, values)
        return [values[r] for r in self.parts.wait.results]

    def _split(self) -> int:
        return next(i for i, op in enumerate(self.parts.front) if op == self.parts.wait)
