"""Finding things on Windows: CUDA, MSVC, the Windows SDK and Python's import libraries, and Windows path rules.

Nothing here is needed to compile or launch a kernel except `find_cuda` (for ptxas) and `normalize_path` (for caches): launching loads the
driver's own DLL, so no host compiler takes part. The MSVC finders serve users who build C++ extensions next to their kernels.
Every function takes its environment as an argument, so all of it is tested on Linux.
"""

from tilewright.windows.cuda import CudaToolkit, find_cuda
from tilewright.windows.msvc import HostCompiler, find_msvc_winsdk
from tilewright.windows.paths import normalize_path, short_path
from tilewright.windows.python import find_python_libs

__all__ = ["CudaToolkit", "HostCompiler", "find_cuda", "find_msvc_winsdk", "find_python_libs", "normalize_path", "short_path"]
