"""Finding MSVC and the Windows SDK."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.windows.versions import newest

_VC_COMPONENT = "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"


@dataclass(frozen=True)
class HostCompiler:
    """`cl.exe` with the include and library folders of MSVC and the Windows SDK."""

    cl: Path
    include: tuple[Path, ...]
    lib: tuple[Path, ...]


def _program_files(env: Mapping[str, str]) -> list[Path]:
    names = ("ProgramFiles(x86)", "ProgramW6432", "ProgramFiles")
    return list(dict.fromkeys(Path(env[name]) for name in names if env.get(name)))


def _installed_by_vswhere(env: Mapping[str, str]) -> Iterator[Path]:
    """Installation folders that Visual Studio's own locator knows, newest first."""
    for base in _program_files(env):
        vswhere = base / "Microsoft Visual Studio" / "Installer" / "vswhere.exe"
        if vswhere.is_file():
            command = [str(vswhere), "-prerelease", "-products", "*", "-requires", _VC_COMPONENT, "-sort", "-format", "json", "-utf8"]
            answer = subprocess.run(command, capture_output=True, check=False)
            if answer.returncode == 0:
                yield from (Path(entry["installationPath"]) for entry in json.loads(answer.stdout.decode("utf-8")))


def _tool_folders(env: Mapping[str, str], env_only: bool) -> Iterator[Path]:
    """Candidate `…/VC/Tools/MSVC/<version>` folders, best first."""
    if env.get("VCINSTALLDIR") and env.get("VCToolsVersion"):
        yield Path(env["VCINSTALLDIR"]) / "Tools" / "MSVC" / env["VCToolsVersion"]
    if env_only:
        return
    for installation in _installed_by_vswhere(env):
        yield from newest(list((installation / "VC" / "Tools" / "MSVC").glob("*")))
    for base in _program_files(env):
        yield from newest(list(base.glob("Microsoft Visual Studio/*/*/VC/Tools/MSVC/*")))


def _msvc(env: Mapping[str, str], env_only: bool) -> HostCompiler | None:
    for tools in _tool_folders(env, env_only):
        cl, include, lib = tools / "bin" / "Hostx64" / "x64" / "cl.exe", tools / "include", tools / "lib" / "x64"
        if cl.is_file() and (include / "vcruntime.h").is_file() and (lib / "vcruntime.lib").is_file():
            return HostCompiler(cl, (include,), (lib,))
    return None


def _sdk_versions(env: Mapping[str, str], env_only: bool) -> Iterator[tuple[Path, str]]:
    version = env.get("WindowsSDKVersion") or env.get("WindowsSDKVer")
    if env.get("WindowsSdkDir") and version:
        yield Path(env["WindowsSdkDir"]), version.rstrip("\\/")
    if env_only:
        return
    for base in _program_files(env):
        root = base / "Windows Kits" / "10"
        yield from ((root, folder.name) for folder in newest(list((root / "Include").glob("10.*"))))


def _sdk(env: Mapping[str, str], env_only: bool) -> tuple[tuple[Path, ...], tuple[Path, ...]] | None:
    for root, version in _sdk_versions(env, env_only):
        include = tuple(root / "Include" / version / part for part in ("shared", "ucrt", "um"))
        lib = tuple(root / "Lib" / version / part / "x64" for part in ("ucrt", "um"))
        if all(folder.is_dir() for folder in (*include, *lib)):
            return include, lib
    return None


def find_msvc_winsdk(env_only: bool = False, env: Mapping[str, str] | None = None) -> HostCompiler | None:
    """Find a complete MSVC with a complete Windows SDK; None when either is missing.

    The active developer prompt (VCINSTALLDIR and VCToolsVersion, WindowsSdkDir and WindowsSDKVersion) wins; then, unless `env_only`, what
    vswhere lists, then the newest under Program Files. An incomplete installation is passed over.
    """
    env = os.environ if env is None else env
    msvc, sdk = _msvc(env, env_only), _sdk(env, env_only)
    if msvc is None or sdk is None:
        return None
    return HostCompiler(msvc.cl, msvc.include + sdk[0], msvc.lib + sdk[1])
