"""`tilegpu-defer-stores`: a consumer stores a tile piece by piece while the first products of its next tile run.

Before: `tilegpu-warp-specialize`, `tilegpu-stage-stores` and `tilegpu-overlap-wgmma` have run. In a role, a loop over tiles holds a loop
that leaves wgmmas in flight from one iteration to the next, and stores behind it, in pieces that each wait for room in shared memory:

    for tile …:                                    for tile … iter_args(done, place):
        acc = if it runs:                              for k … iter_args(acc):
            for k … iter_args(acc):                        wait for blocks
                wait for blocks                            wgmma
                wgmma                                      early in the loop, if there was a tile: store a piece of done at place
                wgmma_wait num = 1, release                wgmma_wait num = 1, release
        wgmma_wait num = 0, release                    wgmma_wait num = 0, release; place' = that of tile
        done = fp_to_fp acc                            if the tile is the last one: for each piece of acc: fp_to_fp, store at place'
        store done at the place of tile                else: done' = fp_to_fp acc

After: as on the right. From the second iteration on, each stores a piece: beside the wgmmas of two iterations, so it keeps no matrix unit
waiting, and holds no block back. What is stored waits in registers, where it must fit beside the accumulators, with the scalars that say
where; the iteration after the last piece computes these for its own tile. If there are fewer iterations, the last one does all that is
left. Where the inner loop does not run, for any tile, another loop stores them all.

Why in pieces: with all of a tile stored behind its successor's first two products, whose blocks were released after that, those of the
fifth came 1,000 cycles too late (H200: 18,400 cycles for a tile of 128x256 with K = 1024, of which the products take 16,384).
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop, is_cheap
from tilewright.compiler.analysis.tree import key
from tilewright.compiler.encoding import layout_of
from tilewright.compiler.layouts import element_count
from tilewright.compiler.multiprocessor import THREAD_REGISTERS

from .building import Builder, Values, collect, defining
from .registry import register
from .rings import EQ, SGE, SGT, SLT, compare
from .start_accumulators import start_from_nothing
from .tile_pieces import pieces_of

#: Registers of a thread for all but the accumulators and the tile before.
_OTHER_REGISTERS = 40
_STORING = frozenset(
    {"tilegpu.slot", "tilegpu.local_store", "tilegpu.fence_async", "tilegpu.tma_store", "tilegpu.tma_reduce", "tilegpu.tma_store_wait"}
)
_SHAPES = frozenset({"tile.reshape", "tile.trans", "tile.split"})


@register("tilegpu-defer-stores", only_for=("tile.descriptor_store", "tile.descriptor_reduce", "tilegpu.tma_store"))
def defer_stores(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for roles in collect(module, "tilegpu.warp_specialize"):
        for tiles in [op for op in collect(roles, "scf.for") if op.parent.operation == roles]:
            registers = ir.DenseI32ArrayAttr(roles.attributes["registers"])[0] or THREAD_REGISTERS
            deferral = _Deferral(tiles, registers - _OTHER_REGISTERS)
            if deferral.is_possible():
                deferral.run()


class _Deferral:
    """The rewriting of one loop over tiles."""

    def __init__(self, tiles: ir.Operation, registers: int):
        self.tiles = tiles
        self.registers = registers
        self.loop = Loop(tiles)
        *self.body, self.end = self.loop.ops
        sites = [op for op in self.body if op.name == "scf.if" and _products(op) is not None]
        self.site = sites[0] if len(sites) == 1 else None
        self.allocs: list[ir.Operation] = []
        self.stores: list[ir.Operation] = []
        #: The tensors that the stores need of the rest, and the scalars that say where.
        self.crossing: list[ir.Value] = []
        self.places: list[ir.Value] = []
        #: The stores' operations that have effects, by the pieces that they store.
        self.pieces: list[list[ir.Operation]] = []

    def is_possible(self) -> bool:
        """Whether the loop has the form above; find its parts."""
        if self.site is None or "unsignedCmp" in self.tiles.attributes or not self._products_are_alike():
            return False
        at = self.body.index(self.site)
        head, tail = self.body[:at], self.body[at + 1 :]
        if not all(_is_pure(op) for op in head) or not any(op.name == "tilegpu.tma_store_wait" for op in tail):
            return False
        for op in tail:
            if op.name == "tilegpu.local_alloc":
                self.allocs.append(op)
            elif op.name in _STORING or (_is_pure(op) and not any(_is_tensor(r) for r in op.results)):
                self.stores.append(op)
            elif not _is_pure(op):
                return False
        if any(op.name == "tilegpu.tma_store_wait" and "read" not in op.attributes for op in self.stores):
            return False  # memory that is read back
        inside = {key(op) for op in (*self.stores, *self.allocs)}
        if any(key(use.owner.operation) not in inside for op in self.stores for r in op.results for use in r.uses):
            return False
        self.stores = self._only_for_stores(head, inside) + self.stores
        own = {key(op) for op in self.body} - inside - {key(op) for op in self.stores}
        for value in dict.fromkeys(v for op in self.stores for v in op.operands):
            op = defining(value)
            if (value.owner == self.loop.block) if op is None else (key(op) in own):
                self.crossing.append(value)
        if any(not _is_tensor(v) and v != self.loop.iv for v in self.crossing):
            return False
        if any(map(_is_tensor, self.end.operands)):
            return False
        self.crossing = [v for v in self.crossing if _is_tensor(v)]
        self._cut()
        return sum(map(_registers, (*self.site.results, *self.crossing))) <= self.registers

    def _products_are_alike(self) -> bool:
        """Whether the products of a tile depend on nothing that the tile computes, but on what the tile before leaves."""
        own = {key(op) for op in self.body} | {key(self.site)}
        products = _products(self.site)
        values = [*products.operands, *(v for op in Loop(products).ops for v in op.operands)]
        return all(v != self.loop.iv if (op := defining(v)) is None else key(op) not in own for v in values)

    @staticmethod
    def _only_for_stores(head: list[ir.Operation], inside: set[int]) -> list[ir.Operation]:
        """Return the scalars in front of the products that only the stores need."""
        users, out = set(inside), []
        for op in reversed(head):
            if not any(_is_tensor(r) for r in op.results) and all(key(use.owner.operation) in users for r in op.results for use in r.uses):
                users.add(key(op))
                out.insert(0, op)
        return out

    def _cut(self) -> None:
        """Find the pieces, and their places: the scalars that they use, but what is computed anew for each (slots, sums with constants)."""
        for op in self.stores:
            if not _is_scalar(op):
                if op.name == "tilegpu.tma_store_wait" or not self.pieces:
                    self.pieces.append([])
                self.pieces[-1].append(op)
        own = {key(op) for op in self.stores}
        pending = [v for piece in self.pieces for op in piece for v in op.operands]
        found: dict[ir.Value, None] = {}
        while pending:
            value = pending.pop()
            op = defining(value)
            if op is not None and key(op) in own and _is_step(op):
                pending += op.operands
            elif value == self.loop.iv or (op is not None and key(op) in own):
                found[value] = None
        self.places = list(found)

    def run(self) -> None:
        """Do it."""
        before = Builder.before(self.tiles)
        for op in self.allocs:
            op.move_before(self.tiles)
            self.body.remove(op)
        products = Loop(_products(self.site))
        have_products = compare(before, SLT, products.lower, products.upper)
        branch = before.op("scf.if", [r.type for r in self.tiles.results], [have_products], regions=2)
        runs, skips = (Builder(ir.InsertionPoint(region.blocks.append()), self.tiles.location) for region in branch.regions)
        self._store_all(skips)
        skips.op("scf.yield", [], self.loop.inits)
        new = self._pipelined(runs, products)
        runs.op("scf.yield", [], list(new.results)[: len(self.loop.inits)])
        for old, result in zip(self.tiles.results, branch.results, strict=True):
            old.replace_all_uses_with(result)
        for op in reversed(self.stores):
            op.erase()
        self.tiles.erase()

    def _without_products(self, build: Builder) -> list[ir.Value]:
        """Return what crosses where there are no products."""
        end = self.site.regions[1].blocks[0].operations
        values: Values = dict(zip(self.site.results, end[len(end) - 1].operation.operands, strict=True))
        for op in self.body[self.body.index(self.site) + 1 :]:
            if op not in self.stores:
                build.clone(op, values)
        return [values[v] for v in self.crossing]

    def _store_all(self, build: Builder) -> None:
        """Build the loop that stores all tiles where there are no products."""
        values = self._without_products(build)
        tiles = build.op("scf.for", [], [self.loop.lower, self.loop.upper, self.loop.step], regions=1)
        block = tiles.regions[0].blocks.append(self.loop.iv.type, arg_locs=[tiles.location])
        inside = Builder(ir.InsertionPoint(block), tiles.location)
        place = self._place(inside, block.arguments[0])
        for piece in self.pieces:
            self._repeat(inside, piece, dict(zip((*self.crossing, *self.places), (*values, *place), strict=True)))
        inside.op("scf.yield", [], [])

    def _pipelined(self, build: Builder, products: Loop) -> ir.Operation:
        """Build the new loop."""
        old = self.loop
        limits = [build.binary("arith.addi", products.lower, products.step)]
        for _ in self.pieces:
            limits.append(build.binary("arith.addi", limits[-1], products.step))
        nothing = [_nothing(build, v.type) for v in self.crossing] + [build.integer(v.type, 0) for v in self.places]
        inits = [*old.inits, *nothing]
        types = [v.type for v in inits]
        attributes = {name: self.tiles.attributes[name] for name in self.tiles.attributes}
        new = build.op("scf.for", types, [old.lower, old.upper, old.step, *inits], attributes, regions=1)
        block = new.regions[0].blocks.append(old.iv.type, *types, arg_locs=[self.tiles.location] * (len(types) + 1))
        iv, *args = block.arguments
        carried: Values = dict(zip(old.args, args, strict=False))
        stored: Values = dict(zip((*self.crossing, *self.places), args[len(old.args) :], strict=True))
        inside = Builder(ir.InsertionPoint(block), new.location)
        some = compare(inside, SGT, iv, old.lower)
        results = self._with_stores(inside, products, limits, carried, stored, some, iv)
        for op in self.body:
            if op not in self.stores:
                block.append(op)
        for argument, replacement in zip(old.args, args, strict=False):
            argument.replace_all_uses_with(replacement)
        behind = self._take_over(products, results)
        is_last = compare(inside, SGE, inside.binary("arith.addi", iv, old.step), old.upper)
        place = results[len(products.args) :]
        left = self._finish(inside, behind, is_last, place)
        inside.op("scf.yield", [], [*self.end.operands, *left, *place])
        return new

    def _finish(self, build: Builder, behind: list[ir.Operation], is_last: ir.Value, place: list[ir.Value]) -> list[ir.Value]:
        """Branch behind the products of a tile: the last one is stored at once, each piece as soon as it is computed; for others, compute
        with the operations `behind` what crosses. Return that."""
        branch = build.op("scf.if", [v.type for v in self.crossing], [is_last], regions=2)
        last, other = (Builder(ir.InsertionPoint(region.blocks.append()), build.loc) for region in branch.regions)
        values: Values = {}
        pieces = pieces_of(self.crossing, {key(op) for op in behind})
        if pieces is None:
            for op in behind:
                last.clone(op, values)
        else:
            parts = pieces.cut(last)
        stored: Values = dict(zip(self.places, place, strict=True))
        for ops in self.pieces:
            for number, value in enumerate(self.crossing):
                if value not in stored and any(value in op.operands for op in ops):
                    stored[value] = values.get(value, value) if pieces is None else pieces.make(last, parts[number])
            self._repeat(last, ops, dict(stored))
        last.op("scf.yield", [], [_nothing(last, v.type) for v in self.crossing])
        for op in behind:
            branch.regions[1].blocks[0].append(op)
        other.op("scf.yield", [], self.crossing)
        return list(branch.results)

    def _with_stores(
        self,
        build: Builder,
        products: Loop,
        limits: list[ir.Value],
        carried: Values,
        stored: Values,
        some: ir.Value,
        tile: ir.Value,
    ) -> list[ir.Value]:
        """Repeat the loop of the products of `tile` with the stores, if there is `some` tile before it, in front of its wait; return its
        results, and where its own tile is stored. Piece number n of the values `stored` is stored in the iteration at `limits[n]`, or the
        last one before; that at the last limit computes the place."""
        inits = [*(carried.get(v, v) for v in products.inits), *(build.integer(v.type, 0) for v in self.places)]
        types = [v.type for v in inits]
        attributes = {name: products.op.attributes[name] for name in products.op.attributes}
        new = build.op("scf.for", types, [products.lower, products.upper, products.step, *inits], attributes, regions=1)
        block = new.regions[0].blocks.append(products.iv.type, *types, arg_locs=[products.op.location] * (len(types) + 1))
        iv, *args = block.arguments
        inside = Builder(ir.InsertionPoint(block), products.op.location)
        values: Values = dict(zip((products.iv, *products.args), block.arguments, strict=False))
        *ops, _ = products.ops
        wait = next(i for i, op in enumerate(ops) if op.name == "tilegpu.wgmma_wait")
        for op in ops[:wait]:
            inside.clone(op, values)
        *limits, end = limits
        is_last = compare(inside, SGE, inside.binary("arith.addi", iv, products.step), products.upper)
        within = _branch(inside, inside.binary("arith.andi", some, compare(inside, SLT, iv, end)))
        for piece, limit in zip(self.pieces, limits, strict=True):
            stores = _branch(within, _is_due(within, iv, limit, is_last))
            self._repeat(stores, piece, dict(stored))
            stores.op("scf.yield", [], [])
        within.op("scf.yield", [], [])
        place = inside.op("scf.if", [v.type for v in self.places], [_is_due(inside, iv, end, is_last)], regions=2)
        computed, kept = (Builder(ir.InsertionPoint(region.blocks.append()), new.location) for region in place.regions)
        computed.op("scf.yield", [], self._place(computed, tile))
        kept.op("scf.yield", [], args[len(products.args) :])
        for op in ops[wait:]:
            inside.clone(op, values)
        inside.op("scf.yield", [], [*(values.get(v, v) for v in products.yields), *place.results])
        start_from_nothing(new)
        return list(new.results)

    def _place(self, build: Builder, tile: ir.Value) -> list[ir.Value]:
        """Compute where a tile is stored."""
        values: Values = {self.loop.iv: tile}
        return [self._need(build, v, values) for v in self.places]

    def _repeat(self, build: Builder, ops: list[ir.Operation], values: Values) -> None:
        """Repeat some of the stores' operations, and the scalars that these need, with other values."""
        for op in ops:
            for operand in op.operands:
                self._need(build, operand, values)
            build.clone(op, values)

    def _need(self, build: Builder, value: ir.Value, values: Values) -> ir.Value:
        """Return what takes the place of a value that the stores use: one of their own scalars is computed anew."""
        op = defining(value)
        if value not in values and op is not None and op in self.stores:
            for operand in op.operands:
                self._need(build, operand, values)
            build.clone(op, values)
        return values.get(value, value)

    def _take_over(self, products: Loop, results: list[ir.Value]) -> list[ir.Operation]:
        """Replace the old loop of the products, and take what follows it out of its branch, since it is sure to have run. Return what
        computes tensors behind it."""
        for old, new in zip(products.op.results, results, strict=False):
            old.replace_all_uses_with(new)
        products.op.erase()
        *ops, end = (o.operation for o in self.site.regions[0].blocks[0].operations)
        for op in ops:
            op.move_before(self.site)
        for result, value in zip(self.site.results, end.operands, strict=True):
            result.replace_all_uses_with(value)
            self.crossing = [value if v == result else v for v in self.crossing]
        block = self.site.block
        self.site.erase()
        following = [o.operation for o in block.operations]
        start = following.index(defining(results[0])) + 1
        return [op for op in following[start:] if _is_pure(op) and any(map(_is_tensor, op.results))]


def _is_due(build: Builder, iv: ir.Value, at: ir.Value, is_last: ir.Value) -> ir.Value:
    """Whether an iteration is the one at `at`, or the last one and before it."""
    early = build.binary("arith.andi", is_last, compare(build, SLT, iv, at))
    return build.binary("arith.ori", early, compare(build, EQ, iv, at))


def _branch(build: Builder, condition: ir.Value) -> Builder:
    """Build a branch without results; return what builds its body."""
    op = build.op("scf.if", [], [condition], regions=2)
    return Builder(ir.InsertionPoint(op.regions[0].blocks.append()), build.loc)


def _products(branch: ir.Operation) -> ir.Operation | None:
    """Return the loop in the first region of a branch that leaves wgmmas in flight from one iteration to the next, if it is alone there."""
    loops = [o.operation for o in branch.regions[0].blocks[0].operations if o.operation.regions]
    if len(loops) != 1 or loops[0].name != "scf.for" or len(branch.regions[1].blocks) != 1:
        return None
    ops = [o.operation for o in loops[0].regions[0].blocks[0].operations]
    names = [(op.name, len(op.results)) for op in ops]
    in_flight = ("tilegpu.wgmma", 1) in names and ("tilegpu.wgmma_wait", 0) in names
    return loops[0] if in_flight and not any(op.regions for op in ops) else None


def _is_pure(op: ir.Operation) -> bool:
    return is_cheap(op.name) or op.name in _SHAPES or op.name == "tilegpu.convert_layout"


def _is_scalar(op: ir.Operation) -> bool:
    """Whether an operation of the stores only computes something for them."""
    return op.name == "tilegpu.slot" or _is_pure(op)


def _is_step(op: ir.Operation) -> bool:
    """Whether an operation is no more than an address, a constant, or a sum with one."""
    sum_of = [d.name for v in op.operands if (d := defining(v)) is not None] if op.name == "arith.addi" else []
    return op.name in ("tilegpu.slot", "arith.constant") or "arith.constant" in sum_of


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _nothing(build: Builder, type_: ir.Type) -> ir.Value:
    return build.value("ub.poison", type_, [], {"value": ir.Attribute.parse("#ub.poison")})


def _registers(value: ir.Value) -> int:
    """Return the 32-bit registers of a thread that a value takes."""
    if not _is_tensor(value):
        return 1
    return -(-element_count(layout_of(value.type)) * value.type.element_type.width // 32)
