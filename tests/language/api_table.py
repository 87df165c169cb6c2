"""Runs the programs of `api_registry.py` and writes `docs/language.md`: `python tests/language/api_table.py`.

Programs are put together into kernels, a few each; where one of a group fails, those of the group run alone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import pathlib
import sys
import tempfile
from collections.abc import Callable

import numpy as np
from api_helpers import helpers
from api_registry import PRELUDE, SECTIONS, Section

import tilewright
import tilewright.language as tl
from tilewright.backends.compiler import GPUTarget
from tilewright.compiler.source import ASTSource
from tilewright.runtime.interpreter import InterpretedFunction

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "language.md"
SIGNATURE = {"X": "*fp32", "N": "*i32", "S": "*i32", "F": "*fp32", "OUT": "*fp64"}
SLOT, GROUP = 1024, 12  # results of a program; programs in a kernel
TARGETS = {"sm_80": GPUTarget("cuda", 80, 32), "sm_90": GPUTarget("cuda", 90, 32)}
Example = tuple[str, str]

INTRODUCTION = """\
# The language

Every name of the language, with a program that uses it. `python tests/language/api_table.py` writes this file from
`tests/language/api_registry.py`, and a test fails where the two differ or a public name is missing. The columns say whether the program
runs in the interpreter and compiles to machine code for compute capability 8.0 and 9.0. On a machine with a GPU the same test also runs
every program there, and its results must be those of the interpreter.

In the programs `x` and `y` are fp32 and `n`, `m` int32 tensors of 16 elements, `h`, `d`, `u`, `l` such of fp16, fp64, uint32, int64, `q`
of booleans; `i` is `tl.arange(0, 16)`; `e` (fp32) and `k` (int32) are scalars; `a` and `w` are 16 x 16 tensors of fp32 and fp16; `s` and
`f` point to 64 int32 and fp32 numbers.

## The interpreter

With `TILEWRIGHT_INTERPRET=1` (or `TRITON_INTERPRET=1`) kernels run in Python: `print`, `breakpoint()` and pdb work on their lines, and an
access outside an array is an error that names the array, the index and the line. `TILEWRIGHT_INTERPRET_CHECK=races,uninitialized` asks
for two more checks, whose findings are warnings (`InterpreterWarning`): two programs of a launch that access one element, one of them
writing, with nothing that orders them; and an argument that the kernel only writes, but not everywhere. Both name the array, the index
and the lines.
"""


def interpreted_jit(fn: Callable | None = None, **options) -> object:
    """`@jit` for the interpreter."""
    return InterpretedFunction(fn, **options) if fn is not None else lambda f: InterpretedFunction(f, **options)


def kernel_of(examples: list[Example], jit: Callable, folder: str, more: Callable[[Callable], dict] = lambda jit: {}) -> object:
    """One kernel that runs `examples`, each with memory of its own, made from a source file in `folder`; `more(jit)` are helpers by name
    besides those of `api_helpers`."""
    lines = ["def kernel(X, N, S, F, OUT):", *("    " + line for line in PRELUDE.strip().splitlines())]
    for number, (name, program) in enumerate(examples):
        *statements, last = program.splitlines()
        body = [f"s = S + {64 * number}", f"f = F + {64 * number}", *statements, f"put(OUT + {SLOT * number}, ({last}))"]
        lines += [f"    # {name}", *("    " + line for line in body)]
    with tempfile.NamedTemporaryFile("w", suffix=".py", dir=folder, delete=False) as file:
        file.write("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location(pathlib.Path(file.name).stem, file.name)
    module = importlib.util.module_from_spec(spec)
    vars(module).update(helpers(jit) | more(jit), tl=tl)
    spec.loader.exec_module(module)
    return jit(module.kernel)


def inputs(count: int) -> dict[str, np.ndarray]:
    """Arguments of a kernel of `count` programs."""
    rng = np.random.default_rng(0)
    return {
        "X": rng.uniform(0.1, 0.9, 256).astype(np.float32),
        "N": np.concatenate([rng.integers(-40, 40, 16), [5], rng.integers(1, 16, 15)]).astype(np.int32),
        "S": np.tile(np.arange(64, dtype=np.int32), count),
        "F": np.tile(np.arange(64, dtype=np.float32) / 4, count),
        "OUT": np.full(SLOT * count, -7.0),
    }


def interpret(examples: list[Example], folder: str) -> dict[str, np.ndarray]:
    """The memory that the programs leave, by argument."""
    arrays = inputs(len(examples))
    with contextlib.redirect_stdout(io.StringIO()):
        kernel_of(examples, interpreted_jit, folder)[(1,)](*arrays.values())
    return arrays


def compile_for(target: GPUTarget) -> Callable[[list[Example], str], object]:
    """A function that compiles programs for `target`, as far as machine code."""

    def compile(examples: list[Example], folder: str) -> object:
        with contextlib.redirect_stdout(io.StringIO()):
            return tilewright.compile(ASTSource(kernel_of(examples, tilewright.jit, folder), SIGNATURE, {}, {}), target=target)

    return compile


def host(examples: list[Example], folder: str) -> None:
    """Evaluate programs of the host; AssertionError if one is not true."""

    def plain(p):
        pass

    for name, program in examples:
        assert eval(program, {"triton": tilewright, "tl": tl, "numpy": np, "plain": plain}), name


def groups(section: Section) -> list[list[Example]]:
    """The programs of a section, those of names that share one only once."""
    unique = list({program: (name, program) for name, program in reversed(section.examples())}.values())[::-1]
    return [unique[i : i + GROUP] for i in range(0, len(unique), GROUP)]


def failures(run: Callable[[list[Example], str], object], section: Section, folder: str) -> dict[str, Exception]:
    """What went wrong, by program."""
    found = {}
    for group in groups(section):
        try:
            run(group, folder)
        except Exception:  # noqa: BLE001  (which program it was is found out below)
            for example in group:
                try:
                    run([example], folder)
                except Exception as error:  # noqa: BLE001
                    found[example[1]] = error
    return found


def runs_of(section: Section) -> dict[str, Callable]:
    """Column of the table -> how programs of the section are run for it."""
    if section.host:
        return {"host": host}
    return {"interpreter": interpret, **{name: compile_for(target) for name, target in TARGETS.items()}}


def table(section: Section, failed: dict[str, dict[str, Exception]]) -> str:
    """The section in Markdown; `failed` holds the failures of each column."""
    lines = [f"## {section.title}\n", *([section.text + "\n"] if section.text else [])]
    lines += ["| name | program | " + " | ".join(failed) + " |", "| --- | --- |" + " --- |" * len(failed)]
    for name, program in section.examples():
        code = "<br>".join(f"`{line}`" for line in program.replace("|", "\\|").splitlines())
        states = " | ".join("no" if program in errors else "yes" for errors in failed.values())
        lines.append(f"| `{name}` | {code} | {states} |")
    return "\n".join(lines) + "\n"


def document(report: Callable[[str], None] = lambda text: None) -> str:
    """The text of docs/language.md; `report` is told of every failure."""
    parts = [INTRODUCTION]
    with tempfile.TemporaryDirectory() as folder:
        for section in SECTIONS:
            failed = {column: failures(run, section, folder) for column, run in runs_of(section).items()}
            for column, errors in failed.items():
                for program, error in errors.items():
                    report(f"{column}: {program!r}: {type(error).__name__}: {error}")
            parts.append(table(section, failed))
    return "\n".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(document(lambda text: print(text, file=sys.stderr)))
