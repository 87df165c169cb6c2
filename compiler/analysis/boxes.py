"""Boxes: which tensors of pointers under which masks are a box of a strided array, as TMA copies it.

The array is the compiler's own choice: it begins at an argument, plus what the host can add to that. A dimension of the tensor that its
mask bounds ends where the mask does, at an index that the host knows; the others end as far away as TMA allows, since the kernel accesses
whatever lies there. What moves a box by no multiple of its own strides has a dimension of size 1 to itself, for instance the batch in
`x + batch * stride_b + row * stride_r + column`.

TMA reads zeros at negative coordinates, so they must be proven not to occur, or be what the mask excludes.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from .affine import Affine, Bound, Forms, Remainder
from .polynomial import ONE, ZERO, Monomial, Polynomial, quotient
from .unobserved import is_unobserved

_TMA_BYTES = 16
_MAX_RANK = 5
#: Strides of so many bytes take 2^31 steps beyond the memory of any GPU, so that coordinates along them fit into 32 bits. Where a mask
#: bounds them, they do as well: an index behind the array's end may be any other outside.
_WIDE_BYTES = 128
_MAX_EXTENT = 1 << 31
#: The largest factor of what moves a box along its contiguous dimension, whose coordinates count elements within a row.
_MAX_STEP = 4096


@dataclass
class Dimension:
    """One dimension of an array, and the box's place in it: `stride` in elements; `size` and first `coordinate` of the box; the array's
    `extent`, None without bound; `from_zero`: the mask excludes negative indices. `axis` is the tensor's dimension, None if it has none."""

    stride: Polynomial
    size: int = 1
    coordinate: Polynomial = ZERO
    extent: Polynomial | None = None
    from_zero: bool = False
    axis: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether the mask says what the coordinate is."""
        return self.extent is not None or self.from_zero


@dataclass(frozen=True)
class Box:
    """The array begins `base` elements behind `argument`. Its dimensions, outermost first, are those that only move the box, then the
    tensor's own, of which the last is contiguous. All that depends on `conditions`, expressions of the host over the arguments. Strides are
    multiples of 16 bytes, which `is_known`, or the launch has to see."""

    argument: ir.Value
    base: Polynomial
    dimensions: list[Dimension]
    conditions: list[str]
    is_known: bool


def box_of(
    forms: Forms, pointers: ir.Value, mask: ir.Value | None, element_bytes: int, is_known: bool, loaded: ir.Value | None = None
) -> Box | None:
    """Return what an access through a tensor of pointers covers as a box, or None if it is none that TMA could copy. `is_known`: not even
    strides are left to the launch. With the `loaded` tensor of a load, elements that nobody looks at may differ."""
    found = forms.pointers(pointers)
    bounds = [] if mask is None else forms.bounds(mask)
    if found is None or bounds is None or forms.argument_divisibility(found[0]) % _TMA_BYTES:
        return None
    argument, affine = found
    own = [Dimension(step, size, axis=d) for d, (step, size) in enumerate(zip(affine.steps, pointers.type.shape, strict=True))]
    own.sort(key=lambda dim: dim.stride == ONE)
    if own[-1].stride != ONE or any(not _is_stride(forms, dim.stride, element_bytes, is_known) for dim in own[:-1]):
        return None
    if len({dim.stride for dim in own}) < len(own):
        return None
    if not all(_bound(forms, dim, [b for b in bounds if b.dim == dim.axis]) for dim in own):
        return None
    if loaded is not None:
        affine = _without_unobserved(forms, affine, own, loaded)
    placed = _place(forms, affine, own, element_bytes, is_known)
    if placed is None:
        return None
    base, dimensions = placed
    conditions = _conditions(forms, dimensions, element_bytes)
    if conditions is None:
        return None
    aligned = all(is_aligned(forms, dim.stride, element_bytes) for dim in dimensions[:-1])
    return Box(argument, base, dimensions, list(dict.fromkeys(conditions)), aligned)


def is_aligned(forms: Forms, elements: Polynomial, element_bytes: int) -> bool:
    """Whether a number of elements is known to take a multiple of 16 bytes."""
    return forms.divisibility(elements) * element_bytes % _TMA_BYTES == 0


def _is_stride(forms: Forms, stride: Polynomial, element_bytes: int, is_known: bool) -> bool:
    """Whether a stride may be one of a tensor map: something that the host can compute, and a multiple of 16 bytes. Of arguments, it is
    known whether they are multiples of 16; whether they are of 8 or less, which may suffice, the launch finds out unless `is_known`."""
    if not stride.terms or not forms.is_host(stride):
        return False
    return is_aligned(forms, stride, element_bytes) or not (is_known or stride.number is not None)


def _bound(forms: Forms, dim: Dimension, bounds: list[Bound]) -> bool:
    """Take what the mask says of a dimension; return whether it is a range of indices whose end the host knows."""
    upper = {b.distance for b in bounds if b.upper}
    lower = {b.distance for b in bounds if not b.upper}
    if len(upper) > 1 or len(lower) > 1:
        return False
    # index + distance < 0 where the coordinate, index + `coordinate`, is less than the extent.
    distance = next(iter(upper), ZERO)
    if lower:
        dim.from_zero, dim.coordinate = True, lower.pop()
    elif upper:
        dim.coordinate = distance.split(forms.is_host_term)[1]
    if upper:
        dim.extent = dim.coordinate - distance
        return forms.is_host(dim.extent)
    return True


def _without_unobserved(forms: Forms, affine: Affine, own: list[Dimension], loaded: ir.Value) -> Affine:
    """Let indices run on, to beyond the array's end, that wrap around there where nobody looks at what they load."""
    for dim in own:
        if dim.is_bounded or len(dim.stride.terms) != 1:
            continue
        for term in affine.start.terms:
            index = quotient(term, dim.stride.terms[0])
            remainder = forms.unknowns[index[0][0]] if index is not None and len(index[0]) == 1 and index[1] == 1 else None
            if isinstance(remainder, Remainder) and forms.is_host(remainder.divisor):
                if is_unobserved(forms, loaded, dim.axis, remainder.dividend - remainder.divisor):
                    dim.coordinate, dim.extent = remainder.dividend, remainder.divisor
                    start = affine.start - Polynomial((term,)) + remainder.dividend * dim.stride
                    affine = Affine(start, affine.steps)
                    break
    return affine


def _place(
    forms: Forms, affine: Affine, own: list[Dimension], element_bytes: int, is_known: bool
) -> tuple[Polynomial, list[Dimension]] | None:
    """Write the offset of the tensor's first element as what the host adds to the argument and coordinates along dimensions, more of
    them where need be. Return both, or None."""
    rest = affine.start
    for dim in own:
        rest = rest - dim.coordinate * dim.stride
    base, moving = rest.split(forms.is_host_term)
    free = [dim for dim in own[:-1] if not dim.is_bounded and len(dim.stride.terms) == 1]
    free.sort(key=lambda dim: (-len(dim.stride.terms[0][0]), -dim.stride.terms[0][1]))
    moves: dict[Polynomial, Dimension] = {}
    for term in moving.terms:
        for dim in free:
            steps = quotient(term, dim.stride.terms[0])
            if steps is not None:
                dim.coordinate = dim.coordinate + Polynomial((steps,))
                break
        else:
            stride, steps = _parted(forms, term)
            if stride.number is not None and 0 < stride.number <= _MAX_STEP and not own[-1].is_bounded:
                own[-1].coordinate = own[-1].coordinate + Polynomial((term,))
            elif _is_stride(forms, stride, element_bytes, is_known):
                dim = moves.setdefault(stride, Dimension(stride))
                dim.coordinate = dim.coordinate + steps
            else:
                return None
    dimensions = [*moves.values(), *own]
    return (base, dimensions) if len(dimensions) <= _MAX_RANK else None


def _parted(forms: Forms, term: tuple[Monomial, int]) -> tuple[Polynomial, Polynomial]:
    """Return the factor of a term that the host can compute, and the one that it cannot."""
    monomial, coefficient = term
    known = tuple(n for n in monomial if forms.is_host_term((n,)))
    return Polynomial(((known, coefficient),)), Polynomial(((tuple(n for n in monomial if n not in known), 1),))


def _conditions(forms: Forms, dimensions: list[Dimension], element_bytes: int) -> list[str] | None:
    """Return the conditions under which all coordinates are right, or None if they cannot be shown to be."""
    out: list[str] = []
    for dim in dimensions:
        if not forms.exact(dim.coordinate, out):
            return None
        if not dim.from_zero and not forms.is_not_negative(dim.coordinate, out):
            return None
        if dim.extent is not None and not _lies_between(forms, 1, dim.extent, _MAX_EXTENT, out):
            return None
        if dim is not dimensions[-1]:
            is_far = dim.extent is None and not _is_narrow(forms, dim.coordinate)
            if not _lies_between(forms, -(-_WIDE_BYTES // element_bytes) if is_far else 1, dim.stride, None, out):
                return None
        elif not is_aligned(forms, dim.coordinate, element_bytes):
            return None  # the H200 refuses such a coordinate
    return out


def _is_narrow(forms: Forms, coordinate: Polynomial) -> bool:
    """Whether a coordinate is plainly a number of 32 bits."""
    if coordinate.number is not None:
        return True
    (monomial, coefficient), *others = coordinate.terms
    value = forms.unknowns[monomial[0]] if not others and len(monomial) == coefficient == 1 else None
    return isinstance(value, ir.Value) and value.type.width <= 32


def _lies_between(forms: Forms, least: int, polynomial: Polynomial, most: int | None, conditions: list[str]) -> bool:
    """Whether a polynomial of the host lies between two numbers: by itself, or under a condition, which is added."""
    if polynomial.number is not None:
        return polynomial.number >= least and (most is None or polynomial.number <= most)
    bound = "" if most is None else f" <= {most}"
    conditions.append(f"{least} <= {forms.text(polynomial)}{bound}")
    return True
