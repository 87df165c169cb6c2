"""`if`, the conditional expression, `for` and `while`: pruned or unrolled where the condition or the range is known, else `scf`.

A value that lives through a branch or a loop is a tree with tensors at its leaves (`core.flatten`): the leaves become results, iteration
arguments and yields, what is constant in it must stay the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from tilewright.language import core, iterators
from tilewright.language.dtypes import int32, int64
from tilewright.language.semantic.cast import cast, convert
from tilewright.language.semantic.values import broadcast_to, constant, number_type, to_tensor

from .generator import Generator, describe, rebuild_tuple
from .syntax import assigned_names, contains_return, last_assignment, visits

_NUMBERS = (bool, int, float)


def with_handles(template: Any, handles: Sequence[ir.Value]) -> Any:
    """`template` with its leaves carried by `handles`."""
    leaves = core.flatten(template)
    return core.unflatten(template, iter([_carried_by(leaf, handle) for leaf, handle in zip(leaves, handles, strict=True)]))


def _carried_by(leaf: core.leaf, handle: ir.Value) -> core.leaf:
    clone = object.__new__(type(leaf))
    clone.__dict__.update(leaf.__dict__)
    clone.handle = handle
    return clone


def handles_of(value: Any) -> list[ir.Value]:
    return [leaf.handle for leaf in core.flatten(value)]


def same_constant(a: Any, b: Any) -> bool:
    """Whether two values are one, or equal constants; tensors are equal only if they are one."""
    if a is b or type(a) is not type(b) or isinstance(a, core.base_value):
        return a is b
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same_constant, a, b))
    return bool(a == b)


def _as_carried(gen: Generator, value: Any) -> Any:
    """A value as it crosses a branch or a loop: numbers become tensors, since they may change on the way."""
    return value if isinstance(value, core.leaf) else gen.as_variable(value)


# ---- branches -------------------------------------------------------------------------------------------------------------------


def branch(gen: Generator, condition: ir.Value, bodies: Sequence[Callable[[], Any]], what: str, keep_names: bool = True) -> Any:
    """Emit `scf.if`. Each of the two `bodies` is visited with names of its own and returns a value; the merged value is returned.

    With `keep_names`, names that both bodies leave with a value are live afterwards. Raises if a name or the value (`what`) differs in
    type."""
    builder, frame, node = gen.builder, gen.frame, gen.node
    outer_ip, before = builder.ip, frame.scope
    # the result types are known only after both bodies: these are built in a detached draft
    draft = ir.Operation.create("scf.if", [], [], None, None, 2, gen.locate(), False)
    try:
        blocks, scopes, values = [], [], []
        for region, body in zip(draft.regions, bodies, strict=True):
            block = region.blocks.append()
            builder.ip = ir.InsertionPoint(block)
            frame.scope = dict(before)
            values.append(body())
            blocks.append(block)
            scopes.append(frame.scope)
        frame.scope = before
        merged = [_merge(gen, values[0], values[1], what)]
        names = _names_to_merge(before, *scopes) if keep_names else []
        merged += [_merge(gen, scopes[0][name], scopes[1][name], name) for name in names]
        sides = [[h for pair in merged for h in handles_of(pair[side])] for side in (0, 1)]

        loc = gen.locate()
        for block, handles in zip(blocks, sides, strict=True):
            ir.Operation.create("scf.yield", [], handles, None, None, 0, loc, ir.InsertionPoint(block))
        builder.ip = outer_ip
        op = builder.op("scf.if", [h.type for h in sides[0]], [condition], None, 2)
        blocks[0].append_to(op.regions[0])
        if sides[0] or len(blocks[1].operations) > 1:
            blocks[1].append_to(op.regions[1])
    finally:
        draft.erase()  # at once: its operations use values of the module

    results, place, joined = list(op.results), 0, []
    for template, _ in merged:
        count = len(core.flatten(template))
        joined.append(with_handles(template, results[place : place + count]) if count else template)
        place += count
    for name, value in zip(names, joined[1:], strict=True):
        gen.assign(name, value)
    if keep_names:
        _lose_one_sided(gen, scopes, node)
    return joined[0]


_UNSET = object()


def _names_to_merge(before: dict[str, Any], then: dict[str, Any], otherwise: dict[str, Any]) -> list[str]:
    """Names with a value after both branches, but for those that neither branch touched."""
    return [n for n, v in then.items() if n in otherwise and not (v is otherwise[n] and before.get(n, _UNSET) is v)]


def _lose_one_sided(gen: Generator, scopes: list[dict[str, Any]], node: ast.AST) -> None:
    line = gen.frame.function.def_line + node.lineno - 1
    for name in (scopes[0].keys() ^ scopes[1].keys()) - gen.frame.scope.keys():
        gen.frame.lost[name] = f"only one branch of the `if` on line {line} assigns it; give it a value before"


def _merge(gen: Generator, then: Any, otherwise: Any, name: str) -> tuple[Any, Any]:
    """Both values brought to one type; what has no leaves must be equal."""
    if same_constant(then, otherwise):
        return then, otherwise
    then, otherwise = _like(gen, then, otherwise), _like(gen, otherwise, then)
    a, b = core.type_of(then), core.type_of(otherwise)
    if a != b:
        raise gen.error(
            f"Mismatched type for {name} between then block ({a}) and else block ({b}): convert one of them with .to(...), or use two names"
        )
    return then, otherwise


def _like(gen: Generator, value: Any, other: Any) -> Any:
    """A Python number as a tensor, of the other branch's type if that is a scalar of the same kind; everything else as it is."""
    if type(value) in _NUMBERS:
        if isinstance(other, core.tensor) and not other.type.is_block() and not other.type.is_ptr():
            own = number_type(value)
            if own.kind() is other.type.kind():
                return cast(gen.semantic, to_tensor(gen.semantic, value), other.type)
        return to_tensor(gen.semantic, value)
    if isinstance(value, tuple):
        others = other if isinstance(other, tuple) and len(other) == len(value) else value
        return rebuild_tuple(value, [_like(gen, v, o) for v, o in zip(value, others, strict=True)])
    return value


@visits(ast.If)
def visit_if(gen: Generator, node: ast.If) -> None:
    """An `if` without `return` in it; those with one are for `functions.run`, and loops and `with` refuse them."""
    condition = gen.truth(node.test, "`if`")
    if isinstance(condition, bool):
        gen.visit_all(node.body if condition else node.orelse)
        return
    branch(gen, condition, (lambda: gen.visit_all(node.body), lambda: gen.visit_all(node.orelse)), "")


@visits(ast.IfExp)
def visit_conditional_expression(gen: Generator, node: ast.IfExp) -> Any:
    condition = gen.truth(node.test, "a conditional expression")
    if isinstance(condition, bool):
        return gen.visit(node.body if condition else node.orelse)
    bodies = (lambda: gen.visit(node.body), lambda: gen.visit(node.orelse))
    return branch(gen, condition, bodies, "the conditional expression")


# ---- loops ----------------------------------------------------------------------------------------------------------------------


class _Carried:
    """The variables that a loop carries from one iteration to the next: those that exist before it and are assigned in it.

    Constants are not carried, since the assignment may stand in a branch that is pruned; those in `varying` are, as tensors."""

    def __init__(self, gen: Generator, names: Sequence[str], varying: set[str]):
        self.gen = gen
        self.outer = gen.frame.scope
        present = [name for name in names if name in self.outer]
        self.constants = [name for name in present if name not in varying and not core.flatten(self.outer[name])]
        self.names = [name for name in present if name not in self.constants]
        self.initial = [_as_carried(gen, self.outer[name]) for name in self.names]
        self.handles = [h for value in self.initial for h in handles_of(value)]
        self.types = [h.type for h in self.handles]

    def bind(self, handles: Sequence[ir.Value]) -> dict[str, Any]:
        """Names of the loop's body, the carried ones with these handles."""
        return {**self.outer, **self._values(handles)}

    def _values(self, handles: Sequence[ir.Value]) -> dict[str, Any]:
        values, place = {}, 0
        for name, value in zip(self.names, self.initial, strict=True):
            count = len(core.flatten(value))
            values[name] = with_handles(value, handles[place : place + count]) if count else value
            place += count
        return values

    def changed(self, scope: dict[str, Any]) -> set[str]:
        """The constants that the body did change."""
        return {name for name in self.constants if name not in scope or not same_constant(scope[name], self.outer[name])}

    def made(self, scope: dict[str, Any]) -> dict[str, Any]:
        """The variables in `scope` that do not exist before the loop."""
        return {name: value for name, value in scope.items() if name not in self.outer and core.flatten(value)}

    def yielded(self, scope: dict[str, Any], body: list[ast.AST]) -> list[ir.Value]:
        """The handles after the body; raises if a variable has another type than at first."""
        gen, handles = self.gen, []
        for name, first in zip(self.names, self.initial, strict=True):
            if name not in scope:
                raise gen.error(f"Loop-carried variable {name} has no value at the end of the loop: {gen.frame.lost[name]}")
            value = _as_carried(gen, scope[name])
            before, after = core.type_of(first), core.type_of(value)
            if before != after:
                raise gen.error(
                    f"Loop-carried variable {name} has initial type {before} but is re-assigned to {after} in the loop: "
                    "its type must stay the same. Convert with .to(...) before the loop or in it, or use another name",
                    last_assignment(body, name),
                )
            handles += handles_of(value)
        return handles

    def finish(self, results: Sequence[ir.Value], inside: dict[str, Any], node: ast.AST) -> None:
        """Give the carried names their values after the loop; those that only the body assigns are lost."""
        frame = self.gen.frame
        frame.scope = self.outer
        self.outer.update(self._values(results))
        line = frame.function.def_line + node.lineno - 1
        for name in inside.keys() - self.outer.keys():
            frame.lost[name] = f"only the loop on line {line} assigns it, which may not run at all; give it a value before"


def _zero_like(gen: Generator, leaf: core.leaf) -> core.leaf:
    """Zero of the type of a tensor."""
    if not isinstance(leaf, core.tensor):
        raise gen.error(f"a value of type {leaf.type} that the condition of `while` assigns by `:=` needs a value before the loop")
    s, scalar = gen.semantic, leaf.dtype
    zero = cast(s, constant(s, 0, int64), scalar) if scalar.is_ptr() else constant(s, 0, scalar)
    return broadcast_to(s, zero, leaf.type.shape) if leaf.type.is_block() else zero


def _emit_loop(
    gen: Generator,
    node: ast.For | ast.While,
    names: Sequence[str],
    emit: Callable[[_Carried], tuple[ir.Operation, list[dict[str, Any]]]],
) -> None:
    """Emit a loop by `emit`, which leaves the insertion point at the end of the body and returns the operation and the names after its
    parts, all but the last of which run always. A constant that turns out to change is carried in a second attempt, and so is a variable
    that a part which always runs makes: zero, which nothing reads, stands for it before the loop."""
    outer_ip, outer, varying = gen.builder.ip, gen.frame.scope, set()
    while True:
        carried = _Carried(gen, names, varying)
        op, scopes = emit(carried)
        changed = set().union(*(carried.changed(scope) for scope in scopes))
        made = {name: value for scope in scopes[:-1] for name, value in carried.made(scope).items()}
        if not changed and not made:
            break
        gen.builder.ip, gen.frame.scope = outer_ip, outer
        op.erase()
        varying |= changed
        outer |= {name: core.unflatten(value, map(lambda x: _zero_like(gen, x), core.flatten(value))) for name, value in made.items()}
    gen.builder.op("scf.yield", [], carried.yielded(scopes[-1], node.body))
    gen.builder.ip = outer_ip
    carried.finish(list(op.results), scopes[-1], node)


def _check_loop(gen: Generator, node: ast.For | ast.While, keyword: str) -> None:
    if node.orelse:
        raise gen.unsupported(f"`else` after `{keyword}` is not supported in a kernel: put it after the loop", node.orelse[0])
    if contains_return(node):
        raise gen.unsupported(
            "Cannot have `return` statements inside `while` or `for` statements in triton: set a variable and return after the loop",
            next(child for child in ast.walk(node) if isinstance(child, ast.Return)),
        )


@visits(ast.For)
def visit_for(gen: Generator, node: ast.For) -> None:
    _check_loop(gen, node, "for")
    if not isinstance(node.target, ast.Name):
        raise gen.unsupported("the target of `for` must be one name", node.target)
    iterator = gen.visit(node.iter)
    if isinstance(iterator, iterators.static_range):
        _unroll(gen, node, iterator)
    elif isinstance(iterator, iterators.range):
        _emit_for(gen, node, iterator)
    else:
        raise gen.unsupported(
            f"Only `range`, `tl.range` and `tl.static_range` iterators are supported, not {describe(iterator)}: "
            "go over a tuple by index with tl.static_range(len(t))",
            node.iter,
        )


def _unroll(gen: Generator, node: ast.For, iterator: iterators.static_range) -> None:
    for i in iterator:
        gen.assign(node.target.id, i)
        gen.visit_all(node.body)


def _loop_attributes(gen: Generator, iterator: iterators.range) -> dict[str, ir.Attribute]:
    attributes = {}
    for name in ("num_stages", "loop_unroll_factor"):
        value = getattr(iterator, name)
        if value is not None:
            attributes[f"tile.{name}"] = gen.builder.i32_attr(value)
    for name in ("disallow_acc_multi_buffer", "flatten", "disable_licm"):
        if getattr(iterator, name):
            attributes[f"tile.{name}"] = gen.builder.types.unit
    if iterator.warp_specialize is not None:
        attributes["tile.warp_specialize"] = ir.BoolAttr.get(bool(iterator.warp_specialize))
    return attributes


def _emit_for(gen: Generator, node: ast.For, iterator: iterators.range) -> None:
    builder = gen.builder
    bounds = [iterator.start, iterator.end, iterator.step]
    iv_type = iterator.counter_type()
    if iv_type.int_bitwidth < 32:
        iv_type = int32
    descending = isinstance(bounds[2], int) and bounds[2] < 0
    if descending:
        bounds = [bounds[1], bounds[0], -bounds[2]]
    low, high, step = (convert(gen.semantic, v, iv_type).handle for v in bounds)
    attributes = _loop_attributes(gen, iterator)
    if iv_type.is_int_unsigned():
        attributes["unsignedCmp"] = builder.types.unit

    def emit(carried: _Carried) -> tuple[ir.Operation, list[dict[str, Any]]]:
        op = builder.op("scf.for", carried.types, [low, high, step, *carried.handles], attributes, 1)
        locations = [gen.locate()] * (1 + len(carried.types))
        block = op.regions[0].blocks.append(builder.types(iv_type), *carried.types, arg_locs=locations)
        counter, *arguments = block.arguments
        builder.ip = ir.InsertionPoint(block)
        gen.frame.scope = carried.bind(arguments)
        if descending:
            # counted upwards from the end: i = start - (count - end), which does not overflow
            counter = builder.binary("addi", builder.binary("subi", high, counter, iv_type), low, iv_type)
        gen.assign(node.target.id, core.tensor(counter, iv_type))
        gen.visit_all(node.body)
        return op, [gen.frame.scope]

    names = [n for n in assigned_names(node.body, node) if n != node.target.id]
    gen.frame.scope.pop(node.target.id, None)  # the counter has no value after the loop
    _emit_loop(gen, node, names, emit)


@visits(ast.While)
def visit_while(gen: Generator, node: ast.While) -> None:
    _check_loop(gen, node, "while")
    builder = gen.builder

    def emit(carried: _Carried) -> tuple[ir.Operation, list[dict[str, Any]]]:
        op = builder.op("scf.while", carried.types, carried.handles, None, 2)
        locations = [gen.locate()] * len(carried.types)
        before = op.regions[0].blocks.append(*carried.types, arg_locs=locations)
        builder.ip = ir.InsertionPoint(before)
        gen.frame.scope = tested = carried.bind(list(before.arguments))
        condition = _loop_condition(gen, node, op)
        # the condition may assign by `:=`
        builder.op("scf.condition", [], [condition, *carried.yielded(tested, [node.test])])
        if carried.made(tested):
            return op, [tested, tested]  # the body needs them: it waits for the second attempt

        after = op.regions[1].blocks.append(*carried.types, arg_locs=locations)
        builder.ip = ir.InsertionPoint(after)
        gen.frame.scope = carried.bind(list(after.arguments))
        gen.visit_all(node.body)
        return op, [tested, gen.frame.scope]

    _emit_loop(gen, node, assigned_names([node.test, *node.body], node), emit)


def _loop_condition(gen: Generator, node: ast.While, op: ir.Operation) -> ir.Value:
    test = gen.visit(node.test)
    if isinstance(test, iterators.condition):
        if test.disable_licm:
            op.attributes["tile.disable_licm"] = gen.builder.types.unit
        test = core.unwrap(test.condition)
    condition = gen.as_condition(test, node.test, "`while`")
    return to_tensor(gen.semantic, condition).handle if isinstance(condition, bool) else condition
