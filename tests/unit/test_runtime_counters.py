"""The words of device memory that count the programs of a stream's launches."""

from __future__ import annotations

from ctypes import POINTER, c_int, c_ulonglong, cast
from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.runtime.drivers import counters, libcuda


class Calls:
    """A driver with streams whose id is their handle; `capturing` are those that are being captured."""

    def __init__(self) -> None:
        self.capturing: set[int] = set()
        self.failing: set[str] = set()
        self.made: list[tuple] = []
        self.mode = "global"
        self.context = 1

    def call(self, name: str, *args: Any) -> Any:
        if name in self.failing:
            raise RuntimeError(name)
        if name == "cuThreadExchangeStreamCaptureMode":
            self.mode, old = args[0], self.mode
            return old
        assert self.mode == "relaxed" or name == "cuCtxGetCurrent"
        self.made.append((name, *args))
        return {"cuCtxGetCurrent": self.context, "cuMemAlloc": 4096 * len(self.made), "cuMemsetD32Async": None}[name]

    def is_capturing(self, stream: Any, status: Any) -> int:
        cast(status, POINTER(c_int))[0] = (stream.value or 0) in self.capturing
        return 0

    def stream_id(self, stream: Any, identifier: Any) -> int:
        cast(identifier, POINTER(c_ulonglong))[0] = 1000 + (stream.value or 0)
        return 0


@pytest.fixture
def calls(monkeypatch) -> Calls:
    made = Calls()
    monkeypatch.setattr(counters, "call", made.call)
    monkeypatch.setattr(counters, "_contexts", {})
    monkeypatch.setattr(
        libcuda, "api", lambda: SimpleNamespace(CUstreamCaptureMode=SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED="relaxed"))
    )
    monkeypatch.setattr(libcuda, "is_capturing_function", lambda: made.is_capturing)
    monkeypatch.setattr(libcuda, "stream_id_function", lambda: made.stream_id)
    return made


def test_each_stream_has_a_word_that_is_cleared_once(calls):
    words = [*map(counters.of_context(), (0, 7, 0, 7, 9))]
    assert words[:2] == words[2:4] and len({*words}) == 3 and all(words)
    assert [args for args in calls.made if args[0] == "cuMemsetD32Async"] == [
        ("cuMemsetD32Async", word, 0, 1, stream) for word, stream in zip((words[0], words[1], words[4]), (0, 7, 9), strict=True)
    ]
    assert sum(args[0] == "cuMemAlloc" for args in calls.made) == 1 and calls.mode == "global"


def test_no_word_for_a_captured_launch_or_without_memory(calls):
    word = counters.of_context()
    calls.capturing, calls.made = {7}, []
    assert word(7) == 0 and not calls.made
    calls.failing = {"cuMemAlloc"}
    assert word(9) == 0 and calls.mode == "global"
    calls.capturing, calls.failing = set(), set()
    assert word(7) and word(9)


def test_many_streams_take_more_memory(calls):
    words = {*map(counters.of_context(), range(200))}
    assert len(words) == 200 and sum(args[0] == "cuMemAlloc" for args in calls.made) == 4


def test_contexts_have_words_of_their_own(calls):
    """A default stream may have the id of another context's, and a device cannot count in the memory of another."""
    first = counters.of_context()
    calls.context = 2
    second = counters.of_context()
    words = [first(0), second(0), first(0), second(0)]
    assert words[:2] == words[2:] and words[0] != words[1] and sum(args[0] == "cuMemAlloc" for args in calls.made) == 2
    calls.context = 1
    assert counters.of_context()(0) == words[0]
