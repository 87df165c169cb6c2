"""The process that uses the GPU: `python -m suite.worker` reads one request in JSON from stdin and writes events in JSON, one a line.

A kernel that hangs or breaks the context costs this process only: `run.py` starts another for what is left.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

import torch

from .catalogue import CASES
from .implementations import kernels
from .measure import Measurement


def _events() -> TextIO:
    """The stream of events; what anything else prints goes to stderr."""
    sys.stdout.flush()
    stream = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return stream


def main() -> None:
    request: dict[str, Any] = json.load(sys.stdin)
    stream = _events()

    def emit(**event: Any) -> None:
        stream.write(json.dumps(event) + "\n")

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    for implementation in request["implementations"]:
        kernels("kernels", implementation).triton.set_allocator(
            lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda")
        )
    failures = {(implementation, text): why for implementation, text, why in request["failures"]}
    for number in request["cases"]:
        emit(case=number)
        avoid = set(request["avoid"].get(str(number), []))
        try:
            measurement = Measurement(CASES[number], lambda what: emit(trying=what), avoid, failures)
            emit(result=measurement.run(request["implementations"]))
        except torch.OutOfMemoryError as e:
            emit(result={"unit": "", "work": 0, "notes": [f"{type(e).__name__}: {str(e)[:200]}"], "entries": []})
        measurement = None
        torch.cuda.empty_cache()
    emit(end=True)
    stream.flush()
    os._exit(0)  # a context that a kernel broke can hang at exit


if __name__ == "__main__":
    main()
