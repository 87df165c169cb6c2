"""The registry of passes: what a pipeline runs."""

import pytest
from mlir import ir

from tilewright.compiler.passes import registry
from tilewright.dialects import context


@pytest.fixture
def ran(monkeypatch):
    """Names of the passes that ran; "needs-mul" is only for modules with a multiplication, "always" for all."""
    names: list[str] = []
    monkeypatch.setattr(registry, "_passes", {})
    monkeypatch.setattr(registry, "_wanted", {})
    monkeypatch.setattr(registry, "load", lambda: None)
    registry._manager.cache_clear()
    registry.register("needs-mul", only_for=("arith.muli",))(lambda module: names.append("needs-mul"))
    registry.register("always")(lambda module: names.append("always"))
    yield names
    registry._manager.cache_clear()


@pytest.mark.parametrize(("op", "expected"), [("arith.muli", ["needs-mul", "always"]), ("arith.addi", ["always"])])
def test_a_pass_is_skipped_where_its_ops_are_absent(ran, op, expected):
    text = f"func.func @f(%a: i32) -> i32 {{ %b = {op} %a, %a : i32 return %b : i32 }}"
    with context(), ir.Location.unknown():
        for _ in range(2):  # the second run reads the module again
            registry.run(ir.Module.parse(text).operation, ["needs-mul", "always"])
    assert ran == expected * 2


def test_a_name_is_registered_once(ran):
    with pytest.raises(ValueError, match="'always' is registered twice"):
        registry.register("always")(lambda module: None)


def test_options_of_an_unknown_pass(ran):
    with context(), ir.Location.unknown(), pytest.raises(ValueError, match="no pass is named 'nothing'; ours are always, needs-mul"):
        registry.run(ir.Module.parse("").operation, [("nothing", {"a": 1})])
