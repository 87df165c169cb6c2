"""Launching: arguments of any kind become values of the kernel's parameters, and the call of the driver."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.compiler import CompiledKernel, compile

from .allocator import Buffer, NullAllocator, get_allocator
from .arrays import is_array, on_gpu, pointer_and_code
from .frames import Frame, Packing, address, attributes_of, block_bytes, make_frame, packing
from .grids import Grids, Queue, grids_and_queue
from .tensor_maps import TENSOR_MAP_BYTES, TensorMapError, TensorMaps

#: type of the signature -> format of `struct`; bf16 is packed as its bits.
FORMATS = {"u1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
FORMATS |= {"fp16": "e", "bf16": "H", "fp32": "f", "fp64": "d"}


def format_of(kind: str) -> str:
    """The `struct` format of a type of the signature; raises TypeError."""
    if kind.startswith(("*", "nvTmaDesc")):
        return "Q"
    if kind not in FORMATS:
        raise TypeError(f"a kernel cannot take an argument of type {kind} by value")
    return FORMATS[kind]


def bf16_bits(value: float) -> int:
    """The bits of a bfloat16, rounded to nearest even."""
    bits = struct.unpack("<I", struct.pack("<f", _single(value)))[0]
    if math.isnan(value):
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _single(value: float) -> float:
    """A float that `struct` packs as f32: beyond its range, infinity."""
    try:
        struct.pack("<f", value)
    except OverflowError:
        return math.copysign(math.inf, value)
    return value


def _half(value: float) -> float:
    try:
        struct.pack("<e", value)
    except OverflowError:
        return math.copysign(math.inf, value)
    return value


def convert(kind: str, value: Any, name: str, is_accessible: Callable[[int], bool]) -> Any:
    """The value that is packed for an argument of type `kind`; raises TypeError or ValueError, naming the argument.

    `is_accessible(address)` is asked about memory that does not say that it is a GPU's.
    """
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if kind.startswith("*"):
        return _pointer(value, name, is_accessible)
    if kind == "u1":
        return bool(value)
    wanted, method = ("a number", "__float__") if kind in ("bf16", "fp16", "fp32", "fp64") else ("an integer", "__index__")
    if not hasattr(value, method) and not hasattr(value, "__index__"):
        raise TypeError(f"argument {name}: {kind} needs {wanted}, not {value!r}")
    if kind == "bf16":
        return bf16_bits(float(value))
    if kind in ("fp16", "fp32", "fp64"):
        return {"fp16": _half, "fp32": _single, "fp64": float}[kind](float(value))
    bits, signed = int(kind[1:]), kind[0] == "i"
    number = value.__index__()
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if not low <= number < high:
        raise ValueError(f"argument {name}: {number} does not fit in {kind}")
    return number


def _pointer(value: Any, name: str, is_accessible: Callable[[int], bool]) -> int:
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if not is_array(value):
        raise TypeError(f"argument {name}: Pointer argument must be either uint64 or have data_ptr method, not {type(value).__name__}")
    pointer = pointer_and_code(value)[0]
    if pointer and on_gpu(value) is not True and not is_accessible(pointer):
        where = f" on {value.device}" if hasattr(value, "device") else ""
        raise ValueError(
            f"argument {name}: Pointer argument cannot be accessed from Triton (cpu tensor?): "
            f"a {type(value).__name__}{where}; move it to the GPU"
        )
    return pointer


def flatten(kinds: Sequence[Any], values: Sequence[Any], names: Sequence[str]) -> list[tuple[str, Any, str]]:
    """(type, value, name) of what a kernel is passed: tuples taken apart, constants left out, host descriptors as base, shape, strides."""
    found: list[tuple[str, Any, str]] = []
    for kind, value, name in zip(kinds, values, names, strict=True):
        if isinstance(kind, tuple):
            found += flatten(kind, value, [f"{name}[{i}]" for i in range(len(kind))])
        elif kind.startswith("tensordesc<"):
            found.append(("*" + kind[len("tensordesc<") :].partition("[")[0], value.base, name))
            found += [("i32", size, f"{name}.shape") for size in value.shape]
            found += [("i64", stride, f"{name}.strides") for stride in value.strides]
        elif kind != "constexpr":
            found.append((kind, value, name))
    return found


class GenericLauncher:
    """Launches one loaded kernel with any arguments its signature allows. Each argument is checked: some 10 us a launch."""

    def __init__(self, kernel: Any, driver: Any):
        source, metadata = kernel.src, kernel.metadata
        self.kernel, self.driver = kernel, driver
        self.launch_function = driver.launch_function()
        self.name = kernel.name
        self.names = list(source.fn.arg_names) if hasattr(source, "fn") else list(source.signature)
        self.kinds = [source.signature[name] for name in self.names]
        self.function = address(kernel.function)
        self.num_ctas = metadata.num_ctas
        self.block = block_bytes(metadata.num_warps, getattr(metadata, "warp_size", 32), metadata.shared)
        self.attributes = attributes_of(metadata)
        self.layouts: dict[tuple, tuple[Packing, list[Frame], Grids, Queue | None]] = {}
        self.descriptors = getattr(metadata, "tma_descriptors", ())
        self.scratch_bytes = getattr(metadata, "global_scratch_size", 0) * metadata.num_ctas
        self.scratch_alignment = getattr(metadata, "global_scratch_align", 1)
        #: The axes of the grid that the kernel, which loops over its programs, takes as arguments; and how many run at a time.
        self.axes = getattr(metadata, "grid_arguments", ())
        self.limit = driver.resident_programs(kernel) if self.axes else 0
        self.alike = getattr(metadata, "programs_alike", False)  # all programs take equally long
        self.queue = getattr(metadata, "program_queue", False)
        #: Gives the counter for a stream, of which launches run one after the other.
        self.counter = driver.program_counters() if self.queue and not getattr(metadata, "launch_pdl", False) else None
        self.maps: TensorMaps | None = None
        self.plain: CompiledKernel | None = None

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: int,
        function: Any,
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Callable | None,
        exit_hook: Callable | None,
        *args: Any,
    ) -> None:
        if len(args) != len(self.names):
            raise TypeError(f"{self.name} takes {len(self.names)} arguments ({', '.join(self.names)}), not {len(args)}")
        if enter_hook is not None:
            enter_hook(launch_metadata)
        self.launch((grid_x, grid_y, grid_z), stream, args)
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def launch(self, grid: tuple[int, int, int], stream: int, args: Sequence[Any]) -> None:
        """Launch; a grid with a zero dimension launches nothing. Arguments that TMA cannot access as this kernel does go to one without."""
        leaves = flatten(self.kinds, args, self.names)
        formats = tuple(format_of(kind) for kind, _, _ in leaves)
        values = [convert(*leaf, self.driver.is_accessible) for leaf in leaves]
        if 0 in grid:
            return
        try:
            maps = self._tensor_maps(leaves, values) if self.descriptors else ()
        except TensorMapError:
            if not hasattr(self.kernel.src, "fn"):
                raise
            self._without_tma().run.launch(grid, stream, args)
            return
        scratch = None
        if self.scratch_bytes:
            scratch = self._scratch(grid, stream)  # held until the launch is under way
            formats, values = (*formats, "Q"), [*values, scratch.data_ptr()]
        if formats not in self.layouts:
            layout = packing(formats)
            self.layouts[formats] = (layout, [], *grids_and_queue(self, layout))
        layout, frames, grids, queue = self.layouts[formats]
        try:
            frame = frames.pop()
        except IndexError:
            frame = make_frame(layout, range(len(formats)), self.attributes, len(maps), self.axes, self.queue)
        memory, config, pointers = frame
        if maps:
            memory[-TENSOR_MAP_BYTES * len(maps) :] = b"".join(maps)
        try:
            struct.pack_into(layout.format, memory, 0, *values, grids[grid], stream)
        except struct.error:
            raise ValueError(f"grid of {self.name} must be up to three integers from 0 to 2^32 - 1, not {grid}") from None
        if queue is not None:
            queue(memory, grid)
        status = self.launch_function(config, self.function, pointers, None)
        if status:
            self.driver.launch_failed(status, self.kernel, frame, grid, self.function)
        frames.append(frame)

    def _scratch(self, grid: tuple[int, int, int], stream: int) -> Buffer:
        """Memory for the tensor maps that the kernel makes, from the allocator that is set, else torch's."""
        size = self.scratch_bytes * math.prod(grid)
        allocator, torch = get_allocator(), sys.modules.get("torch")
        if isinstance(allocator, NullAllocator) and torch is not None and torch.cuda.is_available():
            return torch.empty(size, dtype=torch.int8, device="cuda")
        return allocator(size, self.scratch_alignment, stream)

    def _without_tma(self) -> CompiledKernel:
        """The kernel for arguments that TMA cannot access, compiled when it is first needed."""
        if self.plain is None:
            self.plain = compile(self.kernel.src, self.kernel.metadata.target, {**self.kernel.options, "tma": False})
        return self.plain

    def takes(self, args: Sequence[Any]) -> bool:
        """Whether TMA can access the arrays as the kernel does. Raises what `launch` raises for arguments that are wrong otherwise."""
        if not self.descriptors:
            return True
        leaves = flatten(self.kinds, args, self.names)
        try:
            self._tensor_maps(leaves, [convert(*leaf, self.driver.is_accessible) for leaf in leaves])
        except TensorMapError:
            return False
        return True

    def _tensor_maps(self, leaves: Sequence[tuple[str, Any, str]], values: Sequence[Any]) -> tuple[bytes, ...]:
        """The tensor maps that the kernel takes behind its other parameters."""
        if self.maps is None:
            kinds, names = [kind for kind, _, _ in leaves], [name for _, _, name in leaves]
            self.maps = TensorMaps(self.name, self.descriptors, kinds, names, self.driver.encode_tensor_map)
        return self.maps.of(values)
