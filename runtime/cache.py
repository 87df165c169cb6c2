"""The disk cache: one folder per key, files written atomically, every file checked against the digest that its group file holds.

A damaged entry is reported once and rebuilt. A folder that cannot be written keeps nothing and never fails a compile.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import uuid
import warnings
from collections.abc import Mapping
from typing import Any

from tilewright import knobs
from tilewright.compiler.fingerprint import compiler_key as triton_key

__all__ = ["FileCacheManager", "KernelStore", "StoredEntry", "get_cache_manager", "triton_key"]

_warned: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _base32(key: str) -> str:
    """A hex key in fewer characters that any file system takes."""
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class FileCacheManager:
    """Files of one key, in `<cache folder>/<base32 of the key>`. Methods raise nothing: what cannot be kept is None."""

    def __init__(self, key: str):
        self.key = key
        self.folder = os.path.join(knobs.cache.dir, _base32(key))
        self._made = False

    def path(self, filename: str) -> str:
        """Where the file lies or would lie."""
        return os.path.join(self.folder, filename)

    def has_file(self, filename: str) -> bool:
        return os.path.isfile(self.path(filename))

    def get_file(self, filename: str) -> str | None:
        """Path of a file that is in the cache, or None."""
        return self.path(filename) if self.has_file(filename) else None

    def read(self, filename: str) -> bytes | None:
        """Contents of a file, or None."""
        try:
            with open(self.path(filename), "rb") as file:
                return file.read()
        except OSError:
            return None

    def put(self, data: str | bytes, filename: str, binary: bool = True) -> str | None:
        """Write a file in one step (other processes see all of it or nothing); returns its path, None if it cannot be written."""
        contents = data.encode() if isinstance(data, str) else data
        temporary = self.path(f".{filename[:80]}.{os.getpid()}.{uuid.uuid4().hex}")
        try:
            if not self._made:
                os.makedirs(self.folder, exist_ok=True)
                self._made = True
            with open(temporary, "wb") as file:
                file.write(contents)
            os.replace(temporary, self.path(filename))
        except OSError as e:
            self._made = False
            _warn_once(f"tilewright's cache folder {knobs.cache.dir} cannot be written ({e.strerror or e}): kernels are not kept")
            try:
                os.unlink(temporary)
            except OSError:
                pass
            return None
        return self.path(filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        """File name -> path of the files that were put as one group, None if any is missing."""
        group = self._group(filename)
        paths = {name: self.path(name) for name in group} if group else {}
        return paths if paths and all(os.path.isfile(path) for path in paths.values()) else None

    def put_group(self, filename: str, group: Mapping[str, str], digests: Mapping[str, str] | None = None) -> str | None:
        """Put the list of files (name -> path) of a group."""
        names = {os.path.basename(name): (digests or {}).get(name, "") for name in group}
        return self.put(json.dumps({"child_paths": names}), f"__grp__{filename}")

    def _group(self, filename: str) -> dict[str, str] | None:
        contents = self.read(f"__grp__{filename}")
        if contents is None:
            return None
        try:
            group = json.loads(contents)["child_paths"]
            return group if isinstance(group, dict) else None
        except (ValueError, KeyError, TypeError):
            _warn_once(f"damaged entry in tilewright's cache, rebuilt: {self.path('__grp__' + filename)}")
            return None


def get_cache_manager(key: str) -> FileCacheManager:
    """The cache of one key (hexadecimal)."""
    return FileCacheManager(key)


class StoredEntry:
    """One kernel found in the cache: see `compiler.host.StoredKernel`."""

    def __init__(self, manager: FileCacheManager, metadata: dict[str, Any], binary: bytes, names: dict[str, str], digests: dict[str, str]):
        self.metadata, self.binary = metadata, binary
        self.files = {ext: manager.path(filename) for ext, filename in names.items()}
        self._manager, self._names, self._digests = manager, names, digests

    def text(self, ext: str) -> str | None:
        """The text of another artefact, None if it is lost or damaged."""
        data = self._manager.read(self._names[ext])
        if data is None or _digest(data) != self._digests[self._names[ext]]:
            return None
        return data.decode()


class KernelStore:
    """The artefacts of one kernel in the cache."""

    def __init__(self, key: str):
        self.manager = FileCacheManager(key)
        self._kept: dict[str, str | None] = {}  # file -> digest, None if it could not be written

    def load(self, name: str, binary_ext: str) -> StoredEntry | None:
        """The kernel, or None if it is not there or damaged."""
        digests = self.manager._group(f"{name}.json")
        if digests is None:
            return None
        wanted = (f"{name}.json", f"{name}.{binary_ext}")
        data = [self.manager.read(filename) for filename in wanted]
        if any(d is None or _digest(d) != digests.get(filename) for d, filename in zip(data, wanted, strict=True)):
            _warn_once(f"damaged entry in tilewright's cache, rebuilt: {self.manager.folder}")
            return None
        names = {filename[len(name) + 1 :]: filename for filename in digests if filename != wanted[0]}
        return StoredEntry(self.manager, _metadata_from_json(data[0]), data[1], names, digests)

    def keep(self, name: str, ext: str, data: str | bytes) -> None:
        """Write one artefact ahead of `save`, once."""
        filename = f"{name}.{ext}"
        if filename not in self._kept:
            contents = data.encode() if isinstance(data, str) else data
            written = self.manager.put(contents, filename) is not None
            self._kept[filename] = _digest(contents) if written else None

    def save(self, name: str, metadata: dict[str, Any], artefacts: Mapping[str, str | bytes]) -> dict[str, str]:
        """Keep a kernel; the group file, which makes it visible, comes last. Returns extension -> path of what was kept."""
        for ext, data in artefacts.items():
            self.keep(name, ext, data)
        self.keep(name, "json", json.dumps(metadata, default=_to_json))
        order = [f"{name}.{ext}" for ext in (*artefacts, "json")]
        digests = {filename: self._kept[filename] for filename in order}
        if None in digests.values():
            return {}
        paths = {filename: self.manager.path(filename) for filename in order}
        if self.manager.put_group(f"{name}.json", paths, digests) is None:
            return {}
        return {filename[len(name) + 1 :]: path for filename, path in paths.items()}


def _to_json(value: Any) -> Any:
    return getattr(value, "name", None) or str(value)


def _metadata_from_json(data: bytes) -> dict[str, Any]:
    """Metadata as it was before JSON, which makes lists of tuples."""
    return {key: _tuples(value) for key, value in json.loads(data).items()}


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
