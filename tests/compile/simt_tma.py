"""TMA and mbarriers on the test machine. Copies happen as late as they may: a load's data arrives when its mbarrier is waited for, and
until then its destination holds garbage; a store reads its buffer when it is waited for. Code that relies on more gives wrong results."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

GARBAGE = 0xFB
#: What an element is told to TMA as -> what NumPy computes with; bf16 is moved only.
KINDS = {
    "u8": "u1",
    "u16": "u2",
    "u32": "u4",
    "u64": "u8",
    "i32": "i4",
    "i64": "i8",
    "f16": "f2",
    "bf16": "u2",
    "f32": "f4",
    "tf32": "f4",
    "f64": "f8",
}
NAN = {"f16": b"\0\x7e", "bf16": b"\xc0\x7f", "f32": b"\0\0\xc0\x7f", "f64": b"\0\0\0\0\0\0\xf8\x7f"}


@dataclass
class TensorMap:
    """What cuTensorMapEncodeTiled is told: address, shape, distances in bytes of all dimensions, box, swizzle in bytes."""

    base: int
    shape: list[int]
    strides: list[int]
    box: list[int]
    swizzle: int
    element: str
    padding: str = "zero"

    @property
    def size(self) -> int:
        return np.dtype(KINDS[self.element]).itemsize

    def elements(self, corner: list[int], shared: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(whether it is inside of the array, address in global memory, address in shared memory) of each element of a box."""
        inner = self.box[-1] * self.size
        assert shared % 128 == 0, "a box must start at a multiple of 128 bytes"
        assert not self.swizzle or inner <= self.swizzle, "a row of a box must fit into the swizzle"
        mask = self.swizzle // 16 - 1 if self.swizzle else 0
        place = np.indices(self.box).reshape(len(self.box), -1) + np.array(corner)[:, None]
        inside = ((place >= 0) & (place < np.array(self.shape)[:, None])).all(axis=0)
        local = shared + np.arange(place.shape[1]) * self.size
        return inside, self.base + np.array(self.strides) @ place, local ^ ((local >> 7 & mask) << 4)


@dataclass
class Mbarrier:
    """Arrivals and bytes that the current phase waits for, and the copies whose data it will bring."""

    count: int
    arrivals: int = 0
    bytes: int = 0
    phase: int = 0
    copies: list[Callable[[], None]] = field(default_factory=list)

    def advance(self) -> None:
        """Complete the phase if all have arrived and all bytes are under way."""
        if self.arrivals == self.count and self.bytes == 0:
            self.phase, self.arrivals = self.phase ^ 1, 0


@dataclass
class TmaState:
    """What one program has under way."""

    maps: list[TensorMap] = field(default_factory=list)
    own_maps: dict[int, TensorMap] = field(default_factory=dict)  # those that the kernel made, by their address in global memory
    drafts: dict[int, TensorMap] = field(default_factory=dict)  # those in shared memory
    mbarriers: dict[int, Mbarrier] = field(default_factory=dict)
    stores: dict[int, list[list[Callable[[], None]]]] = field(default_factory=dict)
    """Of each thread: its groups of stores, the last one not committed yet."""


INIT = re.compile(r"mbarrier\.init\.shared::cta\.b64 \[\$0\+(\d+)\], (\d+);")
EXPECT = re.compile(r"mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[\$0\], (\d+);")
ARRIVE = re.compile(r"@\$1 mbarrier\.arrive\.shared::cta\.b64 _, \[\$0\], (\d+);")
ARRIVE_IN_CLUSTER = re.compile(
    r"\{ \.reg \.b32 A; mapa\.shared::cluster\.u32 A, \$0, \$2; "
    r"@\$1 mbarrier\.arrive\.shared::cluster\.b64 _, \[A\], (\d+); \}"
)
REPLACE = re.compile(r"tensormap\.replace\.tile\.(\w+)\.shared::cta\.b1024\.b\d+ \[A\], ([^;]+);")
ELEMENT_CODES = {0: "u8", 1: "u16", 2: "u32", 3: "i32", 4: "u64", 5: "i64", 6: "f16", 7: "f32", 9: "f64", 10: "bf16", 11: "tf32"}
STORE_TO_CTA = re.compile(r"\{ .*st\.async\.weak\.shared::cluster\.mbarrier::complete_tx::bytes\.b(\d+) \[A\], \$2, \[B\]; \}")
LOAD = re.compile(
    r"cp\.async\.bulk\.tensor\.(\d)d\.shared::cluster\.global\.tile\.mbarrier::complete_tx::bytes(\.multicast::cluster)?\S* .*"
)
BULK = re.compile(r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier::complete_tx::bytes \[\$0\], \[\$1\], (\d+), \[\$2\];")
STORE = re.compile(r"cp\.(reduce\.)?async\.bulk\.tensor\.(\d)d\.global\.shared::cta\.(?:(\w+)\.)?tile\.bulk_group .*")
WAIT = re.compile(r"cp\.async\.bulk\.wait_group(?:\.read)? (\d+);")
REDUCTIONS = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def run_tma_asm(simulator, text: str, operand: Callable[[int], np.ndarray], active: np.ndarray) -> bool:
    """Run a block of assembly of TMA or mbarriers; False if it is none."""
    state: TmaState = simulator.tma
    if text.startswith("prefetch.tensormap"):
        return True
    if text == "cp.async.bulk.commit_group;":
        for thread in np.flatnonzero(active):
            state.stores.setdefault(int(thread), [[]]).append([])
        return True
    if inits := INIT.findall(text):
        for thread in np.flatnonzero(active):
            for offset, count in inits:
                state.mbarriers[int(operand(0)[thread]) + int(offset)] = Mbarrier(int(count))
        return True
    if match := EXPECT.fullmatch(text):
        for thread in np.flatnonzero(active):
            mbarrier = state.mbarriers[int(operand(0)[thread])]
            mbarrier.arrivals += 1
            mbarrier.bytes += int(match[1])
            mbarrier.advance()
        return True
    if match := ARRIVE.fullmatch(text):
        for thread in np.flatnonzero(active & operand(1)):
            mbarrier = state.mbarriers[int(operand(0)[thread])]
            mbarrier.arrivals += int(match[1])
            mbarrier.advance()
        if simulator.turns is not None:
            simulator.turns.stuck.clear()
        return True
    if match := ARRIVE_IN_CLUSTER.fullmatch(text):
        for thread in np.flatnonzero(active & operand(1)):
            place = int(operand(0)[thread]) % simulator.window + int(operand(2)[thread]) * simulator.window
            mbarrier = state.mbarriers[place]
            mbarrier.arrivals += int(match[1])
            mbarrier.advance()
        return True
    if match := STORE_TO_CTA.fullmatch(text):
        size = int(match[1]) // 8
        for thread in np.flatnonzero(active):
            place, mbarrier = (int(operand(i)[thread]) % simulator.window + int(operand(3)[thread]) * simulator.window for i in (0, 1))
            data = np.frombuffer(np.array(operand(2)[thread]).tobytes(), np.uint8)
            state.mbarriers[mbarrier].copies.append(partial(_put, simulator, place, data))
            state.mbarriers[mbarrier].bytes -= size
            state.mbarriers[mbarrier].advance()
        return True
    if REPLACE.search(text):
        for thread in np.flatnonzero(active):
            state.drafts[int(operand(0)[thread])] = _draft(text, lambda number, thread=thread: int(operand(number)[thread]))
        return True
    if "tensormap.cp_fenceproxy" in text:
        for thread in np.flatnonzero(active)[::32]:
            state.own_maps[int(operand(0)[thread])] = state.drafts[int(operand(1)[thread])]
        return True
    if text == "bar.warp.sync -1;":
        return True
    if "mbarrier.try_wait.parity" in text:
        chosen = active & operand(2)
        for address, parity in {(int(a), int(p)) for a, p in zip(operand(0)[chosen], operand(1)[chosen], strict=True)}:
            _wait(simulator, state.mbarriers[address], parity)
        return True
    if match := LOAD.fullmatch(text):
        for thread in np.flatnonzero(active):
            corner = [int(operand(3 + i)[thread]) for i in reversed(range(int(match[1])))]
            ctas = int(operand(3 + int(match[1]))[thread]) if match[2] else 1 << int(simulator.rank[thread])
            number = int(operand(1)[thread])
            tensor_map = state.maps[number] if number < len(state.maps) else state.own_maps[number]
            for rank in (r for r in range(16) if ctas >> r & 1):
                shared, mbarrier = (int(operand(i)[thread]) % simulator.window + rank * simulator.window for i in (0, 2))
                _load(simulator, tensor_map, corner, shared, mbarrier)
        return True
    if match := BULK.fullmatch(text):
        for thread in np.flatnonzero(active):
            shared, source, mbarrier = (int(operand(i)[thread]) for i in range(3))
            size = int(match[1])
            assert size % 16 == shared % 16 == source % 16 == 0, "a bulk copy is of multiples of 16 bytes"
            _load(simulator, TensorMap(source, [size], [1], [size], 0, "u8"), [0], shared, mbarrier)
        return True
    if match := STORE.fullmatch(text):
        for thread in np.flatnonzero(active):
            corner = [int(operand(2 + i)[thread]) for i in reversed(range(int(match[2])))]
            run = _store(simulator, state.maps[int(operand(0)[thread])], corner, int(operand(1)[thread]), match[3] if match[1] else None)
            state.stores.setdefault(int(thread), [[]])[-1].append(run)
        return True
    if match := WAIT.fullmatch(text):
        for thread in np.flatnonzero(active):
            finish(state.stores.get(int(thread), [[]]), int(match[1]))
        return True
    return False


def _draft(text: str, operand: Callable[[int], int]) -> TensorMap:
    """The tensor map that replacements of all fields make."""
    fields: dict[str, dict[int, int]] = {}
    for name, arguments in REPLACE.findall(text):
        *dim, value = arguments.split(", ")
        fields.setdefault(name, {})[int(dim[0]) if dim else 0] = operand(int(value[1:])) if value[0] == "$" else int(value)
    rank = fields["rank"][0] + 1
    assert all(fields["element_stride"][d] == 1 for d in range(rank)) and fields["interleave_layout"][0] == 0
    element = ELEMENT_CODES[fields["elemtype"][0]]
    outward = [np.dtype(KINDS[element]).itemsize, *(fields["global_stride"][d] for d in range(rank - 1))]
    shape, box = ([fields[name][d] for d in reversed(range(rank))] for name in ("global_dim", "box_dim"))
    swizzle = (0, 32, 64, 128)[fields["swizzle_mode"][0]]
    return TensorMap(fields["global_address"][0], shape, outward[::-1], box, swizzle, element, "nan" if fields["fill_mode"][0] else "zero")


def _put(simulator, place: int, data: np.ndarray) -> None:
    simulator.shared[place : place + len(data)] = data


def finish(groups: list[list[Callable[[], None]]], left: int) -> None:
    """Do the stores of a thread's groups but the last `left` of those that are committed."""
    while len(groups) - 1 > left:
        for store in groups.pop(0):
            store()


def _wait(simulator, mbarrier: Mbarrier, parity: int) -> None:
    if simulator.turns is not None:
        simulator.turns.wait_until(lambda: mbarrier.phase != parity)
    assert mbarrier.phase != parity, "waits for a phase that never ends"
    for copy in mbarrier.copies:
        copy()
    mbarrier.copies.clear()


def _load(simulator, map: TensorMap, corner: list[int], shared: int, mbarrier: int) -> None:
    barrier = simulator.tma.mbarriers[mbarrier]
    inside, address, local = map.elements(corner, shared)
    bytes_of = np.arange(map.size)
    simulator.shared[local[:, None] + bytes_of] = GARBAGE
    padding = np.frombuffer(NAN[map.element] if map.padding == "nan" else bytes(map.size), np.uint8)

    def arrive() -> None:
        data = simulator.memory[np.where(inside, address, 0)[:, None] + bytes_of]
        simulator.shared[local[:, None] + bytes_of] = np.where(inside[:, None], data, padding)

    barrier.copies.append(arrive)
    barrier.bytes -= len(local) * map.size  # another CTA's may come before this one announces them
    barrier.advance()


def _store(simulator, map: TensorMap, corner: list[int], shared: int, reduction: str | None) -> Callable[[], None]:
    """What a store will do when it is waited for."""
    inside, address, local = map.elements(corner, shared)
    targets, sources = (places[inside][:, None] + np.arange(map.size) for places in (address, local))

    def run() -> None:
        data = simulator.shared[sources]
        if reduction is not None:
            data = _reduced(reduction, simulator.memory[targets], data, map.element)
        simulator.memory[targets] = data

    return run


def _reduced(reduction: str, old: np.ndarray, new: np.ndarray, element: str) -> np.ndarray:
    """The bytes of elements after a reduction."""
    if element == "bf16":
        numbers = [(x.view(np.uint16).astype(np.uint32) << 16).view(np.float32) for x in (old, new)]
        return (REDUCTIONS[reduction](*numbers).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return REDUCTIONS[reduction](old.view(KINDS[element]), new.view(KINDS[element])).view(np.uint8)
