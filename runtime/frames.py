"""The memory of a launch.

A *frame* holds the values of the arguments, CUlaunchConfig, the grid that was asked for, the array of pointers to the values, the launch
attributes. It is made once and reused: a launch is one `struct.pack_into` and one foreign call. Frames are taken from and returned to a
list, so that threads never share one.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from ctypes import byref, c_char
from typing import Any, NamedTuple

from .drivers import libcuda
from .tensor_maps import TENSOR_MAP_BYTES

Frame = tuple[bytearray, Any, Any]


def address(at: int) -> Any:
    """A pointer as an argument of a foreign function. ctypes passes what `byref` made as it is: 0.03 us less than a `c_void_p` each."""
    return byref(c_char.from_address(at))


class Packing(NamedTuple):
    """Where things lie in a frame. `format` packs the values, which lie at `offsets`, what `Grids` gives for the grid, and the stream."""

    format: str
    offsets: tuple[int, ...]
    #: For a kernel that loops over its programs: the address of the counter of a queue of them, and the grid that was asked for.
    queue: int
    grid: int
    #: CUlaunchConfig, which starts with the grid that is launched, and the stream in it.
    config: int
    stream: int


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
    queue = at + pad
    config = queue + 24
    # queue (8 bytes), padding; both grids, block and dynamic shared memory; padding, stream
    layout = f"{text}{pad + 12}x40s4xQ"
    return Packing(layout, tuple(offsets), queue, config - 12, config, config + libcuda.LaunchConfig.stream.offset)


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
    its end, the sizes of the grid along `axes`, and with `queue` the address of a counter (see `grids`): (memory, config, pointers to the
    values)."""
    attribute_size = ctypes.sizeof(libcuda.LaunchAttribute)
    pointers_at = layout.config + ctypes.sizeof(libcuda.LaunchConfig)
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
