"""Every op of both dialects stands in a valid `.mlir` test, and is refused in an invalid one; every pass is run by one."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from tilewright.compiler.passes import registry
from tilewright.dialects import tile, tilegpu

FILES = [(path, path.read_text(encoding="utf-8").split("\n")) for path in sorted((Path(__file__).parent / "dialects").glob("*.mlir"))]
OP = re.compile(r"(?<![!#\w.])(?:tile|tilegpu)\.\w+")
EXPECTED = re.compile(r"// expected-error\s*@\+(\d+)")


def ops(dialect: ModuleType) -> set[str]:
    """The names of all ops that ODS made for `dialect`."""
    return {value.OPERATION_NAME for value in vars(dialect).values() if hasattr(value, "OPERATION_NAME")}


def named(lines: list[str]) -> set[str]:
    return {name for line in lines for name in OP.findall(line)}


@pytest.mark.parametrize("dialect", [tile, tilegpu], ids=["tile", "tilegpu"])
def test_each_op_is_checked_in_print(dialect):
    checks = {name for path, lines in FILES if "_invalid" not in path.stem for name in named([x for x in lines if "// CHECK" in x])}
    assert ops(dialect) - checks == set()


@pytest.mark.parametrize("dialect", [tile, tilegpu], ids=["tile", "tilegpu"])
def test_each_op_is_refused_somewhere(dialect):
    refused = set()
    for path, lines in FILES:
        if "_invalid" in path.stem:
            marks = [(i, EXPECTED.search(line)) for i, line in enumerate(lines)]
            refused |= named([lines[i + int(mark[1])] for i, mark in marks if mark])
    assert ops(dialect) - refused == set()


def test_each_pass_is_run():
    folder = Path(__file__).parent / "passes"
    runs = "\n".join(line for f in sorted(folder.glob("*.mlir")) for line in f.read_text(encoding="utf-8").split("\n") if "RUN:" in line)
    assert [name for name in registry.names() if not re.search(rf"\b{name}(?![\w-])", runs)] == []
