"""`tilegpu-warp-specialize`: copies by a producer, dots and all else by consumers.

Before: `tilegpu-lower-dots` and `tilegpu-place-descriptors` have run; loops are not pipelined yet.
After: in kernels for which `analysis.specialization` decides so, `tilegpu.warp_specialize` holds all of the body but scalars that
both roles need:

    consumer (the kernel's warps)              producer (one thread of one more warpgroup), the same loops
    wait for the mbarriers                     make the mbarriers
    for …:                                     for …:
        wait for `full` of the slot                wait for `empty` of the slot
        wgmmas on the slot                         `full` expects the bytes
        wait for the wgmmas                        tma_load into the slot, which counts on `full`
        arrive at `empty` of the slot

The producer waits for nobody: its first blocks are under way when the consumers meet. These have their registers by then, so all their
warpgroups start at the same time; in whatever order they came out of the exchange of registers, two warpgroups of attention kept that
distance through all of the kernel (4% slower in one run on an H200). Only where producers of a cluster write to each other's CTAs, all
threads make the mbarriers first and meet.

A block that is loaded outside of these loops, and that only their wgmmas read, is copied by the producer as well, into a ring of its own:
the consumers wait for it where it was loaded, and release it behind the last loop that reads it.

Blocks that the same wgmmas read share a `full` and an `empty` mbarrier for each slot; one thread of each consumer warpgroup arrives. Both
roles carry the number of the slot and the parity of its phase through all loops, so the producer runs ahead into the next tile of a
persistent kernel. Consumers meet at barriers of their own only where their own exchange asks for one.
In a cluster, CTAs that load the same block load a piece of it each, for all of them (`tile.multicast`): `full` of each counts the bytes of
all pieces, and `empty` the arrivals of all their consumers, since each producer writes to all of these CTAs. A producer ends, and its CTA
with it, when all have arrived for the last time.
The module has `tilegpu.total_warps`, the warps that are launched (`tilegpu.num_warps` stays that of the layouts, and of the consumers).

A wgmma that works on another one's result runs an iteration late (see `tilegpu-pipeline`). What it multiplies in the first iteration does
not exist yet: that product is ignored by the second iteration's.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler import named_barriers
from tilewright.compiler.analysis.loop_slice import LAUNCH_SCALARS, is_cheap
from tilewright.compiler.analysis.specialization import PRODUCER_WARPS, REGISTERS, Held, Site, Specialization, specialization
from tilewright.compiler.analysis.tree import key
from tilewright.compiler.encoding import buffer_type
from tilewright.compiler.layouts.descriptors import MAX_BOX

from .building import Builder, collect, i32_array, i32_attr, is_public, walk
from .consumer_role import consume
from .lower_tma import described_buffer, mbarrier_type
from .producer_role import produce
from .registry import register
from .rings import Ring, Rings

_WARPS_PER_GROUP, _THREADS_PER_WARP = 4, 32


@register("tilegpu-warp-specialize", only_for=("scf.for",))
def warp_specialize(module: ir.Operation, *, num_stages: int = 3, shared_limit: int = 227 * 1024, automatic: bool = False) -> None:
    """Run on a module; see the file's docstring. `shared_limit` is the shared memory of a CTA in bytes; `automatic` allows it for loops
    without the attribute `tile.warp_specialize`."""
    plan = plan_roles(module, num_stages, shared_limit, automatic)
    if plan is not None:
        num_warps = ir.IntegerAttr(module.attributes["tilegpu.num_warps"]).value
        _Partition(_bodies(module)[0], plan, num_warps).run()
        module.attributes["tilegpu.total_warps"] = i32_attr(num_warps + PRODUCER_WARPS, module.context)


def plan_roles(module: ir.Operation, num_stages: int, shared_limit: int, automatic: bool) -> Specialization | None:
    """Decide on the roles of a module's warps, as far as its schedule leaves that open; the options are those of the pass."""
    functions = _bodies(module)
    if len(functions) != 1 or not is_public(functions[0]) or _meets_cluster(module):
        return None
    num_warps = ir.IntegerAttr(module.attributes["tilegpu.num_warps"]).value
    return specialization(functions[0], num_warps, num_stages, shared_limit, automatic)


def _bodies(module: ir.Operation) -> list[ir.Operation]:
    return [f for f in collect(module, "func.func") if len(f.regions[0].blocks)]


def _meets_cluster(module: ir.Operation) -> bool:
    """Whether all threads of a cluster may have to meet, which they cannot from within roles."""
    if ir.IntegerAttr(module.attributes["tilegpu.num_ctas"]).value == 1:
        return False
    return any(op.name in ("tile.exchange", "tile.barrier") or op.name.startswith("tile.atomic") for op in walk(module))


class _Partition:
    """The rewriting of one kernel."""

    def __init__(self, function: ir.Operation, plan: Specialization, num_warps: int):
        self.block = function.regions[0].blocks[0]
        self.plan = plan
        self.num_warps = num_warps
        self.context = function.context
        #: The mbarriers of the rings, with the arrivals that each expects.
        self.arrivals: list[tuple[ir.Value, int]] = []

    def run(self) -> None:
        """Do it."""
        *body, end = (op.operation for op in self.block.operations)
        self._settle_multicast()
        own = self._of_consumers(body)
        build = Builder(ir.InsertionPoint(end), end.location)
        rings = self._make_rings(build)
        if self.is_multicast:
            self._init_mbarriers(build)
            # All CTAs have made their mbarriers before one writes to another.
            build.op("tilegpu.cluster_arrive", [], [])
            build.op("tilegpu.cluster_wait", [], [])
        roles = build.op(
            "tilegpu.warp_specialize",
            [],
            [],
            {
                "roles": ir.ArrayAttr.get([ir.StringAttr.get(name, self.context) for name in ("consumer", "producer")], self.context),
                "warps": i32_array([self.num_warps, PRODUCER_WARPS], self.context),
                "registers": i32_array(REGISTERS[self.num_warps], self.context),
            },
            regions=2,
        )
        consumer, producer = (region.blocks.append() for region in roles.regions)
        inside = Builder(ir.InsertionPoint(producer), end.location)
        if not self.is_multicast:
            self._init_mbarriers(inside)
            inside.op("tilegpu.named_barrier_arrive", [], [], self._start())
        produce(own, inside, self.plan, rings)
        inside.op("tilegpu.warp_return", [], [])
        if not self.is_multicast:
            Builder(ir.InsertionPoint(consumer), end.location).op("tilegpu.named_barrier_sync", [], [], self._start())
        for op in own:
            consumer.append(op)
        Builder(ir.InsertionPoint(consumer), end.location).op("tilegpu.warp_yield", [], [])
        consume(consumer, self.plan, rings)
        if self.is_multicast:
            # A CTA stays until the others have arrived at its mbarriers for the last time.
            for name in ("tilegpu.cluster_arrive", "tilegpu.cluster_wait"):
                build.op(name, [], [], {"tilegpu.apart": ir.UnitAttr.get(self.context)})

    @property
    def is_multicast(self) -> bool:
        """Whether CTAs fill each other's slots."""
        return any(group.ctas for site in self.plan.sites for group in site.groups)

    def _settle_multicast(self) -> None:
        """Share copies between CTAs where all users of a descriptor are copied by the producer; its boxes are pieces then."""
        copied = {key(site.loop.ops[b.load]): b for site in self.plan.sites for g in site.groups for b in g.blocks}
        for argument in self.block.arguments:
            users = [use.owner.operation for use in argument.uses]
            blocks = [copied[key(user)] for user in users if key(user) in copied]
            if blocks and len(blocks) < len(users):
                for block in blocks:
                    block.multicast = 0
            elif blocks and blocks[0].multicast:
                self._cut(argument.arg_number, blocks[0].shared.shape[0] >> blocks[0].multicast.bit_count())

    def _cut(self, number: int, rows: int) -> None:
        """Let the host make the tensor map of an argument for boxes of at most so many rows."""
        function = self.block.owner
        attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        recipe = ir.DictAttr(attributes[number]["tile.descriptor"])
        changed = {item.name: item.attr for item in recipe} | {"rows": i32_attr(min(rows, MAX_BOX), self.context)}
        attributes[number] = ir.DictAttr.get({"tile.descriptor": ir.DictAttr.get(changed, self.context)}, self.context)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes, self.context)

    def _of_consumers(self, body: list[ir.Operation]) -> list[ir.Operation]:
        """Return what only consumers do: all but the scalars in front of the roles."""
        shared: set[int] = set()
        out = []
        for op in body:
            if self._is_for_both(op, shared):
                shared.add(key(op))
            else:
                out.append(op)
        return out

    def _is_for_both(self, op: ir.Operation, shared: set[int]) -> bool:
        if not (is_cheap(op.name) or op.name in LAUNCH_SCALARS):
            return False
        if any(isinstance(r.type, ir.RankedTensorType) for r in op.results):
            return False
        owners = [v.owner for v in op.operands]
        return all(isinstance(o, ir.Block) or key(o.operation) in shared for o in owners)

    def _make_rings(self, build: Builder) -> Rings:
        made: dict[tuple, Ring] = {}
        rings = Rings()
        for site in self.plan.sites:
            shape = site.rings()
            if shape not in made:
                made[shape] = self._ring(build, site)
                rings.all.append(made[shape])
            rings.of[key(site.loop.op)] = made[shape]
        for block in self.plan.held:
            rings.of[key(block.load)] = ring = self._held_ring(build, block)
            rings.all.append(ring)
        return rings

    def _start(self) -> dict[str, ir.Attribute]:
        """The barrier at which consumers wait for the mbarriers."""
        threads = (self.num_warps + PRODUCER_WARPS) * _THREADS_PER_WARP
        return {"id": i32_attr(named_barriers.ALL, self.context), "threads": i32_attr(threads, self.context)}

    def _ring(self, build: Builder, site: Site) -> Ring:
        slots = self.plan.slots
        buffers = [[build.value("tilegpu.local_alloc", buffer_type(b.shared, b.element, slots), []) for b in g.blocks] for g in site.groups]
        full = [self._mbarriers(build, slots, 1) for _ in site.groups]
        empty = [self._mbarriers(build, slots, (self.num_warps // _WARPS_PER_GROUP) << g.ctas.bit_count()) for g in site.groups]
        return Ring(slots, buffers, full, empty)

    def _held_ring(self, build: Builder, block: Held) -> Ring:
        buffer = build.value("tilegpu.local_alloc", described_buffer(block.load.operands[0], block.slots), [])
        empty = [self._mbarriers(build, block.slots, self.num_warps // _WARPS_PER_GROUP)] if block.in_loop else []
        return Ring(block.slots, [[buffer]], [self._mbarriers(build, block.slots, 1)], empty)

    def _mbarriers(self, build: Builder, slots: int, arrivals: int) -> ir.Value:
        ring = build.value("tilegpu.local_alloc", mbarrier_type(self.context, slots), [])
        self.arrivals.append((ring, arrivals))
        return ring

    def _init_mbarriers(self, build: Builder) -> None:
        for mbarriers, arrivals in self.arrivals:
            build.op("tilegpu.mbarrier_init", [], [mbarriers], {"count": i32_attr(arrivals, self.context)})
