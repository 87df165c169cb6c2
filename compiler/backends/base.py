"""What a backend is: the target it compiles for, its options, its stages."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple


class GPUTarget(NamedTuple):
    """A GPU to compile for: `GPUTarget("cuda", 90, 32)`, `GPUTarget("hip", "gfx942", 64)`."""

    backend: str
    arch: int | str
    warp_size: int


class Language(Enum):
    """The source language of a kernel."""

    TRITON = 0
    GLUON = 1


@dataclass
class Compilation:
    """One kernel on its way through the stages.

    `metadata` is what the launch and the user read later. `idle` is called by a stage while it waits for another program, so that work
    which nobody waits for (printing IR for the cache) costs nothing. `timings` is milliseconds per stage.
    """

    target: GPUTarget
    options: Any
    metadata: dict[str, Any]
    idle: Callable[[], None]
    resources: dict[str, Any] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)

    def timed(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Call `function(*args)` and add its time to the stage `name`."""
        start = time.perf_counter()
        result = function(*args)
        self.timings[name] = self.timings.get(name, 0.0) + (time.perf_counter() - start) * 1e3
        return result


Stage = Callable[[Any, dict[str, Any], Compilation], Any]


_ATTRIBUTES = {"D": ["tt.divisibility", 16], "N": ["tt.nan_padding", 1], "R": ["tt.round_tf32", 1]}


class BaseBackend(ABC):
    """One family of GPUs. `binary_ext` names its last stage, whose output is the bytes that the driver loads; `option_names` are the
    keywords that a launch accepts."""

    binary_ext: str
    ir_levels: tuple[str, ...]
    option_names: frozenset[str]

    def __init__(self, target: GPUTarget):
        self.target = target

    @staticmethod
    @abstractmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether this backend compiles for `target.backend`."""

    @abstractmethod
    def hash(self) -> str:
        """Identity of the target and of the external tools, part of every cache key."""

    @abstractmethod
    def parse_options(self, options: dict[str, Any]) -> Any:
        """The options object made of launch keywords.

        Raises KeyError for a name that is no option and ValueError for a value that is not accepted; both name what is.
        """

    @abstractmethod
    def add_stages(self, stages: dict[str, Stage], options: Any, language: Language = Language.TRITON) -> None:
        """Add the stages after the front end to `stages`, in order: name of the artefact -> function that makes it."""

    def schedule_passes(self, options: Any) -> list:
        """The passes from `ttir` as the front end makes it to loops whose schedule is written on them; ValueError if there is none."""
        raise ValueError(f"loops of {self.target.backend} have no schedule")

    def prepare(self, compilation: Compilation) -> None:
        """Start what can run beside the first stages. `finish` is called whether or not the stages succeed."""

    def finish(self, compilation: Compilation) -> None:
        """Release what `prepare` started."""

    def parse_attr(self, code: str) -> list[list]:
        """The parameter attributes that a specialization key stands for (see `runtime/specialize.py`)."""
        return [attribute for letter, attribute in _ATTRIBUTES.items() if letter in code]

    def pack_metadata(self, metadata: Any) -> tuple:
        """The part of the metadata that a launcher needs."""
        return (metadata.num_warps, metadata.num_ctas, metadata.shared)
