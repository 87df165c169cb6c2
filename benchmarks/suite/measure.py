"""Measuring one case on the GPU: which configurations are right, the fastest of them, then all contenders in turns."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from .cases import Case, Config, Launch, Problem, Stage, Step, Variant, label
from .implementations import run, signature
from .precompile import Failures

Call = Callable[[], Any]
#: Told of what is about to run, so that a parent process knows what killed this one.
Announce = Callable[[str], None]

_FLUSH_BYTES = 256 << 20
#: GPU cycles of idling before a timed call: the host gets ahead, so launches are not waited for.
_LEAD = 200_000
_TRIALS = 5
#: Milliseconds that the last comparison should take for each contender, and the bounds of its number of rounds.
_BUDGET, _LEAST, _MOST = 60.0, 12, 60


@dataclass
class Contender:
    """One way to compute the result, ready to be called."""

    name: str
    implementation: str | None
    call: Call
    configs: list[str]
    error: float | None


def time_calls(calls: list[Call], rounds: int) -> list[float]:
    """Median milliseconds of each, taken in turns, with L2 flushed before each call."""
    trash = torch.empty(_FLUSH_BYTES, dtype=torch.int8, device="cuda")
    events = [[(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(rounds)] for _ in calls]
    for turn in range(rounds):
        for call, pairs in zip(calls, events, strict=True):
            trash.zero_()
            torch.cuda._sleep(_LEAD)
            begin, end = pairs[turn]
            begin.record()
            call()
            end.record()
    torch.cuda.synchronize()
    return [statistics.median(begin.elapsed_time(end) for begin, end in pairs) for pairs in events]


def spoil(outputs: tuple[torch.Tensor, ...]) -> None:
    """Fill with NaN, or the lowest integer."""
    for output in outputs:
        output.fill_(float("nan") if output.is_floating_point() else torch.iinfo(output.dtype).min)


def relative_error(value: torch.Tensor, expected: torch.Tensor) -> float:
    """Of the whole array in the Frobenius norm; NaN if the value has one."""
    value, expected = value.double(), expected.double()
    return ((value - expected).norm() / expected.norm().clamp_min(1e-30)).item()


def steps_call(steps: list[Step], implementation: str) -> Call:
    """All steps in order."""
    calls = [partial(run, step, implementation) if isinstance(step, Launch) else step for step in steps]
    return calls[0] if len(calls) == 1 else lambda: [call() for call in calls]


class Measurement:
    """The work on one case. `avoid`: announcements that killed a process before; `failures`: kernels that do not compile."""

    def __init__(self, case: Case, announce: Announce, avoid: set[str], failures: Failures):
        self.announce, self.avoid, self.failures = announce, avoid, failures
        self.notes: list[str] = []
        self.problem: Problem = case.build("cuda")
        self.expected = self.problem.reference()

    def run(self, implementations: list[str]) -> dict[str, Any]:
        """Everything; the result is plain data."""
        contenders = [c for v in self.problem.variants for i in implementations if (c := self._variant(v, i)) is not None]
        for name, make in self.problem.vendors.items():
            if self._attempt(name, lambda make=make: make()()):
                contenders.append(Contender(name, None, make(), [], None))
        times = self._compare(contenders)
        for contender in contenders:
            if contender.implementation is not None and not (error := self._error_of(contender)) <= self.problem.tolerance:
                self.notes.append(f"{contender.name}: wrong when run again, error {error:.1e}")
        return {
            "unit": self.problem.unit,
            "work": self.problem.work,
            "notes": self.notes,
            "entries": [
                {
                    "name": c.name,
                    "implementation": c.implementation,
                    "ms": ms,
                    "value": self.problem.work / ms / (1e9 if self.problem.unit == "TFLOP/s" else 1e6),
                    "configs": c.configs,
                    "error": c.error,
                }
                for c, ms in zip(contenders, times, strict=True)
            ],
        }

    def _compare(self, contenders: list[Contender]) -> list[float]:
        if not contenders:
            return []
        self.announce("comparison")
        calls = [c.call for c in contenders]
        longest = max(time_calls(calls, 3))
        return time_calls(calls, min(_MOST, max(_LEAST, int(_BUDGET / longest))))

    def _attempt(self, what: str, call: Call) -> bool:
        """Whether a call works; why not becomes a note. Errors of CUDA leave the process useless and are raised."""
        if what in self.avoid:
            self.notes.append(f"{what}: the process died")
            return False
        self.announce(what)
        try:
            call()
            torch.cuda.synchronize()
        except torch.AcceleratorError:
            raise
        except Exception as e:  # noqa: BLE001  (what fails is reported, the rest goes on)
            self.notes.append(f"{what}: {type(e).__name__}: {str(e)[:200]}")
            return False
        return True

    def _variant(self, variant: Variant, implementation: str) -> Contender | None:
        """The variant with the best configuration of every stage, or None if a stage has none that is right."""
        steps: list[Step] = []
        chosen: list[str] = []
        errors: list[float] = []
        name = f"{implementation} {variant.name}"
        for stage in variant.stages:
            results = [found for cf in stage.configs if (found := self._config(f"{name} {label(cf)}", stage, cf, implementation))]
            if not results:
                return None
            _, best, error = min(results, key=lambda r: r[0])
            steps += stage.steps(best)
            chosen.append(label(best))
            errors.append(error)
            self._compute(stage, best, implementation)  # what the next stages read
        return Contender(name, implementation, steps_call(steps, implementation), chosen, max(errors))

    def _config(self, what: str, stage: Stage, config: Config, implementation: str) -> tuple[float, Config, float] | None:
        """(milliseconds, configuration, error) if it is right."""
        steps = stage.steps(config)
        for step in steps:
            why = self.failures.get((implementation, repr(signature(step)))) if isinstance(step, Launch) else None
            if why is not None:
                self.notes.append(f"{what}: {why}")
                return None
        if not self._attempt(what, lambda: self._compute(stage, config, implementation)):
            return None
        error = self._error(stage.outputs)
        if not error <= self.problem.tolerance:
            self.notes.append(f"{what}: wrong, error {error:.1e}")
            return None
        return time_calls([steps_call(steps, implementation)], _TRIALS)[0], config, error

    def _compute(self, stage: Stage, config: Config, implementation: str) -> None:
        spoil(tuple(self.problem.outputs[i] for i in stage.outputs))
        steps_call(stage.steps(config), implementation)()

    def _error(self, outputs: tuple[int, ...]) -> float:
        errors = [relative_error(self.problem.outputs[i], self.expected[i]) for i in outputs]
        return float("nan") if any(e != e for e in errors) else max(errors)

    def _error_of(self, contender: Contender) -> float:
        spoil(self.problem.outputs)
        contender.call()
        return self._error(tuple(range(len(self.problem.outputs))))
