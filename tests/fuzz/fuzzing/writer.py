"""What the makers of statements write to: names, scopes, arguments, and the loads that bring values in."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import Any

from .program import Array, Helper, Statement
from .types import BOOL, FLOATS, FP8S, I32, INTEGERS, DType, Type

MAX_NUMEL = 4096


class Writer:
    """The kernel that is being made. Makers call `emit` and pick operands from what is visible."""

    def __init__(self, rng: random.Random, programs: int):
        self.rng = rng
        self.programs = programs
        self.arguments: dict[str, Any] = {}
        self.constexprs: dict[str, Any] = {}
        self.helpers: list[Helper] = []
        self.block: list[Statement] = []
        self.scopes: list[dict[str, Type]] = [{}]
        self.fixed: set[str] = set()  # variables that must not be assigned again: loop counters
        self.depth = 0
        self.loops = 0
        self.shapes: list[tuple[int, ...]] = []
        self.dtypes: list[DType] = []
        self.special = False
        self.most_ctas = 8  # a cluster may have: what has no mask needs an element for each
        self.weights: dict[str, float] = {}  # by the name of a maker
        self._names = 0

    # Names and statements

    def fresh(self) -> str:
        """A new variable name."""
        self._names += 1
        return f"v{self._names}"

    def chance(self, p: float) -> bool:
        """True with probability `p`."""
        return self.rng.random() < p

    def emit(self, type: Type, text: str) -> str:
        """Append `v = text`; returns v."""
        name = self.fresh()
        self.block.append(Statement(f"{name} = {text}", ((name, type),)))
        self.scopes[-1][name] = type
        return name

    def emit_several(self, types: list[Type], text: str) -> list[str]:
        """Append `v, w = text`."""
        names = [self.fresh() for _ in types]
        self.block.append(Statement(f"{', '.join(names)} = {text}", tuple(zip(names, types, strict=True))))
        self.scopes[-1].update(zip(names, types, strict=True))
        return names

    def assign(self, name: str, text: str) -> None:
        """Append an assignment to a variable that there is."""
        self.block.append(Statement(f"{name} = {text}", ((name, self.type(name)),)))

    def run(self, text: str) -> None:
        """Append a statement that sets nothing."""
        self.block.append(Statement(text))

    @contextmanager
    def nested(self):
        """Collect statements of an inner block in the list that is yielded; what they define is not visible afterwards."""
        outer, self.block = self.block, []
        self.scopes.append({})
        self.depth += 1
        try:
            yield self.block
        finally:
            self.block = outer
            self.scopes.pop()
            self.depth -= 1

    # Variables

    def visible(self) -> dict[str, Type]:
        """All variables in scope."""
        return {name: type for scope in self.scopes for name, type in scope.items()}

    def type(self, name: str) -> Type:
        """The type of a variable in scope."""
        return next(scope[name] for scope in reversed(self.scopes) if name in scope)

    def candidates(self, accept=lambda type: True) -> list[str]:
        """Variables whose type is accepted."""
        return [name for name, type in self.visible().items() if accept(type)]

    def pick(self, accept=lambda type: True) -> str | None:
        """A variable whose type is accepted, rather a late one, or None."""
        names = self.candidates(accept)
        if not names:
            return None
        return names[max(self.rng.randrange(len(names)), self.rng.randrange(len(names)))]

    def value(self, type: Type) -> str:
        """A variable of exactly this type: one that there is, one converted, or one loaded."""
        found = self.pick(lambda t: t == type)
        if found and self.chance(0.8):
            return found
        other = self.pick(lambda t: t.shape == type.shape)
        if other and self.chance(0.5) and not self.unsafe_cast(self.type(other).dtype, type.dtype):
            return self.emit(type, f"{other}.to({type.dtype.spelled})")
        return self.load(type)

    def tensor(self, dtypes: list[DType] | None = None, min_rank: int = 1) -> str:
        """A variable of a tensor type with one of these element types, loaded if there is none."""
        accepted = dtypes or list(self.dtypes)
        found = self.pick(lambda t: len(t.shape) >= min_rank and t.dtype in accepted)
        if found and self.chance(0.9):
            return found
        shapes = [s for s in self.shapes if len(s) >= min_rank] or [(16, 16)]
        return self.load(Type(self.rng.choice(accepted), self.rng.choice(shapes)))

    @staticmethod
    def unsafe_cast(source: DType, target: DType) -> bool:
        """Whether a conversion may be undefined: a float to an integer out of range."""
        return (source.is_float or source.kind == "fp8") and target.is_int

    # Arguments

    def argument(self, value: Any) -> str:
        """A new argument of the kernel."""
        prefix = "a" if isinstance(value, Array) else "n"
        name = f"{prefix}{sum(other.startswith(prefix) for other in self.arguments)}"
        self.arguments[name] = value
        return name

    def constexpr(self, value: Any) -> str:
        """A new constexpr parameter."""
        name = f"C{len(self.constexprs)}"
        self.constexprs[name] = value
        return name

    def scalar_argument(self) -> str:
        """An integer argument below 100, as int32 (1 and multiples of 16 are specialized)."""
        return self.argument(self.rng.choice([1, 2, 3, 5, 7, 16, 17, 32, 48, 64, 99]))

    def array_fill(self, dtype: DType) -> str:
        """How to fill an input."""
        if dtype.kind == "bool":
            return "small"
        if dtype.is_int:
            return self.rng.choice(["small", "full", "full", "special"])
        return self.rng.choice(["small", "small", "unit", "full", "special" if self.special else "small"])

    # Memory

    def index(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int | str = 0, full: bool = True) -> str:
        """Text of the offsets of a block with these strides; unless `full`, dimensions of stride 0 are left at size 1."""
        terms = []
        for d, (size, stride) in enumerate(zip(shape, strides, strict=True)):
            if stride or (full and size > 1):
                picks = ", ".join(":" if i == d else "None" for i in range(len(shape)))
                arange = f"tl.arange(0, {size})" + (f"[{picks}]" if len(shape) > 1 else "")
                terms.append(arange if stride == 1 else f"{arange} * {stride}")
        if not terms:
            terms = [f"tl.zeros({[1] * len(shape)}, tl.int32)"] if shape else ["0"]
        return " + ".join([*terms, *([str(offset)] if offset != 0 else [])])

    def strides(self, shape: tuple[int, ...], dense: bool = False) -> tuple[tuple[int, ...], int]:
        """(strides, elements that they span): row-major, permuted, padded or with holes; `dense` is row-major or permuted."""
        order = list(range(len(shape)))
        if self.chance(0.3):
            self.rng.shuffle(order)
        step = 1 if dense or self.chance(0.8) else self.rng.choice([2, 3, 4])
        strides = [0] * len(shape)
        for d in reversed(order):
            strides[d] = step
            step *= shape[d]
            if not dense and self.chance(0.15):
                step += self.rng.choice([1, 3, 8])
        return tuple(strides), max(1, step)

    def load(self, type: Type) -> str:
        """Append a load from a new array; returns the variable that holds it."""
        rng, shape = self.rng, type.shape
        if not shape:
            array = self.argument(Array(type.dtype.code, self.programs, self.array_fill(type.dtype), rng.randrange(2**31)))
            return self.emit(type, f"tl.load({array} + pid)")
        strides, span = self.strides(shape)
        if len(shape) > 1 and self.chance(0.15):  # a row or column, repeated
            d = rng.randrange(len(shape))
            strides = tuple(0 if i == d else s for i, s in enumerate(strides))
        offset = rng.choice([0, 0, 0, 1, 16])
        size = span * self.programs + offset
        array = self.argument(Array(type.dtype.code, size, self.array_fill(type.dtype), rng.randrange(2**31)))
        index = self.index(shape, strides, offset)
        pointer = rng.choice([f"{array} + (pid * {span} + {index})", f"{array} + pid * {span} + ({index})"])
        if not any(strides) and self.chance(0.5):
            pointer = f"{array} + pid * {span} + tl.zeros({list(shape)}, tl.int32)"
        modifiers = rng.choice(["", "", "", ", cache_modifier='.cg'", ", cache_modifier='.ca'", ", eviction_policy='evict_last'"])
        if self.chance(0.6):
            return self.emit(type, f"tl.load({pointer}{modifiers})")
        mask = self.mask(shape)
        if self.chance(0.1):
            loaded = self.emit(type, f"tl.load({pointer}, mask={mask}{modifiers})")
            del self.scopes[-1][loaded]  # its masked-off lanes are undefined
            return self.emit(type, f"tl.where({mask}, {loaded}, {self.number_of(type)})")
        other = self.number(type.dtype)
        same = self.pick(lambda t: t == type)
        if same and self.chance(0.3):
            other = same
        return self.emit(type, f"tl.load({pointer}, mask={mask}, other={other}{modifiers})")

    def mask(self, shape: tuple[int, ...]) -> str:
        """Text of a mask of a shape."""
        rng = self.rng
        found = self.pick(lambda t: t == Type(BOOL, shape))
        if found and self.chance(0.4):
            return found
        limit = self.scalar() if self.chance(0.5) else str(rng.randrange(0, max(shape) + 2))
        if len(shape) > 1 and self.chance(0.6):
            d = rng.randrange(len(shape))
            line = self.index(shape, tuple(int(i == d) for i in range(len(shape))), full=False)
            return f"tl.broadcast_to(({line}) < {limit}, {list(shape)})" if self.chance(0.5) else f"(({line}) < {limit})"
        strides, step = [], 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
        comparison = rng.choice(["<", "<", "<", ">=", "!="])
        return f"(({self.index(shape, tuple(strides))}) {comparison} {limit})"

    def scalar(self) -> str:
        """A scalar int32: an argument, or a variable brought into 0 .. 127."""
        found = self.pick(lambda t: t == Type(I32))
        if found and self.chance(0.5):
            return f"({found} & 127)"
        names = [n for n, v in self.arguments.items() if isinstance(v, int) and not isinstance(v, bool) and abs(v) < 100]
        if names and self.chance(0.6):
            return self.rng.choice(names)
        return self.scalar_argument()

    def store(self, name: str, mask: bool = True) -> None:
        """Append a store of a variable to a new output."""
        type = self.type(name)
        value, rng = name, self.rng
        if not type.shape:
            array = self.argument(Array(type.dtype.code, self.programs, "pattern", 0))
            self.run(f"tl.store({array} + pid, {value})")
            return
        shape = type.shape
        if len(shape) > 1 and self.chance(0.25):
            value, shape = f"tl.reshape({name}, [{type.numel}])", (type.numel,)
        strides, span = self.strides(shape)
        array = self.argument(Array(type.dtype.code, span * self.programs, "pattern", 0))
        pointer = f"{array} + pid * {span} + ({self.index(shape, strides)})"
        masked = f", mask={self.mask(shape)}" if mask and self.chance(0.3) else ""
        modifiers = rng.choice(["", "", "", ", cache_modifier='.cs'", ", eviction_policy='evict_first'"])
        self.run(f"tl.store({pointer}, {value}{masked}{modifiers})")

    # Numbers

    def number(self, dtype: DType) -> str:
        """A Python number that a type can hold."""
        rng = self.rng
        if dtype.kind == "bool":
            return rng.choice(["True", "False"])
        if dtype.is_int:
            choices = [0, 1, 2, 3, 7, 100, dtype.high]
            return str(rng.choice(choices + ([-1, -5, dtype.low] if dtype.kind == "int" else [])))
        return rng.choice(["0.0", "1.0", "0.5", "-2.0", "3", "-1.25", "0.1"])

    def number_of(self, type: Type) -> str:
        """A tensor of one number, as text."""
        return (
            f"tl.full({list(type.shape)}, {self.number(type.dtype)}, {type.dtype.spelled})"
            if type.dtype in FP8S
            else self.number(type.dtype)
        )


def default_dtypes(rng: random.Random) -> list[DType]:
    """Some element types for one program: a few, so that values of the same type meet."""
    pool = [*FLOATS, *FLOATS, *INTEGERS, I32, BOOL]
    return list(dict.fromkeys(rng.choice(pool) for _ in range(rng.randrange(2, 6))))
