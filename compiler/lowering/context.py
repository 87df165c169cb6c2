"""What a lowering rule works with: the value map, types, constants, thread ids and the place where ops go."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mlir import ir

from tilewright.compiler.encoding import layout_of
from tilewright.compiler.layouts import LinearLayout
from tilewright.compiler.passes.diagnostics import user_error

from .registry import RULES
from .types import Types, scalar_type, types

_create = ir.Operation.create

SHARED_SYMBOL = "smem"

_WARPS_PER_GROUP = 4

#: Ops that `vectors.element` may redo for one element.
TRACED = {
    *("llvm.and", "llvm.or", "llvm.xor", "llvm.icmp", "llvm.fcmp", "llvm.add", "llvm.sub", "llvm.mul"),
    *("llvm.sext", "llvm.zext", "llvm.trunc", "llvm.getelementptr"),
}


@dataclass(frozen=True)
class TargetFacts:
    """What the rules ask of the machine and the launch. `arch` is 80, 86, 89, 90, 100 or 120."""

    arch: int
    num_warps: int
    threads_per_warp: int = 32
    num_ctas: int = 1
    fp_fusion: bool = True
    total_warps: int = 0
    """The warps of a CTA where roles have warps of their own, else 0."""

    @property
    def threads(self) -> int:
        """The threads of a CTA."""
        return self.threads_per_warp * (self.total_warps or self.num_warps)


@dataclass(frozen=True)
class Role:
    """A part of a CTA's warps with code of its own, which meets at the named barrier `barrier`. `alone`: one thread runs the code."""

    first_warp: int
    warps: int
    barrier: int
    alone: bool


@dataclass(frozen=True)
class TensorInfo:
    """A tensor type taken apart: `vector` is its LLVM type, `element` that of one element, `registers` the elements a thread holds."""

    shape: tuple[int, ...]
    layout: LinearLayout
    registers: int
    element: ir.Type
    vector: ir.Type


class ModuleState:
    """What the functions of one module share: converted types, symbols, helper functions and string constants."""

    def __init__(self, body: ir.Block, facts: TargetFacts, loc: ir.Location) -> None:
        self.body = body
        self.facts = facts
        self.loc = loc
        self.types = types()
        self.tensors: dict[ir.Type, TensorInfo] = {}
        self.converted: dict[ir.Type, ir.Type] = {}
        self.symbols: set[str] = set()
        self.strings: dict[str, str] = {}
        self.has_exchanges = False
        """Whether CTAs of a cluster read each other's memory in any function; see `cluster.py`."""
        self.has_meetings = False
        """Whether threads of a cluster may meet for other reasons."""
        self.meets_later = False
        """Whether the first exchange waits for the cluster to be there."""

    def tensor(self, type: ir.Type) -> TensorInfo:
        """The parts of an encoded tensor type."""
        found = self.tensors.get(type)
        if found is None:
            layout = layout_of(type)
            registers = layout.in_size("register")
            element = scalar_type(type.element_type)
            found = TensorInfo(tuple(type.shape), layout, registers, element, self.types.vector(registers, element))
            self.tensors[type] = found
        return found

    def convert(self, type: ir.Type) -> ir.Type:
        """The LLVM type of a value of type `type`."""
        found = self.converted.get(type)
        if found is None:
            found = self.tensor(type).vector if isinstance(type, ir.RankedTensorType) else scalar_type(type)
            self.converted[type] = found
        return found

    def declare(self, symbol: str, type: ir.Type) -> str:
        """Make sure that the external function `symbol` is declared; returns the symbol."""
        if symbol not in self.symbols:
            self.symbols.add(symbol)
            self.function(symbol, type, "external", self.loc)
        return symbol

    def function(self, symbol: str, type: ir.Type, linkage: str, loc: ir.Location) -> ir.Operation:
        """Append an `llvm.func` without a body."""
        attrs = {
            "sym_name": self.types.string(symbol),
            "function_type": ir.TypeAttr.get(type),
            "linkage": ir.Attribute.parse(f"#llvm.linkage<{linkage}>"),
        }
        return _create("llvm.func", attributes=attrs, regions=1, loc=loc, ip=ir.InsertionPoint(self.body))

    def string(self, text: str) -> str:
        """Symbol of a constant global that holds `text` and a terminating zero."""
        symbol = self.strings.get(text)
        if symbol is None:
            symbol = self.strings[text] = f"str{len(self.strings)}"
            data = text + "\0"
            attrs = {
                "sym_name": self.types.string(symbol),
                "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{len(data.encode())} x i8>")),
                "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
                "constant": self.types.unit,
                "value": self.types.string(data),
            }
            _create("llvm.mlir.global", attributes=attrs, regions=1, loc=self.loc, ip=ir.InsertionPoint.at_block_begin(self.body))
        return symbol

    def shared_memory(self) -> str:
        """Symbol of the dynamic shared memory of the kernel."""
        if SHARED_SYMBOL not in self.symbols:
            self.symbols.add(SHARED_SYMBOL)
            attrs = {
                "sym_name": self.types.string(SHARED_SYMBOL),
                "global_type": ir.TypeAttr.get(ir.Type.parse("!llvm.array<0 x i8>")),
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                "addr_space": self.types.int_attr(32, 3),
                "alignment": self.types.int_attr(64, 1024),
            }
            _create("llvm.mlir.global", attributes=attrs, regions=1, loc=self.loc, ip=ir.InsertionPoint.at_block_begin(self.body))
        return SHARED_SYMBOL


class LoweringContext:
    """State of the lowering of one function. Rules create ops through `emit`, at the end of the current block.

    `values` maps each value of the old function to its LLVM value. Within the region of a reduce or scan, `width` is the number of
    elements that its scalars stand for: every scalar type converts to a vector of that many.
    """

    def __init__(self, module: ModuleState, entry: ir.Block, body: ir.Block, loc: ir.Location) -> None:
        self.module = module
        self.facts = module.facts
        self.types: Types = module.types
        self.values: dict[ir.Value, ir.Value] = {}
        self.axis_info = None
        self.loc = self._entry_loc = loc
        self.ip = ir.InsertionPoint(body)
        self.body = body
        self._entry_ip = ir.InsertionPoint(self.emit_branch(entry, body))
        self._constants: dict[tuple[ir.Type, object], ir.Value] = {}
        self._entry_values: dict[str, ir.Value] = {}
        self.width = 0
        self.role: Role | None = None
        self.tensor_maps: list[ir.Value] = []  # those that the kernel is passed
        self.made: dict[ir.Value, tuple] = {}  # how a vector was made, for `vectors.extract` and `vectors.element`
        #: What is made once where the current block dominates: elements taken out of vectors, by (vector, index), and products in full
        #: length, by (operand, operand).
        self.scalars: dict[tuple[ir.Value, int | ir.Value], ir.Value] = {}

    # Values and types

    def operands(self, op: ir.Operation) -> list[ir.Value]:
        """The LLVM values of the operands of `op`."""
        values = self.values
        return [values[v] for v in op.operands]

    def value(self, old: ir.Value) -> ir.Value:
        """The LLVM value of `old`."""
        return self.values[old]

    def type(self, old: ir.Type) -> ir.Type:
        """The LLVM type of a value of type `old` here (in the region of a reduce: a vector of `width` elements)."""
        converted = self.module.convert(old)
        return self.types.vector(self.width, converted) if self.width else converted

    def tensor(self, value: ir.Value) -> TensorInfo:
        """The parts of the type of the old tensor value `value`."""
        return self.module.tensor(value.type)

    def layout(self, value: ir.Value) -> LinearLayout:
        """The layout of the old tensor value `value`."""
        return self.module.tensor(value.type).layout

    # Making ops

    def emit(self, name: str, result: ir.Type, operands: Sequence[ir.Value] = (), attrs: dict[str, ir.Attribute] | None = None) -> ir.Value:
        """Create the op `name` with one result."""
        value = _create(name, (result,), operands, attrs, None, 0, self.loc, self.ip).result
        if name in TRACED:
            self.made[value] = (name, operands, attrs)
        return value

    def emit_void(self, name: str, operands: Sequence[ir.Value] = (), attrs: dict[str, ir.Attribute] | None = None) -> None:
        """Create the op `name` without a result."""
        _create(name, (), operands, attrs, None, 0, self.loc, self.ip)

    def emit_branch(self, block: ir.Block, target: ir.Block, operands: Sequence[ir.Value] = ()) -> ir.Operation:
        """Append an unconditional branch to `block`."""
        return _create("llvm.br", (), operands, None, (target,), 0, self.loc, ir.InsertionPoint(block))

    def branch(self, target: ir.Block, operands: Sequence[ir.Value] = ()) -> None:
        """End the current block with a branch to `target`."""
        _create("llvm.br", (), operands, None, (target,), 0, self.loc, self.ip)

    def cond_branch(
        self,
        condition: ir.Value,
        true: ir.Block,
        false: ir.Block,
        true_operands: Sequence[ir.Value] = (),
        false_operands: Sequence[ir.Value] = (),
    ) -> None:
        """End the current block with a conditional branch."""
        attrs = {"operandSegmentSizes": self.types.i32_array(1, len(true_operands), len(false_operands))}
        operands = (condition, *true_operands, *false_operands)
        _create("llvm.cond_br", (), operands, attrs, (true, false), 0, self.loc, self.ip)

    def new_block(self, *arguments: ir.Type) -> ir.Block:
        """A new block at the end of the function."""
        return self.body.region.blocks.append(*arguments, arg_locs=[self.loc] * len(arguments))

    def enter(self, block: ir.Block) -> None:
        """Continue at the end of `block`."""
        self.ip = ir.InsertionPoint(block)

    @contextmanager
    def conditional(self) -> Iterator[None]:
        """Within this, code is emitted that does not dominate what follows: what is in `scalars` from there is forgotten after it."""
        scalars = self.scalars
        self.scalars = dict(scalars)
        yield
        self.scalars = scalars

    def call(self, symbol: str, result: ir.Type | None, operands: Sequence[ir.Value]) -> ir.Value | None:
        """Call a function of the module; `result` None means void."""
        attrs = self.types.call_attrs(symbol, len(operands))
        if result is None:
            return self.emit_void("llvm.call", operands, attrs)
        return self.emit("llvm.call", result, operands, attrs)

    def call_intrinsic(self, name: str, result: ir.Type | None, operands: Sequence[ir.Value]) -> ir.Value | None:
        """Call the LLVM intrinsic `name` (with its type suffix left out); `result` None means void."""
        attrs = self.types.intrinsic_attrs(name, len(operands))
        if result is None:
            return self.emit_void("llvm.call_intrinsic", operands, attrs)
        return self.emit("llvm.call_intrinsic", result, operands, attrs)

    def helper(
        self,
        key: str,
        result: ir.Type | None,
        operands: Sequence[ir.Value],
        build: Callable[["LoweringContext", list[ir.Value]], ir.Value | None],
    ) -> ir.Value | None:
        """Call the private, always inlined function `key`, which `build(ctx, arguments)` fills at the first use.

        `key` names the function and must determine its types and body.
        """
        if key not in self.module.symbols:
            self.module.symbols.add(key)
            params = [v.type for v in operands]
            func_type = self.types.function(self.types.void if result is None else result, *params)
            func = self.module.function(key, func_type, "internal", self.module.loc)
            func.attributes["always_inline"] = self.types.unit
            blocks = func.regions[0].blocks
            entry = blocks.append(*params, arg_locs=[self.module.loc] * len(params))
            inner = LoweringContext(self.module, entry, blocks.append(), self.module.loc)
            returned = build(inner, list(entry.arguments))
            inner.emit_void("llvm.return", () if returned is None else (returned,))
        return self.call(key, result, operands)

    # Constants: one per function and value, in the entry block

    def i32(self, value: int) -> ir.Value:
        """The i32 constant `value` (signed or unsigned)."""
        return self.constant(self.types.i32, value)

    def constant(self, type: ir.Type, value: float) -> ir.Value:
        """The constant `value` of an integer or float type, or the vector of it in every element."""
        key = (type, value if value or isinstance(value, int) else repr(value))  # 0.0 and -0.0 differ, NaN is not itself
        found = self._constants.get(key)
        if found is None:
            count, element = self.types.parts(type)
            if element in self.types.floats:
                attr = ir.FloatAttr.get(element, value)
            else:
                bits = self.types.widths[element]
                attr = ir.IntegerAttr.get(element, value - (1 << bits) if value >= 1 << max(bits - 1, 1) else value)
            found = self._constants[key] = self.constant_of(type, ir.DenseElementsAttr.get_splat(type, attr) if count else attr)
            if count:
                self.made[found] = ("constants", (value,) * count)
        return found

    def constant_vector(self, element: ir.Type, values: Sequence[int]) -> ir.Value:
        """The vector constant of integers `values`."""
        key = (element, tuple(values))
        found = self._constants.get(key)
        if found is None:
            if element == self.types.i1:
                attr = ir.DenseElementsAttr.get([ir.BoolAttr.get(bool(v)) for v in values], self.types.vector(len(values), element))
            else:
                attr = self.types.dense(element, values)
            found = self._constants[key] = self.constant_of(attr.type, attr)
            self.made[found] = ("constants", key[1])
        return found

    def constant_of(self, type: ir.Type, attr: ir.Attribute) -> ir.Value:
        """The constant that the attribute holds."""
        key = (type, attr)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.emit_entry("llvm.mlir.constant", type, (), {"value": attr})
        return found

    def poison(self, type: ir.Type) -> ir.Value:
        """The poison value of `type`."""
        key = (type, None)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.emit_entry("llvm.mlir.poison", type)
        return found

    def zero(self, type: ir.Type) -> ir.Value:
        """The null value of any type, pointers and structs included."""
        key = (type, "zero")
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.emit_entry("llvm.mlir.zero", type)
        return found

    def emit_entry(
        self, name: str, result: ir.Type, operands: Sequence[ir.Value] = (), attrs: dict[str, ir.Attribute] | None = None
    ) -> ir.Value:
        """Create an op in the entry block, which dominates the whole function."""
        return _create(name, (result,), operands, attrs, None, 0, self._entry_loc, self._entry_ip).result

    def splat(self, scalar: ir.Value, count: int) -> ir.Value:
        """`vector<count x T>` with `scalar` in every element."""
        vector = self.types.vector(count, scalar.type)
        value = self.emit("llvm.insertelement", vector, (self.poison(vector), scalar, self.i32(0)))
        if count > 1:
            value = self.emit("llvm.shufflevector", vector, (value, value), self.types.shuffle_attrs((0,) * count))
        self.made[value] = ("elements", (scalar,) * count)
        return value

    # Where the thread is

    def once(self, key: str, build: Callable[[], ir.Value]) -> ir.Value:
        """What `build` emits, placed in the entry block the first time that `key` is asked for."""
        found = self._entry_values.get(key)
        if found is None:
            place = self.ip, self.loc, self.scalars
            self.ip, self.loc, self.scalars = self._entry_ip, self._entry_loc, {}
            found = self._entry_values[key] = build()
            self.ip, self.loc, self.scalars = place
        return found

    @contextmanager
    def as_role(self, role: Role) -> Iterator[None]:
        """Within this, code is that of a role: thread and warp ids count from its first warp."""
        values = self._entry_values
        self.role = role
        if role.first_warp:
            self._entry_values = {}
        yield
        self.role, self._entry_values = None, values

    @property
    def thread_id(self) -> ir.Value:
        """Index of the thread in its CTA, or in the warps of its role, i32."""

        def build() -> ir.Value:
            thread = self.emit("nvvm.read.ptx.sreg.tid.x", self.types.i32)
            if self.role is None or not self.role.first_warp:
                return thread
            return self.emit("llvm.sub", self.types.i32, (thread, self.i32(self.role.first_warp * self.facts.threads_per_warp)))

        return self.once("thread", build)

    @property
    def lane_id(self) -> ir.Value:
        """Index of the thread in its warp, i32."""
        mask = self.facts.threads_per_warp - 1
        return self.once("lane", lambda: self.emit("llvm.and", self.types.i32, (self.thread_id, self.i32(mask))))

    @property
    def warp_id(self) -> ir.Value:
        """Index of the warp in its CTA, i32; a plain shift of the thread id, so that LLVM can fold it into addresses."""
        shift = self.facts.threads_per_warp.bit_length() - 1
        return self.once("warp", lambda: self.emit("llvm.lshr", self.types.i32, (self.thread_id, self.i32(shift))))

    @property
    def uniform_warp_id(self) -> ir.Value:
        """`warp_id` read from lane 0, so that ptxas keeps what depends on it in uniform registers."""

        def build() -> ir.Value:
            operands = (self.i32(-1), self.warp_id, self.i32(0), self.i32(31))
            return self.call_intrinsic("llvm.nvvm.shfl.sync.idx.i32", self.types.i32, operands)

        return self.once("uniform warp", build)

    @property
    def warps(self) -> int:
        """The number of warps of the CTA that run code together, or of the role."""
        return self.facts.num_warps if self.role is None else self.role.warps

    @property
    def warpgroup_id(self) -> ir.Value:
        """Index of the warpgroup in its CTA, or in the warps of its role, i32, in a uniform register."""
        shift = self.i32(_WARPS_PER_GROUP.bit_length() - 1)
        return self.once("warpgroup", lambda: self.emit("llvm.lshr", self.types.i32, (self.uniform_warp_id, shift)))

    @property
    def cluster_rank(self) -> ir.Value:
        """Index of the CTA in its cluster, i32; the constant 0 without clusters."""
        if self.facts.num_ctas == 1:
            return self.i32(0)
        return self.once("rank", lambda: self.emit("nvvm.read.ptx.sreg.cluster.ctarank", self.types.i32))

    # Shared memory

    @property
    def shared_base(self) -> ir.Value:
        """First byte of the kernel's shared memory, ptr<3>."""
        attrs = {"global_name": self.types.symbol(self.module.shared_memory())}
        return self.once("shared", lambda: self.emit("llvm.mlir.addressof", self.types.ptr3, (), attrs))

    def shared(self, offset: int) -> ir.Value:
        """The byte `offset` of the kernel's shared memory, ptr<3>."""
        base = self.shared_base
        if offset == 0:
            return base
        attrs = self.types.const_gep_attrs(self.types.i8, offset)
        return self.once(f"shared {offset}", lambda: self.emit("llvm.getelementptr", self.types.ptr3, (base,), attrs))

    def scratch(self, op: ir.Operation) -> ir.Value:
        """First byte of what the allocation pass gave `op` (its attribute `tilegpu.offset`, bytes), ptr<3>."""
        return self.shared(ir.IntegerAttr(op.attributes["tilegpu.offset"]).value)

    def barrier(self) -> None:
        """Wait for every thread of the CTA, or of the role; orders shared and global memory among them."""
        if self.role is None:
            self.emit_void("nvvm.barrier0")
        else:
            threads = self.role.warps * self.facts.threads_per_warp
            self.call_intrinsic("llvm.nvvm.barrier.cta.sync.aligned.count", None, (self.i32(self.role.barrier), self.i32(threads)))

    def warp_barrier(self) -> None:
        """Wait for every thread of the warp; orders shared and global memory among them."""
        self.call_intrinsic("llvm.nvvm.bar.warp.sync", None, (self.i32(-1),))

    # Ops and regions

    def lower_op(self, op: ir.Operation) -> None:
        """Lower one op and bind its results. Raises CompilationError, which names the op's place, for what has no lowering."""
        self.loc = op.location
        rule = RULES.get(op.name)
        try:
            if rule is None:
                raise ValueError("this operation is not supported here")
            results = rule(self, op)
        except ValueError as error:
            raise user_error(op, f"{op.name}: {error}") from error
        if results:
            self.values.update(zip(op.results, results, strict=True))

    def lower_block(self, block: ir.Block, arguments: Sequence[ir.Value] = ()) -> ir.Operation:
        """Lower the ops of `block` in place, with `arguments` for its arguments; returns its terminator, which is not lowered."""
        self.values.update(zip(block.arguments, arguments, strict=True))
        *body, terminator = block.operations
        for op in body:
            self.lower_op(op.operation)
        return terminator.operation

    def apply_region(self, block: ir.Block, arguments: Sequence[ir.Value], width: int) -> list[ir.Value]:
        """Lower a block of elementwise ops on scalars with vectors of `width` elements for its arguments; returns what it yields."""
        self.width = width
        terminator = self.lower_block(block, arguments)
        self.width = 0
        return self.operands(terminator)


def source_line(location: ir.Location) -> tuple[str, int]:
    """File and line of the innermost place that a location names."""
    found = re.search(r'"([^"]*)":(\d+)', str(location))
    return (found[1], int(found[2])) if found else ("unknown", 0)
