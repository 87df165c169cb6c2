"""Finding Python's import library on Windows, which embedded distributions often lack."""

import sys
from pathlib import Path


def find_python_libs(
    version: tuple[int, int] | None = None, free_threaded: bool | None = None, roots: list[Path] | None = None
) -> Path | None:
    """Return the folder that holds `python3XX.lib` (`python3XXt.lib` for free-threaded builds), or None."""
    major, minor = sys.version_info[:2] if version is None else version
    if free_threaded is None:
        free_threaded = "t" in getattr(sys, "abiflags", "")
    name = f"python{major}{minor}{'t' if free_threaded else ''}.lib"
    if roots is None:
        roots = [Path(sys.exec_prefix), Path(sys.base_exec_prefix), Path(sys.executable).parent]
    return next((root / "libs" for root in roots if (root / "libs" / name).is_file()), None)
