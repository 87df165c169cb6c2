"""Worker processes that run programs: a crash or a hang of one program ends its worker and nothing else."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

_SPAWN = multiprocessing.get_context("spawn")
PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


@dataclass(frozen=True)
class Outcome:
    """What became of a program: `status` PASSED, SKIPPED or FAILED; of a failure a kind and a text."""

    key: Any
    status: str
    kind: str = ""
    text: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Task:
    """A program to run: a seed, or its text. `key` comes back with the outcome."""

    key: Any
    mode: str
    seed: int | None = None
    source: str = ""


def _serve(connection: Connection) -> None:
    """The loop of a worker. What ends with the GPU in an unknown state ends the worker."""
    from . import execution
    from .generator import generate

    execution.prepare()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError):
        while (task := connection.recv()) is not None:
            start = time.perf_counter()
            status, kind, text = PASSED, "", ""
            try:
                source = task.source or generate(task.seed).source()
                execution.check(source, f"<random program {task.seed}>", task.mode)
            except execution.Unsupported as e:
                status, text = SKIPPED, str(e)
            except execution.Failure as e:
                status, kind, text = FAILED, e.kind, e.text
            except Exception:  # noqa: BLE001  (whatever it is, the other workers go on)
                status, kind, text = FAILED, "error of the fuzzer", traceback.format_exc()
            connection.send(Outcome(task.key, status, kind, text, time.perf_counter() - start))
            if kind == "launch error":
                return


class _Worker:
    def __init__(self):
        self.connection, other = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.task: Task | None = None
        self.deadline = 0.0

    def give(self, task: Task, timeout: float) -> None:
        self.task, self.deadline = task, time.monotonic() + timeout
        self.connection.send(task)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


class Workers:
    """Some workers. `timeout` seconds are allowed for a program, more for the first one of a process."""

    def __init__(self, count: int, timeout: float = 60.0, startup: float = 120.0):
        self.count, self.timeout, self.startup = count, timeout, startup
        self.workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()
        self.workers.clear()

    def run(self, tasks: Iterator[Task]) -> Iterator[Outcome]:
        """Outcomes of tasks, as they come."""
        tasks = iter(tasks)
        idle = list(self.workers)
        busy: list[_Worker] = []
        exhausted = False
        while True:
            while not exhausted and len(busy) < self.count:
                task = next(tasks, None)
                if task is None:
                    exhausted = True
                    break
                if idle:
                    worker, allowed = idle.pop(), self.timeout
                else:
                    worker, allowed = _Worker(), self.startup
                    self.workers.append(worker)
                worker.give(task, allowed)
                busy.append(worker)
            if not busy:
                return
            ready = wait([w.connection for w in busy], timeout=0.5)
            now = time.monotonic()
            for worker in list(busy):
                outcome = None
                if worker.connection in ready:
                    try:
                        outcome = worker.connection.recv()
                    except (EOFError, ConnectionResetError):
                        worker.process.join(5)
                        outcome = Outcome(worker.task.key, FAILED, "crash", _how_it_ended(worker.process.exitcode))
                elif now > worker.deadline:
                    outcome = Outcome(worker.task.key, FAILED, "hang", f"no end after {self.timeout:g} s")
                if outcome is None:
                    continue
                busy.remove(worker)
                if outcome.kind in ("crash", "hang", "launch error"):
                    worker.stop()
                    self.workers.remove(worker)
                else:
                    idle.append(worker)
                yield outcome


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process exited with code {code}"
