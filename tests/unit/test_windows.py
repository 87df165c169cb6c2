"""Windows look-ups, exercised on any system with made-up folders and environments."""

from pathlib import Path

import pytest

from tilewright.windows import find_cuda, find_msvc_winsdk, find_python_libs, normalize_path
from tilewright.windows.paths import strip_extended
from tilewright.windows.versions import version_key


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("C:/a/b", "\\\\?\\C:\\a\\b"),
        ("C:\\a\\..\\b", "\\\\?\\C:\\b"),
        ("\\\\server\\share\\x", "\\\\?\\UNC\\server\\share\\x"),
        ("\\\\?\\C:\\a", "\\\\?\\C:\\a"),
        ("\\\\.\\NUL", "\\\\.\\NUL"),
    ],
)
def test_normalize_path(path, expected):
    assert normalize_path(path) == expected
    assert normalize_path(expected) == expected


@pytest.mark.parametrize("path", ["a\\b", "C:a", "\\a"])
def test_a_relative_path_is_refused(path):
    with pytest.raises(ValueError, match="absolute Windows path"):
        normalize_path(path)


def test_strip_extended_undoes_normalize():
    for path in ("C:\\a\\b", "\\\\server\\share\\x"):
        assert strip_extended(normalize_path(path)) == path


def test_versions_sort_by_number():
    assert version_key("v12.10") > version_key("v12.9")


def test_cuda_search_order(tmp_path):
    site, prefix = tmp_path / "site", tmp_path / "prefix"
    env = {"ProgramW6432": str(tmp_path / "pf")}

    def found():
        return find_cuda(env, site, prefix)

    assert found() is None
    for version in ("v12.9", "v12.10"):
        touch(tmp_path / "pf" / "NVIDIA GPU Computing Toolkit" / "CUDA" / version / "bin" / "ptxas.exe")
    assert found().bin.parent.name == "v12.10"
    touch(prefix / "Library" / "bin" / "ptxas.exe")
    assert found().bin == prefix / "Library" / "bin"
    touch(site / "nvidia" / "cuda_nvcc" / "bin" / "ptxas.exe")
    touch(site / "nvidia" / "cuda_runtime" / "include" / "cuda.h")
    assert found().include == site / "nvidia" / "cuda_runtime" / "include"
    touch(site / "nvidia" / "cu13" / "bin" / "ptxas.exe")
    assert found().bin == site / "nvidia" / "cu13" / "bin"
    touch(tmp_path / "mine" / "bin" / "ptxas.exe")
    env["CUDA_PATH"] = str(tmp_path / "mine")
    assert found().bin == tmp_path / "mine" / "bin"


def fake_msvc(tools: Path) -> Path:
    touch(tools / "include" / "vcruntime.h")
    touch(tools / "lib" / "x64" / "vcruntime.lib")
    return touch(tools / "bin" / "Hostx64" / "x64" / "cl.exe")


def fake_sdk(root: Path, version: str) -> None:
    for part in ("shared", "ucrt", "um"):
        (root / "Include" / version / part).mkdir(parents=True)
    for part in ("ucrt", "um"):
        (root / "Lib" / version / part / "x64").mkdir(parents=True)


def test_msvc_needs_a_complete_compiler_and_sdk(tmp_path):
    env = {"ProgramFiles(x86)": str(tmp_path)}
    cl = fake_msvc(tmp_path / "Microsoft Visual Studio" / "2022" / "BuildTools" / "VC" / "Tools" / "MSVC" / "14.40.1")
    assert find_msvc_winsdk(env=env) is None
    fake_sdk(tmp_path / "Windows Kits" / "10", "10.0.22621.0")
    found = find_msvc_winsdk(env=env)
    assert found.cl == cl and len(found.include) == 4 and len(found.lib) == 3
    assert find_msvc_winsdk(env_only=True, env=env) is None
    newer = tmp_path / "Microsoft Visual Studio" / "2022" / "BuildTools" / "VC" / "Tools" / "MSVC" / "14.41.1"
    touch(newer / "include" / "vcruntime.h")
    assert find_msvc_winsdk(env=env).cl == cl, "an incomplete installation is passed over"


def test_developer_prompt_wins(tmp_path):
    cl = fake_msvc(tmp_path / "VC" / "Tools" / "MSVC" / "14.1")
    fake_sdk(tmp_path / "sdk", "10.0.1.0")
    env = {
        "VCINSTALLDIR": str(tmp_path / "VC"),
        "VCToolsVersion": "14.1",
        "WindowsSdkDir": str(tmp_path / "sdk"),
        "WindowsSDKVersion": "10.0.1.0\\",
    }
    assert find_msvc_winsdk(env_only=True, env=env).cl == cl


def test_python_libs(tmp_path):
    assert find_python_libs((3, 13), False, [tmp_path]) is None
    touch(tmp_path / "libs" / "python313t.lib")
    assert find_python_libs((3, 13), False, [tmp_path]) is None
    assert find_python_libs((3, 13), True, [tmp_path]) == tmp_path / "libs"
