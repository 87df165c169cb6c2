"""Affine forms: which integers and pointers of a kernel are a scalar plus, along each dimension, the index times a scalar.

The scalars are polynomials over *unknowns*: scalars of the kernel that are no sums or products, and remainders of tile starts (see
`Remainder`). Values that a loop advances by a fixed amount are polynomials in the loop's index.

As in `axis_info`, index arithmetic is taken not to overflow, and what the device divides by is taken to be positive.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from .axis_info import low_bit
from .host_values import host_expression
from .polynomial import ONE, ZERO, Monomial, Polynomial

_MAX_TERMS = 16
_SAME = frozenset({"arith.extsi", "tile.broadcast"})
_PURE = frozenset({"arith.divsi", "arith.remsi", "arith.minsi", "arith.maxsi"})
_SLT, _SLE, _SGT, _SGE = 2, 3, 4, 5


@dataclass(frozen=True)
class Affine:
    """The elements of a tensor: `start` + Σ `steps[d]` · (index along dimension d)."""

    start: Polynomial
    steps: tuple[Polynomial, ...]


@dataclass(frozen=True)
class Remainder:
    """`dividend` % `divisor`, of the first of `extent` consecutive numbers. They do not wrap around if both are multiples of `extent`;
    until that is known (`Forms.exact`), what contains a remainder is right only for the first of them. Unless it `wraps`, it is 0 in place
    of what would be `divisor` or more."""

    dividend: Polynomial
    divisor: Polynomial
    extent: int
    wraps: bool = True


@dataclass(frozen=True)
class Bound:
    """What a mask asks of dimension `dim`: index + `distance` < 0 if `upper`, else index + `distance` >= 0."""

    dim: int
    upper: bool
    distance: Polynomial


class Forms:
    """The forms of the values of one function, found when they are asked for."""

    def __init__(self, function: ir.Operation):
        self.function = function
        self.unknowns: list[ir.Value | Remainder] = []
        self._numbers: dict[ir.Value | Remainder, int] = {}
        self._scalars: dict[ir.Value, Polynomial] = {}
        self._open: dict[ir.Value, Polynomial] = {}  # carried values whose advance is being found, as unknowns
        self._tensors: dict[ir.Value, Affine | None] = {}
        self._texts: dict[int, str | None] = {}
        self._classes: dict[tuple, int] = {}
        self._aligned: list[int] | None = None  # what divides each argument
        self._not_negative: dict[int, list[str] | None] = {}  # conditions under which an unknown is not

    def _unknown(self, thing: ir.Value | Remainder) -> Polynomial:
        number = self._numbers.setdefault(thing, len(self.unknowns))
        if number == len(self.unknowns):
            self.unknowns.append(thing)
        return Polynomial.unknown(number)

    # Scalars

    def scalar(self, value: ir.Value) -> Polynomial:
        """Return an integer scalar as a polynomial."""
        found = self._open.get(value) or self._scalars.get(value)
        if found is None:
            found = self._scalar(value)
            if len(found.terms) > _MAX_TERMS:
                found = self._unknown(value)
            self._scalars[value] = found
        return found

    def _scalar(self, value: ir.Value) -> Polynomial:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._carried(value) or self._unknown(value)
        op = owner.operation
        match op.name:
            case "arith.constant" if isinstance(op.attributes["value"], ir.IntegerAttr):
                return Polynomial.constant(op.attributes["value"].value)
            case "arith.addi":
                return self.scalar(op.operands[0]) + self.scalar(op.operands[1])
            case "arith.subi":
                return self.scalar(op.operands[0]) - self.scalar(op.operands[1])
            case "arith.muli":
                return self.scalar(op.operands[0]) * self.scalar(op.operands[1])
            case "arith.extsi":
                return self.scalar(op.operands[0])
        return self._unknown(value)

    def _carried(self, value: ir.Value) -> Polynomial | None:
        """Return an integer that a loop advances by a fixed amount, or None."""
        loop = _loop_of(value)
        if loop is None or value.arg_number == 0:
            return None
        own = self._open[value] = self._unknown(value)
        advance = self.scalar(_next_of(loop, value)) - own
        del self._open[value]
        self._scalars.clear()  # some may have been written in terms of it
        steps = self._times(loop, advance)
        return None if steps is None else self.scalar(_init_of(loop, value)) + steps

    def _times(self, loop: ir.Operation, advance: Polynomial) -> Polynomial | None:
        """Return what additions of `advance` in each iteration so far amount to, or None if it changes in the loop."""
        if self.changes_in(loop, advance):
            return None
        lower, _, step = list(loop.operands)[:3]
        size = self.scalar(step).number
        per_index = advance.divided(size) if size else None
        if per_index is None:
            return None
        return per_index * (self._unknown(loop.regions[0].blocks[0].arguments[0]) - self.scalar(lower))

    def changes_in(self, loop: ir.Operation, polynomial: Polynomial) -> bool:
        """Whether something that a loop computes occurs in a polynomial."""
        return any(_is_inside(self.unknowns[number], loop) for number in polynomial.unknowns())

    def pointer(self, value: ir.Value) -> tuple[ir.Value, Polynomial] | None:
        """Return a scalar pointer as an argument of the function and a distance in elements, or None."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            if owner.owner.operation.name == "func.func":
                return value, ZERO
            loop = _loop_of(value)
            if loop is None:
                return None
            advance, current = ZERO, _next_of(loop, value)
            while current != value:
                op = _defining(current)
                if op is None or op.name != "tile.addptr":
                    return None
                advance, current = advance + self.scalar(op.operands[1]), op.operands[0]
            steps, first = self._times(loop, advance), self.pointer(_init_of(loop, value))
            return None if steps is None or first is None else (first[0], first[1] + steps)
        op = owner.operation
        if op.name != "tile.addptr":
            return None
        base = self.pointer(op.operands[0])
        return None if base is None else (base[0], base[1] + self.scalar(op.operands[1]))

    # Tensors

    def tensor(self, value: ir.Value) -> Affine | None:
        """Return the form of a tensor of integers, or None if it has none."""
        if value not in self._tensors:
            op = _defining(value)
            self._tensors[value] = None if op is None else self._tensor(op)
        return self._tensors[value]

    def _tensor(self, op: ir.Operation) -> Affine | None:
        rank = op.results[0].type.rank
        match op.name:
            case "tile.splat":
                return Affine(self.scalar(op.operands[0]), (ZERO,) * rank)
            case "tile.range":
                return Affine(Polynomial.constant(ir.IntegerAttr(op.attributes["start"]).value), (ONE,))
            case "arith.constant":
                attribute = op.attributes["value"]
                if not isinstance(attribute, ir.DenseIntElementsAttr) or not attribute.is_splat:
                    return None
                return Affine(Polynomial.constant(ir.IntegerAttr(attribute.get_splat_value()).value), (ZERO,) * rank)
            case "arith.select":
                return self._replaced(op)
        parts = [self.tensor(v) for v in op.operands] if op.name in _COMBINING else []
        if not parts or None in parts:
            return None
        a, b = parts[0], parts[-1]
        match op.name:
            case "arith.addi":
                return Affine(a.start + b.start, tuple(x + y for x, y in zip(a.steps, b.steps, strict=True)))
            case "arith.subi":
                return Affine(a.start - b.start, tuple(x - y for x, y in zip(a.steps, b.steps, strict=True)))
            case "arith.muli":
                a, b = (a, b) if not any(s.terms for s in b.steps) else (b, a)
                if any(s.terms for s in b.steps):
                    return None
                return Affine(a.start * b.start, tuple(s * b.start for s in a.steps))
            case "arith.remsi":
                return self._remainder(a, b, list(op.results[0].type.shape))
            case "tile.expand_dims":
                axis = ir.IntegerAttr(op.attributes["axis"]).value
                return Affine(a.start, (*a.steps[:axis], ZERO, *a.steps[axis:]))
            case "tile.trans":
                return Affine(a.start, tuple(a.steps[d] for d in ir.DenseI32ArrayAttr(op.attributes["order"])))
        return a

    def _remainder(self, a: Affine, b: Affine, shape: list[int]) -> Affine | None:
        """Return `a % b` as it is where no tile wraps around in its middle."""
        moving = [d for d, step in enumerate(a.steps) if step.terms]
        if len(moving) != 1 or a.steps[moving[0]] != ONE or any(s.terms for s in b.steps):
            return None
        return Affine(self._unknown(Remainder(a.start, b.start, shape[moving[0]])), a.steps)

    def _replaced(self, op: ir.Operation) -> Affine | None:
        """Return `where(a < limit, a, 0)`."""
        condition, a, b = op.operands
        index, other = self.tensor(a), self.tensor(b)
        bounds = self.bounds(condition) if index is not None and other is not None else None
        if not bounds or len(bounds) > 1 or not bounds[0].upper or other.start.terms or any(s.terms for s in other.steps):
            return None
        dim = bounds[0].dim
        if index.steps[dim] != ONE or sum(bool(s.terms) for s in index.steps) > 1:
            return None
        limit = index.start - bounds[0].distance
        return Affine(self._unknown(Remainder(index.start, limit, a.type.shape[dim], False)), index.steps)

    def pointers(self, value: ir.Value) -> tuple[ir.Value, Affine] | None:
        """Return a tensor of pointers as an argument of the function and distances in elements, or None."""
        op = _defining(value)
        if op is None:
            return None
        if op.name == "tile.splat":
            base = self.pointer(op.operands[0])
            return None if base is None else (base[0], Affine(base[1], (ZERO,) * value.type.rank))
        if op.name == "tile.broadcast":
            return self.pointers(op.operands[0])
        if op.name != "tile.addptr":
            return None
        base, offset = self.pointers(op.operands[0]), self.tensor(op.operands[1])
        if base is None or offset is None:
            return None
        steps = tuple(x + y for x, y in zip(base[1].steps, offset.steps, strict=True))
        return base[0], Affine(base[1].start + offset.start, steps)

    # Masks

    def bounds(self, mask: ir.Value) -> list[Bound] | None:
        """Return the bounds of whose conjunction a mask consists, or None if it is not one."""
        op = _defining(mask)
        if op is None:
            return None
        match op.name:
            case "tile.broadcast":
                return self.bounds(op.operands[0])
            case "tile.expand_dims":
                axis, inner = ir.IntegerAttr(op.attributes["axis"]).value, self.bounds(op.operands[0])
                return None if inner is None else [Bound(b.dim + (b.dim >= axis), b.upper, b.distance) for b in inner]
            case "arith.andi":
                both = [self.bounds(v) for v in op.operands]
                return None if None in both else both[0] + both[1]
            case "arith.constant":
                attribute = op.attributes["value"]
                return [] if attribute.is_splat and ir.IntegerAttr(attribute.get_splat_value()).value else None
            case "arith.cmpi":
                return self._comparison(op)
        return None

    def _comparison(self, op: ir.Operation) -> list[Bound] | None:
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        a, b = (self.tensor(v) for v in op.operands)
        if a is None or b is None or predicate not in (_SLT, _SLE, _SGT, _SGE):
            return None
        if predicate in (_SLT, _SGE):
            b = self._unclamped(op.operands[1], a) or b
        if predicate in (_SGT, _SGE):
            a, b = b, a
        # index · step + start < 0
        start, steps = a.start - b.start, [x - y for x, y in zip(a.steps, b.steps, strict=True)]
        if predicate in (_SLE, _SGE):
            start = start - ONE
        moving = [d for d, step in enumerate(steps) if step.terms]
        if len(moving) != 1 or steps[moving[0]].number not in (1, -1):
            return None
        if steps[moving[0]] == ONE:
            return [Bound(moving[0], True, start)]
        return [Bound(moving[0], False, ZERO - start - ONE)]

    def _unclamped(self, limit: ir.Value, index: Affine) -> Affine | None:
        """Return a limit that `index`, from 0 to its dimension's size, is compared with, without the clamping to these that changes no
        comparison by < or >=; None if it is none."""
        moving = [d for d, step in enumerate(index.steps) if step.terms]
        op = _defining(limit)
        while op is not None and op.name in ("tile.broadcast", "tile.expand_dims"):
            op = _defining(op.operands[0])
        if op is None or op.name != "tile.splat" or index.start != ZERO or len(moving) != 1 or index.steps[moving[0]] != ONE:
            return None
        size = limit.type.shape[moving[0]]
        scalar = op.operands[0]
        while (op := _defining(scalar)) is not None:
            if op.name in ("arith.minsi", "arith.maxsi"):
                number = self.scalar(op.operands[1]).number
                if number is None or not (number >= size if op.name == "arith.minsi" else number <= 0):
                    break
            elif op.name != "arith.trunci":
                break
            scalar = op.operands[0]
        return Affine(self.scalar(scalar), (ZERO,) * len(index.steps))

    # What is known of polynomials

    def divisibility(self, polynomial: Polynomial) -> int:
        """Return a power of two that divides a polynomial, whatever its unknowns are."""
        out = low_bit(0)
        for monomial, coefficient in polynomial.terms:
            divisor = low_bit(coefficient)
            for number in monomial:
                divisor *= self._divisibility(self.unknowns[number])
            out = min(out, divisor)
        return out

    def _divisibility(self, thing: ir.Value | Remainder) -> int:
        if isinstance(thing, Remainder):
            return thing.extent
        owner = thing.owner
        if not isinstance(owner, ir.Block):
            return 1
        op = owner.owner.operation
        if op.name == "func.func":
            return self.argument_divisibility(thing)
        if op.name == "scf.for" and thing.arg_number == 0:
            return min(self.divisibility(self.scalar(op.operands[i])) for i in (0, 2))
        return 1

    def argument_divisibility(self, argument: ir.Value) -> int:
        """Return a power of two that divides an argument of the function."""
        if self._aligned is None:
            found = ir.ArrayAttr(self.function.attributes["arg_attrs"]) if "arg_attrs" in self.function.attributes else ()
            self._aligned = [low_bit(ir.IntegerAttr(a["tile.divisibility"]).value) if "tile.divisibility" in a else 1 for a in found]
        return self._aligned[argument.arg_number] if self._aligned else 1

    def same(self, a: Polynomial, b: Polynomial) -> bool:
        """Whether two polynomials are equal, also where one computation is made twice in the kernel."""
        return a == b or self._canonical(a) == self._canonical(b)

    def _canonical(self, polynomial: Polynomial) -> Polynomial:
        return Polynomial.of((tuple(sorted(map(self._class, m))), c) for m, c in polynomial.terms)

    def _class(self, number: int) -> int:
        """Return the number of the first unknown that is computed like this one."""
        thing = self.unknowns[number]
        op = None if isinstance(thing, Remainder) else _defining(thing)
        if op is None or op.name not in _PURE:
            return number
        operands = tuple(self._canonical(self.scalar(v)) for v in op.operands)
        return self._classes.setdefault((op.name, operands), number)

    def is_host(self, polynomial: Polynomial) -> bool:
        """Whether the host can compute a polynomial before the launch."""
        return all(self.text_of(number) is not None for number in polynomial.unknowns())

    def is_host_term(self, monomial: Monomial) -> bool:
        """Whether the host can compute a product."""
        return all(self.text_of(number) is not None for number in monomial)

    def text_of(self, number: int) -> str | None:
        """Return an unknown as an expression of the host (`host_values`), or None."""
        if number not in self._texts:
            thing = self.unknowns[number]
            self._texts[number] = None if isinstance(thing, Remainder) else host_expression(thing)
        return self._texts[number]

    def text(self, polynomial: Polynomial) -> str:
        """Return a polynomial that the host can compute as an expression."""
        terms = ["*".join([str(c)] * (c != 1 or not m) + [str(self.text_of(n)) for n in m]) for m, c in polynomial.terms]
        return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})" if terms else "0"

    def exact(self, polynomial: Polynomial, conditions: list[str]) -> bool:
        """Whether no tile wraps around for the remainders in a polynomial, under conditions on the arguments, which are added."""
        for number in sorted(polynomial.unknowns()):
            thing = self.unknowns[number]
            if isinstance(thing, Remainder) and not (self._is_exact(thing, conditions) and self.exact(thing.dividend, conditions)):
                return False
        return True

    def _is_exact(self, remainder: Remainder, conditions: list[str]) -> bool:
        divisor, extent = remainder.divisor, remainder.extent
        if not remainder.wraps or remainder.dividend.divided(extent) is None or not self.is_host(divisor):
            return False
        if divisor.number is not None:
            return divisor.number > 0 and divisor.number % extent == 0
        # Of arguments, it is known whether they are multiples of 16.
        if self.divisibility(divisor) < min(extent, 16):
            return False
        text = self.text(divisor)
        conditions += [f"{text} > 0", f"{text} % {extent} == 0"]
        return True

    def is_not_negative(self, polynomial: Polynomial, conditions: list[str]) -> bool:
        """Whether a polynomial is never negative, under conditions on the arguments (expressions of the host), which are added."""
        for monomial, coefficient in polynomial.terms:
            for number in monomial if coefficient > 0 else ():
                counted_down = self._counted_down(number)
                if counted_down is not None:
                    others = list(monomial)
                    others.remove(number)
                    factor = Polynomial(((tuple(others), coefficient),))
                    rest = polynomial - factor * counted_down
                    return self.is_not_negative(factor, conditions) and self.is_not_negative(rest, conditions)
        return all(
            coefficient > 0 and all(self._unknown_is_not_negative(n, conditions) for n in monomial)
            for monomial, coefficient in polynomial.terms
        )

    def _counted_down(self, number: int) -> Polynomial | None:
        """Return num_programs - 1 - program_id, which is not negative, for the unknown that is the former, or None."""
        programs = self._made_by(number, "tile.num_programs")
        if programs is None:
            return None
        for other in range(len(self.unknowns)):
            id_ = self._made_by(other, "tile.program_id")
            if id_ is not None and id_.attributes["axis"] == programs.attributes["axis"]:
                return Polynomial.unknown(number) - ONE - Polynomial.unknown(other)
        return None

    def _made_by(self, number: int, name: str) -> ir.Operation | None:
        """Return the operation of this name that makes an unknown, or None."""
        thing = self.unknowns[number]
        op = None if isinstance(thing, Remainder) else _defining(thing)
        return op if op is not None and op.name == name else None

    def _unknown_is_not_negative(self, number: int, conditions: list[str]) -> bool:
        if number not in self._not_negative:
            own: list[str] = []
            self._not_negative[number] = own if self._prove_not_negative(self.unknowns[number], number, own) else None
        found = self._not_negative[number]
        conditions += found or ()
        return found is not None

    def _prove_not_negative(self, thing: ir.Value | Remainder, number: int, conditions: list[str]) -> bool:
        if isinstance(thing, Remainder):
            return self.is_not_negative(thing.dividend, conditions)
        text = self.text_of(number)
        if text is not None:
            conditions.append(f"{text} >= 0")
            return True
        owner = thing.owner
        if isinstance(owner, ir.Block):
            op = owner.owner.operation
            if op.name != "scf.for" or thing.arg_number:
                return False
            return all(self.is_not_negative(self.scalar(op.operands[i]), conditions) for i in (0, 2))
        return self._result_is_not_negative(owner.operation, conditions)

    def _result_is_not_negative(self, op: ir.Operation, conditions: list[str]) -> bool:
        match op.name:
            case "tile.program_id" | "tile.num_programs" | "tile.cluster_rank":
                return True
            case "arith.divsi" | "arith.remsi":
                divisor = self.scalar(op.operands[1])
                if divisor.number is not None and divisor.number <= 0:
                    return False
                if divisor.number is None and self.is_host(divisor):
                    conditions.append(f"{self.text(divisor)} > 0")
                return self.is_not_negative(self.scalar(op.operands[0]), conditions)
            case "arith.minsi":
                return all(self.is_not_negative(self.scalar(v), conditions) for v in op.operands)
            case "arith.shrsi" | "arith.shrui":
                return self.is_not_negative(self.scalar(op.operands[0]), conditions)
            case "arith.maxsi" | "arith.andi":
                for v in op.operands:
                    own: list[str] = []
                    if self.is_not_negative(self.scalar(v), own):
                        conditions += own
                        return True
            case "arith.select":
                return all(self.is_not_negative(self.scalar(v), conditions) for v in list(op.operands)[1:])
        return False


_COMBINING = _SAME | {"arith.addi", "arith.subi", "arith.muli", "arith.remsi", "tile.expand_dims", "tile.trans"}


def _defining(value: ir.Value) -> ir.Operation | None:
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def _loop_of(value: ir.Value) -> ir.Operation | None:
    """Return the `scf.for` of whose body a value is an argument, or None."""
    op = value.owner.owner.operation
    return op if op.name == "scf.for" else None


def _init_of(loop: ir.Operation, value: ir.Value) -> ir.Value:
    return loop.operands[2 + value.arg_number]


def _next_of(loop: ir.Operation, value: ir.Value) -> ir.Value:
    operations = loop.regions[0].blocks[0].operations
    return operations[len(operations) - 1].operation.operands[value.arg_number - 1]


def _is_inside(thing: ir.Value | Remainder, loop: ir.Operation) -> bool:
    """Whether an unknown is made in a loop, or depends on what is."""
    if isinstance(thing, Remainder):
        return True
    owner = thing.owner
    op = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation.parent.operation
    while op.name != "func.func":
        if op == loop:
            return True
        op = op.parent.operation
    return False
