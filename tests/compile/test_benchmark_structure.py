"""What the kernels of the benchmark suite are made of, for every configuration: a structure that is lost shows here without a GPU.

`benchmark_structure.txt` is the table: instructions in the PTX of each kernel for sm_90. A change that is meant is written to it by
`python tests/compile/test_benchmark_structure.py` (with `benchmarks` in PYTHONPATH). No kernel may spill registers, except where one CTA
works on a row that it cannot hold, and ptxas may not warn (C75xx: it serializes wgmmas).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from suite import catalogue, implementations
from suite.cases import OPTIONS, Launch

TABLE = Path(__file__).with_name("benchmark_structure.txt")

#: Elements of a row beyond which one CTA alone spills; clusters share such rows.
_LONG_ROW = 32768

#: column -> what of the PTX it counts
COUNTED = {
    "wgmma": r"wgmma\.mma_async",
    "mma": r"\bmma\.sync",
    "tma_ld": r"cp\.async\.bulk\.tensor\.\w+\.shared",
    "tma_st": r"cp(\.reduce)?\.async\.bulk\.tensor\.\w+\.global",
    "cp_async": r"cp\.async\.c[ag]\.",
    "mbar_wait": r"mbarrier\.try_wait",
    "setmaxnreg": r"setmaxnreg",
    "stmatrix": r"stmatrix",
    "bar": r"\bbar\.sync",
    "ld16": r"ld\.global\S*\.(v4\.[bf]32|v2\.[bf]64|b128)",
    "st16": r"st\.global\S*\.(v4\.[bf]32|v2\.[bf]64|b128)",
    "shfl": r"shfl\.sync",
    "red": r"\b(red|atom)\.(async\.)?\S*global",
}


def kernels_of(group: str) -> dict[str, Launch]:
    """Name of a line of the table -> launch; one for each kernel that is compiled differently."""
    found: dict[str, Launch] = {}
    problems = [case.build("meta") for case in catalogue.CASES if case.group == group]
    for launch in implementations.launches(problems):
        types = (
            "" if all("bfloat16" in str(a.dtype) or a.dtype.itemsize == 4 for a in _tensors(launch)) else f" {_tensors(launch)[0].dtype}"
        )
        constants = " ".join(f"{key}={value}" for key, value in launch.keywords.items() if key not in OPTIONS)
        options = " ".join(f"{key}={launch.keywords[key]}" for key in OPTIONS if key in launch.keywords)
        found.setdefault(f"{launch.kernel}{types.replace('torch.', '')} {constants} {options}", launch)
    return found


def _tensors(launch: Launch) -> list[Any]:
    return [a for a in launch.arguments if hasattr(a, "dtype")]


def line(name: str, ptx: str) -> str:
    """A line of the table."""
    return f"{' '.join(f'{len(re.findall(pattern, ptx)):>{len(column)}}' for column, pattern in COUNTED.items())}  {name}"


def compiled(group: str) -> list[tuple[str, Any]]:
    """(name, kernel) of a group, compiled for sm_90."""
    with implementations.no_gpu("tilewright"):
        return [(name, implementations.compile_launch(launch, "tilewright")) for name, launch in kernels_of(group).items()]


def recorded() -> dict[str, list[str]]:
    """The table: group -> lines."""
    groups: dict[str, list[str]] = {}
    for text in TABLE.read_text().splitlines()[1:]:
        if text.startswith("# "):
            lines = groups.setdefault(text[2:], [])
        elif text:
            lines.append(text)
    return groups


@pytest.mark.parametrize("group", catalogue.GROUPS)
def test_structure(group):
    kernels = compiled(group)
    spilled = [name for name, kernel in kernels if kernel.n_spills and not _is_too_long(kernel)]
    assert not spilled
    warned = {name: kernel.metadata.ptxas_warnings for name, kernel in kernels if kernel.metadata.ptxas_warnings}
    assert not warned
    assert [line(name, kernel.asm["ptx"]) for name, kernel in kernels] == recorded()[group]


def _is_too_long(kernel: Any) -> bool:
    block = kernel.src.constants.get((kernel.src.fn.arg_names.index("B"),), 0) if "B" in kernel.src.fn.arg_names else 0
    return block >= _LONG_ROW and kernel.metadata.num_ctas == 1


def main() -> None:
    """Write the table."""
    lines = [" ".join(COUNTED)]
    for group in catalogue.GROUPS:
        lines += ["", f"# {group}", *(line(name, kernel.asm["ptx"]) for name, kernel in compiled(group))]
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
