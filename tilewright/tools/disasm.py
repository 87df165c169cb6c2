"""SASS of a cubin, through nvdisasm or cuobjdump."""

from __future__ import annotations

import re
from pathlib import Path

from tilewright.compiler.backends.nvidia.disasm import sass


def get_sass(cubin: bytes, fun: str | None = None) -> str:
    """The SASS of a cubin (`kernel.asm["cubin"]`), of one function if `fun` is given. ValueError if it has no such function."""
    text = sass(cubin)
    if fun is None:
        return text
    # a function is a section of nvdisasm's output, a headline of cuobjdump's
    parts = re.split(r"(?m)^(?=\.section\s+\.text\.|\s*Function : )", text)
    found = [p for p in parts if re.match(rf"(\.section\s+\.text\.|\s*Function : ){re.escape(fun)}\b", p)]
    if not found:
        raise ValueError(f"the cubin has no function {fun!r}")
    return found[0]


def extract(file_path: str | Path, fun: str | None = None) -> str:
    """The SASS of a cubin file, of one function if `fun` is given."""
    return get_sass(Path(file_path).read_bytes(), fun)
