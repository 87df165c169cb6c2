"""The disk cache: what is kept, damage, folders that cannot be written, processes side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest

from tilewright import knobs
from tilewright.compiler import fingerprint
from tilewright.runtime import cache
from tilewright.runtime.cache import FileCacheManager, KernelStore

KEY = "ab" * 32
METADATA = {"name": "k", "shared": 5, "extern_libs": (("a", "b"),), "maxnreg": None, "target": ["cuda", 90, 32]}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_warned", set())
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield tmp_path / "cache"


def save() -> dict[str, str]:
    return KernelStore(KEY).save("k", METADATA, {"ttir": "module", "ptx": "// é", "cubin": b"\x00\x01"})


def test_what_is_saved_is_loaded():
    files = save()
    assert set(files) == {"ttir", "ptx", "cubin", "json"}
    found = KernelStore(KEY).load("k", "cubin")
    assert found.binary == b"\x00\x01"
    assert found.metadata == {**METADATA, "target": ("cuda", 90, 32)}
    assert found.text("ptx") == "// é" and list(found.files) == ["ttir", "ptx", "cubin"]


def test_a_key_that_is_not_there():
    assert KernelStore("cd" * 32).load("k", "cubin") is None


@pytest.mark.parametrize("ext", ["cubin", "json"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_damage_is_reported_once_and_the_entry_is_a_miss(folder, ext, damage):
    path = save()[ext]
    data = open(path, "rb").read()
    if damage == "remove":
        os.unlink(path)
    else:
        with open(path, "wb") as file:
            file.write(data[:-1] if damage == "truncate" else bytes([data[0] ^ 1]) + data[1:])
    with pytest.warns(RuntimeWarning, match="damaged entry"):
        assert KernelStore(KEY).load("k", "cubin") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert KernelStore(KEY).load("k", "cubin") is None
    save()
    assert KernelStore(KEY).load("k", "cubin") is not None


def test_a_damaged_group_file(folder):
    save()
    manager = FileCacheManager(KEY)
    manager.put("{", "__grp__k.json")
    with pytest.warns(RuntimeWarning, match="damaged entry"):
        assert KernelStore(KEY).load("k", "cubin") is None


def test_damaged_text_of_another_stage_is_only_lost(folder):
    with open(save()["ttir"], "w") as file:
        file.write("changed")
    found = KernelStore(KEY).load("k", "cubin")
    assert found.binary == b"\x00\x01" and found.text("ttir") is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with knobs.cache.scope():
        knobs.cache.dir = str(blocked / "cache")
        with pytest.warns(RuntimeWarning, match="cannot be written"):
            assert save() == {}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert save() == {}
            assert KernelStore(KEY).load("k", "cubin") is None


def test_no_temporary_file_is_left(folder):
    save()
    assert not [name for _, _, names in os.walk(folder) for name in names if name.startswith(".")]


def test_groups_of_files():
    manager = FileCacheManager(KEY)
    paths = {name: manager.put(name, name) for name in ("a.x", "b.x")}
    manager.put_group("both.json", paths)
    assert manager.get_group("both.json") == paths
    assert manager.get_file("a.x") == paths["a.x"] and manager.get_file("c.x") is None
    os.unlink(paths["a.x"])
    assert manager.get_group("both.json") is None


def test_the_key_depends_on_everything(monkeypatch):
    keys = {fingerprint.cache_key(*parts) for parts in (("a", "b", "c"), ("x", "b", "c"), ("a", "x", "c"), ("a", "b", "x"))}
    monkeypatch.setenv("PTXAS_OPTIONS", "-O1")
    keys.add(fingerprint.cache_key("a", "b", "c"))
    assert len(keys) == 5
    assert fingerprint.cache_key("a", "b", "c", {}) in keys


def test_the_compilers_key_is_the_same_in_every_process():
    code = "from tilewright.compiler.fingerprint import compiler_key; print(compiler_key())"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in "12"
    }
    assert seen == {fingerprint.compiler_key() + "\n"}
