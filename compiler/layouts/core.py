"""`LinearLayout`: a linear map over F2 from named input bits to tensor coordinates.

Inputs are named ("register", "lane", "warp", "block" for a distributed tensor; "offset" for shared memory). Outputs are the dimensions
of the tensor by position. All sizes are powers of two. The image of an index is the XOR of the images of its set bits, so a layout is
a list of images ("bases"), one for each input bit.

Internally a coordinate is one integer, the row-major linear index (last dimension in the low bits), and a layout is a matrix
over F2 with one column per input bit. The *flat* index of an input has the first named input in its low bits.

Example: a 4x4 tensor with 2 registers a thread along the rows, 4 lanes along the columns and 2 warps::

    LinearLayout({"register": [(0, 1)], "lane": [(0, 2), (1, 0)], "warp": [(2, 0)]}, (4, 4))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from . import f2


def log2_exact(size: int) -> int:
    """Return log2 of a power of two; raise ValueError for any other number."""
    if size <= 0 or size & (size - 1):
        raise ValueError(f"size {size} is not a power of two")
    return size.bit_length() - 1


class LinearLayout:
    """An immutable, hashable linear map. See the module's docstring for the conventions."""

    __slots__ = ("__dict__", "_hash", "columns", "names", "out_sizes")

    def __init__(self, bases: Mapping[str, Sequence[Sequence[int]]], out_sizes: Sequence[int]):
        out_sizes = tuple(out_sizes)
        shifts = dim_shifts(out_sizes)
        columns = []
        for name, images in bases.items():
            packed = []
            for image in images:
                if len(image) != len(out_sizes):
                    raise ValueError(f"a basis of '{name}' has {len(image)} coordinates for a rank of {len(out_sizes)}")
                value = 0
                for coord, size, shift in zip(image, out_sizes, shifts, strict=True):
                    if not 0 <= coord < size:
                        raise ValueError(f"a basis of '{name}' has the coordinate {coord} outside of a dimension of size {size}")
                    value |= coord << shift
                packed.append(value)
            columns.append(tuple(packed))
        self._set(tuple(bases), tuple(columns), out_sizes)

    def _set(self, names: tuple[str, ...], columns: tuple[f2.Matrix, ...], out_sizes: tuple[int, ...]) -> None:
        self.names = names
        self.columns = columns
        self.out_sizes = out_sizes
        self._hash = hash((names, columns, out_sizes))

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[int]], out_sizes: Sequence[int]) -> LinearLayout:
        """Build a layout from packed (row-major linear) images; the caller guarantees that they are in range."""
        self = cls.__new__(cls)
        self._set(tuple(columns), tuple(tuple(c) for c in columns.values()), tuple(out_sizes))
        return self

    @classmethod
    def identity(cls, name: str, size: int) -> LinearLayout:
        """Return the identity from one input to a tensor of one dimension."""
        return cls.from_columns({name: f2.identity(log2_exact(size))}, (size,))

    @classmethod
    def zeros(cls, name: str, size: int, out_sizes: Sequence[int]) -> LinearLayout:
        """Return the map that sends every index of an input of `size` to the origin: a broadcast."""
        return cls.from_columns({name: (0,) * log2_exact(size)}, out_sizes)

    # Look-up

    def __eq__(self, other: object) -> bool:
        return (
            self is other
            or isinstance(other, LinearLayout)
            and self._hash == other._hash
            and self.names == other.names
            and self.columns == other.columns
            and self.out_sizes == other.out_sizes
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} = {[list(b) for b in self.bases[name]]}" for name in self.names)
        return f"LinearLayout<{parts} -> {list(self.out_sizes)}>"

    @property
    def rank(self) -> int:
        """Number of output dimensions."""
        return len(self.out_sizes)

    @cached_property
    def out_bits(self) -> int:
        """Number of bits of a packed coordinate."""
        return sum(log2_exact(s) for s in self.out_sizes)

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """Position of each dimension's lowest bit in a packed coordinate."""
        return dim_shifts(self.out_sizes)

    @cached_property
    def flat(self) -> f2.Matrix:
        """The columns of all inputs in a row, the first input's in front."""
        return tuple(c for cols in self.columns for c in cols)

    def column(self, name: str) -> f2.Matrix:
        """Return the packed images of the bits of an input; empty if the layout has no such input."""
        return self.columns[self.names.index(name)] if name in self.names else ()

    @cached_property
    def bases(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """The images of the bits of each input as coordinates, as the constructor takes them."""
        return {name: tuple(map(self.unpack, cols)) for name, cols in zip(self.names, self.columns, strict=True)}

    def in_bits(self, name: str) -> int:
        """Return the number of bits of an input."""
        return len(self.column(name))

    def in_size(self, name: str) -> int:
        """Return the size of an input."""
        return 1 << len(self.column(name))

    @cached_property
    def in_bits_dict(self) -> dict[str, int]:
        """Number of bits of each input, in order."""
        return {name: len(cols) for name, cols in zip(self.names, self.columns, strict=True)}

    def unpack(self, packed: int) -> tuple[int, ...]:
        """Split a packed coordinate into one integer per dimension."""
        return tuple((packed >> shift) & (size - 1) for shift, size in zip(self.shifts, self.out_sizes, strict=True))

    def pack(self, coords: Sequence[int]) -> int:
        """Join one integer per dimension into a packed coordinate."""
        return sum(c << shift for c, shift in zip(coords, self.shifts, strict=True))

    def __call__(self, **indices: int) -> tuple[int, ...]:
        """Return the coordinates of an index; inputs that are not given are zero."""
        out = 0
        for name, index in indices.items():
            out ^= f2.apply(self.column(name), index)
        return self.unpack(out)

    # Properties

    @cached_property
    def map_rank(self) -> int:
        """Rank of the map."""
        return f2.rank(self.flat)

    @property
    def is_surjective(self) -> bool:
        """Whether every coordinate is reached."""
        return self.map_rank == self.out_bits

    @property
    def is_injective(self) -> bool:
        """Whether no coordinate is reached twice."""
        return self.map_rank == len(self.flat)

    @property
    def is_invertible(self) -> bool:
        """Whether the map is one to one."""
        return self.is_surjective and self.is_injective

    def kernel(self) -> f2.Matrix:
        """Return a basis of the flat input indices that map to the origin."""
        return f2.kernel(self.flat)

    def image(self) -> f2.Matrix:
        """Return the reduced echelon basis of the packed coordinates that are reached."""
        return f2.image(self.flat)

    def free_masks(self) -> dict[str, int]:
        """Return for each input the mask of redundant bits: elements at indices with such a bit set are copies of one without it.

        Redundancy is put on the input named first where there is a choice, so a register bit rather than a lane or warp bit.
        """
        masks = dict.fromkeys(self.names, 0)
        echelon = f2.Echelon()
        for name, cols in reversed(list(zip(self.names, self.columns, strict=True))):
            for bit, col in enumerate(cols):
                if not echelon.insert(col):
                    masks[name] |= 1 << bit
        return masks

    # Algebra

    def compose(self, inner: LinearLayout) -> LinearLayout:
        """Return the map that applies `inner` first: output dimension i of `inner` is the i-th input of this layout."""
        sizes = tuple(1 << len(cols) for cols in self.columns)
        if sizes != inner.out_sizes:
            raise ValueError(f"the inner layout has outputs of sizes {inner.out_sizes}, the outer one inputs of sizes {sizes}")
        # A packed coordinate holds its last dimension in the low bits, a flat index its first input.
        cols = tuple(c for cols in reversed(self.columns) for c in cols)
        return LinearLayout.from_columns({n: f2.matmul(cols, c) for n, c in zip(inner.names, inner.columns, strict=True)}, self.out_sizes)

    def _from_coords(self, flat_of_unit: Sequence[int]) -> LinearLayout:
        """Build the map coordinates -> inputs (dims named dim0, dim1, …) from the flat input index of each packed coordinate bit."""
        in_sizes = tuple(1 << len(cols) for cols in self.columns)
        packed = [_flat_to_packed(x, in_sizes) for x in flat_of_unit]
        columns = {}
        for dim, (shift, size) in enumerate(zip(self.shifts, self.out_sizes, strict=True)):
            columns[f"dim{dim}"] = tuple(packed[shift : shift + log2_exact(size)])
        return LinearLayout.from_columns(columns, in_sizes)

    def right_inverse(self) -> LinearLayout:
        """Return R with L(R(x)) = x for a surjective L. R reads inputs "dim0", "dim1", … and yields the inputs of L in order.

        Of several preimages it picks one that uses the bits of the inputs named first and leaves redundant later bits at zero.
        Raises ValueError if the layout is not surjective.
        """
        solution = f2.solve(self.flat, f2.identity(self.out_bits))
        if solution is None:
            raise ValueError(f"{self!r} is not surjective")
        return self._from_coords(solution)

    def left_inverse(self) -> LinearLayout:
        """Return a map R with R(L(x)) = x for an injective L; coordinates outside of the image go anywhere.

        Raises ValueError if the layout is not injective.
        """
        if not self.is_injective:
            raise ValueError(f"{self!r} is not injective")
        inputs = len(self.flat)
        full = self.flat + f2.complement(self.flat, self.out_bits)
        solution = f2.solve(full, f2.identity(self.out_bits))
        return self._from_coords([x & ((1 << inputs) - 1) for x in solution])

    def invert(self) -> LinearLayout:
        """Return the inverse of a one-to-one layout. Raises ValueError for any other."""
        if not self.is_invertible:
            raise ValueError(f"{self!r} is not invertible")
        return self.right_inverse()

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """Return the product: `self` is the tile, `other` says how copies of it are arranged.

        Bits of `other` follow those of `self` in each input; its coordinates are scaled by the tile's sizes. A layout of
        lower rank cannot be multiplied with one of higher rank.
        """
        if self.rank != other.rank:
            raise ValueError(f"product of layouts of ranks {self.rank} and {other.rank}")
        sizes = tuple(a * b for a, b in zip(self.out_sizes, other.out_sizes, strict=True))
        shifts = dim_shifts(sizes)
        columns: dict[str, tuple[int, ...]] = {}
        for layout, scale in ((self, None), (other, self.out_sizes)):
            for name, cols in zip(layout.names, layout.columns, strict=True):
                moved = []
                for col in cols:
                    coords = layout.unpack(col)
                    if scale is not None:
                        coords = tuple(c * s for c, s in zip(coords, scale, strict=True))
                    moved.append(sum(c << shift for c, shift in zip(coords, shifts, strict=True)))
                columns[name] = columns.get(name, ()) + tuple(moved)
        return LinearLayout.from_columns(columns, sizes)

    def divide_left(self, tile: LinearLayout) -> LinearLayout | None:
        """Return Q with `tile * Q == self` up to the order of inputs, or None if the layout does not begin with that tile."""
        if self.rank != tile.rank or any(s % t for s, t in zip(self.out_sizes, tile.out_sizes, strict=True)):
            return None
        if any(bits and name not in self.names for name, bits in tile.in_bits_dict.items()):
            return None
        low = self.pack(tuple(t - 1 for t in tile.out_sizes))
        out_sizes = tuple(s // t for s, t in zip(self.out_sizes, tile.out_sizes, strict=True))
        shifts = dim_shifts(out_sizes)
        columns = {}
        for name, cols in zip(self.names, self.columns, strict=True):
            head = tile.column(name)
            if len(cols) < len(head):
                return None
            if any(self.unpack(c) != tile.unpack(t) for c, t in zip(cols, head, strict=False)):
                return None
            rest = []
            for col in cols[len(head) :]:
                if col & low:
                    return None
                coords = self.unpack(col)
                rest.append(sum((c // t) << shift for c, t, shift in zip(coords, tile.out_sizes, shifts, strict=True)))
            columns[name] = tuple(rest)
        return LinearLayout.from_columns(columns, out_sizes)

    def quotient(self, names: Iterable[str]) -> LinearLayout | None:
        """Return the layout without the given inputs and their output dimensions, or None if it does not split off them.

        For a map from inputs to inputs (output dimension i answers to input i, as a conversion has it): the map splits if each
        given input goes to itself unchanged and nothing else touches its output.
        """
        names = set(names)
        if len(self.names) != self.rank:
            raise ValueError(f"{self!r} does not map inputs to as many outputs")
        keep = [i for i, name in enumerate(self.names) if name not in names]
        out_sizes = tuple(self.out_sizes[i] for i in keep)
        shifts = dim_shifts(out_sizes)
        columns = {}
        for dim, (name, cols) in enumerate(zip(self.names, self.columns, strict=True)):
            if name in names:
                own = tuple((1 << i) << self.shifts[dim] for i in range(log2_exact(self.out_sizes[dim])))
                if cols != own:
                    return None
                continue
            packed = []
            for col in cols:
                coords = self.unpack(col)
                if any(coords[i] for i in range(self.rank) if i not in keep):
                    return None
                packed.append(sum(coords[i] << shift for i, shift in zip(keep, shifts, strict=True)))
            columns[name] = tuple(packed)
        return LinearLayout.from_columns(columns, out_sizes)

    # Restructuring

    def select(self, names: Iterable[str]) -> LinearLayout:
        """Return the layout with only the given inputs, in that order; an input that it lacks comes with no bits."""
        return LinearLayout.from_columns({name: self.column(name) for name in names}, self.out_sizes)

    def without(self, *names: str) -> LinearLayout:
        """Return the layout with the given inputs fixed at zero and dropped."""
        return self.select(n for n in self.names if n not in names)

    def with_columns(self, **columns: Sequence[int]) -> LinearLayout:
        """Return the layout with the packed images of some inputs replaced."""
        merged = dict(zip(self.names, self.columns, strict=True))
        merged.update({name: tuple(cols) for name, cols in columns.items()})
        return LinearLayout.from_columns(merged, self.out_sizes)

    def equal_up_to(self, other: LinearLayout, *names: str) -> bool:
        """Whether both are equal when the given inputs, and inputs of no bits, are left out; the order of inputs is irrelevant."""
        mine = {n: c for n, c in zip(self.names, self.columns, strict=True) if c and n not in names}
        theirs = {n: c for n, c in zip(other.names, other.columns, strict=True) if c and n not in names}
        return self.out_sizes == other.out_sizes and mine == theirs


def dim_shifts(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the position of each dimension's lowest bit in a packed coordinate (the last dimension lies lowest)."""
    shifts, shift = [], 0
    for size in reversed(sizes):
        shifts.append(shift)
        shift += log2_exact(size)
    return tuple(reversed(shifts))


def _flat_to_packed(flat: int, in_sizes: Sequence[int]) -> int:
    """Turn a flat input index (first input low) into a packed coordinate over `in_sizes` (last dimension low)."""
    out = 0
    for size, shift in zip(in_sizes, dim_shifts(in_sizes), strict=True):
        out |= (flat & (size - 1)) << shift
        flat >>= log2_exact(size)
    return out
