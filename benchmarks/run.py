"""The benchmark suite, beside Triton and the vendor's libraries: every result is checked, then all contenders are timed in turns.

    run.py [GROUP ...] [--only TEXT] [--quick] [--out DIR] [--name NAME] [--list]

Writes DIR/NAME.json as it goes, then what `report.py` makes of all such files in DIR: table.md and, with matplotlib, a plot for each group.
Each implementation runs the same kernels of `benchmarks/kernels*.py` and picks the best of the same short lists of configurations; both
compile everything in parallel processes before the GPU is used.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import report
from suite import machine
from suite.catalogue import CASES, GROUPS, selected
from suite.implementations import IMPLEMENTATIONS, available
from suite.precompile import precompile
from suite.progress import Progress

#: Seconds without a word after which the process that uses the GPU is taken for hung.
_PATIENCE = 30
_FOLDER = Path(__file__).parent


class Session:
    """A run of the suite: its results so far, and the processes that make them."""

    def __init__(self, cases: list[int], implementations: list[str], path: Path, jobs: int | None):
        self.left, self.implementations, self.path = list(cases), implementations, path
        self.progress = Progress(len(cases))
        begin = time.monotonic()
        failures = precompile(implementations, cases, lambda done, of: self.progress.step(f"compiling {done}/{of}"), jobs)
        self.results: dict[str, Any] = {
            "machine": machine.describe(),
            "seconds": {"compiling": round(time.monotonic() - begin, 1)},
            "compile_failures": sorted(f"{i} {text}: {why}" for (i, text), why in failures.items()),
            "cases": [],
        }
        self.failures = [[*key, why] for key, why in failures.items()]
        self.avoid: dict[str, list[str]] = {}
        self.sampler = machine.Sampler()

    def run(self) -> None:
        """Processes, one after the other, until no case is left."""
        begin = time.monotonic()
        while self.left:
            before = (len(self.left), sum(map(len, self.avoid.values())))
            self._process()
            if before == (len(self.left), sum(map(len, self.avoid.values()))):
                raise SystemExit("the process that measures ends at once: see what it says above")
        self.sampler.close()
        self.results["seconds"]["measuring"] = round(time.monotonic() - begin, 1)
        self._write()

    def _process(self) -> None:
        """One process; it ends with the last case, or with what breaks it."""
        request = {"cases": self.left, "implementations": self.implementations, "failures": self.failures, "avoid": self.avoid}
        command = [sys.executable, "-m", "suite.worker"]
        paths = os.pathsep.join(filter(None, [str(_FOLDER), os.environ.get("PYTHONPATH")]))
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
        )
        assert worker.stdin is not None and worker.stdout is not None
        json.dump(request, worker.stdin)
        worker.stdin.close()
        selector = selectors.DefaultSelector()
        selector.register(worker.stdout, selectors.EVENT_READ)
        number, trying, begin = None, None, time.monotonic()
        while selector.select(_PATIENCE) and (line := worker.stdout.readline()):
            event = json.loads(line)
            if "case" in event:
                number, trying, begin = event["case"], None, time.monotonic()
                self.progress.start(f"{CASES[number].group} {CASES[number].name}")
            elif "trying" in event:
                trying = event["trying"]
                self.progress.step(trying)
            elif "result" in event:
                self._finish(number, event["result"], begin)
                number = None
        worker.kill()
        worker.wait()
        if number is None:
            return
        if trying is None or trying in self.avoid.get(str(number), []):
            why = f"{trying or 'making the inputs'}: the process died"
            self._finish(number, {"unit": "", "work": 0, "notes": [why], "entries": []}, begin)
        else:
            self.avoid.setdefault(str(number), []).append(trying)

    def _finish(self, number: int, result: dict[str, Any], begin: float) -> None:
        case = CASES[number]
        self.left.remove(number)
        self.results["cases"].append({"group": case.group, "name": case.name, **result, "clocks": self.sampler.since(begin)})
        values = [f"{e['name']} {e['value']:.4g}" for e in result["entries"]]
        self.progress.done(f"{', '.join(values)} {result['unit']}" if values else "; ".join(result["notes"]))
        self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.results, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--out", type=Path, help="folder of the results (default: benchmarks/results/DATE)")
    parser.add_argument("--name", default="results", help="name of the file with the results")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose names contain this")
    parser.add_argument("--quick", action="store_true", help="only some cases of each group")
    parser.add_argument("--implementations", default=",".join(IMPLEMENTATIONS), help="separated by commas (default: %(default)s)")
    parser.add_argument("--jobs", type=int, help="processes that compile (default: one for each core)")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    options = parser.parse_args()
    unknown = set(options.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}. The groups are {', '.join(GROUPS)}")
    cases = selected(options.groups, options.quick, options.only)
    if options.list:
        print("\n".join(f"{CASES[i].group}: {CASES[i].name}" for i in cases))
        return
    implementations = options.implementations.split(",")
    for implementation in implementations:
        if not available(implementation):
            print(f"{implementation} cannot be imported: its column is empty", file=sys.stderr)
    out = options.out or _FOLDER / "results" / str(datetime.date.today())
    session = Session(cases, [i for i in implementations if available(i)], out / f"{options.name}.json", options.jobs)
    session.run()
    report.write(out)


if __name__ == "__main__":
    main()
