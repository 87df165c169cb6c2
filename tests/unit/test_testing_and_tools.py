"""Helpers for users: comparisons, benchmark reports, host tensor descriptors."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright import testing
from tilewright.tools.tensor_descriptor import TensorDescriptor


def test_assert_close():
    testing.assert_close(np.ones(3), np.ones(3) + 5e-3)
    testing.assert_close(float("nan"), float("nan"))
    testing.assert_close(100.0, 101.0, atol=0, rtol=lambda dtype: 0.02 if dtype == np.float64 else 0)
    with pytest.raises(AssertionError, match="why"):
        testing.assert_close(1.0, 1.1, err_msg="why")


def test_report(capsys):
    pytest.importorskip("pandas")
    bench = testing.Benchmark(["n"], [1, 2], "who", ["a", "b"], ["A", "B"], "plot", {"scale": 10})

    @testing.perf_report(bench)
    def measure(n, who, scale):
        return (n * scale, n, n) if who == "a" else n

    table = measure.run(print_data=True, return_df=True)
    assert table.to_dict("list") == {"n": [1, 2], "A": [10, 20], "B": [1, 2]}
    assert "plot:" in capsys.readouterr().out


def test_peaks(monkeypatch):
    properties = {"multiprocessor_count": 132, "mem_clock_rate": 3201000, "mem_bus_width": 6144}
    monkeypatch.setattr(testing, "_properties", lambda device: (properties, (9, 0)))
    assert testing.get_dram_gbps() == pytest.approx(4916.7, abs=1)
    assert testing.get_max_tensorcore_tflops("bfloat16", 1.83e6) == pytest.approx(989, rel=0.01)
    assert testing.get_max_tensorcore_tflops("torch.float8_e4m3fn", 1.83e6) == pytest.approx(2 * 989, rel=0.01)
    assert testing.get_max_simd_tflops("float32", 1.98e6) == pytest.approx(66.9, rel=0.01)
    with pytest.raises(ValueError, match="no float64 product|float64"):
        testing.get_max_tensorcore_tflops("float64", 1e6)


def array(dtype="float32", address=0, shape=(64, 64), strides=(64, 1)):
    return SimpleNamespace(
        data_ptr=lambda: address, element_size=lambda: np.dtype(dtype).itemsize, dtype=np.dtype(dtype), shape=shape, stride=lambda: strides
    )


def test_descriptor_of_a_tensor():
    d = TensorDescriptor.from_tensor(array(), [16, 32])
    assert (d.shape, d.strides, d.block_shape, d.padding) == ([64, 64], [64, 1], [16, 32], "zero")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((array(address=8), [64, 64], [64, 1], [16, 16]), "aligned to 16 bytes"),
        ((array(), [64, 64], [63, 1], [16, 16]), "multiples of 16 bytes"),
        ((array(), [64, 64], [64, 2], [16, 16]), "stride 1"),
        ((array(), [64, 64], [64, 1], [16]), "must be as long"),
        ((array(), [64, 64], [64, 1], [16, 12]), "powers of 2"),
        ((array(), [], [], []), "1 to 5 dimensions"),
        ((array(), [64, 64], [64, 1], [16, 16], "one"), "one of zero, nan"),
        ((array("int32"), [64, 64], [64, 1], [16, 16], "nan"), "floating-point"),
        ((array("float16"), [64, 64], [64, 1], [16, 16], "zero", True), "float32"),
    ],
)
def test_refused_descriptors(arguments, message):
    with pytest.raises(ValueError, match=message):
        TensorDescriptor(*arguments)
