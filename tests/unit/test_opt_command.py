"""`tilewright-opt` given what it cannot use: one line that says so, exit code 1, no traceback."""

from __future__ import annotations

import pytest

from tilewright.compiler import opt

KERNEL = "func.func @k(%p: !tile.ptr<f32>) {\n  return\n}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--passes", "no-such-pass"], "'no-such-pass' does not refer to a registered pass"),
        (["--passes", "cse", "--pass-pipeline", "builtin.module(cse)"], "give --passes or --pass-pipeline, not both"),
        (["--pass-pipeline", "cse"], "a pipeline has the form 'builtin.module"),
        (["--passes", "cse", "-o", "{folder}/no/such/file"], "No such file or directory"),
        (["--emit", "ttgir"], "--emit needs --target, such as --target=cuda:90\n"),
        (["--emit", "ttgir", "--target", "hopper"], "--emit needs --target, such as --target=cuda:90, not hopper"),
        (["--emit", "ttgir", "--target", "cuda:70"], "cuda targets are 80, 86, 89, 90, 100, 120"),
        (["--emit", "binary", "--target", "cuda:90"], "there is no stage 'binary'; the stages are ttir, ttgir, llir, ptx, cubin"),
        (["--emit", "ttgir", "--target", "cuda:90", "--option", "num_warps=3"], "num_warps must be a power of 2"),
        (["--emit", "ttgir", "--target", "cuda:90", "--option", "warps=4"], "Keyword argument warps was specified but unrecognised"),
    ],
)
def test_mistakes(tmp_path, capsys, arguments, says):
    path = tmp_path / "kernel.ttir"
    path.write_text(KERNEL)
    assert opt.main([str(path), *(argument.format(folder=tmp_path) for argument in arguments)]) == 1
    assert says in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert opt.main([str(tmp_path / "none.mlir"), "--passes", "cse"]) == 1
    assert "No such file" in capsys.readouterr().err
