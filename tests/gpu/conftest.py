"""What several files of tests on a GPU need."""

from __future__ import annotations

import pytest

from tilewright.runtime.drivers.cuda import device_count


@pytest.fixture
def two_devices() -> None:
    """Skips the test on a machine with one GPU."""
    if device_count() < 2:
        pytest.skip("needs two GPUs")
