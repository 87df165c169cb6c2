"""How arguments are packed, and the conversion of single values."""

from __future__ import annotations

import ctypes
import math
import struct
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.runtime.drivers.libcuda import LaunchConfig
from tilewright.runtime.frames import make_frame, packing
from tilewright.runtime.grids import Grids, grids_and_queue
from tilewright.runtime.launch import FORMATS, bf16_bits, convert, flatten, format_of

BLOCK = struct.pack("<4I", 128, 1, 1, 4096)
VALUES = {"?": True, "e": 1.5, "f": 2.5, "d": -3.5}


def value_of(code: str):
    return VALUES.get(code, 7)


@given(st.lists(st.sampled_from(sorted(FORMATS.values())), max_size=12))
def test_values_lie_where_the_pointers_say(codes):
    layout = packing(codes)
    passed = list(range(len(codes)))[::2]
    memory, config, pointers = make_frame(layout, passed, [(4, (2, 1, 1)), (6, (1,))])
    values = [value_of(code) for code in codes]
    struct.pack_into(layout.format, memory, 0, *values, Grids(2, BLOCK)[5, 6, 7], 1 << 40)
    table = (ctypes.c_void_p * max(len(passed), 1)).from_address(ctypes.addressof(pointers._obj))
    for address, number in zip(table, passed):
        code = codes[number]
        assert address % struct.calcsize("<" + code) == 0 or layout.offsets[number] % struct.calcsize("<" + code) == 0
        assert struct.unpack("<" + code, ctypes.string_at(address, struct.calcsize("<" + code)))[0] == values[number]
    c = LaunchConfig.from_address(ctypes.addressof(config._obj))
    assert (tuple(c.grid), tuple(c.block), c.shared, c.stream, c.count) == ((10, 6, 7), (128, 1, 1), 4096, 1 << 40, 2)
    assert struct.unpack_from("<3I", memory, layout.grid) == (5, 6, 7)
    assert ctypes.addressof(config._obj) % 8 == ctypes.addressof((ctypes.c_char * 1).from_buffer(memory)) % 8
    assert struct.unpack("<i4x3I", ctypes.string_at(c.attributes, 20)) == (4, 2, 1, 1)


def test_launch_config_is_that_of_the_driver():
    assert ctypes.sizeof(LaunchConfig) == 56
    assert LaunchConfig.stream.offset == 32 and LaunchConfig.attributes.offset == 40 and LaunchConfig.count.offset == 48


def grid_of(packed: bytes) -> tuple[list[int], list[int]]:
    """The grid that was asked for, and the one that is launched."""
    words = struct.unpack("<6I", packed[:24])
    assert packed[24:] == BLOCK
    return [*words[:3]], [*words[3:]]


def test_grids():
    grids = Grids(2, BLOCK)
    for grid in ((5,), (5, 6), (5, 6, 7), (0, 1), (5,), (2**30, 1, 1)):
        x, y, z = (*grid, 1, 1)[:3]
        assert grid_of(grids[grid]) == ([x, y, z], [2 * x, y, z])
    for wrong in ((), (1, 1, 1, 1)):
        with pytest.raises(KeyError):
            grids[wrong]
    for wrong in ((-1,), (2.5,), (1, None), (2**32, 1, 1)):
        for kind in (grids, Grids(1, BLOCK, limit=4, alike=True)):
            with pytest.raises((struct.error, TypeError, ValueError)):
                kind[wrong]
    for x in range(5000):
        assert grids[x,] and len(grids) <= 1024


def test_loops_over_programs_take_what_runs_at_a_time():
    every, even = Grids(1, BLOCK, limit=264), Grids(2, BLOCK, limit=264, alike=True)
    for grid, ctas in (
        ((66, 4, 3), 264),
        ((265, 1, 1), 133),
        ((2048, 1, 1), 256),
        ((5, 1, 1), 5),
        ((0, 1, 1), 0),
        ((2**31 - 3000, 1, 1), 264),
    ):
        assert grid_of(every[grid]) == ([*grid], [min(grid[0] * grid[1] * grid[2], 264), 1, 1])
        assert grid_of(even[grid]) == ([*grid], [2 * ctas, 1, 1])
    with pytest.raises(ValueError, match="2147483647 x 1 x 1 programs .* persistent=False"):
        even[2**31 - 1,]


def test_a_queue_has_the_counter_of_the_stream():
    layout = packing(["i"])
    memory, _, pointers = make_frame(layout, [0], [], axes=(0, 2), queue=True)
    table = (ctypes.c_void_p * 4).from_address(ctypes.addressof(pointers._obj))
    words = iter([(1 << 40) + 64, 0])
    run = SimpleNamespace(counter=lambda stream: next(words) if stream == 1 << 40 else -1, num_ctas=1, block=BLOCK, limit=4, alike=True)
    grids, queue = grids_and_queue(run, layout)

    def launch() -> tuple[list[int], list[int]]:
        struct.pack_into(layout.format, memory, 0, 7, grids[9,], 1 << 40)
        queue(memory, (9,))
        passed = [struct.unpack(f"<{code}", ctypes.string_at(at, struct.calcsize(code)))[0] for code, at in zip("iIIQ", table)]
        return passed, list(LaunchConfig.from_buffer(memory, layout.config).grid)

    assert launch() == ([7, 9, 1, (1 << 40) + 64], [4, 1, 1]), "who is faster takes more"
    assert launch() == ([7, 9, 1, 0], [3, 1, 1]), "a launch forgets the counter of the one before"
    run.counter = None
    assert grids_and_queue(run, layout)[1] is None


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1.0, 0x3F80),
        (-2.0, 0xC000),
        (0.0, 0),
        (math.inf, 0x7F80),
        (1e39, 0x7F80),
        (1.00390625, 0x3F80),
        (1.01171875, 0x3F82),
        (3.4e38, 0x7F80),
    ],
)
def test_bf16(value, bits):
    assert bf16_bits(value) == bits


def test_bf16_nan():
    assert bf16_bits(math.nan) & 0x7FC0 == 0x7FC0


def test_convert():
    def yes(_: int) -> bool:
        return True

    assert convert("fp16", 1e6, "x", yes) == math.inf
    assert convert("fp32", -1e300, "x", yes) == -math.inf
    assert convert("i8", -128, "x", yes) == -128
    assert convert("*fp32", None, "x", yes) == 0
    assert convert("*fp32", 4096, "x", yes) == 4096
    with pytest.raises(ValueError, match="argument x: 128 does not fit in i8"):
        convert("i8", 128, "x", yes)
    for kind, value in (("i32", "7"), ("i64", 2.5), ("u8", None)):
        with pytest.raises(TypeError, match=f"argument x: {kind} needs an integer, not {value!r}"):
            convert(kind, value, "x", bool)
    with pytest.raises(TypeError, match="argument x: fp32 needs a number, not '7'"):
        convert("fp32", "7", "x", bool)
    with pytest.raises(TypeError, match="argument x: Pointer argument must be either uint64 or have data_ptr method, not float"):
        convert("*fp32", 1.5, "x", yes)


def test_flatten_takes_tuples_and_descriptors_apart():
    class Descriptor:
        base, shape, strides = "base", [8, 16], [16, 1]

    kinds = ["i32", ("constexpr", "*fp32", ("u1",)), "tensordesc<fp16[8, 16]>"]
    leaves = flatten(kinds, [1, (2, 3, (True,)), Descriptor()], ["a", "b", "d"])
    assert [(kind, value) for kind, value, _ in leaves] == [
        ("i32", 1),
        ("*fp32", 3),
        ("u1", True),
        ("*fp16", "base"),
        ("i32", 8),
        ("i32", 16),
        ("i64", 16),
        ("i64", 1),
    ]
    assert leaves[2][2] == "b[2][0]"


def test_types_that_are_not_passed_by_value():
    with pytest.raises(TypeError, match="by value"):
        format_of("fp8e5")
