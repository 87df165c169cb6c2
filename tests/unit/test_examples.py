"""The programs in `examples/` run, with a GPU or without, and check their own results; the demo does, and writes its stages."""

import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.compiler.backends.nvidia import locate

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", [path for path in EXAMPLES if path.name != "device.py"], ids=lambda path: path.stem)
def test_example(script):
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "largest error" in done.stdout


@pytest.mark.skipif(not locate._find("ptxas"), reason="ptxas is not installed")
def test_demo(tmp_path):
    from tilewright import cli

    assert cli.main(["demo", "--write", str(tmp_path)]) == 0
    stages = {"source", "ttir", "ttgir", "llir", "ptx", "cubin"}
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}_kernel.{stage}" for name in ("add", "softmax", "matmul") for stage in stages
    }
