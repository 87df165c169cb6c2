"""Measuring one case on the GPU: which configurations are right, the fastest of them, then all contenders in
turns."""

from __future__ import annotations

import statistics
import time
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

#: What is read before a timed call to fill L2 with other data. It is not written: kernels would pay for writing it back.
_FLUSH_BYTES = 256 << 20
#: GPU cycles of idling before a timed call: the host gets ahead, so launches are not waited for.
_LEAD = 200_000
#: Calls by which configurations are compared; those of kernels that move bytes are short, and closer to each other.
_TRIALS = {"TFLOP/s": 3, "GB/s": 9}
#: A hot card slows down until all kernels are as fast as its power allows. What computes is therefore timed in bursts of some milliseconds,
#: each after an idle time in seconds; what moves bytes needs no rest. (rest, bursts, milliseconds of a burst)
Protocol = tuple[float, int, float]
_PROTOCOLS: dict[str, Protocol] = {"TFLOP/s": (0.1, 3, 12.0), "GB/s": (0.0, 4, 10.0)}
#: The configurations within this factor of the fastest, so many at most, are compared once more, in turns: a trial is off by some percent.
_CLOSE, _FINALISTS = 1.05, 3
_FINALS: dict[str, Protocol] = {"TFLOP/s": (0.05, 2, 4.0), "GB/s": (0.0, 3, 3.0)}
_LEAST, _MOST = 3, 60


@dataclass
class Contender:
    """One way to compute the result, ready to be called; it computes the outputs of these numbers."""

    name: str
    implementation: str | None
    call: Call
    configs: list[str]
    error: float | None
    outputs: tuple[int, ...] = ()


class Timer:
    """Times calls with CUDA events, L2 flushed before each call."""

    def __init__(self) -> None:
        self._trash = torch.zeros(_FLUSH_BYTES // 4, dtype=torch.float32, device="cuda")

    def burst(self, call: Call, count: int) -> float:
        """Median milliseconds of `count` calls one after the other."""
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
        for begin, end in events:
            self._trash.sum()
            torch.cuda._sleep(_LEAD)
            begin.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return statistics.median(begin.elapsed_time(end) for begin, end in events)

    def compare(self, calls: list[Call], protocol: Protocol) -> list[float]:
        """Median milliseconds of each, over bursts taken in turns."""
        rest, bursts, budget = protocol
        estimates = [self.burst(call, 2) for call in calls]
        medians: list[list[float]] = [[] for _ in calls]
        for _ in range(bursts):
            for call, estimate, found in zip(calls, estimates, medians, strict=True):
                time.sleep(rest)
                found.append(self.burst(call, min(_MOST, max(_LEAST, int(budget / estimate)))))
        return [statistics.median(found) for found in medians]


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
        self.timer = Timer()

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
        return self.timer.compare([c.call for c in contenders], _PROTOCOLS[self.problem.unit])

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
            best, error = self._fastest(results, stage, implementation)
            steps += stage.steps(best)
            chosen.append(label(best))
            errors.append(error)
            self._compute(stage, best, implementation)  # what the next stages read
        outputs = tuple(i for stage in variant.stages for i in stage.outputs)
        return Contender(name, implementation, steps_call(steps, implementation), chosen, max(errors), outputs)

    def _fastest(self, results: list[tuple[float, Config, float]], stage: Stage, implementation: str) -> tuple[Config, float]:
        """The configuration that is fastest, with its error."""
        results = sorted(results, key=lambda r: r[0])
        close = [r for r in results if r[0] <= _CLOSE * results[0][0]][:_FINALISTS]
        times = [r[0] for r in close]
        if len(close) > 1:
            calls = [steps_call(stage.steps(config), implementation) for _, config, _ in close]
            times = self.timer.compare(calls, _FINALS[self.problem.unit])
        _, config, error = close[times.index(min(times))]
        return config, error

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
        return self.timer.burst(steps_call(steps, implementation), _TRIALS[self.problem.unit]), config, error

    def _compute(self, stage: Stage, config: Config, implementation: str) -> None:
        spoil(tuple(self.problem.outputs[i] for i in stage.outputs))
        steps_call(stage.steps(config), implementation)()

    def _error(self, outputs: tuple[int, ...]) -> float:
        errors = [relative_error(self.problem.outputs[i], self.expected[i]) for i in outputs]
        return float("nan") if any(e != e for e in errors) else max(errors)

    def _error_of(self, contender: Contender) -> float:
        spoil(self.problem.outputs)
        contender.call()
        return self._error(contender.outputs)
