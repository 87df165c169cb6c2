"""Comparison of what a kernel left in its arrays with what the interpreter left there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .data import numbers_of
from .types import DTYPES

Results = dict[str, np.ndarray]  # bits by name of the argument
FEW, MANY = 4, 20  # perturbed runs: to judge a difference, to be sure of it
SLACK = 6.0  # how much further off than the perturbed runs a result may be


@dataclass(frozen=True)
class Difference:
    """Where an array is wrong."""

    name: str
    dtype: str
    count: int
    size: int
    index: int
    got: float | int
    expected: float | int
    tolerance: float

    @property
    def kind(self) -> str:
        """The class of the type."""
        return DTYPES[self.dtype].kind

    def __str__(self) -> str:
        return (
            f"{self.name} ({self.dtype}): {self.count} of {self.size} elements differ, first [{self.index}] = {self.got!r}, "
            f"expected {self.expected!r} within {self.tolerance:g}"
        )


def equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Elements that are the same number; all NaN are, and both zeros."""
    same = a == b
    return same | ((a != a) & (b != b)) if a.dtype.kind == "f" else same


def differences(got: Results, expected: Results, dtypes: dict[str, str], perturbed: Callable[[int], Results]) -> list[Difference]:
    """Arrays with elements that differ by more than the freedom that `perturbed(seed)` shows.

    Elements that have one value in all perturbed runs must be that value. Of others, integers are not compared, and floats may be off by
    some times the spread of the runs; where a run gives a NaN or an infinity and another does not, nothing is compared. In an array with
    floats that vary, all may be off by one unit in the last place: a narrow type hides from most runs that a value is near a boundary.
    """
    inexact: set[str] = set()
    suspects = {}
    for name, code in dtypes.items():
        mine, theirs = numbers_of(got[name], code), numbers_of(expected[name], code)
        places = np.flatnonzero(~equal(mine, theirs))
        if len(places):
            suspects[name] = places
    spread: dict[str, np.ndarray] = {}
    wrong: dict[str, np.ndarray] = suspects
    for first, last in ((1, FEW), (FEW + 1, MANY)):
        if not wrong:
            return []
        for seed in range(first, last + 1):
            run = perturbed(seed)
            widen(spread, run, expected, suspects, dtypes)
            inexact |= {name for name in suspects if DTYPES[dtypes[name]].kind == "float" and (run[name] != expected[name]).any()}
        wrong = {}
        for name, places in suspects.items():
            bad = ~within(got[name], expected[name], places, spread[name], dtypes[name], name in inexact)
            if bad.any():
                wrong[name] = places[bad]
    return [describe(name, dtypes[name], places, suspects[name], got, expected, spread[name]) for name, places in wrong.items()]


def widen(spread: dict[str, np.ndarray], run: Results, expected: Results, suspects: dict[str, np.ndarray], dtypes: dict[str, str]) -> None:
    """Enter one perturbed run in the spreads: the largest distance from the expected value, infinite where one is not finite."""
    for name, places in suspects.items():
        code = dtypes[name]
        a, b = numbers_of(run[name], code)[places], numbers_of(expected[name], code)[places]
        if a.dtype.kind == "f":
            with np.errstate(all="ignore"):
                distance = np.where(equal(a, b), 0.0, np.abs(a - b))
            distance = np.where(np.isfinite(distance), distance, np.inf)
        else:
            distance = np.where(a == b, 0.0, np.inf)
        spread[name] = np.maximum(spread.get(name, 0.0), distance)


_ULP = {"fp64": 2.0**-52, "fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7}
# The GPU's exp2 and division flush results below this to zero.
_SMALLEST_NORMAL = {"fp64": 0.0, "fp32": 2.0**-126, "fp16": 0.0, "bf16": 2.0**-126}


def within(got: np.ndarray, expected: np.ndarray, places: np.ndarray, spread: np.ndarray, code: str, inexact: bool) -> np.ndarray:
    """Which elements are near enough."""
    a, b = numbers_of(got, code)[places], numbers_of(expected, code)[places]
    if a.dtype.kind != "f":
        return np.isinf(spread)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= SLACK * spread + (_ULP[code] * np.abs(b) if inexact else 0.0)
        near |= inexact & (a == 0) & (np.abs(b) < _SMALLEST_NORMAL.get(code, 0.0))
    return near | np.isinf(spread)


def describe(
    name: str, code: str, wrong: np.ndarray, suspects: np.ndarray, got: Results, expected: Results, spread: np.ndarray
) -> Difference:
    """The difference of one array."""
    first = int(wrong[0])
    tolerance = SLACK * float(spread[np.searchsorted(suspects, first)])
    a, b = numbers_of(got[name], code), numbers_of(expected[name], code)
    return Difference(name, code, len(wrong), len(a), first, a[first].item(), b[first].item(), tolerance)
