"""What a user sees who imports from a source checkout, or whose packages are missing or of another release."""

import sys

import pytest

from tilewright import _checkout
from tilewright.compiler import requirements
from tilewright.errors import ToolchainError


def test_a_checkout_uses_what_is_installed(tmp_path, monkeypatch):
    installed = tmp_path / "site" / "tilewright"
    (installed / "compiler").mkdir(parents=True)
    checkout = tmp_path / "checkout"
    (checkout / "tilewright").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(checkout), str(tmp_path / "site")])
    path = [str(checkout / "tilewright")]
    _checkout.use_installed(path)
    assert path == [str(installed)]


def test_a_checkout_without_installation_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(ImportError, match="source checkout of tilewright, which is not installed .* pip install"):
        _checkout.use_installed([str(tmp_path / "tilewright")])


def test_mlir_is_missing(monkeypatch):
    monkeypatch.setattr(requirements.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError, match=r"xtc-mlir-python-bindings is not installed.*pip install 'xtc-mlir-python-bindings==22"):
        requirements.check_mlir.__wrapped__()


def test_mlir_is_of_another_release(tmp_path, monkeypatch):
    (tmp_path / "mlir").mkdir()
    (tmp_path / "mlir" / "__init__.py").touch()
    (tmp_path / "xtc_mlir_python_bindings-21.1.0.1.dist-info").mkdir()
    found = requirements.importlib.util.spec_from_file_location(
        "mlir", tmp_path / "mlir" / "__init__.py", submodule_search_locations=[str(tmp_path / "mlir")]
    )
    monkeypatch.setattr(requirements.importlib.util, "find_spec", lambda name: found)
    with pytest.raises(ToolchainError, match=r"xtc-mlir-python-bindings 21.1.0.1 is installed, and 22.1.8 is needed: pip install"):
        requirements.check_mlir.__wrapped__()
