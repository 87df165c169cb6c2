"""The schedule of loops: written by `tilegpu-schedule`, read from files, changed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from descriptor_kernels import attention

import tilewright
from tilewright.backends.compiler import GPUTarget
from tilewright.compiler import ASTSource, CompiledKernel
from tilewright.compiler.opt import main
from tilewright.errors import CompilationError

TARGET = GPUTarget("cuda", 90, 32)
#: With a CTA for each program there is room for a third slot.
OPTIONS = {"num_warps": 8, "num_stages": 2, "persistent": False}


def made(source: ASTSource | str, **options) -> CompiledKernel:
    return tilewright.compile(source, target=TARGET, options=OPTIONS | options)


@pytest.fixture(scope="module")
def plain() -> CompiledKernel:
    """The kernel as the compiler schedules it."""
    names = attention.arg_names
    constants = {"D": 128, "BM": 128, "BN": 128, "CAUSAL": False, "WS": None}
    signature = {name: "constexpr" if name in constants else "i32" if name == "S" else "*fp16" for name in names}
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in names if name not in constants}
    return made(ASTSource(attention, signature, constants, attrs))


@pytest.fixture(scope="module")
def schedule(plain, tmp_path_factory) -> str:
    """The text of its schedule."""
    folder = tmp_path_factory.mktemp("schedule")
    (folder / "attention.ttir").write_text(plain.asm["ttir"])
    options = [f"--option={name}={value}".lower() for name, value in OPTIONS.items()]
    main([str(folder / "attention.ttir"), "--target=cuda:90", "--emit=schedule", *options, "-o", str(folder / "out.ttgir")])
    return (folder / "out.ttgir").read_text()


def compiled(text: str, folder: Path) -> CompiledKernel:
    (folder / "mine.ttgir").write_text(text)
    return made(str(folder / "mine.ttgir"))


def code(kernel: CompiledKernel) -> str:
    """The PTX, without what names files and lines."""
    lines = kernel.asm["ptx"].split("\n.section")[0].splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith((".loc", ".file", "$L__tmp", "//")))


def test_what_it_says(schedule):
    assert "{tilegpu.roles = 1 : i32, tilegpu.slots = 2 : i32, tilegpu.turns = " in schedule
    assert schedule.count("tilegpu.late = 0 : i32") == schedule.count("tilegpu.late = 1 : i32") == 1
    assert "tilegpu.mbarrier_wait" not in schedule


def test_carrying_it_out_unchanged_makes_the_same_kernel(plain, schedule, tmp_path):
    same = compiled(schedule, tmp_path)
    assert (same.n_regs, same.n_spills, same.metadata.shared) == (plain.n_regs, plain.n_spills, plain.metadata.shared)
    for instruction in ("wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier.try_wait", "barrier.sync", "ex2.approx"):
        assert code(same).count(instruction) == code(plain).count(instruction)


@pytest.mark.parametrize(
    ("old", "new", "instruction", "more"),
    [
        ("tilegpu.roles = 1", "tilegpu.roles = 0", "setmaxnreg", -2),
        ("tilegpu.late = 1", "tilegpu.late = 0", "wgmma.mma_async", -16),
        ("tilegpu.slots = 2", "tilegpu.slots = 3", "mbarrier.init", 4),
    ],
)
def test_a_schedule_by_hand(plain, schedule, tmp_path, old, new, instruction, more):
    kernel = compiled(schedule.replace(old, new), tmp_path)
    assert kernel.n_spills == 0
    assert code(kernel).count(instruction) - code(plain).count(instruction) == more


def test_turns_by_hand(schedule, tmp_path):
    turns = [compiled(schedule.replace(old, f"tilegpu.turns = {n}"), tmp_path) for n in (0, 2) for old in (_turns(schedule),)]
    assert code(turns[1]).count("barrier.sync.aligned") == code(turns[0]).count("barrier.sync.aligned") + 2


def _turns(schedule: str) -> str:
    start = schedule.index("tilegpu.turns = ")
    return schedule[start : schedule.index(" :", start)]


def test_more_slots_than_fit_are_refused(schedule, tmp_path):
    with pytest.raises(tilewright.runtime.errors.OutOfResources):
        compiled(schedule.replace("tilegpu.slots = 2", "tilegpu.slots = 9"), tmp_path)


def test_loads_that_cannot_run_so_far_ahead_are_refused(schedule, tmp_path):
    text = schedule.replace("tilegpu.roles = 1 : i32, tilegpu.slots = 2", "tilegpu.roles = 0 : i32, tilegpu.slots = 2")
    lines = text.splitlines()
    loads = [i for i, line in enumerate(lines) if "tile.descriptor_load" in line]
    lines[loads[-1]] = lines[loads[-1]].replace(" : !tile.desc", " {tilegpu.ahead = 3 : i32} : !tile.desc", 1)
    with pytest.raises(CompilationError, match="loads of a loop with 2 slots run 1 iterations ahead"):
        compiled("\n".join(lines), tmp_path)
