"""Decides which layout every tensor of a function has. Reads the IR, changes nothing.

Anchors know what they want: memory accesses a coalesced layout, dots their accumulator's. From them layouts flow forward, and a value
that they reach gets a *home*. Where homes meet in one operation, the cheaper conversions win. What is made of scalars alone (index
arithmetic, pointers, masks, constants) has no home: it is *flexible* and made again in every layout that somebody wants, which is cheaper
than moving it between threads. Loop-carried values take the layout that the loop's body yields, so that conversions stay outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import ClassVar

from mlir import ir

from tilewright.compiler.layouts import LinearLayout, is_replicated, join, split

from .access_layouts import LINE_BYTES, MEMORY_OPS, SECTOR_BYTES, Access, access_layouts, coalesced, fills
from .axis_info import AxisAnalysis, element_bytes
from .dot_plan import plan_dot
from .layout_rules import integer, is_elementwise, is_remakeable, is_source, is_transparent, keeps_elements, operand_layout, result_layout
from .machine import Machine
from .tree import Block, Node, Tree

# Operations in a flexible chain beyond which repeating it costs more than converting its result.
_MAX_CHAIN = 64
# How much more a conversion in a loop weighs than one outside.
_LOOP_WEIGHT = 8
# Registers that a thread may spend on a load of indices in the layout of the addresses that are made of them.
_MAX_INDEX_REGISTERS = 16
# The same for a vector that meets a dot's result, or a block that is loaded.
_MAX_VECTOR_REGISTERS = 32
# Rounds over a loop's body; the second settles ordinary loops.
_MAX_ROUNDS = 4

Want = LinearLayout | None


class LayoutSolver:
    """The layouts of one function.

    After construction: `homes` maps values to their layouts, `wants` operations to the layouts of their operands (None for scalars), and
    `flexible` the values without a home to their operations, in program order.
    """

    #: Operation -> the method that decides about it.
    RULES: ClassVar[dict[str, str]] = {
        "tile.descriptor_load": "_block_load",
        "tile.dot": "_dot",
        "tile.exchange": "_exchange",
        "tile.reduce": "_region",
        "tile.scan": "_region",
        "tile.gather": "_gather",
        "tile.histogram": "_histogram",
        "tile.split": "_split",
        "func.call": "_boundary",
        "func.return": "_boundary",
        "scf.for": "_for",
        "scf.while": "_while",
        "scf.if": "_if",
        # The terminators' operands are decided by the operations around them.
        "scf.yield": "_nothing",
        "scf.condition": "_nothing",
    }

    def __init__(self, tree: Tree, axis: AxisAnalysis, machine: Machine):
        self.tree = tree
        self.axis = axis
        self.machine = machine
        self.accesses = self._plan_accesses()
        self.homes: dict[ir.Value, LinearLayout] = {}
        self.wants: dict[Node, list[Want]] = {}
        self.flexible: dict[ir.Value, Node] = {}
        self._chains: dict[ir.Value, int] = {}
        self._wishes: dict[ir.Value, LinearLayout] = {}
        self._address_wishes: dict[ir.Value, LinearLayout] = {}
        self._vector_wishes: dict[ir.Value, LinearLayout] = {}
        self._dots = {node: self._plan_dot(node) for node in tree.body.walk() if node.name == "tile.dot"}
        self._made = self._spread(tree.body, {})
        self._collect_wishes(tree.body)
        for arg in tree.body.args:
            if arg in tree.tensors:
                self.homes[arg] = self.default(arg)
        self._solve(tree.body)

    # Defaults and choices

    def _plan_accesses(self) -> dict[Node, Access]:
        return access_layouts(self.tree, self.axis, self.machine)

    def default(self, value: ir.Value) -> LinearLayout:
        """Return the layout of a value that nothing else decides: row-major, coalesced."""
        return self._default_of(self.tree.shape(value))

    def _default_of(self, shape: tuple[int, ...]) -> LinearLayout:
        run = max(1, min(4, prod(shape) // self.machine.threads))
        return coalesced(shape, tuple(reversed(range(len(shape)))), run, self.machine)

    def home_or_default(self, value: ir.Value) -> LinearLayout:
        """Return the layout in which a value is at hand without a conversion."""
        return self.homes.get(value) or self._wishes.get(value) or self.default(value)

    def _plan_dot(self, node: Node):
        return plan_dot(node.op, self.machine, rows_stay_together(node, self.tree))

    def _spread(self, block: Block, made: dict[ir.Value, LinearLayout]) -> dict[ir.Value, LinearLayout]:
        """Add to `made` the layouts of what a block computes, elementwise, of the results of dots, which loops carry out, or in a kernel
        without dots of what it loads in two dimensions."""
        for node in block.nodes:
            for inner in node.blocks:
                self._spread(inner, made)
            if node in self._dots:
                made[node.results[0]] = self._dots[node].layout
            elif node.name == "tile.load" and not self._dots:
                if node in self.accesses and len(self.tree.shape(node.results[0])) > 1:
                    made[node.results[0]] = self.accesses[node].layout
            elif node.name == "tile.split" and node.operands[0] in made:
                half = split(made[node.operands[0]])
                made |= {r: half for r in node.results if half is not None and r in self.tree.tensors}
            elif keeps_elements(node.name) and node.operands[0] in made and "allow_reorder" not in node.op.attributes:
                made[node.results[0]] = result_layout(node, self.tree.shape(node.results[0]), made[node.operands[0]])
            elif node.name == "scf.for":
                made |= {r: made[y] for r, y in zip(node.results, node.blocks[0].terminator.operands, strict=True) if y in made}
            elif is_elementwise(node.name) and (layout := next((made[v] for v in node.operands if v in made), None)) is not None:
                made |= dict.fromkeys(node.results, layout)
        return made

    def _collect_wishes(self, block: Block) -> None:
        """Walk backwards and note which layout stores and dots will want of the values that lead to them, accesses of the values that their
        addresses are made of, and what is computed of dots of the values that it meets."""
        wishes, addresses, tensors = self._wishes, self._address_wishes, self.tree.tensors
        vectors, made = self._vector_wishes, self._made
        for node in reversed(block.nodes):
            for inner in node.blocks:
                self._collect_wishes(inner)
            if node.name in MEMORY_OPS and node in self.accesses:
                wanted = self.accesses[node].layout
                addresses.setdefault(node.operands[0], wanted)
                for value in node.operands[1:]:
                    if value in tensors:
                        wishes.setdefault(value, wanted)
            elif node in self._dots:
                wishes.setdefault(node.operands[2], self._dots[node].layout)
            elif is_elementwise(node.name) and len(node.results) == 1:
                wanted = wishes.get(node.results[0])
                if wanted is not None:
                    for value in node.operands:
                        if value in tensors:
                            wishes.setdefault(value, wanted)
            if is_elementwise(node.name) and (layout := next((made[v] for v in node.operands if v in made), None)) is not None:
                for value in node.operands:
                    if value in tensors and value not in made:
                        vectors.setdefault(value, layout)
            for found in (addresses, vectors):
                if len(node.results) == 1 and node.results[0] in found and (is_elementwise(node.name) or is_transparent(node.name)):
                    for value in node.operands:
                        if value in tensors and value not in made:
                            found.setdefault(value, operand_layout(node, self.tree.shape(value), found[node.results[0]]))

    def _bytes(self, value: ir.Value) -> int:
        type_ = self.tree.tensors[value]
        return prod(type_.shape) * element_bytes(type_.element_type)

    def _cost(self, node: Node, layout: LinearLayout) -> int:
        """Return the bytes converted, loops weighed in, if an elementwise operation works in `layout`."""
        cost = 0
        for value in node.operands:
            home = self.homes.get(value)
            if home is not None and home != layout:
                cost += self._bytes(value) * _LOOP_WEIGHT ** self.tree.depths[value]
        for value in node.results:
            if self._wishes.get(value, layout) != layout:
                cost += self._bytes(value) * _LOOP_WEIGHT**node.depth
        return cost

    def _choose(self, node: Node) -> LinearLayout | None:
        """Return the cheapest home among the tensor operands, or None if none of them has one."""
        homes = list(dict.fromkeys(self.homes[v] for v in node.operands if v in self.homes))
        if len(homes) < 2:
            return homes[0] if homes else None
        return min(homes, key=lambda layout: self._cost(node, layout))

    # The walk

    def _solve(self, block: Block) -> None:
        for node in block.nodes:
            rule = self.RULES.get(node.name)
            if rule is not None:
                getattr(self, rule)(node)
            elif node.name in MEMORY_OPS:
                self._memory(node)
            else:
                self._generic(node)

    def _is_tensor(self, values: Iterable[ir.Value]) -> bool:
        tensors = self.tree.tensors
        return any(v in tensors for v in values)

    def _want(self, node: Node, layout: LinearLayout | Callable[[ir.Value], LinearLayout]) -> None:
        """Record that the tensor operands are wanted in `layout`, or in what `layout` says for each."""
        tensors = self.tree.tensors
        pick = (lambda _: layout) if isinstance(layout, LinearLayout) else layout
        self.wants[node] = [pick(v) if v in tensors else None for v in node.operands]

    def _settle(self, node: Node, layout: LinearLayout) -> None:
        """Let the operation work in `layout` and give its tensor results their homes."""
        self._want(node, layout)
        for value in node.results:
            self.flexible.pop(value, None)
            if value in self.tree.tensors:
                self.homes[value] = result_layout(node, self.tree.shape(value), layout)

    def _make_flexible(self, node: Node) -> None:
        result = node.results[0]
        self.flexible[result] = node
        self.homes.pop(result, None)
        self.wants.pop(node, None)
        self._chains[result] = 1 + sum(self._chains.get(v, 0) for v in node.operands)

    def _generic(self, node: Node) -> None:
        """Elementwise and shape operations, and what else takes tensors in any one layout."""
        if not self._is_tensor(node.results):
            if self._is_tensor(node.operands):
                self._want(node, self.home_or_default)
            return
        if is_source(node.name) or is_transparent(node.name):
            self._make_flexible(node)
            return
        layout = self._choose(node)
        if layout is None and is_remakeable(node.name):
            if sum(self._chains.get(v, 0) for v in node.operands) < _MAX_CHAIN:
                self._make_flexible(node)
                return
            layout = operand_layout(node, self.tree.shape(self._tensor_operand(node)), self.home_or_default(node.results[0]))
        self._settle(node, layout or self.home_or_default(self._tensor_operand(node)))

    def _tensor_operand(self, node: Node) -> ir.Value:
        return next(v for v in node.operands if v in self.tree.tensors)

    def _memory(self, node: Node) -> None:
        access = self.accesses.get(node)
        if access is None:
            return  # an access to one scalar
        pointer = node.operands[0]
        layout = access.layout
        if access.width == 1 and pointer in self.homes:
            layout = self.homes[pointer]  # addresses that come from memory: nothing is gained by moving them
        elif node.name == "tile.load" and self._is_index(node):
            layout = self._address_wishes[node.results[0]]  # loading indices several times is cheaper than moving them
        elif node.name == "tile.load" and self._is_vector(node):
            layout = self._vector_wishes[node.results[0]]  # the same of what is broadcast along a block
        elif node.name not in ("tile.load", "tile.store"):
            layout = next((self.homes[v] for v in node.operands[1:] if v in self.homes), layout)
        elif node.name == "tile.store":
            layout = self._store_layout(node, access)
        self._settle(node, layout)

    def _is_index(self, node: Node) -> bool:
        wish = self._address_wishes.get(node.results[0])
        return wish is not None and wish.in_size("register") <= _MAX_INDEX_REGISTERS

    def _is_vector(self, node: Node) -> bool:
        wish = self._vector_wishes.get(node.results[0])
        return wish is not None and is_replicated(wish) and wish.in_size("register") <= _MAX_VECTOR_REGISTERS

    def _store_layout(self, node: Node, access: Access) -> LinearLayout:
        """Return the layout of a store: the value's own if a conversion would not pay, else the coalesced one."""
        pointer, value = node.operands[:2]
        home = self.homes.get(value)
        if home is None:
            return access.layout
        size = element_bytes(self.tree.tensors[value].element_type)
        few = access.width == 1 and prod(self.tree.shape(pointer)) <= self.machine.threads
        whole = access.width * size >= 8 and fills(home, access.order[0], size, SECTOR_BYTES if self._dots else LINE_BYTES)
        return home if few or whole else access.layout

    def _dot(self, node: Node) -> None:
        layout = self._dots[node].layout
        a, b, _ = node.operands
        self.wants[node] = [self.home_or_default(a), self.home_or_default(b), layout]
        self.homes[node.results[0]] = layout

    def _region(self, node: Node) -> None:
        """Reductions and scans: all sources in one layout."""
        self._settle(node, self._choose(node) or self.home_or_default(node.operands[0]))

    def _gather(self, node: Node) -> None:
        src, indices = node.operands
        layout = self.home_or_default(indices)
        self.wants[node] = [self.home_or_default(src), layout]
        self.homes[node.results[0]] = layout

    def _block_load(self, node: Node) -> None:
        """A block passes shared memory, from where any layout can read it; this one reads it along its rows."""
        result = node.results[0]
        shape = self.tree.shape(result)
        run = max(1, min(16 // element_bytes(self.tree.tensors[result].element_type), prod(shape) // self.machine.threads))
        self.homes[result] = coalesced(shape, tuple(reversed(range(len(shape)))), run, self.machine)

    def _histogram(self, node: Node) -> None:
        self._want(node, self.home_or_default(node.operands[0]))
        self.homes[node.results[0]] = self.default(node.results[0])

    def _split(self, node: Node) -> None:
        source = node.operands[0]
        layout = self.home_or_default(source)
        half = split(layout)
        if half is None:
            half = self._default_of(self.tree.shape(source)[:-1])
            layout = join(half)
        self.wants[node] = [layout]
        for value in node.results:
            if value in self.tree.tensors:
                self.homes[value] = half

    def _exchange(self, node: Node) -> None:
        """Every CTA writes its part in the layout at hand, and reads in the one that is wanted."""
        self._want(node, self.home_or_default)
        for value in node.results:
            self.homes[value] = self._wishes.get(value) or self.default(value)

    def _nothing(self, node: Node) -> None:
        pass

    def _boundary(self, node: Node) -> None:
        """Calls and returns: tensors cross functions in their default layouts."""
        self._want(node, self.default)
        for value in node.results:
            if value in self.tree.tensors:
                self.homes[value] = self.default(value)

    # Control flow

    def _for(self, node: Node) -> None:
        body = node.blocks[0]
        inits, args = node.operands[3:], body.args[1:]
        self._loop(inits, args, body.terminator.operands, lambda: self._solve(body))
        self._adopt(node, inits, args, 3)
        self._adopt(body.terminator, body.terminator.operands, args)
        for result, arg in zip(node.results, args, strict=True):
            if arg in self.homes:
                self.homes[result] = self.homes[arg]

    def _while(self, node: Node) -> None:
        before, after = node.blocks
        condition = before.terminator

        def solve() -> None:
            self._solve(before)
            for arg, value in zip(after.args, condition.operands[1:], strict=True):
                if arg in self.tree.tensors:
                    self.homes[arg] = self.homes.get(value) or self._wanted(arg) or self.default(arg)
            self._solve(after)

        self._loop(node.operands, before.args, after.terminator.operands, solve)
        self._adopt(node, node.operands, before.args)
        self._adopt(after.terminator, after.terminator.operands, before.args)
        self._adopt(condition, condition.operands[1:], after.args, 1)
        for result, arg in zip(node.results, after.args, strict=True):
            if arg in self.homes:
                self.homes[result] = self.homes[arg]

    def _loop(self, inits: list[ir.Value], args: list[ir.Value], yields: list[ir.Value], solve: Callable[[], None]) -> None:
        """Find homes for carried values: what the body yields, else what it wants of them, else the initial value's or the default."""
        carried = [(a, i, y) for a, i, y in zip(args, inits, yields, strict=True) if a in self.tree.tensors]
        for arg, init, _ in carried:
            home = self.homes.get(init)
            if home is not None:
                self.homes[arg] = home
        for _ in range(_MAX_ROUNDS):
            solve()
            changed = False
            for arg, _, result in carried:
                home = self.homes.get(result)
                if home is not None and home != self.homes.get(arg):
                    self.homes[arg] = home
                    changed = True
            if not changed and not self._settle_rest(carried):
                return
        # Values that are, say, transposed each time never come to rest: they are converted once an iteration.
        self._settle_rest(carried)
        solve()

    def _settle_rest(self, carried: list[tuple[ir.Value, ir.Value, ir.Value]]) -> bool:
        """Give homes to the carried values without one; return whether there were any."""
        rest = [arg for arg, _, _ in carried if arg not in self.homes]
        for arg in rest:
            self.homes[arg] = self._wanted(arg) or self.default(arg)
        return bool(rest)

    def _if(self, node: Node) -> None:
        for block in node.blocks:
            self._solve(block)
        for i, result in enumerate(node.results):
            if result in self.tree.tensors:
                homes = [self.homes[b.terminator.operands[i]] for b in node.blocks if b.terminator.operands[i] in self.homes]
                self.homes[result] = homes[0] if homes else self._wanted(result) or self.default(result)
        for block in node.blocks:
            self._adopt(block.terminator, block.terminator.operands, node.results)

    def _adopt(self, node: Node, values: list[ir.Value], like: list[ir.Value], offset: int = 0) -> None:
        """Let `node` want each of `values`, its operands from `offset` on, in the home of its counterpart in `like`."""
        self.wants[node] = [None] * offset + [self.homes[x] if x in self.tree.tensors else None for x in like[: len(values)]]

    def _wanted(self, value: ir.Value) -> LinearLayout | None:
        """Return the layout that the first operation with a want sees `value` in, through flexible operations."""
        shape = self.tree.shape(value)
        for use in value.uses:
            node = self.tree.node_of(use.owner.operation)
            if node is None:
                continue
            if node.results and node.results[0] in self.flexible:
                found = self._wanted(node.results[0])
                if found is not None:
                    return operand_layout(node, shape, found)
            elif node in self.wants and node.name not in ("scf.yield", "scf.condition"):
                found = self.wants[node][use.operand_number]
                if found is not None:
                    return found
        return None


def rows_stay_together(node: Node, tree: Tree) -> bool:
    """Whether rows of a dot's result should lie within one warp: it is reduced along them or becomes the left operand of another dot, or
    its own left operand comes from one; all through elementwise operations."""
    return _feeds_rows(node, tree) or _left_comes_from_dot(node, tree)


def _feeds_rows(node: Node, tree: Tree) -> bool:
    pending, seen = [node.results[0]], set()
    while pending:
        value = pending.pop()
        for use in value.uses:
            user = tree.node_of(use.owner.operation)
            if user is None or user in seen:
                continue
            seen.add(user)
            if user.name == "tile.dot" and use.operand_number == 0:
                return True
            if user.name == "tile.reduce" and integer(user.op, "axis") == len(tree.shape(value)) - 1:
                return True
            if is_elementwise(user.name):
                pending += [r for r in user.results if tree.shape(r) == tree.shape(value)]
    return False


def _left_comes_from_dot(node: Node, tree: Tree) -> bool:
    pending, seen = [node.operands[0]], set()
    while pending:
        definition = tree.defs.get(pending.pop())
        if definition is None or definition in seen:
            continue
        seen.add(definition)
        if definition.name == "tile.dot":
            return True
        if is_elementwise(definition.name):
            pending += [v for v in definition.operands if v in tree.tensors]
    return False
