"""Choosing the newest of several version-named folders."""

import re
from pathlib import Path


def version_key(name: str) -> tuple[int, ...]:
    """`"v12.10"` -> (12, 10); a name without a number sorts first."""
    return tuple(int(part) for part in re.findall(r"\d+", name))


def newest(folders: list[Path]) -> list[Path]:
    """The existing `folders`, newest version first."""
    return sorted((f for f in folders if f.is_dir()), key=lambda f: version_key(f.name), reverse=True)
