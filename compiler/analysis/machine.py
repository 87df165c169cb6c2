"""`Machine`: the facts about the target that decisions on layouts need, kept as attributes of the module."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

_I32_ATTRIBUTES = {"num_warps": "tilegpu.num_warps", "threads_per_warp": "tilegpu.threads_per_warp", "num_ctas": "tilegpu.num_ctas"}


@dataclass(frozen=True)
class Machine:
    """What a kernel is compiled for. `target` reads "cuda:90"."""

    target: str
    num_warps: int
    threads_per_warp: int = 32
    num_ctas: int = 1

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.num_warps * self.threads_per_warp

    @property
    def capability(self) -> int:
        """Compute capability of an NVIDIA target (90 for sm_90), 0 for any other."""
        kind, _, arch = self.target.partition(":")
        return int(arch) if kind == "cuda" else 0

    @property
    def has_tma(self) -> bool:
        """Whether the target copies blocks by TMA."""
        return self.capability >= 90

    def write(self, module: ir.Operation) -> None:
        """Put the facts on the module."""
        i32 = ir.IntegerType.get_signless(32, module.context)
        attributes = module.attributes
        attributes["tilegpu.target"] = ir.StringAttr.get(self.target, module.context)
        for field, name in _I32_ATTRIBUTES.items():
            attributes[name] = ir.IntegerAttr.get(i32, getattr(self, field))

    @staticmethod
    def read(module: ir.Operation) -> Machine:
        """Read the facts from a module that `write` has marked. Raises ValueError for any other module."""
        attributes = module.attributes
        if "tilegpu.target" not in attributes:
            raise ValueError("the module has no tilegpu.target: run tilegpu-assign-layouts first")
        numbers = {field: ir.IntegerAttr(attributes[name]).value for field, name in _I32_ATTRIBUTES.items() if name in attributes}
        return Machine(ir.StringAttr(attributes["tilegpu.target"]).value, **numbers)
