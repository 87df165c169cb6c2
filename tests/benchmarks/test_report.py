"""The tables of the benchmark suite."""

from __future__ import annotations

import json

import report


def _entry(name, implementation, value, configs=()):
    error = None if implementation is None else 1e-3
    return {"name": name, "implementation": implementation, "ms": 1.0, "value": value, "configs": [*configs], "error": error}


def _results(entries, notes=()):
    case = {
        "group": "gemm",
        "name": "4096",
        "unit": "TFLOP/s",
        "work": 1.0,
        "notes": [*notes],
        "entries": entries,
        "clocks": {"clocks.sm": 1500.0},
    }
    machine = {"date": "2026-11-30", "gpu": {"name": "H200"}, "python": "3.12", "versions": {"torch": "2.11"}}
    return {"machine": machine, "seconds": {"measuring": 1.0}, "compile_failures": [], "cases": [case]}


def test_table(tmp_path):
    entries = [
        _entry("cuBLAS", None, 700.0),
        _entry("triton pointers", "triton", 600.0, ["128x128 w4"]),
        _entry("tilewright pointers", "tilewright", 650.0, ["128x256 w8"]),
        _entry("tilewright descriptors", "tilewright", 770.0, ["128x256 w8 WS"]),
    ]
    (tmp_path / "compute.json").write_text(json.dumps(_results(entries, ["triton descriptors 256x256: wrong"])))
    report.write(tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert "| TFLOP/s | tilewright descriptors | tilewright pointers | triton pointers | cuBLAS | x Triton | x library |" in text
    assert "| 4096 | 770 | 650 | 600 | 700 | 1.28 | 1.10 |" in text
    assert "tilewright descriptors: 128x256 w8 WS" in text and "| 1.0e-03 | 1500 |" in text
    assert "- 4096: triton descriptors 256x256: wrong" in text and "H200" in text


def test_what_is_missing_is_empty(tmp_path):
    (tmp_path / "compute.json").write_text(json.dumps(_results([_entry("tilewright pointers", "tilewright", 650.0)])))
    (tmp_path / "memory.json").write_text(json.dumps(_results([], ["making the inputs: the process died"])))
    report.write(tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert "| 4096 | 650 |  |  |" in text and "| 4096 |  |  |  |" in text
