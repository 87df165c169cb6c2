"""Finding a CUDA toolkit on Windows."""

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.windows.versions import newest


@dataclass(frozen=True)
class CudaToolkit:
    """Folders of one toolkit; `lib` is None where only the compiler is installed (as from the pip packages)."""

    bin: Path
    include: Path | None
    lib: Path | None


def _existing(path: Path) -> Path | None:
    return path if path.is_dir() else None


def _at(root: Path) -> CudaToolkit | None:
    """The toolkit at `root`, in a layout of: the installer and the CUDA 13 pip packages, the CUDA 12 pip packages, conda."""
    for compiler, runtime in ((root, root), (root / "cuda_nvcc", root / "cuda_runtime")):
        if (compiler / "bin" / "ptxas.exe").is_file():
            lib = _existing(runtime / "lib" / "x64") or _existing(runtime / "lib")
            return CudaToolkit(compiler / "bin", _existing(runtime / "include"), lib)
    return None


def _roots(env: Mapping[str, str], site_packages: Path, prefix: Path) -> Iterator[Path]:
    for name in ("CUDA_PATH", "CUDA_HOME"):
        if env.get(name):
            yield Path(env[name])
    yield from newest(list((site_packages / "nvidia").glob("cu[0-9]*")))
    yield site_packages / "nvidia"
    yield prefix / "Library"
    for name in ("ProgramW6432", "ProgramFiles"):
        if env.get(name):
            yield from newest(list((Path(env[name]) / "NVIDIA GPU Computing Toolkit" / "CUDA").glob("v*")))


def find_cuda(env: Mapping[str, str] | None = None, site_packages: Path | None = None, prefix: Path | None = None) -> CudaToolkit | None:
    """Find a toolkit that holds ptxas: CUDA_PATH, CUDA_HOME, pip packages, conda, then the newest under Program Files; None without one."""
    env = os.environ if env is None else env
    site_packages = Path(sysconfig.get_path("platlib")) if site_packages is None else site_packages
    prefix = Path(sys.exec_prefix) if prefix is None else prefix
    return next((found for root in _roots(env, site_packages, prefix) if (found := _at(root))), None)
