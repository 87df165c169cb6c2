"""Rings of slots between the roles of a kernel: the buffers, the mbarriers, and the place in the ring that each role carries along."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir import ir

from tilewright.compiler.analysis.tree import key
from tilewright.compiler.encoding import buffer_type, shared_of
from tilewright.dialects import tilegpu

from .building import Builder
from .lower_tma import mbarrier_type

#: Predicates of arith.cmpi.
EQ, NE, SLT, SGT, SGE = 0, 1, 2, 4, 5


@dataclass
class Ring:
    """The rings of one site: for each of its groups the buffers of the blocks, and for each slot an mbarrier that says that they are full
    and one that says that they are empty. All have `slots` slots and move on together. That of a held block is one of one group; it has no
    `empty` if it is filled only once."""

    slots: int
    buffers: list[list[ir.Value]]
    full: list[ir.Value]
    empty: list[ir.Value]


@dataclass
class Place:
    """Where a role is in a ring: the number of its slot, and the parity of the phase that it waits for there (both i32)."""

    slot: ir.Value
    parity: ir.Value

    def next(self, build: Builder, slots: int) -> Place:
        """Return the place one slot on."""
        following = build.binary("arith.addi", self.slot, build.i32(1))
        is_end = compare(build, EQ, following, build.i32(slots))
        slot = build.value("arith.select", following.type, [is_end, build.i32(0), following])
        turned = build.value("arith.extui", self.parity.type, [is_end])
        return Place(slot, build.binary("arith.xori", self.parity, turned))


@dataclass
class Rings:
    """The rings of a kernel; `of` finds that of a site by the `tree.key` of its loop, that of a held block by that of its load."""

    all: list[Ring] = field(default_factory=list)
    of: dict[int, Ring] = field(default_factory=dict)

    def index(self, op: ir.Operation) -> int:
        """Return the number of the ring of a site's loop or of the load of a held block."""
        ring = self.of[key(op)]
        return next(i for i, other in enumerate(self.all) if other is ring)

    def start(self, build: Builder, parity: int) -> list[Place]:
        """Return the place at the start of each ring."""
        return [Place(build.i32(0), build.i32(parity)) for _ in self.all]


def flat(places: list[Place]) -> list[ir.Value]:
    """Return places as values to carry."""
    return [v for place in places for v in (place.slot, place.parity)]


def unflat(values: list[ir.Value]) -> list[Place]:
    """Return carried values as places."""
    return [Place(slot, parity) for slot, parity in zip(values[::2], values[1::2], strict=True)]


def buffer_slot(build: Builder, ring: ir.Value, slot: ir.Value) -> ir.Value:
    """Return one slot of a ring of buffers."""
    _, element, _, _ = tilegpu.buffer_info(ring.type)
    return build.value("tilegpu.slot", buffer_type(shared_of(ring.type), element), [ring, slot])


def mbarrier_slot(build: Builder, ring: ir.Value, slot: ir.Value) -> ir.Value:
    """Return one slot of a ring of mbarriers."""
    return build.value("tilegpu.slot", mbarrier_type(build.loc.context), [ring, slot])


def compare(build: Builder, predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
    """Compare integers; `predicate` is that of arith.cmpi."""
    context = build.loc.context
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), predicate)
    return build.value("arith.cmpi", ir.IntegerType.get_signless(1, context), [a, b], {"predicate": attribute})
