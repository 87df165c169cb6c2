"""Writes the parts of the documentation that the tree itself knows: `python docs/generate.py [PAGE ...]`.

In a page, what stands between `<!-- generated: NAME -->` and `<!-- end -->` is replaced by what the function NAME of BLOCKS returns.
hopper.md needs nvdisasm and torch.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import hopper_blocks as hopper

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("architecture.md", "errors.md", "hopper.md", "performance.md", "tilewright-opt.md")
_BLOCK = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


@cache
def kernels() -> dict[str, Any]:
    """The demo's kernels, compiled for an H200, a CTA for each program."""
    from tilewright import demo, knobs

    knobs.compilation.always_compile = True
    cases = [case._replace(options={**case.options, "persistent": False}) for case in demo.cases()]
    return {case.kernel.__name__: demo.compile_case(case, demo.GPUTarget("cuda", 90, 32)) for case in cases}


def code(text: str, language: str) -> str:
    """A fenced block."""
    return f"```{language}\n{text.strip()}\n```\n"


def part(kernel: str, stage: str, start: str, end: str, language: str, drop: str = "") -> Callable[[], str]:
    """A function that returns the lines of a stage from the one that contains `start` to the next that contains `end`, both included,
    without what the pattern `drop` matches."""

    def text() -> str:
        lines = kernels()[kernel].asm[stage].split("\n")
        first = next(i for i, line in enumerate(lines) if start in line)
        last = next(i for i, line in enumerate(lines) if i > first and end in line)
        chosen = "\n".join(lines[first : last + 1])
        return code(re.sub(drop, "", chosen) if drop else chosen, language)

    return text


def whole(kernel: str, stage: str) -> Callable[[], str]:
    """A function that returns a stage."""
    return lambda: code(kernels()[kernel].asm[stage], "mlir")


def source() -> str:
    """The add kernel as the user writes it."""
    from tilewright import demo

    return code("@triton.jit\n" + demo.add_kernel.src, "python")


def matmul_loop(stage: str) -> Callable[[], str]:
    """A function that returns the loop of the matrix product at a stage, layouts left out."""

    def text() -> str:
        lines = kernels()["matmul_kernel"].asm[stage].split("\n")
        first = next(i for i, line in enumerate(lines) if "scf.for" in line and "tensor<" in line)  # it carries the accumulator
        indent = len(lines[first]) - len(lines[first].lstrip())
        last = next(i for i, line in enumerate(lines) if i > first and line.startswith(" " * indent + "}"))
        return code(re.sub(r"(, )?#(layout|shared)\d*\b", "", "\n".join(line[indent:] for line in lines[first : last + 1])), "mlir")

    return text


def summary(module: ModuleType) -> str:
    """The first sentence of a module's docstring, without the name of the pass."""
    first = (module.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
    return re.sub(r"^`[\w-]+`: ", "", first).rstrip(".")


def passes() -> str:
    """The lists of passes for an H200, each with what it does."""
    from tilewright.compiler.backends import GPUTarget, make_backend
    from tilewright.compiler.backends.nvidia import pipeline
    from tilewright.compiler.passes import registry

    options = make_backend(GPUTarget("cuda", 90, 32)).parse_options({"persistent": True})  # with all passes
    lines = ["| stage | pass | what it does |", "|---|---|---|"]
    for stage in ("ttir", "ttgir", "llir"):
        for entry in getattr(pipeline, stage)(options):
            name = entry if isinstance(entry, str) else entry[0]
            function = registry.lookup(name)
            what = summary(sys.modules[function.__module__]) if function else "MLIR's"
            lines.append(f"| {stage} | `{name}` | {what} |")
    return "\n".join(lines) + "\n"


def rules() -> str:
    """The files of lowering rules, with the ops they lower."""
    import_module("tilewright.compiler.lowering.lower")
    from tilewright.compiler.lowering.registry import RULES

    files: dict[str, list[str]] = defaultdict(list)
    for op, rule in RULES.items():
        files[rule.__module__].append(op)
    lines = ["| file | ops |", "|---|---|"]
    for name in sorted(files):
        ops = files[name]
        shown = ", ".join(f"`{op}`" for op in ops[:6]) + (f" and {len(ops) - 6} more" if len(ops) > 6 else "")
        lines.append(f"| `{name.rsplit('.', 1)[1]}.py` | {shown} |")
    return "\n".join(lines) + "\n"


def mistakes(group: str) -> Callable[[], str]:
    """A function that returns the messages of one group of `tests/unit/mistakes.py`."""

    def text() -> str:
        sys.path.insert(0, str(ROOT / "tests" / "unit"))
        module = import_module("mistakes")
        parts = []
        for mistake in getattr(module, group):
            try:
                mistake.make()
            except mistake.error as error:
                message = str(error.args[0] if isinstance(error, KeyError) else error).replace(f"{ROOT}/", "")
                message = re.sub(r"  # noqa.*", "", message)
                parts.append(f"### {mistake.title}\n\n" + code(f"{type(error).__name__}: {message}", "text"))
            else:
                raise AssertionError(f"{mistake.title}: no error")
        return "\n".join(parts)

    return text


def speed() -> str:
    """The results of the newest run of `benchmarks/run.py` that is checked in, best variants only, and its plots."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    report = import_module("report")
    folder = max(path.parent for path in (ROOT / "benchmarks" / "results").glob("*/*.json"))
    machines, groups = report.load(folder)
    lines = [report.heading(machines).split("\n", 2)[2].strip(), ""]
    for group, cases in groups.items():
        lines += [f"| {group} | unit | Tilewright | Triton | library | x Triton | x library |", "|---|---|---:|---:|---:|---:|---:|"]
        for case in cases:
            values = [report.number(report.best(case, who)) for who in ("tilewright", "triton", None)]
            ratios = [report.number(report.ratio(case, who), 2) for who in ("triton", None)]
            lines.append(report.row([case["name"], case["unit"], *values, *ratios]))
        plot = folder / f"{group}.svg"
        lines += ["", *([f"![{group}](../{plot.relative_to(ROOT).as_posix()})", ""] if plot.exists() else [])]
    return "\n".join(lines) + "\n"


def command_help() -> str:
    """What `tilewright-opt --help` prints."""
    from tilewright.compiler import opt

    return code(opt._parser().format_help(), "text")


BLOCKS: dict[str, Callable[[], str]] = {
    "source": source,
    "front end": whole("add_kernel", "source"),
    "ttgir": whole("add_kernel", "ttgir"),
    "llir": part("add_kernel", "llir", "define ptx_kernel", "}", "llvm", r", !dbg !\d+| !dbg !\d+|%\d+ = extractelement.*\n"),
    "ptx": part("add_kernel", "ptx", ".visible .entry", "ret;", "ptx", r"\t?\.loc.*\n|\$L__.*\n|\t// (begin|end) inline asm\n"),
    "matmul loop from the front end": matmul_loop("source"),
    "matmul loop in ttir": matmul_loop("ttir"),
    "matmul loop in ttgir": matmul_loop("ttgir"),
    "passes": passes,
    "rules": rules,
    "mistakes in the kernel": mistakes("IN_THE_KERNEL"),
    "mistakes in the call": mistakes("IN_THE_CALL"),
    "mistakes on this machine": mistakes("ON_THIS_MACHINE"),
    "tilewright opt help": command_help,
    "speed": speed,
    "gemm facts": hopper.facts("gemm"),
    "gemm loop": hopper.region("gemm", "ttgir", r"scf\.for .*tensor<128x256xf32"),
    "gemm producer": hopper.sass("gemm", r"USETMAXREG\.DEALLOC", r"USETMAXREG\.TRY"),
    "gemm consumer": hopper.sass("gemm", r"USETMAXREG\.TRY", r"\bEXIT\b"),
    "attention facts": hopper.facts("attention"),
    "attention loop": hopper.region("attention", "ttgir", r"scf\.(while|for).*tensor<128x128xf32"),
    "attention consumer": hopper.sass("attention", r"USETMAXREG\.TRY", r"\bEXIT\b"),
}


def main() -> None:
    """Rewrite the pages."""
    for page in sys.argv[1:] or PAGES:
        path = ROOT / "docs" / page
        text = path.read_text(encoding="utf-8")
        path.write_text(_BLOCK.sub(lambda match: f"{match[1]}{BLOCKS[match[2]]()}{match[3]}", text), encoding="utf-8")
        print(f"{path.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
