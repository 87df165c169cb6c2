"""All cases of the suite, by group."""

from __future__ import annotations

from . import attention, gemm, memory, norms
from .cases import Case

CASES: list[Case] = [*gemm.CASES, *attention.CASES, *norms.CASES, *memory.CASES]
GROUPS: list[str] = list(dict.fromkeys(case.group for case in CASES))


def selected(groups: list[str], quick: bool, text: str = "") -> list[int]:
    """The numbers of the cases of these groups (none: of all) whose names contain a text, with `quick` only of those for a short run."""
    return [
        i
        for i, case in enumerate(CASES)
        if (not groups or case.group in groups) and (case.quick or not quick) and text in f"{case.group} {case.name}"
    ]
