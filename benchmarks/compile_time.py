"""Cold compile of the benchmark kernels for cuda:90, beside Triton's if it is installed; no GPU needed.

    compile_time.py [kernels.py] [--repeat N] [--stages]

`kernels.py` (default: ../shared/bench/kernels.py) is imported once per implementation, with TW_IMPL set, in a process of its own. Times are
milliseconds, best of N, nothing cached; `before ptxas` is what the stages before ptxas took. `start` is import and first kernel.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).resolve().parents[1].parent / "shared" / "bench" / "kernels.py"
GOALS = {"add": (25, 20), "softmax": (40, 30), "gemm": (330, 150), "attn": (430, 170), "start": (500, None)}

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
}


def measure(implementation: str, kernels: Path, repeat: int) -> dict[str, dict[str, float]]:
    """In a fresh process: case -> {"total": ms, stage: ms, ...}, and "start"."""
    folder = tempfile.mkdtemp()
    os.environ.update(TW_IMPL=implementation, TRITON_CACHE_DIR=folder, TILEWRIGHT_CACHE_DIR=folder, TRITON_ALWAYS_COMPILE="1")
    begin = time.perf_counter()
    spec = importlib.util.spec_from_file_location("kernels", kernels)
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = module
    spec.loader.exec_module(module)
    compiler = importlib.import_module(f"{implementation}.compiler")
    target = importlib.import_module(f"{implementation}.backends.compiler").GPUTarget("cuda", 90, 32)
    found: dict[str, dict[str, float]] = {}
    for name, (function, types, constants, divisible, options) in CASES.items():
        kernel = getattr(module, function)
        signature = {n: types.get(n, "constexpr") for n in kernel.arg_names}
        attrs = {(kernel.arg_names.index(n),): [["tt.divisibility", 16]] for n in divisible.split()}
        for _ in range(repeat):
            shutil.rmtree(folder, ignore_errors=True)
            start = time.perf_counter()
            try:
                compiled = compiler.compile(compiler.ASTSource(kernel, signature, constants, attrs), target=target, options=options)
            except Exception as e:  # noqa: BLE001  (a kernel that does not compile is a line of the table)
                found[name] = {"error": f"{type(e).__name__}: {str(e)[:200]}"}
                break
            total = (time.perf_counter() - start) * 1e3
            found.setdefault("start", {"total": (time.perf_counter() - begin) * 1e3})
            if total < found.get(name, {}).get("total", float("inf")):
                found[name] = {"total": total, **getattr(compiled, "timings", {})}
    shutil.rmtree(folder, ignore_errors=True)
    return found


def table(results: dict[str, dict[str, dict[str, float]]], stages: bool) -> str:
    """The results as text, one line a case."""
    ours, theirs = results["tilewright"], results.get("triton", {})
    lines = [f"{'ms':12s}{'total':>9s}{'goal':>7s}{'before ptxas':>14s}{'goal':>7s}{'Triton':>9s}{'ratio':>7s}"]
    for name, times in ours.items():
        goal, goal_before = GOALS.get(name, (None, None))
        other = theirs.get(name, {}).get("total")
        if "error" in times:
            lines.append(f"{name:12s} {times['error']}")
            continue
        parts = {stage: ms for stage, ms in times.items() if stage not in ("total", "lowering", "translation")}
        before = times["total"] - parts["cubin"] if "cubin" in parts else None
        cells = [times["total"], goal, before, goal_before, other, other / times["total"] if other else None]
        widths, digits = (9, 7, 14, 7, 9, 7), (1, 0, 1, 0, 1, 1)
        lines.append(f"{name:12s}" + "".join(f"{'' if c is None else format(c, f'.{d}f'):>{w}s}" for c, w, d in zip(cells, widths, digits)))
        if stages and parts:
            lines.append("            " + "  ".join(f"{stage} {ms:.1f}" for stage, ms in parts.items()))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="?", type=Path, default=KERNELS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--stages", action="store_true", help="show the time of each stage")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.kernels.is_file():
        parser.error(f"{options.kernels} does not exist: name the file with the benchmark kernels")
    if options.measure:
        print(json.dumps(measure(options.measure, options.kernels, options.repeat)))
        return
    results = {}
    for implementation in ("tilewright", "triton"):
        if importlib.util.find_spec(implementation) is None:
            continue
        command = [sys.executable, __file__, str(options.kernels), "--repeat", str(options.repeat), "--measure", implementation]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{implementation} failed:\n{done.stderr}")
        results[implementation] = json.loads(done.stdout.splitlines()[-1])
    print(table(results, options.stages))


if __name__ == "__main__":
    main()
