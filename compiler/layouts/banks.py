"""Accesses to shared memory in terms of element offsets: vector runs and bank conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from . import f2

#: Bytes that all banks deliver in one cycle, and so the period of the bank of an address.
BANK_ROW_BYTES = 128


@lru_cache(maxsize=8192)
def vector_basis(registers: f2.Matrix, others: f2.Matrix, limit: int) -> tuple[f2.Matrix, f2.Matrix]:
    """Return two lists of register masks that together are a basis of the registers: those whose offsets are 1, 2, 4, … elements (at most
    log2(`limit`) of them), and others whose offsets do not touch these low bits.

    `registers` and `others` are the offset columns of the register bits and of all other input bits, which must not reach into a run.
    """
    echelon = f2.Echelon(registers)
    vector: list[int] = []
    while 2 << len(vector) <= limit and not any(c >> len(vector) & 1 for c in others):
        mask = echelon.solve(1 << len(vector))
        if mask is None:
            break
        vector.append(mask)
    low = (1 << len(vector)) - 1
    rest = []
    basis = f2.Echelon(vector)
    for bit, col in enumerate(registers):
        if basis.insert(1 << bit):
            rest.append(1 << bit ^ f2.apply(vector, col & low))
    return tuple(vector), tuple(rest)


def bank_conflicts(lane_offsets: Sequence[int], vector_bytes: int, element_bytes: int) -> int:
    """Return how many times over its minimum the access takes: 1 is free of conflicts.

    `lane_offsets` are the linear element offsets of the lane bits; a thread accesses `vector_bytes` at once. The hardware serves 32
    lanes of up to 4 bytes, 16 lanes of 8 bytes, or 8 lanes of 16 bytes in a cycle; lanes on the same word share it.
    """
    lanes = (BANK_ROW_BYTES // max(4, vector_bytes)).bit_length() - 1
    words = [o * element_bytes // 4 for o in lane_offsets[:lanes]]
    inner = [1 << i for i in range(max(1, vector_bytes // 4).bit_length() - 1)]
    span = f2.Echelon([*words, *inner])
    banks = f2.Echelon([w & (BANK_ROW_BYTES // 4 - 1) for w in (*words, *inner)])
    return 1 << (span.rank - banks.rank)


def count_bank_conflicts(byte_addresses: Sequence[int], vector_bytes: int) -> int:
    """Return the largest number of distinct words on one bank over the cycles of an access: the count by enumeration, for any layout."""
    lanes = BANK_ROW_BYTES // max(4, vector_bytes)
    worst = 1
    for start in range(0, len(byte_addresses), lanes):
        banks: dict[int, set[int]] = {}
        for address in byte_addresses[start : start + lanes]:
            for byte in range(0, max(4, vector_bytes), 4):
                word = (address + byte) // 4
                banks.setdefault(word % 32, set()).add(word)
        worst = max(worst, max(len(words) for words in banks.values()))
    return worst
