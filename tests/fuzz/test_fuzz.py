"""A few random programs, and those that once found an error, run both ways: on the GPU, or without one in the simulator of the lowering."""

from pathlib import Path

import pytest
from fuzzing import execution
from fuzzing.generator import generate
from fuzzing.minimise import length, minimise

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.py"))
SEEDS = range(30)


def _mode() -> str:
    try:
        import torch
    except ImportError:
        return "simulate"
    return "gpu" if torch.cuda.is_available() else "simulate"


MODE = _mode()


def check(source: str, path: str) -> None:
    """Run a program; one that the simulator cannot run is at least compiled."""
    try:
        execution.check(source, path, MODE)
    except execution.Unsupported:
        execution.compile_only(source, path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore")
def test_random_program(seed):
    check(generate(seed).source(), f"<random program {seed}>")


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_program_that_once_failed(path):
    check(path.read_text(), str(path))


@pytest.mark.parametrize("seed", [401084, 123102])
@pytest.mark.filterwarnings("ignore")
def test_every_cta_has_an_element_to_compare_and_swap(seed):
    execution.compile_only(generate(seed).source(), f"<random program {seed}>")


def test_programs_are_the_same_for_a_seed():
    assert generate(7).source() == generate(7).source()


def test_wrong_results_are_found(monkeypatch):
    """A compiler that drops the last element of each output is found out."""
    right = execution.interpret

    def wrong(source, path, inputs):
        results = right(execution.load(source, path, execution.interpreted_jit), inputs)
        return {name: bits if len(bits) < 2 else bits ^ (bits == bits[-1]).astype(bits.dtype) for name, bits in results.items()}

    monkeypatch.setattr(execution, "launch", wrong)
    with pytest.raises(execution.Failure, match="mismatch"):
        execution.check(generate(3).source(), "<random program 3>", "gpu")


def test_minimising_keeps_what_fails():
    program = next(p for p in map(generate, range(100)) if "tl.where" in p.source() and length(p) > 15)

    def first_with_a_selection(programs):
        return next((i for i, p in enumerate(programs) if "tl.where" in p.source()), None)

    small = minimise(program, first_with_a_selection)
    assert "tl.where" in small.source()
    assert length(small) < length(program) // 2
