"""Names that libraries use besides the public ones (`tests/language/test_api_table.py`), and `import triton` as a name of this package."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import tilewright
import tilewright.language as tl

CORE = (
    "extern_elementwise extern dispatch builtin constexpr tensor dtype view float32 constexpr_function _aggregate builtin_max get_int_dtype"
)


@pytest.mark.parametrize(
    ("home", "names"),
    [
        ("tilewright.language.core", CORE),
        ("tilewright.language.extra.hip", "memrealtime smid num_threads num_warps libdevice"),
        ("tilewright.language.standard", "_log2 _sum_combine _argmax_combine_tie_break_left"),
    ],
)
def test_names(home, names):
    module = importlib.import_module(home)
    assert [name for name in names.split() if not hasattr(module, name)] == []


def test_libdevice_has_all_functions():
    from tilewright.language.extra import cuda, hip, libdevice
    from tilewright.language.extra.libdevice_table import TABLE

    names = [line.split()[0] for line in TABLE.strip().splitlines()]
    assert len(names) == 198
    assert [n for n in names if not callable(getattr(libdevice, n, None))] == []
    assert [n for n in names if not callable(getattr(cuda.libdevice, n, None))] == []
    assert callable(hip.libdevice.fast_expf)


def test_signatures_that_libraries_probe():
    assert "_semantic" in inspect.signature(tl.core.view).parameters
    load = list(inspect.signature(tl.load).parameters)
    assert load[:5] == ["pointer", "mask", "other", "boundary_check", "padding_option"]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_triton_is_this_package():
    assert run(
        """
import tilewright
tilewright.install_as_triton()
tilewright.install_as_triton()
import triton, triton.language as tl, triton.testing
from triton.language.extra import libdevice
from triton.backends.compiler import GPUTarget
import tilewright.language, tilewright.language.extra.libdevice, tilewright.backends.compiler
print(triton is tilewright, tl is tilewright.language, libdevice is tilewright.language.extra.libdevice,
      GPUTarget is tilewright.backends.compiler.GPUTarget, tl.__spec__.name, triton.__spec__.name)
try:
    import triton.no_such_module
except ModuleNotFoundError as error:
    print(error)
for name in ("_C.libtriton", "compiler.code_generator", "runtime.build"):
    try:
        __import__("triton." + name)
    except ModuleNotFoundError as error:
        print(error.name, str(error).partition("(")[2][:21])
"""
    ).splitlines() == [
        "True True True True tilewright.language tilewright",
        "No module named 'triton.no_such_module': tilewright has no tilewright.no_such_module",
        "triton._C Triton's C++ library;",
        "triton.compiler.code_generator the front end over th",
        "triton.runtime.build a host C compiler, wh",
    ]


def test_importing_loads_no_heavy_package():
    heavy = run(
        "import sys, tilewright, tilewright.language; print([m for m in ('mlir', 'llvmlite', 'numpy', 'torch') if m in sys.modules])"
    )
    assert heavy == "[]"


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        tilewright.no_such_name
