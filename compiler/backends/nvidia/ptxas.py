"""PTX text to a cubin, through the program ptxas.

ptxas takes 8 ms to load and 6 ms to initialize before it reads its input, so it is started (`start`) when a compilation begins, waits
for its input on a pipe, and gets the PTX (`Job.assemble`) when it is there. It takes 3 ms to end when its output is written: nobody waits
for that. Measured on two cores: 8 ms instead of 25 for a vector add. It touches 1,600 to 5,000 fresh pages of memory, so its heap is made
of huge ones: 13 ms instead of 16 for a softmax, 210 instead of 225 for a GEMM.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from tilewright import knobs
from tilewright.errors import PTXASError, ToolchainError

from ...multiprocessor import CTA_THREADS, REGISTERS
from .locate import find_ptxas
from .options import NvidiaOptions
from .target import ARCHS

_PIPE = "/dev/stdin"

#: What `ptxas -v` prints last, after it has closed its output.
_LAST_LINE = b"Compile time ="

#: Bytes that must be free where cubins are written.
_ROOM = 32 << 20

#: What glibc is to do with the heap of ptxas: huge pages, 64 MiB at a time. Other C libraries ignore it.
_HEAP = "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864"

#: Programs that are ending, and its lock.
_ending: list[subprocess.Popen] = []
_lock = threading.Lock()


@dataclass
class Cubin:
    """What ptxas made. `n_spills` and `stack` are bytes a thread, `warnings` the performance advisories (C75xx) it printed."""

    binary: bytes
    n_regs: int = 0
    n_spills: int = 0
    stack: int = 0
    shared: int = 0
    barriers: int = 0
    warnings: list[str] = field(default_factory=list)
    log: str = ""


def command(options: NvidiaOptions, source: str, output: str) -> list[str]:
    """The command line that assembles `source` into `output`."""
    flags = ["-v", f"--gpu-name={ARCHS[options.capability].chip}"]
    if not knobs.compilation.disable_line_info:
        flags.append("-lineinfo")
    if not options.enable_fp_fusion:
        flags.append("--fmad=false")
    if knobs.nvidia.disable_ptxas_opt:
        flags += ["--opt-level", "0"]
    flags += shlex.split(options.ptx_options or knobs.nvidia.ptxas_options or "")
    return [find_ptxas(), *flags, source, "-o", output]


class Job:
    """One run of ptxas, started ahead of its input. Use `assemble` once, then `close`."""

    def __init__(self, options: NvidiaOptions):
        self.options = options
        self._folder = tempfile.TemporaryDirectory(prefix="tilewright-", dir=_memory_folder())
        self._output = os.path.join(self._folder.name, "kernel.cubin")
        self._process = self._spawn() if sys.platform != "win32" else None

    def _spawn(self) -> subprocess.Popen:
        arguments = command(self.options, _PIPE, self._output)
        tunables = ":".join(filter(None, (_HEAP, os.environ.get("GLIBC_TUNABLES"))))
        environment = {**os.environ, "GLIBC_TUNABLES": tunables}
        try:
            return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        except OSError as e:
            raise ToolchainError(f"cannot run ptxas ({arguments[0]}): {e}") from e

    def assemble(self, ptx: str, idle: Callable[[], None] = lambda: None) -> Cubin:
        """Assemble `ptx`; `idle` runs while ptxas works. Raises PTXASError, or ToolchainError if this ptxas is too old for the target."""
        if self._process is None:
            return self._assemble_file(ptx)
        process = self._process
        try:
            process.stdin.write(ptx.encode())
            process.stdin.close()
        except BrokenPipeError:
            pass  # it has failed already; its output says why
        idle()
        log, done = b"", False
        for line in process.stdout:
            log += line
            if done := _LAST_LINE in line:
                break
        return self._result(0 if done else process.wait(), log.decode(errors="replace"), ptx)

    def _assemble_file(self, ptx: str) -> Cubin:
        source = os.path.join(self._folder.name, "kernel.ptx")
        with open(source, "w", encoding="utf-8") as file:
            file.write(ptx)
        done = subprocess.run(command(self.options, source, self._output), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return self._result(done.returncode, done.stdout.decode(errors="replace"), ptx)

    def _result(self, status: int, log: str, ptx: str) -> Cubin:
        if status == 0 and os.path.isfile(self._output):
            with open(self._output, "rb") as file:
                binary = file.read()
            if not is_whole(binary):  # ptxas says nothing of it
                raise ToolchainError(
                    f"ptxas could not write its output to {self._folder.name}: is the disk full? TMPDIR names another folder"
                )
            return parse_log(log, binary)
        older = _older_ptx(log, self.options)
        if older is not None:
            return self._assemble_file(re.sub(r"^\.version .*$", f".version {older // 10}.{older % 10}", ptx, count=1, flags=re.MULTILINE))
        raise _error(status, log, ptx, self.options)

    def close(self) -> None:
        """End the program, and remove its files."""
        if self._process is not None:
            self._process.kill()
            self._process.stdin.close()
            self._process.stdout.close()
            with _lock:
                _ending.append(self._process)
        self._folder.cleanup()


def start(options: NvidiaOptions) -> Job:
    """Start ptxas for a kernel with these options. Raises ToolchainError if there is none."""
    _reap()
    return Job(options)


def _reap() -> None:
    """Forget the programs that have ended."""
    with _lock:
        _ending[:] = [process for process in _ending if process.poll() is None]


@atexit.register
def _wait() -> None:
    for process in _ending:
        process.wait()


@lru_cache(maxsize=1)
def _memory_folder() -> str | None:
    """A folder that is not on a disk, if there is one with room in it: the cubin is read back at once."""
    folder = "/dev/shm"
    if not os.access(folder, os.W_OK):
        return None
    free = os.statvfs(folder)
    return folder if free.f_bavail * free.f_frsize >= _ROOM else None


def is_whole(cubin: bytes) -> bool:
    """Whether an ELF file is as long as its header says: the tables of sections and segments end within it, and one of them ends it."""
    if len(cubin) < 64 or cubin[:4] != b"\x7fELF":
        return False
    segments, sections = struct.unpack_from("<QQ", cubin, 0x20)
    segment_size, segment_count, section_size, section_count = struct.unpack_from("<4H", cubin, 0x36)
    return max(segments + segment_size * segment_count, sections + section_size * section_count) <= len(cubin)


def parse_log(log: str, binary: bytes) -> Cubin:
    """Read the output of `ptxas -v`."""

    def number(pattern: str) -> int:
        return max((int(n) for n in re.findall(pattern, log)), default=0)

    spills = max(number(r"(\d+) bytes spill stores"), number(r"(\d+) bytes spill loads"))
    return Cubin(
        binary,
        n_regs=number(r"Used (\d+) registers"),
        n_spills=spills,
        stack=number(r"(\d+) bytes stack frame"),
        shared=number(r"(\d+) bytes smem"),
        barriers=number(r"used (\d+) barriers"),
        warnings=[line.strip() for line in log.splitlines() if re.search(r"\(C75\d\d\)|Potential Performance Loss", line)],
        log=log,
    )


def max_threads(n_regs: int) -> int:
    """Threads that a block of a kernel with `n_regs` registers a thread may have (registers are given out by 8 a thread, 256 a warp)."""
    per_warp = max(256, (max(n_regs, 1) + 7) // 8 * 256)
    return min(CTA_THREADS, REGISTERS // per_warp * 32)


def _older_ptx(log: str, options: NvidiaOptions) -> int | None:
    """The PTX ISA that this ptxas knows, if it is older than what was written but knows the target; None if that was not the trouble."""
    match = re.search(r"Unsupported \.version \S+; current version is '(\d+)\.(\d+)'", log)
    if match is None or options.ptx_version is not None:
        return None
    known = int(match[1]) * 10 + int(match[2])
    return known if known >= ARCHS[options.capability].ptx else None


def _error(status: int, log: str, ptx: str, options: NvidiaOptions) -> Exception:
    arch = ARCHS[options.capability]
    if "is not defined for option 'gpu-name'" in log or re.search(r"Unsupported \.version", log):
        return ToolchainError(
            f"{find_ptxas()} is too old for {arch.chip} or the PTX version: it needs CUDA {arch.cuda} or newer; "
            f"pip install -U nvidia-cuda-nvcc, or set TRITON_PTXAS_PATH.\n{log.strip()}"
        )
    try:
        handle, path = tempfile.mkstemp(prefix="tilewright-", suffix=".ptx")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(ptx)
    except OSError:
        path = "kernel.ptx"  # nowhere to keep it
    what = (
        "Internal PTX error"
        if status == 255
        else f"ptxas ended by signal {-status}"
        if status < 0
        else f"ptxas failed with status {status}"
    )
    repro = shlex.join(command(options, path, path + ".cubin"))
    place = _source_place(log, ptx)
    at = f"from {place}, such as inline assembly there\n" if place else ""
    return PTXASError(f"{what}\n{at}`ptxas` stderr:\n{log.strip()}\nRepro command: {repro}\n")


def _source_place(log: str, ptx: str) -> str | None:
    """file:line:column of the kernel that the first line of PTX which ptxas complains about comes from, if it says so."""
    number = re.search(r"line (\d+); error", log)
    before = "\n".join(ptx.split("\n")[: int(number[1])]) if number else ""
    places = re.findall(r"^\s*\.loc\s+(\d+) (\d+) (\d+)", before, re.MULTILINE)
    files = dict(re.findall(r'^\s*\.file\s+(\d+) "([^"]+)"', ptx, re.MULTILINE))
    if not places or places[-1][0] not in files:
        return None
    file, line, column = places[-1]
    return f"{files[file]}:{line}:{column}"


def version(path: str) -> str:
    """`"13.0.88"`: what `ptxas --version` says."""
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"V([\d.]+)", text)
    return match[1] if match else "unknown"
