"""Linear algebra over F2 with integers as bit vectors.

A matrix is a tuple of columns, a column is an integer: bit `r` of `cols[c]` is the entry in row `r` and column `c`.
A vector of coefficients is an integer too: bit `c` says whether column `c` takes part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Matrix = tuple[int, ...]


def apply(cols: Sequence[int], x: int) -> int:
    """Return the matrix-vector product: the XOR of the columns that the set bits of `x` select."""
    out = 0
    i = 0
    while x:
        if x & 1:
            out ^= cols[i]
        x >>= 1
        i += 1
    return out


def matmul(a: Sequence[int], b: Iterable[int]) -> Matrix:
    """Return the product `a @ b` (first `b`, then `a`)."""
    return tuple(apply(a, col) for col in b)


def identity(bits: int) -> Matrix:
    """Return the identity on `bits` bits."""
    return tuple(1 << i for i in range(bits))


def transpose(cols: Sequence[int], rows: int) -> Matrix:
    """Return the transposed matrix, `rows` being the number of rows of `cols`."""
    return tuple(sum(((col >> r) & 1) << c for c, col in enumerate(cols)) for r in range(rows))


class Echelon:
    """An incrementally built echelon basis that remembers which inserted vectors made each pivot.

    Vectors inserted earlier are preferred: of several dependent vectors only the first ones become pivots, so every solution
    that `solve` returns has zeros at the later, redundant ones.
    """

    __slots__ = ("_pivots", "count", "dependent", "relations")

    def __init__(self, cols: Iterable[int] = ()):
        self._pivots: dict[int, tuple[int, int]] = {}
        self.count = 0
        self.dependent: list[int] = []
        self.relations: list[int] = []
        for col in cols:
            self.insert(col)

    @property
    def rank(self) -> int:
        """Number of independent vectors inserted so far."""
        return len(self._pivots)

    def reduce(self, vec: int) -> tuple[int, int]:
        """Return (residual, combination): `vec ^ residual` is the XOR of the inserted vectors that `combination` selects."""
        combo = 0
        pivots = self._pivots
        residual = 0
        while vec:
            top = vec.bit_length() - 1
            entry = pivots.get(top)
            if entry is None:
                residual |= 1 << top
                vec ^= 1 << top
            else:
                vec ^= entry[0]
                combo ^= entry[1]
        return residual, combo

    def insert(self, vec: int) -> bool:
        """Insert `vec`; return True if it is independent of the vectors before it."""
        index = self.count
        self.count += 1
        residual, combo = self.reduce(vec)
        combo |= 1 << index
        if residual:
            self._pivots[residual.bit_length() - 1] = (residual, combo)
            return True
        self.dependent.append(index)
        self.relations.append(combo)
        return False

    def solve(self, vec: int) -> int | None:
        """Return coefficients whose combination of the inserted vectors is `vec`, or None if `vec` is outside their span."""
        residual, combo = self.reduce(vec)
        return None if residual else combo


def rank(cols: Iterable[int]) -> int:
    """Return the rank of a matrix."""
    return Echelon(cols).rank


def kernel(cols: Iterable[int]) -> Matrix:
    """Return a basis of the vectors `x` with `apply(cols, x) == 0`."""
    return tuple(Echelon(cols).relations)


def image(cols: Iterable[int]) -> Matrix:
    """Return the reduced echelon basis of the column span, ascending."""
    basis: list[int] = []
    for col in cols:
        for b in basis:
            col = min(col, col ^ b)
        if col:
            basis = [min(b, b ^ col) for b in basis]
            basis.append(col)
    return tuple(sorted(basis))


def solve(cols: Iterable[int], targets: Iterable[int]) -> Matrix | None:
    """Return X with `cols @ X == targets`, or None. Free variables are zero; earlier columns are preferred as pivots."""
    echelon = Echelon(cols)
    out = []
    for target in targets:
        x = echelon.solve(target)
        if x is None:
            return None
        out.append(x)
    return tuple(out)


def inverse(cols: Sequence[int]) -> Matrix | None:
    """Return the inverse of a square matrix, or None if it is singular."""
    return solve(cols, identity(len(cols)))


def complement(cols: Iterable[int], bits: int) -> Matrix:
    """Return unit vectors that complete the span of `cols` to the whole space of `bits` bits."""
    echelon = Echelon(cols)
    return tuple(1 << i for i in range(bits) if echelon.insert(1 << i))
