"""Collects `.mlir` files as tests: each runs its `// RUN:` lines in this process.

A line is a pipeline of `tilewright-opt` and `filecheck` commands; `%s` is the file, `not` in front asks for a non-zero exit code,
`2>&1` joins the error output to the piped one.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.File | None:
    return MlirFile.from_parent(parent, path=file_path) if file_path.suffix == ".mlir" else None


class MlirFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield MlirTest.from_parent(self, name=self.path.stem)


class MlirTest(pytest.Item):
    def runtest(self) -> None:
        text = self.path.read_text(encoding="utf-8").replace("\\\n// RUN:", "")
        lines = [line.partition("RUN:")[2] for line in text.split("\n") if line.startswith("// RUN:")]
        if not lines:
            raise RunFailure(f"{self.path} has no RUN line")
        for line in lines:
            data = ""
            for command in line.split(" | "):
                data = self._run(shlex.split(command), data)

    def _run(self, words: list[str], data: str) -> str:
        """Run one command with `data` as its input; return its output. Raises RunFailure where its exit code is wrong."""
        shown = " ".join(words)
        words = [word.replace("%s", str(self.path)) for word in words]
        fails = words[0] == "not"
        merge = "2>&1" in words
        name, *arguments = [word for word in words[fails:] if word != "2>&1"]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out if merge else err):
            if name == "tilewright-opt":
                code = _opt(arguments, data)
            elif name == "filecheck":
                code = _filecheck(arguments, data)
            else:
                raise RunFailure(f"a RUN line cannot run '{name}'")
        if (code != 0) != fails:
            raise RunFailure(f"exit code {code}: {shown}\n{err.getvalue()}{out.getvalue()}")
        return out.getvalue()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None) -> str:
        return str(excinfo.value) if isinstance(excinfo.value, RunFailure) else str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class RunFailure(Exception):
    """A RUN line did not do what it should."""


def _opt(arguments: list[str], data: str) -> int:
    from tilewright.compiler.opt import main

    stdin, sys.stdin = sys.stdin, io.StringIO(data)
    try:
        return main(arguments)
    finally:
        sys.stdin = stdin


def _filecheck(arguments: list[str], data: str) -> int:
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options
    from filecheck.parser import Parser

    options = parse_argv_options(["filecheck", *arguments])
    return Matcher(options, FInput("<output>", data), Parser.from_opts(options)).run()
