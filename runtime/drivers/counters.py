"""Words of device memory that are zero between the launches of a stream, for kernels that count on them and leave them zero."""

from __future__ import annotations

from ctypes import byref, c_int, c_ulonglong, c_void_p

from . import libcuda
from .libcuda import call

#: Bytes that are allocated at a time, and those from one stream's word to the next.
_BLOCK, _SPACING = 4096, 64
#: What is left of the block of each context, and the words that are given out, by the id of their stream, which is never used again.
_free: dict[int, list[int]] = {}
_words: dict[int, int] = {}


def of(stream: int) -> int:
    """The address of a stream's word; 0 if the stream is being captured, or one of the calls fails."""
    status, identifier, handle = c_int(), c_ulonglong(), c_void_p(stream)
    if libcuda.is_capturing_function()(handle, byref(status)) or status.value:
        return 0
    if libcuda.stream_id_function()(handle, byref(identifier)):
        return 0
    return _words.get(identifier.value) or _new(stream, identifier.value)


def _new(stream: int, identifier: int) -> int:
    """Give a stream a word. Its first launch comes behind the write of zero."""
    driver = libcuda.api()
    free = _free.setdefault(int(call("cuCtxGetCurrent")), [])
    mode = call("cuThreadExchangeStreamCaptureMode", driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        if not free:
            start = int(call("cuMemAlloc", _BLOCK))
            free += range(start, start + _BLOCK, _SPACING)
        call("cuMemsetD32Async", free[-1], 0, 1, stream)
    except RuntimeError:
        return 0
    finally:
        call("cuThreadExchangeStreamCaptureMode", mode)
    _words[identifier] = free.pop()
    return _words[identifier]
