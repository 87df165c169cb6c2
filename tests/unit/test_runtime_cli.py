"""The command line, Triton's import paths, and what importing costs in modules."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tilewright import cli

PATHS = """
from triton import Config, JITFunction, KernelInterface, MockTensor, OutOfResources, TensorWrapper, autotune, compile, heuristics, jit
from triton import reinterpret, set_allocator, knobs
from triton.compiler import ASTSource, CompiledKernel, IRSource, make_backend, max_shared_mem
from triton.compiler.compiler import ASTSource as A2, make_backend as m2, triton_key
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from triton.backends import backends
from triton.backends.compiler import BaseBackend, GPUTarget, Language
from triton.backends.driver import DriverBase, GPUDriver
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner, Config as C2, Heuristics, OutOfResources as O2, PTXASError
from triton.runtime.cache import FileCacheManager, get_cache_manager, triton_key as k2
from triton.runtime.driver import driver as d2
from triton.runtime import AsyncCompileMode, FutureKernel
from triton.runtime.errors import AutotunerError, InterpreterError
from triton.runtime.jit import JITFunction as J2, KernelInterface as K2, specialize_impl
from triton import AsyncCompileMode as A3
from triton.testing import do_bench, do_bench_cudagraph
import triton.runtime.driver, triton.runtime
assert A2 is ASTSource and J2 is JITFunction and C2 is Config and O2 is OutOfResources and triton_key is k2
assert hasattr(type(driver), "active") and d2 is driver and callable(triton.runtime.driver.set_active)
assert backends["nvidia"].compiler is type(make_backend(GPUTarget("cuda", 90, 32)))
import tilewright
assert tilewright.JITFunction is JITFunction
"""


def python(*arguments: str, **env: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_paths(tmp_path):
    script = tmp_path / "paths.py"
    script.write_text(PATHS + "import sys\nprint(sys.argv[1:], __name__)\n")
    assert python("-m", "tilewright", "run", str(script), "-x", "1") == "['-x', '1'] __main__\n"


def test_a_program_finds_what_lies_beside_it(tmp_path):
    (tmp_path / "beside.py").write_text("import triton\nVALUE = triton.cdiv(7, 2)\n")
    (tmp_path / "main.py").write_text("import beside\nprint(beside.VALUE)\n")
    assert python("-m", "tilewright", "run", str(tmp_path / "main.py")) == "4\n"


@pytest.mark.parametrize("module", ["tilewright", "tilewright.runtime", "tilewright.runtime.jit", "tilewright.compiler.driver"])
def test_importing_loads_no_compiler(module):
    code = f"import sys, {module}; print([m for m in ('mlir', 'llvmlite', 'numpy', 'torch') if m in sys.modules])"
    assert python("-c", code) == "[]\n"


def test_version_and_environment(capsys):
    import tilewright

    assert cli.main(["version"]) == 0 and capsys.readouterr().out == tilewright.__version__ + "\n"
    assert cli.main(["env"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("ptxas", "libdevice", "GPU", "cache", "llvmlite"))


def test_unknown_command():
    with pytest.raises(SystemExit):
        cli.main(["nothing"])
