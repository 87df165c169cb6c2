"""Random kernels, interpreted and compiled, compared: `python tests/fuzz/run.py --count 2000 --seed 0 --jobs 14 --minimise --out DIR`.

On a GPU each program runs both ways. `--compile-only` compiles it for cuda:90 and cuda:80, and `--simulate` runs what the lowering makes of
it in the simulator of tests/compile; neither needs a GPU. `--seed N --count 1 --show` prints a program; `--file F` runs one from a file.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from fuzzing.generator import generate
from fuzzing.minimise import length, minimise
from fuzzing.program import Program
from fuzzing.workers import FAILED, SKIPPED, Outcome, Task, Workers


def main(arguments: list[str] | None = None) -> int:
    """Run as the command line says; 1 if a program failed."""
    options = _options(arguments)
    mode = "compile" if options.compile_only else f"simulate {options.target}" if options.simulate else "gpu"
    if options.show:
        for seed in range(options.seed, options.seed + options.count):
            print(generate(seed).source())
        return 0
    start = time.monotonic()
    with Workers(options.jobs, options.timeout) as workers:
        if options.file:
            tasks = iter([Task(path, mode, source=Path(path).read_text()) for path in options.file])
            total = len(options.file)
        else:
            seeds = itertools.takewhile(
                lambda _: not options.seconds or time.monotonic() - start < options.seconds, itertools.count(options.seed)
            )
            seeds = itertools.islice(seeds, options.count)
            tasks, total = (Task(seed, mode, seed=seed) for seed in seeds), options.count
        outcomes = list(_with_progress(workers.run(tasks), total, start))
        failures = [o for o in outcomes if o.status == FAILED]
        _summarise(outcomes, time.monotonic() - start)
        if failures and options.minimise and not options.file:
            _minimise_all(failures, workers, mode, options)
    return 1 if failures else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=0, help="programs (default: 100, or no limit with --seconds)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first program")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--seconds", type=float, default=0, help="start no program after this time")
    parser.add_argument("--timeout", type=float, default=60, help="seconds that one program may take")
    parser.add_argument("--minimise", action="store_true", help="make a small program of one failure of each kind")
    parser.add_argument("--out", type=Path, default=None, help="folder for the failing programs")
    parser.add_argument("--file", nargs="+", help="run the programs of these files")
    parser.add_argument("--show", action="store_true", help="print the programs, run nothing")
    parser.add_argument("--target", type=int, default=90, help="capability that --simulate compiles for: 80, 90, ...")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--compile-only", action="store_true")
    how.add_argument("--simulate", action="store_true")
    options = parser.parse_args(arguments)
    options.count = options.count or (10**9 if options.seconds else 1 if options.show else 100)
    return options


def _with_progress(outcomes: Iterator[Outcome], total: int, start: float) -> Iterator[Outcome]:
    failed = 0
    for done, outcome in enumerate(outcomes, 1):
        failed += outcome.status == FAILED
        if outcome.status == FAILED:
            clear, end = ("\r", "\033[K") if sys.stderr.isatty() else ("", "")
            print(f"{clear}{outcome.key}: {outcome.kind}: {_headline(outcome.text)[:200]}{end}", file=sys.stderr)
        of = f"/{total}" if total < 10**9 else ""
        state = f"{done}{of} programs, {failed} failed, {time.monotonic() - start:.0f} s"
        if sys.stderr.isatty():
            print(f"\r{state}\033[K", end="", file=sys.stderr, flush=True)
        elif done % 100 == 0:
            print(state, file=sys.stderr, flush=True)
        yield outcome
    if sys.stderr.isatty():
        print(file=sys.stderr)


def _headline(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error" in line), lines[0] if lines else "")


def signature(outcome: Outcome) -> str:
    """Text that failures of one cause share: the kind and the message without numbers and names."""
    if outcome.kind.startswith("mismatch"):
        return outcome.kind
    return f"{outcome.kind}: {re.sub(r'[0-9]+|0x[0-9a-f]+', 'N', _headline(outcome.text))[:120]}"


def _summarise(outcomes: list[Outcome], seconds: float) -> None:
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.status == FAILED:
            by_kind[signature(outcome)].append(outcome)
    skipped = sum(o.status == SKIPPED for o in outcomes)
    passed = len(outcomes) - skipped - sum(map(len, by_kind.values()))
    print(f"{len(outcomes)} programs in {seconds:.0f} s: {passed} passed, {skipped} skipped, {sum(map(len, by_kind.values()))} failed")
    for kind, found in sorted(by_kind.items(), key=lambda item: -len(item[1])):
        keys = sorted((o.key for o in found), key=str)
        print(f"  {len(found)} x {kind}\n      {', '.join(map(str, keys[:20]))}{' ...' if len(keys) > 20 else ''}")


def _minimise_all(failures: list[Outcome], workers: Workers, mode: str, options: argparse.Namespace, per_kind: int = 3) -> None:
    """Minimise a few failures of each kind; print the smallest and write all to the folder."""
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in sorted(failures, key=lambda o: o.key):
        by_kind[signature(outcome)].append(outcome)
    for kind, found in by_kind.items():
        made = [_minimised(outcome, workers, mode) for outcome in found[:per_kind]]
        program, outcome = min(zip(made, found, strict=False), key=lambda pair: length(pair[0]))
        print(f"\n# {kind}\n# {_headline(outcome.text)}\n{program.source()}")
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            for small, original in zip(made, found, strict=False):
                (options.out / f"seed_{original.key}.py").write_text(small.source())


def _minimised(outcome: Outcome, workers: Workers, mode: str) -> Program:
    wanted = signature(outcome)

    def first_failing(programs: list[Program]) -> int | None:
        for first in range(0, len(programs), workers.count):
            some = enumerate(programs[first : first + workers.count], first)
            results = list(workers.run(Task(i, mode, seed=outcome.key, source=p.source()) for i, p in some))
            same = [r.key for r in results if r.status == FAILED and signature(r) == wanted]
            if same:
                return min(same)
        return None

    program = generate(outcome.key)
    return minimise(program, first_failing) if first_failing([program]) == 0 else program  # it may not fail each time


if __name__ == "__main__":
    sys.exit(main())
