"""Words of device memory that are zero between the launches of a stream, for kernels that count on them and leave them zero."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_int, c_ulonglong, c_void_p

from . import libcuda
from .libcuda import call

#: Bytes that are allocated at a time, and those from one stream's word to the next.
_BLOCK, _SPACING = 4096, 64
#: The words of each context, since a word is memory of one, and nothing says that a default stream's id is not that of another's.
_contexts: dict[int, StreamWords] = {}


def of_context() -> Callable[[int], int]:
    """The function that gives the word of a stream of the current context; see `StreamWords.of`."""
    context = int(call("cuCtxGetCurrent"))
    if context not in _contexts:
        _contexts[context] = StreamWords()
    return _contexts[context].of


class StreamWords:
    """The words of one context's streams, by the id of the stream, which is never used again; and what is left of the block."""

    def __init__(self) -> None:
        self.words: dict[int, int] = {}
        self.free: list[int] = []

    def of(self, stream: int) -> int:
        """The address of a stream's word; 0 if the stream is being captured, or one of the calls fails."""
        status, identifier, handle = c_int(), c_ulonglong(), c_void_p(stream)
        if libcuda.is_capturing_function()(handle, byref(status)) or status.value:
            return 0
        if libcuda.stream_id_function()(handle, byref(identifier)):
            return 0
        return self.words.get(identifier.value) or self._new(stream, identifier.value)

    def _new(self, stream: int, identifier: int) -> int:
        """Give a stream a word. Its first launch comes behind the write of zero."""
        driver = libcuda.api()
        mode = call("cuThreadExchangeStreamCaptureMode", driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        try:
            if not self.free:
                start = int(call("cuMemAlloc", _BLOCK))
                self.free += range(start, start + _BLOCK, _SPACING)
            call("cuMemsetD32Async", self.free[-1], 0, 1, stream)
        except RuntimeError:
            return 0
        finally:
            call("cuThreadExchangeStreamCaptureMode", mode)
        self.words[identifier] = self.free.pop()
        return self.words[identifier]
