"""What docs/hopper.md says of overriding the compiler's decisions."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

pytest.importorskip("torch")

from suite import attention, gemm, implementations


@pytest.fixture(params=["gemm", "attention"])
def launch(request):
    problem = gemm.plain("meta", 8192, 8192, 8192) if request.param == "gemm" else attention.forward("meta", 2, 16, 8192, 128, True)
    stage = next(v for v in problem.variants if v.name == "descriptors").stages[0]
    return stage.steps(next(c for c in stage.configs if c["WS"]))[0]


def compiled(launch, **keywords):
    with implementations.no_gpu("tilewright"):
        return implementations.compile_launch(replace(launch, keywords={**launch.keywords, **keywords}), "tilewright")


def registers(kernel) -> list[str]:
    return re.findall(r"setmaxnreg\.\w+\.sync\.aligned\.u32 (\d+)", kernel.asm["ptx"])


def test_registers_of_the_roles_in_an_edited_file(launch, tmp_path):
    kernel = compiled(launch)
    assert registers(kernel) == ["240", "24"]
    for stage, expected in (("ttir", ["240", "24"]), ("ttgir", ["232", "40"]), ("llir", ["240", "24"]), ("ptx", ["240", "24"])):
        path = tmp_path / f"mine.{stage}"
        path.write_text(kernel.asm[stage].replace("registers = [240, 24]", "registers = [232, 40]"))
        again = compiled(launch, ir_override=str(path))
        assert registers(again) == expected and again.n_spills == 0 and not again.metadata.ptxas_warnings, stage


def test_roles_are_forbidden(launch):
    assert registers(compiled(launch, WS=False)) == []


def test_copies_by_threads(launch):
    ptx = compiled(launch, tma=False, WS=False).asm["ptx"]
    assert "cp.async.cg" in ptx and "cp.async.bulk.tensor" not in ptx
