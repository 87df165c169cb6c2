"""Delta debugging: smaller programs that fail in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from .program import Program, Statement, block_lines
from .types import Type

Body = tuple[Statement, ...]
Check = Callable[[list[Program]], int | None]


def minimise(program: Program, first_failing: Check, rounds: int = 12) -> Program:
    """A smaller program. `first_failing(programs)` gives the index of one of them that fails like the original, or None."""
    for _ in range(rounds):
        before = program.source()
        for make in (_without_statements, _simpler_control_flow, _simpler_values, _simpler_launch):
            while True:
                smaller = [p for p in make(program) if p.source() != program.source()]
                found = first_failing(smaller)
                if found is None:
                    break
                program = smaller[found]
        if program.source() == before:
            return program
    return program


def _positions(body: Body, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Paths of all statements: index, then 0 or 1 for the branch and an index in it, and so on. Later statements come first."""
    for i in reversed(range(len(body))):
        yield (*path, i)
        yield from _positions(body[i].body, (*path, i, 0))
        yield from _positions(body[i].orelse, (*path, i, 1))


def _replaced(body: Body, path: tuple[int, ...], new: Body) -> Body:
    """The body with the statement at a path replaced by others."""
    i, *rest = path
    if not rest:
        return body[:i] + new + body[i + 1 :]
    branch, *inner = rest
    statement = body[i]
    inner_body = _replaced(statement.orelse if branch else statement.body, tuple(inner), new)
    changed = replace(statement, orelse=inner_body) if branch else replace(statement, body=inner_body)
    return body[:i] + (changed,) + body[i + 1 :]


def _at(body: Body, path: tuple[int, ...]) -> Statement:
    i, *rest = path
    if not rest:
        return body[i]
    branch, *inner = rest
    return _at(body[i].orelse if branch else body[i].body, tuple(inner))


def _closed(body: Body, defined: frozenset[str]) -> Body:
    """The body without statements that use variables which nothing before them defines."""
    return _close(body, set(defined))[0]


def _close(body: Body, defined: set[str]) -> tuple[Body, set[str]]:
    kept = []
    for s in body:
        targets = {name for name, _ in s.targets}
        counter = set(re.findall(r"^for (v\d+) in", s.text))
        text = s.text.split(" = ", 1)[1] if targets and " = " in s.text else s.text
        used = set(re.findall(r"\bv\d+\b", text)) - counter
        if not used <= defined:
            continue
        if s.text.endswith(":"):
            inner, after = _close(s.body, defined | counter)
            other, after_other = _close(s.orelse, set(defined))
            if s.orelse:
                defined |= after & after_other - counter
            kept.append(replace(s, body=inner, orelse=other))
            continue
        kept.append(s)
        defined |= targets
    return tuple(kept), defined


def _without_statements(program: Program) -> Iterator[Program]:
    """Programs without runs of statements at the top, then without single ones; what uses the lost variables goes too."""
    body = program.body
    size = len(body) // 2
    while size > 1:
        for start in range(1, len(body), size):  # the first statement defines pid
            yield program.with_body(_closed(body[:start] + body[start + size :], frozenset()))
        size //= 2
    for path in _positions(body):
        if path != (0,):
            yield program.with_body(_closed(_replaced(body, path, ()), frozenset()))


def _simpler_control_flow(program: Program) -> Iterator[Program]:
    """Programs with the body of a compound statement in its place, or without a branch, or with fewer trips."""
    for path in _positions(program.body):
        s = _at(program.body, path)
        if not s.text.endswith(":"):
            continue
        for inner in (s.body, s.orelse):
            if inner:
                yield program.with_body(_closed(_replaced(program.body, path, inner), frozenset()))
        if s.orelse:
            yield program.with_body(_replaced(program.body, path, (replace(s, orelse=()),)))
        if s.text.startswith("for "):
            counter = s.text.split()[1]
            for trips in (1, 2):
                yield program.with_body(_replaced(program.body, path, (replace(s, text=f"for {counter} in range({trips}):"),)))


def _constant(type: Type) -> str | None:
    """Text of a simple value of a type."""
    if type.dtype.kind == "pointer":
        return None
    return f"tl.full({list(type.shape)}, 1, {type.dtype.spelled})"


def _simpler_values(program: Program) -> Iterator[Program]:
    """Programs with constants, or operands of the same type, in the place of what a statement computes."""
    types = {}
    for path in _positions(program.body):
        types.update(_at(program.body, path).targets)
    for path in _positions(program.body):
        s = _at(program.body, path)
        if len(s.targets) != 1 or " = " not in s.text:
            continue
        name, type = s.targets[0]
        texts = []
        for used in dict.fromkeys(re.findall(r"\bv\d+\b", s.text.split(" = ", 1)[1])):
            if used != name and types.get(used) == type:
                texts.append(used)
        if "tl.full" not in s.text and (constant := _constant(type)):
            texts.append(constant)
        if s.text == f"{name} = {texts[0]}" if texts else True:
            continue
        for text in texts:
            yield program.with_body(_replaced(program.body, path, (replace(s, text=f"{name} = {text}"),)))
    for path in _positions(program.body):
        s = _at(program.body, path)
        plain = re.sub(r", (cache_modifier|eviction_policy|sem|scope)='[^']*'", "", s.text)
        if plain != s.text:
            yield program.with_body(_replaced(program.body, path, (replace(s, text=plain),)))


def _simpler_launch(program: Program) -> Iterator[Program]:
    """Programs with one program, plainer options, plainer inputs."""
    if program.grid != (1,):
        yield replace(program, grid=(1,))
    options = program.options
    for name, plain in (("num_warps", (1, 2, 4)), ("num_stages", (1, 2))):
        for value in plain:
            if options[name] > value:
                yield replace(program, options={**options, name: value})
    if not options.get("enable_fp_fusion", True):
        yield replace(program, options={k: v for k, v in options.items() if k != "enable_fp_fusion"})
    for name, value in program.arguments.items():
        if getattr(value, "fill", "small") not in ("small", "pattern", "unit"):
            yield replace(program, arguments={**program.arguments, name: replace(value, fill="small")})


def length(program: Program) -> int:
    """Lines of the kernel's body."""
    return len(list(block_lines(program.body, "")))
