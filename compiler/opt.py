"""`tilewright-opt`: run passes, ours and upstream's, on a textual module, as mlir-opt does.

    tilewright-opt kernel.mlir --passes=canonicalize,tilegpu-insert-barriers
    tilewright-opt kernel.mlir --pass-pipeline='builtin.module(tilegpu-pipeline{num_stages=3},cse)' --print-ir-after-all
    tilewright-opt kernel.mlir --emit=ptx --target=cuda:90

Errors go to stderr; the exit code is then 1. With `--verify-diagnostics` it is 1 where the diagnostics are not those that comments
`// expected-error@+1 {{text}}` ask for (also -warning, -remark, -note; @-1, @above, @below, @unknown).
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from mlir import ir

from tilewright.dialects import context

from .analysis.schedule import SCHEDULED
from .ir_text import parse_module
from .passes import registry

_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
_EXPECTED = re.compile(r"expected-(error|warning|remark|note)(?:-re)?\s*(?:@([+-]\d+|above|below|unknown))?\s*\{\{(.*?)\}\}")


@dataclass(frozen=True)
class Message:
    """A diagnostic. `line` counts from 1 in the whole input; None where the location is not in it."""

    severity: str
    line: int | None
    text: str
    location: str = ""

    def __str__(self) -> str:
        return f"{self.location or 'tilewright-opt'}: {self.severity}: {self.text}"


@dataclass
class Invocation:
    """What to do with each module."""

    pipeline: list[registry.Entry]
    print_before: frozenset[str]
    print_after: frozenset[str]
    verify: bool
    timing: bool
    emit: str | None
    target: str | None
    options: dict[str, Any]
    generic: bool
    locations: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    args = _parser().parse_args(argv)
    try:
        text = sys.stdin.read() if args.input == "-" else Path(args.input).read_text(encoding="utf-8")
        invocation = _invocation(args)
    except (OSError, ValueError) as e:
        print(f"tilewright-opt: error: {e}", file=sys.stderr)
        return 1
    outputs, ok = [], True
    for chunk, first_line in _chunks(text, args.split_input_file):
        output, messages = _process(chunk, first_line, invocation, args.input)
        if args.verify_diagnostics:
            ok &= _verify_diagnostics(chunk, first_line, messages)
        else:
            for message in messages:
                print(message, file=sys.stderr)
            ok &= all(message.severity != "error" for message in messages)
        if output is not None:
            outputs.append(output)
    result = "\n// -----\n\n".join(outputs)
    if args.output == "-":
        sys.stdout.write(result)
    else:
        try:
            Path(args.output).write_text(result, encoding="utf-8")
        except OSError as e:
            print(f"tilewright-opt: error: {e}", file=sys.stderr)
            return 1
    return 0 if ok else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tilewright-opt", description="Run passes on a textual MLIR module.", allow_abbrev=False)
    parser.add_argument("input", nargs="?", default="-", help="file, or - for standard input")
    parser.add_argument("-o", dest="output", default="-", help="output file, or - for standard output")
    parser.add_argument("--pass-pipeline", help="pipeline in MLIR's syntax: 'builtin.module(a,b{opt=1})'")
    parser.add_argument("--passes", help="the same without the anchor: 'a,b{opt=1}'")
    parser.add_argument("--list-passes", action=_ListPasses, help="print the names of our passes")
    parser.add_argument("--target", help="such as cuda:90; also given to passes that take a target")
    parser.add_argument("--emit", metavar="STAGE", help="compile up to this stage (ttir, schedule, ttgir, llir, ptx, cubin) and print it")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="compile option for --emit")
    parser.add_argument("--split-input-file", action="store_true", help="treat parts between '// -----' lines as separate modules")
    parser.add_argument("--verify-diagnostics", action="store_true", help="check diagnostics against expected-* comments")
    parser.add_argument("--no-verify", action="store_true", help="do not verify after each pass")
    parser.add_argument("--print-ir-before", action="append", default=[], metavar="PASS")
    parser.add_argument("--print-ir-after", action="append", default=[], metavar="PASS")
    parser.add_argument("--print-ir-before-all", action="store_true")
    parser.add_argument("--print-ir-after-all", action="store_true")
    parser.add_argument("--mlir-timing", action="store_true", help="print the time of each pass")
    parser.add_argument("--mlir-print-op-generic", action="store_true")
    parser.add_argument("--mlir-print-debuginfo", action="store_true")
    return parser


class _ListPasses(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any):
        super().__init__(option_strings, dest, nargs=0, **kwargs)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print("\n".join(registry.names()))
        parser.exit()


def _invocation(args: argparse.Namespace) -> Invocation:
    if args.passes and args.pass_pipeline:
        raise ValueError("give --passes or --pass-pipeline, not both")
    if args.emit and (args.passes or args.pass_pipeline):
        raise ValueError("--emit runs the passes of its stages: give it without --passes and --pass-pipeline")
    pipeline = _entries(_without_anchor(args.pass_pipeline) if args.pass_pipeline else args.passes or "", args.target)
    every = frozenset(entry if isinstance(entry, str) else entry[0] for entry in pipeline)
    return Invocation(
        pipeline,
        every if args.print_ir_before_all else frozenset(args.print_ir_before),
        every if args.print_ir_after_all else frozenset(args.print_ir_after),
        not args.no_verify,
        args.mlir_timing,
        args.emit,
        args.target,
        dict(_option(text) for text in args.option),
        args.mlir_print_op_generic,
        args.mlir_print_debuginfo,
    )


# ----------------------------------------------------------------------------------------------------------------------------------------
# Pipelines as text
# ----------------------------------------------------------------------------------------------------------------------------------------


def _without_anchor(text: str) -> str:
    """The list inside `builtin.module(...)` or `any(...)`. Raises ValueError for another anchor."""
    match = re.fullmatch(r"\s*(?:builtin\.module|any)\s*\((.*)\)\s*", text, re.DOTALL)
    if match is None:
        raise ValueError(f"a pipeline has the form 'builtin.module(pass,pass{{option=value}})', got '{text}'")
    return match[1]


def _entries(text: str, target: str | None) -> list[registry.Entry]:
    """A pipeline as the registry takes it. Raises ValueError for unknown options of passes of ours."""
    entries: list[registry.Entry] = []
    for part in _split_top_level(text):
        name, brace, rest = part.partition("{")
        function = registry.lookup(name.strip())
        if function is None:
            entries.append(part)
            continue
        options = dict(_option(word) for word in rest.rstrip("} ").split()) if brace else {}
        accepted = list(inspect.signature(function).parameters)[1:]
        if unknown := set(options) - set(accepted):
            raise ValueError(f"pass '{name}' has no option {', '.join(sorted(unknown))}; it has {', '.join(accepted) or 'none'}")
        if target is not None and "target" in accepted:
            options.setdefault("target", target)
        entries.append((name, options) if options else name)
    return entries


def _split_top_level(text: str) -> list[str]:
    """The parts of a comma-separated list; commas inside brackets do not separate. Raises ValueError for unbalanced brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "({<[") - (char in ")}>]")
        if depth < 0:
            break
        if char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    if depth:
        raise ValueError(f"unbalanced brackets in the pipeline '{text}'")
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _option(text: str) -> tuple[str, Any]:
    """`name=value` with the value as a Python bool, int or string; `name` alone is True."""
    name, equals, value = text.partition("=")
    if not equals:
        return name, True
    if value in ("true", "false"):
        return name, value == "true"
    return name, int(value) if re.fullmatch(r"-?\d+", value) else value


# ----------------------------------------------------------------------------------------------------------------------------------------
# One module
# ----------------------------------------------------------------------------------------------------------------------------------------


def _chunks(text: str, split: bool) -> Iterator[tuple[str, int]]:
    """(text, number of its first line) of each module of the input."""
    if not split:
        yield text, 1
        return
    start = 0
    for match in [*_SPLIT.finditer(text), None]:
        end = match.start() if match else len(text)
        yield text[start:end], 1 + text.count("\n", 0, start)
        start = match.end() if match else end


def _process(text: str, first_line: int, invocation: Invocation, source: str) -> tuple[str | None, list[Message]]:
    """(the result, or None after an error; all diagnostics) for one module."""
    messages: list[Message] = []
    offset = first_line - 1
    with context() as ctx, ir.Location.unknown(), _collect(ctx, messages, offset, source):
        try:
            module = parse_module(text)
            if invocation.emit:
                return _emit(module, invocation), messages
            hooks = _Hooks(invocation)
            registry.run(module.operation, invocation.pipeline, verify=invocation.verify, hooks=hooks)
            hooks.report()
            assembly = module.operation.get_asm(print_generic_op_form=invocation.generic, enable_debug_info=invocation.locations)
            return assembly.rstrip("\n") + "\n", messages
        except ir.MLIRError as e:
            messages.extend(m for diagnostic in e.error_diagnostics for m in _messages(diagnostic, offset, source))
            if not e.error_diagnostics:
                messages.append(Message("error", None, str(e)))
        except Exception as e:  # noqa: BLE001  (a pass may raise anything; the command reports it)
            messages.append(Message("error", None, f"{type(e).__name__}: {e}"))
    return None, messages


@contextmanager
def _collect(ctx: ir.Context, messages: list[Message], offset: int, source: str) -> Iterator[None]:
    """Append warnings, remarks and errors that reach the context to `messages`."""

    def handle(diagnostic: ir.Diagnostic) -> bool:
        messages.extend(_messages(diagnostic, offset, source))
        return True

    handler = ctx.attach_diagnostic_handler(handle)
    try:
        yield
    finally:
        handler.detach()


def _messages(diagnostic: Any, offset: int, source: str) -> Iterator[Message]:
    """A diagnostic and its notes."""
    severity = str(diagnostic.severity).rsplit(".", 1)[-1].lower()
    location = diagnostic.location
    while location.is_a_callsite() or location.is_a_name():
        location = location.callee if location.is_a_callsite() else location.child_loc
    line, where = None, ""
    if location.is_a_file():
        line = location.start_line + offset
        where = f"{source}:{line}:{location.start_col}"
    yield Message(severity, line, diagnostic.message, where)
    for note in diagnostic.notes:
        yield from _messages(note, offset, source)


@dataclass
class _Hooks:
    """Prints the IR around passes and adds up their times."""

    invocation: Invocation
    times: list[tuple[str, float]] = field(default_factory=list)
    started: float = 0.0

    def before(self, name: str, op: ir.Operation) -> None:
        if name in self.invocation.print_before:
            print(f"// -----// IR Dump Before {name} //----- //\n{op}", file=sys.stderr)
        self.started = time.perf_counter()

    def after(self, name: str, op: ir.Operation) -> None:
        self.times.append((name, time.perf_counter() - self.started))
        if name in self.invocation.print_after:
            print(f"// -----// IR Dump After {name} //----- //\n{op}", file=sys.stderr)

    def report(self, out: TextIO | None = None) -> None:
        """Print the times, where they were asked for."""
        if not self.invocation.timing:
            return
        total = sum(seconds for _, seconds in self.times) or 1.0
        print("===-- Pass execution timing --===", file=out or sys.stderr)
        for name, seconds in self.times:
            print(f"{1e3 * seconds:10.3f} ms ({100 * seconds / total:5.1f}%)  {name}", file=out or sys.stderr)
        print(f"{1e3 * total:10.3f} ms (100.0%)  Total", file=out or sys.stderr)


def _emit(module: ir.Module, invocation: Invocation) -> str:
    """Compile the module up to a stage and return that as text (a cubin as hexadecimal). The stage "schedule" is `ttgir` before the
    schedule of its loops is carried out."""
    from .backends import make_backend
    from .backends.base import GPUTarget
    from .driver import compile
    from .source import IRSource

    backend, _, arch = (invocation.target or "").partition(":")
    if not arch:
        raise ValueError(f"--emit needs --target, such as --target=cuda:90{f', not {invocation.target}' if invocation.target else ''}")
    target = GPUTarget(backend, int(arch), 32) if arch.isdigit() else GPUTarget(backend, arch, 64 if arch.startswith("gfx9") else 32)
    if invocation.emit == "schedule":
        backend_of_target = make_backend(target)
        registry.run(module.operation, backend_of_target.schedule_passes(backend_of_target.parse_options(invocation.options)), verify=True)
        module.operation.attributes[SCHEDULED] = ir.UnitAttr.get(module.context)  # without loops there was nothing to schedule
        return module.operation.get_asm(enable_debug_info=invocation.locations).rstrip("\n") + "\n"
    level = "ttgir" if "tilegpu.num_warps" in module.operation.attributes else "ttir"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"input.{level}"
        path.write_text(module.operation.get_asm(enable_debug_info=True), encoding="utf-8")
        kernel = compile(IRSource(path), target, invocation.options)
    if invocation.emit not in kernel.asm:
        raise ValueError(f"there is no stage '{invocation.emit}'; the stages are {', '.join(kernel.asm)}")
    artefact = kernel.asm[invocation.emit]
    return artefact.hex() + "\n" if isinstance(artefact, bytes) else artefact


# ----------------------------------------------------------------------------------------------------------------------------------------
# --verify-diagnostics
# ----------------------------------------------------------------------------------------------------------------------------------------


def _verify_diagnostics(text: str, first_line: int, messages: list[Message]) -> bool:
    """Whether the diagnostics are those that the comments of `text` ask for; prints what differs."""
    expected = list(_expectations(text, first_line))
    ok = True
    for message in messages:
        found = next((e for e in expected if e.severity == message.severity and e.line == message.line and e.text in message.text), None)
        if found is not None:
            expected.remove(found)
        elif message.severity != "note":
            print(f"unexpected {message}", file=sys.stderr)
            ok = False
    for missing in expected:
        print(f'line {missing.line or "unknown"}: expected {missing.severity} "{missing.text}" was not produced', file=sys.stderr)
    return ok and not expected


def _expectations(text: str, first_line: int) -> Iterator[Message]:
    pending: list[tuple[str, str]] = []
    for number, line in enumerate(text.split("\n"), first_line):
        is_comment = line.lstrip().startswith("//")
        if not is_comment:
            yield from (Message(severity, number, wanted) for severity, wanted in pending)
            pending.clear()
        for severity, place, wanted in _EXPECTED.findall(line):
            if place == "below":
                pending.append((severity, wanted))
            elif place == "unknown":
                yield Message(severity, None, wanted)
            elif place == "above":
                yield Message(severity, number - 1, wanted)
            else:
                yield Message(severity, number + int(place or 0), wanted)


if __name__ == "__main__":
    sys.exit(main())
