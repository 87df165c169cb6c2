"""Blocks of `hopper.md`: what the compiler makes of two kernels of the benchmarks for an H200, down to SASS. Needs nvdisasm and torch."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

#: What an instruction of the structure does, by a pattern of its text: one line of an excerpt each.
STRUCTURE = (
    (r"USETMAXREG\.DEALLOC", "producer: gives its registers to the pool of the CTA"),
    (r"USETMAXREG\.TRY_ALLOC", "consumer: takes 240 registers from there"),
    (r"SYNCS\.PHASECHK", "wait at an mbarrier for the phase of this turn around the ring"),
    (r"SYNCS\.ARRIVE\.TRANS64\.A1T0", "arrive at `empty`: the slot may be filled again"),
    (r"SYNCS\.ARRIVE\.TRANS64 ", "`full` expects the bytes of this slot"),
    (r"UTMALDG", "TMA load of a block into the slot"),
    (r"UTMASTG", "TMA store of a staged block"),
    (r"HGMMA.*tnspB", "acc += registers * shared memory, read transposed"),
    (r"HGMMA.*RZ, !UPT", "acc = shared memory * shared memory"),
    (r"HGMMA", "acc += shared memory * shared memory"),
    (r"WARPGROUP\.DEPBAR\.LE gsb0, 0x0", "wait for all products"),
    (r"WARPGROUP\.DEPBAR\.LE gsb0, 0x1", "wait for all products but the last"),
    (r"(?<!GROUP\.)DEPBAR\.LE SB0", "earlier TMA stores have read their buffers"),
    (r"BAR\.SYNC\S* 0x0,", "wait until the producer has made the mbarriers"),
    (r"BAR\.SYNC", "named barrier of some warps"),
    (r"BAR\.ARV 0x0,", "the mbarriers are made"),
    (r"BAR\.ARV", "arrive at a named barrier"),
)
#: Work that is counted.
WORK = {
    "exp2": r"MUFU\.EX2",
    "maxima": r"FMNMX",
    "shuffles": r"SHFL",
    "packs to 16 bits": r"F2FP",
    "FMA, multiply, add": r"\b(FFMA|FMUL|FADD)",
    "stmatrix": r"STSM",
}


@cache
def kernels() -> dict[str, Any]:
    """The persistent GEMM and attention on descriptors, in the first configuration of their cases."""
    from suite import attention, gemm, implementations

    problems = {"gemm": gemm.plain("meta", 8192, 8192, 8192), "attention": attention.forward("meta", 2, 16, 8192, 128, False)}
    with implementations.no_gpu("tilewright"):
        found = {}
        for name, problem in problems.items():
            stage = next(v for v in problem.variants if v.name == "descriptors").stages[0]
            (launch,) = stage.steps(stage.configs[0])
            found[name] = implementations.compile_launch(launch, "tilewright")
    return found


def facts(name: str) -> Callable[[], str]:
    """A function that returns a line of figures of a kernel."""

    def text() -> str:
        kernel = kernels()[name]
        m = kernel.metadata
        return (
            f"`{m.name}`: {32 * m.num_warps} threads, {kernel.n_regs} registers a thread at launch, {kernel.n_spills} spills, "
            f"{m.shared} bytes of shared memory, {len(kernel.asm['sass'].splitlines())} lines of SASS.\n"
        )

    return text


_SHOWN = r"tilegpu\.|scf\.|tile\.|math\.|arith\.(select|cmpi)|\} do \{"


def region(name: str, stage: str, start: str) -> Callable[[], str]:
    """A function that returns the operation of a stage whose first line matches `start`, without types, layouts, the bodies of reductions,
    and what is not in _SHOWN."""

    def text() -> str:
        lines = kernels()[name].asm[stage].split("\n")
        first = next(i for i, line in enumerate(lines) if re.search(start, line))
        indent = len(lines[first]) - len(lines[first].lstrip())
        close = re.compile(rf" {{{indent}}}\}}(?! do)")
        last = next(i for i, line in enumerate(lines) if i > first and close.match(line))
        chosen = [line for line in lines[first:last] if re.search(_SHOWN, line) and "tile.yield" not in line]
        return "```mlir\n" + "\n".join(_untyped(line[indent:]) for line in chosen) + "\n```\n"

    return text


def _untyped(line: str) -> str:
    line = re.sub(r" \{tilegpu\.(late|turns|behind_branch|each_warp)\b[^}]*\}", "", line)
    line = re.sub(r"( \{tile\.\w+ = \w+\})? : (?!i32 \{$)[^{]*(\{?)$", r"\2", line)
    line = re.sub(r" -> \([^)]*\)\s*( : i32)? \{$", " {", line)
    line = re.sub(r",? precision = \w+", "", line).rstrip()
    return line + ")" * (line.count("(") - line.count(")"))


def sass(name: str, start: str, end: str, skip: int = 0) -> Callable[[], str]:
    """A function that returns the annotated instructions between two patterns, the first after the `skip`-th match of `start`; runs of one
    opcode are one line, the rest is counted."""

    def text() -> str:
        lines = [
            m[1].strip() for line in kernels()[name].asm["sass"].split("\n") if (m := re.search(r"/\*[0-9a-f]{4,5}\*/\s+(.*?) ;", line))
        ]
        starts = [i for i, line in enumerate(lines) if re.search(start, line)]
        first = starts[skip]
        last = next(i for i, line in enumerate(lines) if i > first and re.search(end, line))
        return "```text\n" + "\n".join(outline(lines[first : last + 1])) + "\n```\n"

    return text


def outline(lines: list[str]) -> list[str]:
    """The instructions of the structure with their meanings; between them, how much of which work there is."""
    out: list[list[str]] = []
    between: list[str] = []
    for line in (re.sub(r"\s+", " ", text) for text in lines):
        meaning = next((m for pattern, m in STRUCTURE if re.search(pattern, line)), None)
        if meaning is None:
            between.append(line)
            continue
        work = _work(between)
        between = []
        if out and out[-1][1] == meaning and not work:
            out[-1].append(line)
            continue
        if work:
            out.append([f"    ... {work}", ""])
        out.append([line, meaning])
    return [_line(text, meaning, 1 + len(more)) for text, meaning, *more in out]


def _line(text: str, meaning: str, count: int) -> str:
    return f"{text:<60} // {meaning}{f', {count} of them' if count > 1 else ''}" if meaning else text


def _work(lines: list[str]) -> str:
    """What a run of other instructions does, if it is worth a line."""
    counts = {name: sum(bool(re.search(pattern, line)) for line in lines) for name, pattern in WORK.items()}
    named = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return f"{len(lines)} instructions: {named}" if named else ""
