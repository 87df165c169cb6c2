"""Imports from the root of a source checkout, where `tilewright/` lies without the subpackages that an installation puts into it."""

from __future__ import annotations

import os
import sys


def use_installed(path: list[str]) -> None:
    """Replace `path`, the package's `__path__`, by the installed package's.

    `python -c`, `python -m` and the interactive interpreter search the current folder first, so at the root of a checkout they find the
    checkout's folder `tilewright`. ImportError, saying what to do, if tilewright is not installed.
    """
    for entry in sys.path:
        folder = os.path.join(os.path.abspath(entry), "tilewright")
        if os.path.isdir(os.path.join(folder, "compiler")):
            path[:] = [folder]
            return
    checkout = os.path.dirname(os.path.abspath(path[0]))
    raise ImportError(
        f"{checkout} is a source checkout of tilewright, which is not installed for {sys.executable}: "
        f"pip install '{checkout}[nvidia]' (or, to work on it, pip install -e '{checkout}[nvidia,test]')"
    )
