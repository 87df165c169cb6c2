"""`CompiledKernel`: what `compile` returns: artefacts, metadata, and, once loaded on a GPU, the function that can be launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from .backends import backend_class
from .host import host


class KernelMetadata(SimpleNamespace):
    """What is known of a compiled kernel: name, target, hash, `shared` (bytes of dynamic shared memory), all options, ..."""

    def _asdict(self) -> dict[str, Any]:
        return dict(vars(self))


class Artefacts(Mapping):
    """The outputs of the stages by extension: text, or bytes for the binary. Text of a cached kernel is read when it is asked for.

    "sass" is made when it is asked for, with nvdisasm or cuobjdump.
    """

    def __init__(self, made: dict[str, Any], readers: dict[str, Callable[[str], str]] | None = None, order: list[str] | None = None):
        self._made = made
        self._readers = readers or {}
        self._order = order or list(made)

    def __getitem__(self, ext: str) -> Any:
        if ext not in self._made:
            if ext == "sass" and "cubin" in self._order:
                from .backends.nvidia.disasm import sass

                self._made[ext] = sass(self["cubin"])
            elif ext in self._readers:
                self._made[ext] = self._readers[ext](ext)
            else:
                raise KeyError(f"{ext}; there are {', '.join(self._order)}")
        return self._made[ext]

    def __iter__(self) -> Iterator[str]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, ext: object) -> bool:
        return ext in self._order or (ext == "sass" and "cubin" in self._order)

    def __repr__(self) -> str:
        return f"Artefacts({', '.join(self._order)})"


class CompiledKernel:
    """A compiled kernel. Launch it with `kernel[grid](*arguments)`, all parameters of the Python function given.

    `n_regs`, `n_spills` (32-bit words a thread) and `n_max_threads` come from ptxas, and from the driver once the kernel is loaded.
    `timings` is milliseconds per stage, empty if it came from the cache; `options` are those that it was compiled with on request.
    """

    def __init__(
        self,
        src: Any,
        metadata: dict[str, Any],
        artefacts: Artefacts,
        binary_ext: str,
        timings: dict[str, float] | None = None,
        options: Mapping[str, Any] | None = None,
    ):
        self.src = src
        self.options = dict(options or {})
        self.metadata = KernelMetadata(**metadata)
        self.hash: str = metadata["hash"]
        self.name: str = metadata["name"]
        self.asm = artefacts
        self.timings = timings or {}
        self.kernel: bytes = artefacts[binary_ext]
        self.packed_metadata = (self.metadata.num_warps, self.metadata.num_ctas, self.metadata.shared)
        self.n_regs: int = metadata.get("n_regs", 0)
        self.n_spills: int = metadata.get("n_spills", 0)
        self.n_max_threads: int = metadata.get("n_max_threads", 0)
        self.module: Any = None
        self.function: Any = None
        self._run: Callable[..., None] | None = None

    def _init_handles(self) -> None:
        """Load the binary on the current device, once. Raises OutOfResources if a block needs more than the device has."""
        if self.module is None:
            self.module, self.function, self.n_regs, self.n_spills, self.n_max_threads = host().load(self)

    @property
    def run(self) -> Callable[..., None]:
        """`run(grid_x, grid_y, grid_z, stream, function, packed_metadata, launch_metadata, enter_hook, exit_hook, *arguments)`."""
        if self._run is None:
            self._init_handles()
            self._run = host().launcher(self)
        return self._run

    def launch_metadata(self, grid: tuple[int, ...], stream: int, *args: Any) -> dict[str, Any]:
        """What launch hooks are told: name, function, stream, and what the kernel's own `launch_metadata` function adds."""
        self._init_handles()
        known = {"name": self.name, "function": self.function, "stream": stream}
        extra = getattr(getattr(self.src, "fn", None), "launch_metadata", None)
        if extra is not None:
            arguments = dict(zip(self.src.fn.arg_names, args, strict=False))
            known.update(extra(grid, self.metadata, {**arguments, **known}) or {})
        return known

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*args: Any, stream: int | None = None) -> None:
            run = self.run
            at = host().current_stream() if stream is None else stream
            run(*evaluate_grid(grid, {}, self.name), at, self.function, self.packed_metadata, None, None, None, *args)

        return launch

    def __repr__(self) -> str:
        return (
            f"CompiledKernel({self.name}, {self.metadata.target.backend}:{self.metadata.target.arch}, num_warps={self.metadata.num_warps})"
        )


def evaluate_grid(grid: Any, bound: dict[str, Any], name: str) -> tuple[int, int, int]:
    """The three dimensions of a grid given as a tuple, or as a function of the arguments by name. Raises TypeError or ValueError."""
    size = grid(dict(bound)) if callable(grid) else grid
    try:
        size = tuple(size)
    except TypeError:
        raise TypeError(f"grid of {name} must be a tuple of 1 to 3 integers, or a function that returns one, not {size!r}") from None
    if not 1 <= len(size) <= 3:
        raise ValueError(f"grid of {name} must have 1 to 3 dimensions, not {len(size)}")
    try:
        x, y, z = (*(getattr(n, "value", n).__index__() for n in size), 1, 1)[:3]
    except (AttributeError, TypeError):
        raise TypeError(f"grid of {name} must hold integers, not {size!r} (divide with triton.cdiv or //)") from None
    if min(x, y, z) < 0:
        raise ValueError(f"grid of {name} must not be negative: {size}")
    return x, y, z


def max_shared_mem(target: Any) -> int:
    """Bytes of shared memory that a block may use on `target`."""
    from .backends.nvidia.target import arch_of

    backend_class(target.backend)
    return arch_of(target).max_shared
