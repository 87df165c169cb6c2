"""Gives the tests of this folder a place to run kernels."""

import pytest


@pytest.fixture(params=["machine", "gpu"])
def run(request):
    """`run(kernel, *arrays, arch=90)`: on the lockstep machine, and on a GPU of compute capability 9.0 where there is one."""
    import lowering_harness

    if request.param == "machine":
        return lowering_harness.run_on_machine
    if lowering_harness.device_capability() != 90:
        pytest.skip("needs a GPU of compute capability 9.0")
    return lowering_harness.run_on_gpu
