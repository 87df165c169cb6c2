"""Parts of a CTA that run apart on the test machine: each in lockstep by itself, in turns of random length that end where a part waits.

A part is a set of threads (a warpgroup, say). The parts share memory; they meet at barriers and mbarriers, and a wait that can never end is
an error.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Hashable, Sequence


class Turns:
    """Runs functions, one for each part, as threads of Python of which one runs at a time."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.batons: list[threading.Semaphore] = []
        self.alive: set[int] = set()
        self.stuck: set[int] = set()
        self.here = threading.local()
        self.error: BaseException | None = None
        self.arrived: dict[Hashable, tuple[int, int, int]] = {}

    def run(self, parts: Sequence[Callable[[], None]]) -> None:
        """Run the parts to their ends. Raises what a part raises, and AssertionError if all of them wait."""
        self.batons = [threading.Semaphore(0) for _ in parts]
        self.alive = set(range(len(parts)))
        self.arrived = {}
        threads = [threading.Thread(target=self._part, args=(i, part)) for i, part in enumerate(parts)]
        for thread in threads:
            thread.start()
        self.batons[0].release()
        for thread in threads:
            thread.join()
        if self.error is not None:
            raise self.error

    def _part(self, number: int, part: Callable[[], None]) -> None:
        self.here.number = number
        self.batons[number].acquire()
        try:
            if self.error is None:
                part()
        except BaseException as error:  # noqa: BLE001  (the caller's thread raises it)
            self.error = self.error or error
        self.alive.discard(number)
        self.stuck.clear()
        self._pass_on()

    def _pass_on(self) -> None:
        if self.alive:
            self.batons[self.random.choice(sorted(self.alive))].release()

    def _switch(self) -> None:
        self._pass_on()
        self.batons[self.here.number].acquire()
        if self.error is not None:
            raise RuntimeError("another part failed")

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Go on when `ready` holds, and perhaps not at once."""
        if self.random.random() < 0.5:
            self._switch()
        while not ready():
            self.stuck.add(self.here.number)
            assert self.stuck != self.alive, "every part waits"
            self._switch()
        self.stuck.clear()

    def meet(self, barrier: Hashable, threads: int, own: int, waits: bool = True) -> None:
        """Arrive at a barrier of `threads` threads, of which the part has `own`, and wait there if it `waits`."""
        generation, count, expected = self.arrived.get(barrier, (0, 0, threads))
        assert threads == expected or not count, f"barrier {barrier} of {expected} threads is used as one of {threads}"
        count += own
        assert count <= threads, f"barrier {barrier} is used by more than {threads} threads"
        done = count == threads
        self.arrived[barrier] = (generation + done, 0 if done else count, threads)
        if waits:
            self.wait_until(lambda: self.arrived[barrier][0] != generation)
        else:
            self.stuck.clear()
