"""Launching: how the arguments of a kernel lie in memory, and the call of the driver.

A *frame* is the memory of one launch: the values of the arguments, CUlaunchConfig, the grid that was asked for, the array of pointers to
the values, the launch attributes. It is made once and reused: a launch is one `struct.pack_into` and one foreign call. Frames are taken
from and returned to a list, so that threads never share one.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable, Sequence
from ctypes import byref, c_char
from typing import Any, NamedTuple

from tilewright.compiler import CompiledKernel, compile

from .allocator import Buffer, NullAllocator, get_allocator
from .arrays import is_array, on_gpu, pointer_and_code
from .drivers import libcuda
from .tensor_maps import TENSOR_MAP_BYTES, TensorMapError, TensorMaps

#: type of the signature -> format of `struct`; bf16 is packed as its bits.
FORMATS = {"u1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
FORMATS |= {"fp16": "e", "bf16": "H", "fp32": "f", "fp64": "d"}

Frame = tuple[bytearray, Any, Any]

#: What a loop over programs counts to: its programs are numbered by an i32, and each CTA knows the numbers of some further on.
_MOST_PROGRAMS = 2**31 - 1
_TURNS_AHEAD = 10
_GRID = struct.Struct("<3I")
_ADDRESS = struct.Struct("<Q")


def address(at: int) -> Any:
    """A pointer as an argument of a foreign function. ctypes passes what `byref` made as it is: 0.03 us less than a `c_void_p` each."""
    return byref(c_char.from_address(at))


def format_of(kind: str) -> str:
    """The `struct` format of a type of the signature; raises TypeError."""
    if kind.startswith(("*", "nvTmaDesc")):
        return "Q"
    if kind not in FORMATS:
        raise TypeError(f"a kernel cannot take an argument of type {kind} by value")
    return FORMATS[kind]


class Packing(NamedTuple):
    """Where values lie: `format` packs values, grid, block and stream in one call; `offsets` of the values; `config`: of CUlaunchConfig."""

    format: str
    offsets: tuple[int, ...]
    config: int

    @property
    def grid(self) -> int:
        """Where the grid that was asked for lies, for a kernel whose programs are looped over."""
        return self.config + ctypes.sizeof(libcuda.LaunchConfig)

    @property
    def stream(self) -> int:
        """Where the stream lies."""
        return self.config + libcuda.LaunchConfig.stream.offset

    @property
    def queue(self) -> int:
        """Where the address of the counter of a queue of programs lies."""
        return self.grid + 16


def packing(formats: Sequence[str]) -> Packing:
    """Lay out values of these formats, each at its natural alignment, and the launch configuration after them."""
    text, offsets, at = "<", [], 0
    for code in formats:
        size = struct.calcsize("<" + code)
        pad = -at % size
        text += f"{pad}x{code}" if pad else code
        offsets.append(at + pad)
        at += pad + size
    pad = -at % 8
    # grid (3 x u32), block and dynamic shared memory (16 bytes given as they are), padding, stream
    return Packing(f"{text}{pad}x3I16s4xQ", tuple(offsets), at + pad)


def block_bytes(num_warps: int, warp_size: int, shared: int) -> bytes:
    """The part of CUlaunchConfig that a kernel fixes: block dimensions and bytes of dynamic shared memory."""
    return struct.pack("<4I", num_warps * warp_size, 1, 1, shared)


def attributes_of(metadata: Any) -> list[tuple[int, tuple[int, ...]]]:
    """Launch attributes (id, words of the value) that a kernel asks for."""
    found: list[tuple[int, tuple[int, ...]]] = []
    if getattr(metadata, "launch_cooperative_grid", False):
        found.append((libcuda.LAUNCH_COOPERATIVE, (1,)))
    if getattr(metadata, "launch_pdl", False):
        found.append((libcuda.LAUNCH_PDL, (1,)))
    if metadata.num_ctas > 1:
        found.append((libcuda.LAUNCH_CLUSTER_DIMENSION, (metadata.num_ctas, 1, 1)))
        found.append((libcuda.LAUNCH_CLUSTER_POLICY, (1,)))  # spread the blocks of a cluster over multiprocessors
    return found


def make_frame(
    layout: Packing,
    passed: Sequence[int],
    attributes: Sequence[tuple[int, tuple[int, ...]]],
    maps: int = 0,
    axes: Sequence[int] = (),
    queue: bool = False,
) -> Frame:
    """A frame whose kernel takes the values number `passed` of the layout, in that order, `maps` tensor maps, for which there is room at
    its end, the sizes of the grid along `axes`, and with `queue` the address of a counter (see `loop_programs`): (memory, config, pointers
    to the values)."""
    attribute_size = ctypes.sizeof(libcuda.LaunchAttribute)
    pointers_at = layout.queue + 8
    attributes_at = pointers_at + 8 * max(len(passed) + maps + len(axes) + queue, 1)
    maps_at = attributes_at + attribute_size * len(attributes)
    memory = bytearray(maps_at + TENSOR_MAP_BYTES * maps)
    base = ctypes.addressof((c_char * len(memory)).from_buffer(memory))
    places = [layout.offsets[number] for number in passed] + [maps_at + TENSOR_MAP_BYTES * i for i in range(maps)]
    places += [layout.grid + 4 * axis for axis in axes] + [layout.queue] * queue
    struct.pack_into(f"<{len(places)}Q", memory, pointers_at, *(base + at for at in places))
    for i, (identifier, words) in enumerate(attributes):
        struct.pack_into(f"<i4x{len(words)}I", memory, attributes_at + attribute_size * i, identifier, *words)
    config = libcuda.LaunchConfig.from_buffer(memory, layout.config)
    config.attributes = base + attributes_at if attributes else None
    config.count = len(attributes)
    return memory, address(base + layout.config), address(base + pointers_at)


def loop_programs(
    layout: Packing, limit: int, ctas: int, alike: bool, counter: Callable[[int], int] | None, memory: bytearray, x: int, y: int, z: int
) -> None:
    """Make a packed launch of the grid `x` by `y` by `z` one of at most `limit` programs of `ctas` CTAs, which loop over all of them: the
    grid goes where the kernel's arguments point, and so does the address of the `counter` of the stream, if the kernel takes programs from
    a queue. Without one, and if programs are `alike`, no more are launched than end no later: of 132, 128 take 16 of 2048 programs each,
    where 68 would take 16 and the others, with 15, wait for them. The multiprocessors that are left idle save power, by which products
    are bound, and what CTAs load together stays together. Raises ValueError for more programs than the loop counts in 32 bits."""
    programs = x * y * z
    if programs + _TURNS_AHEAD * limit > _MOST_PROGRAMS:
        raise ValueError(f"a grid of {x} x {y} x {z} programs is too large for a loop over programs: launch it with persistent=False")
    word = counter(_ADDRESS.unpack_from(memory, layout.stream)[0]) if counter is not None else 0
    together = min(programs, limit)
    if alike and not word and programs > limit:
        together = -(-programs // -(-programs // limit))
    _GRID.pack_into(memory, layout.grid, x, y, z)
    _GRID.pack_into(memory, layout.config, together * ctas, 1, 1)
    if counter is not None:
        _ADDRESS.pack_into(memory, layout.queue, word)


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
        self.layouts: dict[tuple, tuple[Packing, list[Frame]]] = {}
        self.descriptors = getattr(metadata, "tma_descriptors", ())
        self.scratch_bytes = getattr(metadata, "global_scratch_size", 0) * metadata.num_ctas
        self.scratch_alignment = getattr(metadata, "global_scratch_align", 1)
        #: The axes of the grid that the kernel, which loops over its programs, takes as arguments; and how many run at a time.
        self.axes = getattr(metadata, "grid_arguments", ())
        self.limit = driver.resident_programs(kernel) if self.axes else 0
        self.alike = getattr(metadata, "programs_alike", False)  # all programs take equally long
        self.queue = getattr(metadata, "program_queue", False)
        #: Gives the counter for a stream, of which launches run one after the other.
        self.counter = driver.program_counter if self.queue and not getattr(metadata, "launch_pdl", False) else None
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
            self.layouts[formats] = (packing(formats), [])
        layout, frames = self.layouts[formats]
        try:
            frame = frames.pop()
        except IndexError:
            frame = make_frame(layout, range(len(formats)), self.attributes, len(maps), self.axes, self.queue)
        memory, config, pointers = frame
        if maps:
            memory[-TENSOR_MAP_BYTES * len(maps) :] = b"".join(maps)
        try:
            struct.pack_into(layout.format, memory, 0, *values, grid[0] * self.num_ctas, grid[1], grid[2], self.block, stream)
            if self.limit:
                loop_programs(layout, self.limit, self.num_ctas, self.alike, self.counter, memory, *grid)
        except struct.error:
            raise ValueError(f"grid of {self.name} must be up to three integers from 0 to 2^32 - 1, not {grid}") from None
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
