"""A progress bar on stderr; where that is no terminal, a line for each case."""

from __future__ import annotations

import sys
import time

_WIDTH = 24


class Progress:
    """`total` cases; `step` names what is going on, `done` finishes a case."""

    def __init__(self, total: int):
        self.total, self.count, self.case = total, 0, ""
        self.begin, self.terminal = time.monotonic(), sys.stderr.isatty()

    def start(self, case: str) -> None:
        """A case begins."""
        self.case = case
        self.step("")

    def step(self, what: str) -> None:
        """Something of the case begins."""
        if self.terminal:
            filled = _WIDTH * self.count // max(1, self.total)
            bar = "#" * filled + "." * (_WIDTH - filled)
            text = f"[{bar}] {self.count}/{self.total} {time.monotonic() - self.begin:.0f} s  {self.case}  {what}"
            sys.stderr.write(f"\r\x1b[K{text[:160]}")
            sys.stderr.flush()

    def done(self, summary: str) -> None:
        """The case is finished."""
        self.count += 1
        sys.stderr.write(("\r\x1b[K" if self.terminal else "") + f"{self.count}/{self.total} {self.case}: {summary}\n")
        sys.stderr.flush()
