"""TILEWRIGHT_INTERPRET_CHECK: races between programs and outputs that are not all written, with array, index and lines."""

import warnings

import numpy as np
import pytest

import tilewright.language as tl
from tilewright import knobs
from tilewright.errors import InterpreterWarning
from tilewright.runtime.interpreter import InterpretedFunction as jit


@pytest.fixture
def check():
    """A function that runs a launch under checks and returns the warnings' texts."""

    def run(names, kernel, grid, *args):
        with knobs.runtime.scope(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            knobs.runtime.interpret_check = names
            kernel[grid](*args)
        assert all(w.category is InterpreterWarning for w in caught)
        return [str(w.message) for w in caught]

    return run


def place(kernel, text):
    lines = kernel.src.splitlines()
    number, line = next((i, line) for i, line in enumerate(lines) if text in line)
    return f"{__file__}:{kernel.def_line + number}: {line.strip()}"


@jit
def neighbours_kernel(x, out, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i + 1)
    tl.store(x + i, v)


def test_a_read_and_a_later_write(check):
    (text,) = check("races", neighbours_kernel, (3,), np.zeros(25, np.int32), None, 8)
    assert "argument 'x' at index 8" in text
    assert "accessed by a store in program (1, 0, 0)" in text and "was read in program (0, 0, 0)" in text
    assert place(neighbours_kernel, "tl.store") in text and place(neighbours_kernel, "tl.load") in text


@jit
def same_place_kernel(x, out):
    tl.store(out, tl.load(x))


def test_two_writes(check):
    (text,) = check("races", same_place_kernel, (2, 3), np.zeros(1), np.zeros(1))
    assert "argument 'out' at index 0 is accessed by a store in program (1, 0, 0)" in text
    assert "was written in program (0, 0, 0)" in text


@jit
def pipeline_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    p = tl.program_id(0)
    tl.store(x + (p + 1) * N + i, tl.load(x + p * N + i) + 1)


def test_a_write_and_a_later_read(check):
    (text,) = check("races", pipeline_kernel, (3,), np.zeros(32, np.int16), None, 8)
    assert "argument 'x' at index 8 is accessed by a load in program (1, 0, 0)" in text and "was written in program (0, 0, 0)" in text


@jit
def disjoint_kernel(x, out, counter, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + tl.arange(0, N)))
    tl.store(out + i, tl.load(out + i) + 1)
    tl.atomic_add(counter, 1, sem="relaxed")
    tl.atomic_max(counter + tl.arange(0, 2), 1, sem="relaxed")


def test_what_is_no_race(check):
    assert check("races", disjoint_kernel, (4,), np.zeros(8), np.zeros(32), np.zeros(2, np.int32), 8) == []


@jit
def mixed_kernel(counter, out):
    tl.atomic_add(counter, 1)
    tl.store(out + tl.program_id(0), tl.load(counter))


def test_an_atomic_and_a_plain_load(check):
    (text,) = check("races", mixed_kernel, (2,), np.zeros(1, np.int32), np.zeros(2, np.int32))
    assert "argument 'counter' at index 0 is accessed by an atomic in program (1, 0, 0)" in text
    assert place(mixed_kernel, "atomic_add") in text and place(mixed_kernel, "tl.store") in text


@jit
def last_one_sums_kernel(x, partial, count, out, SEM: tl.constexpr, N: tl.constexpr):
    p, n = tl.program_id(0), tl.num_programs(0)
    tl.store(partial + p, tl.sum(tl.load(x + p * N + tl.arange(0, N))))
    if tl.atomic_add(count, 1, sem=SEM) == n - 1:
        i = tl.arange(0, 16)
        tl.store(out, tl.sum(tl.load(partial + i, mask=i < n, other=0)))


@pytest.mark.parametrize(("sem", "races"), [("acq_rel", 0), ("release", 1), ("acquire", 1), ("relaxed", 1)])
def test_atomics_order_what_they_say(check, sem, races):
    out = np.zeros(1, np.int32)
    found = check(
        "races", last_one_sums_kernel, (5,), np.arange(40, dtype=np.int32), np.zeros(5, np.int32), np.zeros(1, np.int32), out, sem, 8
    )
    assert out[0] == 780 and len(found) == races


@jit
def flags_kernel(data, flags):
    p = tl.program_id(0)
    if p > 0:
        tl.atomic_poll(flags + p - 1, 1)
    before = tl.load(data + p)
    tl.store(data + p + 1, before + 1)
    tl.atomic_store(flags + p, 1)


def test_a_chain_of_flags_orders(check):
    data = np.zeros(5, np.int64)
    assert check("races", flags_kernel, (4,), data, np.zeros(4, np.int32)) == [] and data.tolist() == [0, 1, 2, 3, 4]


@jit
def tail_kernel(x, out, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n - 2, other=0), mask=i < n - 2)


def test_an_output_that_is_not_all_written(check):
    (text,) = check("uninitialized", tail_kernel, (2,), np.zeros(30), np.zeros((3, 10)), 30, 16)
    assert "2 of the 30 elements of argument 'out' are written by no program, the first at [2, 8]" in text
    assert place(tail_kernel, "tl.store") in text
    assert check("uninitialized", tail_kernel, (2,), np.zeros(30), np.zeros(28), 30, 16) == []
    assert check("uninitialized", tail_kernel, (2,), np.zeros(30), np.zeros(40)[:28], 30, 16) == []  # a view counts for itself


def test_a_view_with_gaps(check):
    rows = np.zeros((4, 8))[:, :4]
    (text,) = check("uninitialized", tail_kernel, (2,), np.zeros(30), rows, 28, 16)
    assert "2 of the 16 elements of argument 'out'" in text and "the first at [3, 2]" in text


def test_torch_tensors(check):
    torch = pytest.importorskip("torch")
    (text,) = check("races,uninitialized", tail_kernel, (2,), torch.zeros(30), torch.zeros(30).reshape(5, 6).t(), 30, 16)
    assert "the first at [4, 4]" in text


def test_the_environment_asks(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_INTERPRET_CHECK", " races , uninitialized ")
    with pytest.warns(InterpreterWarning, match="race between programs"):
        same_place_kernel[(2,)](np.zeros(1), np.zeros(1))
    monkeypatch.setenv("TILEWRIGHT_INTERPRET_CHECK", "race")
    with pytest.raises(ValueError, match="unknown check 'race'; accepted: races, uninitialized"):
        same_place_kernel[(2,)](np.zeros(1), np.zeros(1))
