"""`tilegpu-early-products`: products that `tilegpu-schedule` wants an iteration early.

Before: `tilegpu-pipeline` has run; a wgmma with `tilegpu.late = -1` stands at the beginning of a loop, with its wait behind it, and in
front of it the wait for the blocks of its iteration (`analysis.early_products`).
After: it is issued for the next iteration where the first product stood that works on its result; the loop carries the result. The first
one stands in front of the loop. That product is issued later if it is only passed on, and so are copies for iterations further ahead, which
stood between the early one and its wait.

    for …:                                     wait for the first blocks; s0 = product
        wait for blocks                        for … iter_args(s = s0):
        s = product; copies; wait for s            d = product; wait for the next blocks
        d = product                     ->         work on s (d runs)
        work on s                                  s' = product
        u = product                                work on d (s' runs)
        work on d                                  q = product; copies; u = product; v = product
        q = product; v = product                   work on q (u and v run)
        work on q                                  yield s'
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.early_products import Early, early_product, reads_written
from tilewright.compiler.analysis.loop_slice import Loop, is_cheap
from tilewright.compiler.analysis.schedule import EARLY, LATE, given
from tilewright.compiler.analysis.wgmma_loops import issues

from .building import Builder, Values, collect, defining
from .registry import register
from .rings import SGT, SLT, compare

_SLOT, _WAIT = "tilegpu.slot", "tilegpu.mbarrier_wait"
#: What the copies for later iterations consist of, besides arithmetic.
_COPIES = frozenset({_SLOT, "tilegpu.mbarrier_expect", "tilegpu.tma_load"})


@register("tilegpu-early-products", only_for=("scf.for", "tilegpu.wgmma"))
def early_products(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for op in collect(module, "scf.for"):
        loop = Loop(op)
        if any(name == "tilegpu.wgmma" and given(loop.ops[p], LATE) == EARLY for p, name in enumerate(loop.names)):
            early = early_product(loop, _is_slot)
            if early is not None:
                _Advance(loop, early).run()


def _is_slot(buffer: ir.Value) -> bool:
    op = defining(buffer)
    return op is not None and op.name == _SLOT


class _Advance:
    """The rewriting of one loop."""

    def __init__(self, loop: Loop, early: Early):
        self.loop = loop
        self.early = early
        self.waits = [p for p in range(early.issue) if loop.names[p] == _WAIT]
        roots = [v for p in (early.issue, *self.waits) for v in loop.ops[p].operands]
        self.moved = sorted({*self._made_of(roots), *self.waits, early.issue, early.wait})
        inside = [v for p in self.moved for v in loop.ops[p].operands]
        self.carried = sorted({i for v in inside if (i := loop.carried_index(v)) is not None})
        self.following = loop.slice_of([loop.yields[i] for i in self.carried])

    def _made_of(self, values: list[ir.Value]) -> set[int]:
        """Return the positions of the operations of the body that values are made of."""
        out: set[int] = set()
        pending = list(values)
        while pending:
            position = self.loop.definition(pending.pop())
            if position is not None and position not in out:
                out.add(position)
                pending += self.loop.ops[position].operands
        return out

    def run(self) -> None:
        """Do it, if what the product needs can be computed ahead; the old loop is gone then."""
        loop, early = self.loop, self.early
        fixed = {early.issue, early.wait, *self.waits}
        if self.following is None or any(not _is_repeatable(loop.names[p]) for p in self.moved if p not in fixed):
            return
        before = Builder.before(loop.op)
        at_start = {loop.iv: loop.lower, **{loop.args[i]: loop.inits[i] for i in self.carried}}
        first = self._issue(before, before, at_start, compare(before, SLT, loop.lower, loop.upper))
        inits = [*loop.inits, first]
        types = [v.type for v in inits]
        attributes = {name: loop.op.attributes[name] for name in loop.op.attributes}
        new = before.op("scf.for", types, [loop.lower, loop.upper, loop.step, *inits], attributes, regions=1)
        block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[loop.op.location] * (len(types) + 1))
        for op in loop.ops[:-1]:
            block.append(op)
        following = self._issue_next()
        self._move_copies(defining(following))
        self._defer_user()
        loop.ops[early.wait].results[0].replace_all_uses_with(block.arguments[-1])
        Builder(ir.InsertionPoint(block), loop.op.location).op("scf.yield", [], [*loop.yields, following])
        for old, argument in zip((loop.iv, *loop.args), block.arguments, strict=False):
            old.replace_all_uses_with(argument)
        for old, result in zip(loop.op.results, new.results, strict=False):
            old.replace_all_uses_with(result)
        for position in (early.wait, early.issue, *self.waits):
            loop.ops[position].erase()
        loop.op.erase()

    def _wait_of(self, product: int) -> int:
        """Return the position of the wait for a product."""
        waits = {self.loop.position(use.owner.operation) for use in self.loop.ops[product].results[0].uses}
        return max(p for p in waits if p is not None)

    def _is_passed_on(self, product: int) -> bool:
        """Whether only the end of the body uses what a product computes."""
        users = [use.owner.operation for use in self.loop.ops[self._wait_of(product)].results[0].uses]
        return all(self.loop.position(user) == len(self.loop.ops) - 1 for user in users)

    def _defer_user(self) -> None:
        """Let the first product that works on the early result stand with a later one that is only passed on as well, if it is that itself:
        the next iteration's product is enough beside the work in the middle of the iteration, and there is more beside the work at its
        end."""
        loop, user = self.loop, self.early.user
        later = [p for p in issues(loop) if p > user and self._is_passed_on(p)]
        if later and self._is_passed_on(user):
            loop.ops[user].move_before(loop.ops[later[0]])
            loop.ops[self._wait_of(user)].move_after(loop.ops[user])

    def _issue_next(self) -> ir.Value:
        """Issue the product of the next iteration; return its result. The wait for its blocks, which is a branch, stands behind what is now
        the first product: ptxas would move the work on the early result in front of parts of that."""
        loop = self.loop
        first = next(loop.ops[p] for p in issues(loop) if p > self.early.issue)
        build, late = Builder.after(first), Builder.after(loop.ops[self._wait_of(self.early.user)])
        values: Values = {}
        for position in sorted(self.following.ops):
            build.clone(loop.ops[position], values)
        values = {loop.args[i]: values.get(loop.yields[i], loop.yields[i]) for i in self.carried}
        remaining = build.binary("arith.subi", loop.upper, loop.iv)
        values[loop.iv] = build.binary("arith.addi", loop.iv, loop.step)
        return self._issue(build, late, values, compare(build, SGT, remaining, loop.step))

    def _move_copies(self, following: ir.Operation) -> None:
        """Issue copies late: behind the next iteration's product (its wait is `following`) or the first one that reads what threads have
        written, where they have met anyway. TMA does one thing after another, and early in an iteration it may be busy with stores."""
        loop = self.loop
        copies = loop.ops[self.early.issue + 1 : self.early.wait]
        if all(op.name in _COPIES or is_cheap(op.name) for op in copies):
            written = (p for p in issues(loop) if p > self.early.user and reads_written(loop, p))
            behind = next((loop.ops[p] for p in written), following)
            for op in copies:
                op.move_after(behind)
                behind = op

    def _issue(self, build: Builder, late: Builder, values: Values, more: ir.Value) -> ir.Value:
        """Wait for the blocks of an iteration, if there is one, and with `late` issue the product; return its result."""
        for position in self.moved:
            op = self.loop.ops[position]
            if position in self.waits:
                build.op(_WAIT, [], [*(values.get(v, v) for v in op.operands), more])
            else:
                (late if position in (self.early.issue, self.early.wait) else build).clone(op, values)
        return values[self.loop.ops[self.early.wait].results[0]]


def _is_repeatable(name: str) -> bool:
    """Whether an operation may be done once more, for another iteration."""
    return is_cheap(name) or name in (_SLOT, "tilegpu.view")
