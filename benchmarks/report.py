"""What the results of `run.py` say: `report.py DIR` reads DIR/*.json and writes DIR/table.md and, with matplotlib, DIR/GROUP.svg."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

Result = dict[str, Any]

_OURS, _OTHER = "tilewright", "triton"


def load(folder: Path) -> tuple[list[dict[str, Any]], dict[str, list[Result]]]:
    """(machines of the runs, cases by group) of all results in the folder."""
    machines, groups = [], {}
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text())
        machines.append({**data["machine"], "file": path.name, "seconds": data["seconds"]})
        for case in data["cases"]:
            groups.setdefault(case["group"], []).append(case)
    return machines, groups


def names(cases: list[Result]) -> list[str]:
    """The contenders of a group: ours, Triton's, then libraries."""
    entries = [e for case in cases for e in case["entries"]]
    order = {_OURS: 0, _OTHER: 1, None: 2}
    return [n for _, n in sorted({(order.get(e["implementation"], 2), e["name"]): None for e in entries})]


def best(case: Result, implementation: str | None) -> float | None:
    """The best value of an implementation, of libraries for None."""
    return max((e["value"] for e in case["entries"] if e["implementation"] == implementation), default=None)


def ratio(case: Result, implementation: str | None) -> float | None:
    """Our best through the other's best."""
    ours, other = best(case, _OURS), best(case, implementation)
    return None if ours is None or other is None else ours / other


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def table(group: str, cases: list[Result]) -> str:
    """A group's speeds and ratios, then configurations, errors and clocks."""
    columns = names(cases)
    units = list(dict.fromkeys(case["unit"] for case in cases if case["unit"]))
    lines = [f"## {group}", "", row([", ".join(units), *columns, "x Triton", "x library"]), "|---|" + "---:|" * (len(columns) + 2)]
    for case in cases:
        values = {e["name"]: e["value"] for e in case["entries"]}
        ratios = [number(ratio(case, other), 2) for other in (_OTHER, None)]
        lines.append(row([case["name"], *(number(values.get(c)) for c in columns), *ratios]))
    lines += ["", row(["", "configurations chosen", "largest error", "SM MHz", "W"]), "|---|---|---:|---:|---:|"]
    for case in cases:
        chosen = [f"{e['name']}: {', '.join(e['configs'])}" for e in case["entries"] if e["configs"]]
        errors = [e["error"] for e in case["entries"] if e["error"] is not None]
        clocks = case["clocks"]
        cells = [
            "; ".join(chosen),
            f"{max(errors):.1e}" if errors else "",
            number(clocks.get("clocks.sm")),
            number(clocks.get("power.draw")),
        ]
        lines.append(row([case["name"], *cells]))
    notes = [f"- {case['name']}: {note}" for case in cases for note in case["notes"]]
    if notes:
        lines += ["", "Not counted:", "", *(note.replace("\n", " ") for note in notes)]
    return "\n".join(lines)


def heading(machines: list[dict[str, Any]]) -> str:
    """What was run where."""
    lines = ["# Results", ""]
    for m in machines:
        gpu = ", ".join(f"{key} {value}" for key, value in m["gpu"].items())
        versions = ", ".join(f"{key} {value}" for key, value in m["versions"].items())
        lines.append(f"- `{m['file']}`: {m['date']}; {gpu}; Python {m['python']}, {versions}; seconds {m['seconds']}")
    lines += [
        "",
        "Medians of bursts of calls, taken in turns in one process, L2 flushed before each call; random inputs; every result was",
        "checked against a reference in fp32 or fp64 first. Ratios compare the best variants: above 1 Tilewright is faster.",
        "",
    ]
    return "\n".join(lines)


def plot(group: str, cases: list[Result], path: Path) -> None:
    """Bars of the group's speeds, a block of them for each case; at the end of our best, the ratio to Triton's."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": group, "font.size": 9})
    cases = [case for case in cases if case["entries"]]
    columns = names(cases)
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.15 * len(cases) * (len(columns) + 1)), layout="constrained")
    width = 0.84 / len(columns)
    for place, name in enumerate(columns):
        bars = [(i, e) for i, case in enumerate(cases) for e in case["entries"] if e["name"] == name]
        at = [i + (place - (len(columns) - 1) / 2) * width for i, _ in bars]
        axes.barh(at, [e["value"] for _, e in bars], width * 0.92, label=name, color=_color(name, columns))
        for y, (i, e) in zip(at, bars):
            if e["implementation"] == _OURS and e["value"] == best(cases[i], _OURS) and (against := ratio(cases[i], _OTHER)) is not None:
                axes.annotate(f" {against:.2f}x", (e["value"], y), va="center", fontsize=7)
    axes.set_yticks(range(len(cases)), [case["name"] for case in cases], fontsize=8)
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.set_xlabel(cases[0]["unit"])
    axes.set_title(f"{group} (at the end of our best: ratio to Triton's best)", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), fontsize=8, frameon=False, loc="outside right upper")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _color(name: str, columns: list[str]) -> Any:
    """Shades of one colour for each implementation, of grey for libraries."""
    from matplotlib import colormaps

    family = _OURS if name.startswith(_OURS) else _OTHER if name.startswith(_OTHER) else None
    members = [c for c in columns if (c.startswith(family) if family else not c.startswith((_OURS, _OTHER)))]
    shade = 0.8 - 0.35 * members.index(name) / max(1, len(members) - 1) if len(members) > 1 else 0.75
    return colormaps[{_OURS: "Blues", _OTHER: "Oranges", None: "Greys"}[family]](shade if family else shade - 0.15)


def write(folder: Path) -> None:
    """The table, and the plots if matplotlib is there."""
    machines, groups = load(folder)
    text = heading(machines) + "\n" + "\n\n".join(table(group, cases) for group, cases in groups.items()) + "\n"
    (folder / "table.md").write_text(text)
    try:
        for group, cases in groups.items():
            if any(case["entries"] for case in cases):
                plot(group, cases, folder / f"{group}.svg")
    except ImportError:
        print(f"matplotlib is not installed: `python {__file__} {folder}` draws the plots where it is", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    if not list(options.folder.glob("*.json")):
        parser.error(f"there are no results in {options.folder}")
    write(options.folder)


if __name__ == "__main__":
    main()
