"""`docs/language.md` lists every public name, and what it says is so: each program of the table is run for each of its columns."""

import inspect

import numpy as np
import pytest
from api_registry import SECTIONS
from api_table import DOCUMENT, INTRODUCTION, failures, groups, inputs, interpret, kernel_of, runs_of, table
from language_harness import gpu_only, launch

import tilewright
import tilewright.language as tl
from tilewright.language.extra.libdevice_table import TABLE

with_document = pytest.mark.skipif(not DOCUMENT.exists(), reason="the tests stand apart from docs/")

LISTED = {name for section in SECTIONS for name, _ in section.examples()}

# what the reference of the language names beyond what these modules and classes show by themselves
FURTHER = """
tl.core.extern_elementwise tl.core.extern tl.core.builtin tl.core.dispatch tensor.handle tensor.type constexpr.value
tensor_descriptor.shape tensor_descriptor.strides tl.extra.cuda.globaltimer tl.extra.cuda.smid tl.extra.cuda.num_threads
tl.extra.cuda.num_warps tl.extra.cuda.convert_custom_float8_sm70 tl.extra.cuda.convert_custom_float8_sm80 tl.extra.cuda.gdc_wait
tl.extra.cuda.gdc_launch_dependents tl.extra.cuda.libdevice dtype.name dtype.primitive_bitwidth dtype.fp_mantissa_width
dtype.exponent_bias dtype.int_signedness dtype.int_bitwidth triton.__version__
"""
MODULES = {"core", "math", "extra", "random", "semantic", "standard", "target_info"}
OBJECT = {*dir(object), "__module__", "__dict__", "__weakref__", "__slots__", "__annotations__", "__reduce__", "__hash__"} - {"__str__"}
# Python's questions to a value; a kernel asks them by `if`, `int()` and indexing
ASKED = {"tensor": {"__bool__", "__index__", "__int__", "__float__", "__repr__"}, "constexpr": {"__int__", "__float__", "__str__"}}
OPERATORS = {f"__{op}__" for op in ("eq", "ne", "lt", "le", "gt", "ge")}


def members(cls, prefix):
    """Public members of a class, operators among them."""
    names = {n for n in dir(cls) if not n.startswith("_") or n.startswith("__") and n.endswith("__")}
    return {f"{prefix}.{n}" for n in names - (OBJECT - OPERATORS) - ASKED.get(prefix, set())}


def test_every_public_name_is_listed():
    wanted = {f"tl.{name}" for name in tl.__all__ if name not in MODULES and name != "must_use_result"}
    wanted |= {f"tl.math.{name}" for name, fn in vars(tl.math).items() if getattr(fn, "__tilewright_builtin__", False)}
    wanted |= {f"tl.target_info.{name}" for name, fn in vars(tl.target_info).items() if getattr(fn, "__tilewright_builtin__", False)}
    wanted |= {f"triton.{name}" for name in tilewright.__all__}
    wanted |= {f"libdevice.{line.split()[0]}" for line in TABLE.strip().splitlines()}
    wanted |= members(tl.tensor, "tensor") | members(tl.constexpr, "constexpr")
    for cls, prefix in ((tl.dtype, "dtype"), (tl.tensor_descriptor, "tensor_descriptor")):
        wanted |= {f"{prefix}.{n}" for n in dir(cls) if not n.startswith("_")}
    wanted |= {f"{name}=" for name in inspect.signature(tl.range).parameters if name not in ("arg1", "arg2", "step", "_semantic")}
    listed = LISTED | {name.partition("=")[0] + "=" for name in LISTED}
    assert sorted((wanted | set(FURTHER.split())) - listed) == []


def test_names_are_listed_once():
    names = [name for section in SECTIONS for name, _ in section.examples()]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@with_document
@pytest.mark.parametrize("section", SECTIONS, ids=lambda s: s.title)
def test_section_is_current(section, tmp_path):
    failed = {column: failures(run, section, str(tmp_path)) for column, run in runs_of(section).items()}
    assert table(section, failed) in DOCUMENT.read_text(), f"run `python {DOCUMENT.parents[1].name}/tests/language/api_table.py`: {failed}"


@with_document
def test_document_has_these_sections_only():
    text = DOCUMENT.read_text()
    assert text.startswith(INTRODUCTION)
    rest = text.removeprefix(INTRODUCTION)
    assert [line for line in rest.splitlines() if line.startswith("## ")] == [f"## {section.title}" for section in SECTIONS]


def compare_on_gpu(examples, folder):
    """Run programs on the GPU and in the interpreter; AssertionError if the memory they leave differs."""
    want = interpret(examples, folder)
    got = inputs(len(examples))
    launch(kernel_of(examples, tilewright.jit, folder), (1,), *got.values())
    for name in ("S", "F", "OUT"):
        np.testing.assert_allclose(got[name], want[name], rtol=2e-3, atol=1e-4, err_msg=name)


@gpu_only
@pytest.mark.parametrize("section", [s for s in SECTIONS if not s.host], ids=lambda s: s.title)
def test_gpu_agrees_with_the_interpreter(section, tmp_path):
    def run(examples, folder):
        compare_on_gpu([e for e in examples if "inline_asm" not in e[1]], folder)

    import torch

    tilewright.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    assert groups(section) and failures(run, section, str(tmp_path)) == {}
