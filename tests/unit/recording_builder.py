"""A builder that computes nothing: it records the operations that the language asks for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tilewright.language import core
from tilewright.language.builder import Builder
from tilewright.language.dtypes import with_shape
from tilewright.language.semantic import Semantic

_METHODS = {name for name in vars(Builder) if not name.startswith("_")}
_NO_RESULT = {
    "store",
    "atomic_store",
    "print",
    "assert_",
    "assume",
    "barrier",
    "hint",
    "descriptor_store",
    "descriptor_reduce",
    "descriptor_scatter",
}


class RecordingBuilder:
    """Each call is appended to `calls` as (method, args, kwargs); handles are strings. Methods outside the protocol do not exist."""

    def __init__(self):
        self.calls: list[tuple[str, tuple, dict]] = []
        self._next = 0

    def handle(self) -> str:
        self._next += 1
        return f"%{self._next}"

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)

        def method(*args, **kwargs):
            self.calls.append((name, args, kwargs))
            return None if name in _NO_RESULT else self.handle()

        return method

    def split(self, a, ty):
        self.calls.append(("split", (a, ty), {}))
        return self.handle(), self.handle()

    def reduce(self, sources, axis, combine, types, tys, *, commutative=False):
        self.calls.append(("reduce", (sources, axis, types, tys), {}))
        combine([self.handle() for _ in range(2 * len(sources))])
        return [self.handle() for _ in sources]

    def scan(self, sources, axis, reverse, combine, types):
        self.calls.append(("scan", (sources, axis, reverse, types), {}))
        combine([self.handle() for _ in range(2 * len(sources))])
        return [self.handle() for _ in sources]

    def map_elementwise(self, sources, body, types):
        self.calls.append(("map_elementwise", (sources, types), {}))
        return [self.handle() for _ in body([self.handle() for _ in sources])]

    def inline_asm(self, asm, constraints, args, types, tys, **kwargs):
        self.calls.append(("inline_asm", (asm, constraints, args, types, tys), kwargs))
        return [self.handle() for _ in tys]

    def names(self) -> list[str]:
        """What was done, kinds included: ["constant", "addf", "load", ...]."""
        kinds = ("unary", "binary", "compare", "cast", "atomic_rmw", "special", "descriptor_reduce")
        return [args[0] if name in kinds else name for name, args, _ in self.calls]


class Kernel(Semantic):
    """A semantic over a `RecordingBuilder`, with options as keywords, to be used in a `with`."""

    def __init__(self, target: tuple[str, Any] = ("cuda", 90), **options):
        super().__init__(RecordingBuilder(), SimpleNamespace(**options), SimpleNamespace(backend=target[0], arch=target[1], warp_size=32))

    def __enter__(self) -> Kernel:
        self._scope = core.activate(self)
        self._scope.__enter__()
        return self

    def __exit__(self, *details) -> None:
        self._scope.__exit__(*details)

    def value(self, ty, *shape: int) -> core.tensor:
        """A tensor (a scalar without `shape`) of unknown origin."""
        return core.tensor(self.builder.handle(), with_shape(ty, shape))

    def names(self) -> list[str]:
        return self.builder.names()

    def last(self) -> tuple[str, tuple, dict]:
        return self.builder.calls[-1]
