"""Targets and options of the NVIDIA backend."""

from __future__ import annotations

import pytest

from tilewright import knobs
from tilewright.compiler.backends import make_backend
from tilewright.compiler.backends.base import GPUTarget
from tilewright.errors import UnsupportedTarget

H100 = GPUTarget("cuda", 90, 32)


def parse(target: GPUTarget = H100, **options):
    return make_backend(target).parse_options(options)


def test_defaults():
    options = parse()
    assert (options.num_warps, options.num_stages, options.num_ctas, options.maxnreg) == (4, 3, 1, None)
    assert options.enable_fp_fusion and options.arch == "sm90" and options.max_num_imprecise_acc_default == 2**30
    assert "fp8e4nv" in options.supported_fp8_dtypes
    assert "fp8e4nv" not in parse(GPUTarget("cuda", 80, 32)).supported_fp8_dtypes


def test_none_is_the_default_and_hash_tells_options_apart():
    assert parse(num_warps=None, maxnreg=None) == parse()
    assert parse(num_warps=8).hash() != parse().hash()


def test_options_of_other_releases_are_accepted():
    assert parse(cluster_dims=(1, 1, 1), num_consumer_groups=0, reg_dec_producer=0, instrumentation_mode="") == parse()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_warps": 3}, "power of 2: 1, 2, 4, 8, 16 or 32"),
        ({"num_warps": 64}, "power of 2: 1, 2, 4, 8, 16 or 32"),
        ({"num_warps": 4.0}, "num_warps must be an integer"),
        ({"num_warps": True}, "num_warps must be an integer"),
        ({"enable_fp_fusion": "no"}, "enable_fp_fusion must be True or False, not 'no'"),
        ({"launch_pdl": 2}, "launch_pdl must be True or False, not 2"),
        ({"ptx_options": 3}, "ptx_options must be a string, not 3"),
        ({"ir_override": 3}, "ir_override must be a string, not 3"),
        ({"extern_libs": "libdevice"}, "extern_libs must be a dict from names to files"),
        ({"num_stages": -1}, "num_stages must be 0 or more"),
        ({"num_ctas": 3}, "1, 2, 4, 8 or 16"),
        ({"maxnreg": 300}, "from 16 to 255"),
        ({"ptx_version": 70}, "must be 80 or newer for sm_90"),
        ({"clc": True}, "clc requires sm_100"),
        ({"default_dot_input_precision": "fp8"}, "must be one of tf32, tf32x3, ieee, bf16x3, bf16x6"),
        ({"arch": "hopper"}, "must look like 'sm90'"),
        ({"extern_libs": {"mine": "/nowhere/mine.bc"}}, "'mine' names '/nowhere/mine.bc', which is no file"),
    ],
)
def test_bad_values_name_the_accepted_ones(options, message):
    with pytest.raises(ValueError, match=message):
        parse(**options)


def test_clusters_need_hopper():
    with pytest.raises(ValueError, match=r"num_ctas > 1 requires NVIDIA SM90\+"):
        parse(GPUTarget("cuda", 86, 32), num_ctas=2)


def test_unknown_option():
    with pytest.raises(KeyError, match="Keyword argument waves_per_eu was specified but unrecognised. The options are num_warps"):
        parse(waves_per_eu=2)


@pytest.mark.parametrize(
    "target", [GPUTarget("cuda", 75, 32), GPUTarget("cuda", 90, 64), GPUTarget("metal", 1, 32), GPUTarget("cuda", "sm90", 32)]
)
def test_unsupported_targets(target):
    with pytest.raises(UnsupportedTarget):
        make_backend(target)


def test_a_target_is_a_gpu_target():
    with pytest.raises(TypeError, match="must be a GPUTarget"):
        make_backend("cuda:90")


def test_arch_override():
    with knobs.runtime.scope():
        knobs.runtime.override_arch = "sm80"
        assert parse().capability == 80
    assert parse(arch="sm89").capability == 89


def test_knobs_read_the_environment_and_can_be_overridden(monkeypatch):
    monkeypatch.setenv("TRITON_PTXAS_PATH", "/a")
    assert knobs.nvidia.ptxas == "/a"
    monkeypatch.setenv("TILEWRIGHT_PTXAS_PATH", "/b")
    assert knobs.nvidia.ptxas == "/b"
    with knobs.nvidia.scope():
        knobs.nvidia.ptxas = "/c"
        assert knobs.nvidia.ptxas == "/c"
        knobs.nvidia.ptxas = knobs.env
        assert knobs.nvidia.ptxas == "/b"
        knobs.nvidia.ptxas = "/d"
    assert knobs.nvidia.ptxas == "/b"
    monkeypatch.setenv("TRITON_DEBUG", "on")
    assert knobs.runtime.debug is True
