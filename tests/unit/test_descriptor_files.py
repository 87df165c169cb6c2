"""IR files whose attributes `tile.descriptor` somebody has edited."""

from __future__ import annotations

import pytest

from tilewright.compiler.backends.base import GPUTarget
from tilewright.compiler.source import IRSource

KERNEL = """
func.func @k(%p: !tile.ptr<f16>, %n: i32, %d: !tile.desc<64x64xf16> {tile.descriptor = {argument = 0 : i32, base = "a0",
    element = "f16", padding = "zero", shape = ["64", "max(a1, 1)"], strides = ["a1"], conditions = ["a1 % 8 == 0"]}}) {
  return
}
"""


def read(folder, text: str) -> None:
    path = folder / "kernel.ttir"
    path.write_text(text)
    IRSource(path).make_ir(GPUTarget("cuda", 90, 32), None)


def test_a_right_one(tmp_path):
    read(tmp_path, KERNEL)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("argument = 0", "argument = 7", "must give the number of a pointer argument as `argument`"),
        ("argument = 0", "argument = 1", "must give the number of a pointer argument as `argument`"),
        ("argument = 0 : i32, ", "", "must give the number of a pointer argument as `argument`"),
        ('element = "f16"', 'element = "f15"', "must give `element`, one of f16, bf16, .*, not f15"),
        ('padding = "zero"', "padding = 0 : i32", "must give `padding`, one of zero, nan, not None"),
        ('["64", "max', '["max', "must give 2 expressions as `shape`, not 1"),
        ('["a1"]', "[]", "must give 1 expressions as `strides`, not 0"),
        ('"a0"', '"a0 +"', "must give expressions over the arguments before the descriptors .*, not .a0 +"),
        ('["a1"]', '["a2"]', "must give expressions"),
        ('["a1"]', '["a1.real"]', "must give expressions"),
        ('["a1"]', "[1 : i32]", "must give expressions"),
        ("!tile.desc<64x64xf16>", "!tile.desc<64x1xf16>", "is for blocks that TMA can copy, not for !tile.desc<64x1xf16>"),
        ("!tile.desc<64x64xf16>", "i32", "is for tensor descriptors, not for i32"),
    ],
)
def test_mistakes_say_what_is_wrong_with_which_argument(tmp_path, old, new, message):
    assert old in KERNEL
    with pytest.raises(ValueError, match=rf"kernel.ttir does not parse: argument 2: tile.descriptor {message}"):
        read(tmp_path, KERNEL.replace(old, new))
