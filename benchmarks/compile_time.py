"""Cold compile of the benchmark kernels for cuda:90, beside Triton's if it is there; no GPU needed.

    compile_time.py [kernels.py] [--repeat N] [--triton-python PATH]

`kernels.py` (default: the one beside this file) is imported once per implementation, with TW_IMPL set, in a process of its own: Triton's
in the interpreter `--triton-python`, as one environment need not hold both. Nothing is cached. Times are milliseconds of the wall clock,
best of N; "CPU" is processor time, ptxas included, which a busy machine changes less. "import" is the package and its language, "start"
what the first kernel takes more than the same kernel later.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).with_name("kernels.py")

#: row -> (total, before ptxas) in ms
GOALS = {"import": (60, None), "start": (400, None), "add": (25, 20), "softmax": (40, 30), "gemm": (330, 150), "attn": (430, 170)}
GOALS |= {"gemm_tma": GOALS["gemm"], "attn_causal": GOALS["attn"], "attn_tma": GOALS["attn"], "attn_tma_causal": GOALS["attn"]}

Times = dict[str, dict[str, float]]

BF16, F32, I32 = "*bf16", "*fp32", "i32"

#: name -> (function, types, constants, parameters divisible by 16, options)
CASES: dict[str, tuple[str, dict[str, str], dict[str, Any], str, dict[str, int]]] = {
    "add": ("add_kernel", {"x": F32, "y": F32, "o": F32, "n": I32}, {"B": 1024}, "x y o n", {"num_warps": 4}),
    "softmax": (
        "softmax_kernel",
        {"o": BF16, "x": BF16, "so": I32, "sx": I32, "n": I32},
        {"B": 4096},
        "o x so sx n",
        {"num_warps": 8},
    ),
    "layernorm": (
        "layernorm_kernel",
        {"x": BF16, "o": BF16, "w": F32, "b": F32, "n": I32, "eps": "fp32"},
        {"B": 4096},
        "x o w b n",
        {"num_warps": 8},
    ),
    "gemm": (
        "matmul_kernel",
        {"A": BF16, "Bp": BF16, "C": BF16, "M": I32, "N": I32, "K": I32, "sam": I32, "sbk": I32, "scm": I32},
        {"sak": 1, "sbn": 1, "scn": 1, "BM": 128, "BN": 256, "BK": 64, "G": 8},
        "A Bp C M N K sam sbk scm",
        {"num_warps": 8, "num_stages": 3},
    ),
    "attn": (
        "attn_kernel",
        {"Q": BF16, "K": BF16, "V": BF16, "O": BF16, "sm": "fp32", "H": I32, "S": I32},
        {"D": 128, "BM": 128, "BN": 128, "CAUSAL": False},
        "Q K V O H S",
        {"num_warps": 8, "num_stages": 3},
    ),
    "attn_causal": (
        "attn_kernel",
        {"Q": BF16, "K": BF16, "V": BF16, "O": BF16, "sm": "fp32", "H": I32, "S": I32},
        {"D": 128, "BM": 128, "BN": 64, "CAUSAL": True},
        "Q K V O H S",
        {"num_warps": 8, "num_stages": 3},
    ),
    "gemm_tma": (
        "matmul_tma_kernel",
        {"A": BF16, "Bp": BF16, "C": BF16, "M": I32, "N": I32, "K": I32},
        {"BM": 128, "BN": 256, "BK": 64, "G": 8, "NSM": 132, "WS": True},
        "A Bp C M N K",
        {"num_warps": 8, "num_stages": 3},
    ),
    "attn_tma": (
        "attn_tma_kernel",
        {"Q": BF16, "K": BF16, "V": BF16, "O": BF16, "sm": "fp32", "Z": I32, "H": I32, "S": I32},
        {"D": 128, "BM": 128, "BN": 128, "CAUSAL": False, "WS": True},
        "Q K V O Z H S",
        {"num_warps": 8, "num_stages": 2},
    ),
    "attn_tma_causal": (
        "attn_tma_kernel",
        {"Q": BF16, "K": BF16, "V": BF16, "O": BF16, "sm": "fp32", "Z": I32, "H": I32, "S": I32},
        {"D": 128, "BM": 128, "BN": 128, "CAUSAL": True, "WS": True},
        "Q K V O Z H S",
        {"num_warps": 8, "num_stages": 2},
    ),
}


def processor_time() -> float:
    """Milliseconds that this process and its ended children have computed."""
    try:
        import resource
    except ImportError:  # Windows
        return time.process_time() * 1e3
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage) * 1e3


def stage_times(times: Any) -> dict[str, float]:
    """What a compile listener is told, as milliseconds by stage: a dict of ours; Triton's in microseconds."""
    if isinstance(times, dict):
        return dict(times)
    stages = {"frontend": times.ir_initialization, **dict(times.lowering_stages)}
    return {name: us / 1e3 for name, us in stages.items()}


def measure(implementation: str, kernels: Path, repeat: int) -> Times:
    """In a fresh process: row -> {"total": ms, "cpu": ms, stage: ms, ...}, and what is installed under "versions"."""
    folder = tempfile.mkdtemp()
    os.environ.update(TW_IMPL=implementation, TRITON_CACHE_DIR=folder, TILEWRIGHT_CACHE_DIR=folder, TRITON_ALWAYS_COMPILE="1")
    begin, cpu = time.perf_counter(), processor_time()
    package, _ = importlib.import_module(implementation), importlib.import_module(f"{implementation}.language")
    found: Times = {"import": {"total": (time.perf_counter() - begin) * 1e3, "cpu": processor_time() - cpu}}
    spec = importlib.util.spec_from_file_location("kernels", kernels)
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = module
    spec.loader.exec_module(module)
    compiler = importlib.import_module(f"{implementation}.compiler")
    target = importlib.import_module(f"{implementation}.backends.compiler").GPUTarget("cuda", 90, 32)
    stages: dict[str, float] = {}
    importlib.import_module(f"{implementation}.knobs").compilation.listener = lambda **facts: stages.update(stage_times(facts["times"]))

    def compile(kernel: Any, types: dict[str, str], constants: dict[str, Any], divisible: str, options: dict[str, int]) -> dict:
        signature = {n: types.get(n, "constexpr") for n in kernel.arg_names}
        attrs = {(kernel.arg_names.index(n),): [["tt.divisibility", 16]] for n in divisible.split()}
        shutil.rmtree(folder, ignore_errors=True)
        stages.clear()
        start, cpu = time.perf_counter(), processor_time()
        compiler.compile(compiler.ASTSource(kernel, signature, constants, attrs), target=target, options=options)
        return {"total": (time.perf_counter() - start) * 1e3, "cpu": processor_time() - cpu, **stages}

    for name, (function, *case) in CASES.items():
        try:
            runs = [compile(getattr(module, function), *case) for _ in range(repeat + 1)]
        except Exception as e:  # noqa: BLE001  (a kernel that does not compile is a line of the table)
            found[name] = {"error": f"{type(e).__name__}: {str(e)[:200]}"}
            continue
        found[name] = min(runs[1:], key=lambda run: run["total"])
        if "start" not in found:
            found["start"] = {key: runs[0][key] - found[name][key] for key in ("total", "cpu")}
    shutil.rmtree(folder, ignore_errors=True)
    return {**found, "versions": {implementation: package.__version__, "python": platform.python_version()}}


def row(name: str, cells: list[Any], digits: int = 1) -> str:
    """A line of a Markdown table; None is an empty cell."""
    return f"| {name} | " + " | ".join("" if c is None else c if isinstance(c, str) else f"{c:.{digits}f}" for c in cells) + " |"


def totals(ours: Times, theirs: Times) -> str:
    """The table of whole compilations."""
    lines = [row("ms", ["total", "goal", "before ptxas", "goal", "CPU", "Triton", "Triton CPU", "ratio"]), "|---|" + "---:|" * 8]
    for name in ("import", "start", *CASES):
        times, other = ours.get(name, {}), theirs.get(name, {})
        if "error" in times:
            lines.append(row(name, [times["error"], *[None] * 7]))
            continue
        goal, goal_before = (None if g is None else str(g) for g in GOALS.get(name, (None, None)))
        before = times["total"] - times["cubin"] if "cubin" in times else None
        ratio = other["total"] / times["total"] if "total" in other else None
        lines.append(
            row(name, [times.get("total"), goal, before, goal_before, times.get("cpu"), other.get("total"), other.get("cpu"), ratio])
        )
    return "\n".join(lines)


def breakdown(title: str, results: Times) -> str:
    """The table of stages."""
    runs = {name: run for name in CASES if "total" in (run := results.get(name, {}))}
    stages = list(dict.fromkeys(key for run in runs.values() for key in run if key not in ("total", "cpu")))
    if not stages:
        return ""
    lines = [row(title, stages), "|---|" + "---:|" * len(stages)]
    return "\n".join([*lines, *(row(name, [run.get(stage) for stage in stages]) for name, run in runs.items())])


def machine() -> str:
    """The processor, the number of cores and the load that others put on them."""
    model = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        model = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), model)
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    return f"{model}, {os.cpu_count()} cores{load}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="?", type=Path, default=KERNELS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--triton-python", default=sys.executable, help="the interpreter that has Triton (default: this one)")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.kernels.is_file():
        parser.error(f"{options.kernels} does not exist: name the file with the benchmark kernels")
    if options.measure:
        print(json.dumps(measure(options.measure, options.kernels, options.repeat)))
        return
    header = f"{datetime.date.today()}, {machine()}"
    results: dict[str, Times] = {"triton": {}}
    for implementation, python in (("tilewright", sys.executable), ("triton", options.triton_python)):
        if implementation == "triton" and subprocess.run([python, "-c", "import triton"], capture_output=True, check=False).returncode:
            print(f"Triton cannot be imported by {python}: its column is empty (--triton-python names an interpreter that has it)")
            continue
        command = [python, __file__, str(options.kernels), "--repeat", str(options.repeat), "--measure", implementation]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{implementation} failed:\n{done.stderr}")
        results[implementation] = json.loads(done.stdout.splitlines()[-1])
    versions = [", ".join(f"{name} {version}" for name, version in r["versions"].items()) for r in results.values() if r]
    print(f"{header}; {'; '.join(versions)}\n")
    print(totals(results["tilewright"], results["triton"]))
    for implementation in ("tilewright", "triton"):
        print("\n" + breakdown(f"{implementation}, ms", results[implementation]))


if __name__ == "__main__":
    main()
