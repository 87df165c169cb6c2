"""Windows path rules: the 260-character limit and the tools that cannot take extended paths."""

import ntpath

_EXTENDED = "\\\\?\\"
_DEVICE = "\\\\.\\"
_EXTENDED_UNC = "\\\\?\\UNC\\"


def normalize_path(path: str) -> str:
    """Return `path` (absolute) in extended form (`\\\\?\\C:\\…`, `\\\\?\\UNC\\server\\…`), which Windows accepts beyond 260 characters.

    Raises ValueError for a relative path: an extended path is never resolved against the current folder, so the caller must do it.
    """
    path = str(path).replace("/", "\\")
    if path.startswith((_EXTENDED, _DEVICE)):
        return path
    is_share = path.startswith("\\\\")
    drive, rest = ntpath.splitdrive(path)
    if not drive or not (is_share or rest.startswith("\\")):
        raise ValueError(f"an absolute Windows path is needed, got {path!r}")
    path = ntpath.normpath(path)
    return _EXTENDED_UNC + path.lstrip("\\") if is_share else _EXTENDED + path


def short_path(path: str) -> str:
    """Return the 8.3 form of an existing `path` without the extended prefix, for tools (cl.exe) that take neither long nor extended paths.

    Raises OSError when the file does not exist or the volume keeps no short names. Windows only.
    """
    import ctypes

    query = ctypes.WinDLL("kernel32", use_last_error=True).GetShortPathNameW
    size = query(path, None, 0)
    if not size:
        raise ctypes.WinError(ctypes.get_last_error())
    buffer = ctypes.create_unicode_buffer(size)
    query(path, buffer, size)
    return strip_extended(buffer.value)


def strip_extended(path: str) -> str:
    """Undo `normalize_path`'s prefix."""
    if path.startswith(_EXTENDED_UNC):
        return "\\\\" + path[len(_EXTENDED_UNC) :]
    return path.removeprefix(_EXTENDED)
