"""Checks of a launch that are made on request, `TILEWRIGHT_INTERPRET_CHECK=races,uninitialized`: what they find is an InterpreterWarning.

races          Two programs access one element, one of them writes, not both by atomics, and nothing orders them. What orders them is an
               atomic with release semantics in the one and a later atomic with acquire semantics at the same address in the other.
uninitialized  An argument that the kernel only writes has elements that no program wrote.

Programs run one after another. Of each element the last write and the last reads by two programs are remembered; a program that releases
starts a new epoch, and a program that acquires knows up to which epoch the accesses of others are behind it (vector clocks).
"""

from __future__ import annotations

import linecache
import sys
import warnings
from collections.abc import Iterable

import numpy as np

from tilewright.errors import InterpreterWarning

from .memory import Allocation, Base, Memory
from .rewrite import KERNEL_CODES

CHECKS = ("races", "uninitialized")
Site = tuple[str, int]  # file and line
Program = tuple[int, int, int]


def requested(text: str) -> frozenset[str]:
    """The checks that a comma-separated list asks for; ValueError that names the accepted ones."""
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    if unknown := sorted(names - set(CHECKS)):
        raise ValueError(f"TILEWRIGHT_INTERPRET_CHECK: unknown check {unknown[0]!r}; accepted: {', '.join(CHECKS)}")
    return names


class _Accesses:
    """For each element of an allocation one access: by which program (-1: none), in which epoch, at which site, whether an atomic."""

    def __init__(self, count: int):
        self.program = np.full(count, -1, np.int32)
        self.epoch = np.zeros(count, np.int32)
        self.site = np.zeros(count, np.int32)
        self.atomic = np.zeros(count, np.bool_)

    def record(self, units: np.ndarray, program: int, epoch: int, site: int, atomic: bool) -> None:
        self.program[units], self.epoch[units], self.site[units], self.atomic[units] = program, epoch, site, atomic

    def move(self, other: _Accesses, units: np.ndarray) -> None:
        """Take over what `other` says about `units`."""
        for name in ("program", "epoch", "site", "atomic"):
            getattr(self, name)[units] = getattr(other, name)[units]


class _Shadow:
    """What is known about the elements, of `unit` bytes, of an allocation."""

    def __init__(self, allocation: Allocation, unit: int):
        count = -(-allocation.data.nbytes // unit)
        self.unit = unit
        self.written, self.read, self.read_before = _Accesses(count), _Accesses(count), _Accesses(count)
        self.is_read = False

    def units(self, allocation: Allocation, address: np.ndarray, itemsize: int) -> np.ndarray:
        """The numbers of the elements that accesses of `itemsize` bytes touch."""
        first = (np.ravel(address) - allocation.start) // self.unit
        if itemsize <= self.unit:
            return first
        return (first[:, None] + np.arange(itemsize // self.unit)).ravel()


class CheckedMemory(Memory):
    """Memory that notices what `checks` ask for. `enter` says which program runs, `finish` reports at the end of the launch."""

    def __init__(self, checks: Iterable[str], grid: Program):
        super().__init__()
        self.checks = frozenset(checks)
        self.grid = grid
        self._shadows: dict[int, _Shadow] = {}
        self._sites: dict[Site, int] = {}
        self._reported: set[tuple] = set()
        self._released: dict[int, np.ndarray] = {}  # address -> what is behind whoever acquires there
        self.enter([(0, 0, 0)])

    # ---- order ----------------------------------------------------------------------------------------------------------------

    def enter(self, programs: list[Program]) -> None:
        x, y, z = programs[0]
        self._program = x + self.grid[0] * (y + self.grid[1] * z)
        self._epoch = 0
        self._known = np.full(max(1, self.grid[0] * self.grid[1] * self.grid[2]), -1, np.int32)  # epoch of each program that is behind us

    def synchronize(self, address: np.ndarray, mask: np.ndarray | None, sem: str) -> None:
        if mask is not None:
            address, mask = np.broadcast_arrays(address, mask)
            address = address[mask]
        addresses = [int(a) for a in np.unique(address)]
        if sem in ("acquire", "acq_rel"):
            for a in addresses:
                if a in self._released:
                    np.maximum(self._known, self._released[a], out=self._known)
        if sem in ("release", "acq_rel"):
            behind = self._known.copy()
            behind[self._program] = self._epoch
            for a in addresses:
                self._released[a] = np.maximum(behind, self._released[a]) if a in self._released else behind
            self._epoch += 1

    # ---- accesses -------------------------------------------------------------------------------------------------------------

    def _span(self, allocation, address, where, itemsize, access, base) -> tuple:
        found = super()._span(allocation, address, where, itemsize, access, base)
        named = base or next((b for b in self._bases if b.allocation is allocation), None)
        if named is not None:
            self._note(allocation, named, address, itemsize, access)
        return found

    def _note(self, allocation: Allocation, base: Base, address: np.ndarray, itemsize: int, access: str) -> None:
        shadow = self._shadows.get(id(allocation))
        if shadow is None:
            shadow = self._shadows[id(allocation)] = _Shadow(allocation, base.itemsize)
        units = shadow.units(allocation, address, itemsize)
        site = self._sites.setdefault(_user_site(), len(self._sites))
        atomic, writes = "atomic" in access, "load" not in access
        shadow.is_read |= access != "store"
        me = (self._program, self._epoch, site, atomic)
        if "races" in self.checks:
            for earlier in (shadow.written, shadow.read, shadow.read_before) if writes else (shadow.written,):
                self._find_race(allocation, base, shadow, earlier, units, access, site)
        if writes:
            shadow.written.record(units, *me)
        else:
            others = units[(shadow.read.program[units] != self._program) & (shadow.read.program[units] >= 0)]
            shadow.read_before.move(shadow.read, others)
            shadow.read.record(units, *me)

    def _find_race(
        self, allocation: Allocation, base: Base, shadow: _Shadow, earlier: _Accesses, units: np.ndarray, access: str, site: int
    ) -> None:
        program = earlier.program[units]
        bad = (program >= 0) & (program != self._program)
        if "atomic" in access:
            bad &= ~earlier.atomic[units]
        if not bad.any():
            return
        bad &= earlier.epoch[units] > self._known[program]
        if not bad.any():
            return
        unit = int(units[np.argmax(bad)])
        sites = list(self._sites)
        there, here = sites[earlier.site[unit]], sites[site]
        did = "written" if earlier is shadow.written else "read"
        if (base.name, there, here, did) in self._reported:
            return
        self._reported.add((base.name, there, here, did))
        index = (allocation.start + unit * shadow.unit - base.address) // base.itemsize
        by = " by an atomic" if earlier.atomic[unit] else ""
        article = "an" if access.startswith("atomic") else "a"
        _warn(
            f"race between programs: argument '{base.name}' at index {index} is accessed by {article} {access} in program "
            f"{self._place(self._program)},\n    {_shown(here)}\nand was {did}{by} in program {self._place(int(earlier.program[unit]))},\n"
            f"    {_shown(there)}\nwith nothing that orders the two",
            here,
        )

    def _place(self, program: int) -> Program:
        x, y, _ = self.grid
        return program % x, program // x % y, program // (x * y)

    # ---- at the end -----------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Report arguments that were only written, and not everywhere."""
        if "uninitialized" not in self.checks:
            return
        for base in self._bases:
            shadow = self._shadows.get(id(base.allocation))
            if shadow is None or shadow.is_read or shadow.unit != base.itemsize:
                continue
            units = shadow.units(base.allocation, base.address + _offsets(base), base.itemsize)
            program = shadow.written.program[units]
            missing = np.flatnonzero(program < 0)
            if missing.size and missing.size < units.size:
                site = list(self._sites)[shadow.written.site[units[np.argmax(program >= 0)]]]
                at = [int(i) for i in np.unravel_index(missing[0], base.shape)]
                _warn(
                    f"uninitialized output: {missing.size} of the {units.size} elements of argument '{base.name}' are written by no "
                    f"program, the first at {at}; it is written at\n    {_shown(site)}",
                    site,
                )


def _offsets(base: Base) -> np.ndarray:
    """Where the elements of an argument lie, in bytes from its address, in row-major order of its indices."""
    offsets = np.zeros((), np.int64)
    for size, stride in zip(base.shape, base.strides, strict=True):
        offsets = offsets[..., None] + np.arange(size) * stride
    return offsets.ravel()


def _user_site() -> Site:
    """The line of the kernel that is running."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code not in KERNEL_CODES:
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("<unknown>", 0)


def _shown(site: Site) -> str:
    return f"{site[0]}:{site[1]}: {linecache.getline(*site).strip()}"


def _warn(text: str, site: Site) -> None:
    warnings.warn_explicit(text, InterpreterWarning, *site)
