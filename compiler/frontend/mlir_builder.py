"""The language's `Builder` (language/builder.py) over MLIR: one operation of `tile`, `arith` or `math` per call.

Operations are created by name, without their Python classes, which is several times cheaper. Constants are made once per function, at
the head of its entry block. Control flow (`scf`) is in `regions.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from mlir import ir

from tilewright.language import builder as protocol
from tilewright.language.dtypes import block_type, dtype, tensor_descriptor_type

from .types import types

_create = ir.Operation.create

_MATH_NAMES = {kind: f"math.{kind}" for kind in (*protocol.UNARY_FLOAT, *protocol.UNARY_INT)}
_UNARY = {**_MATH_NAMES, "negf": "arith.negf", "sqrt_rn": "tile.sqrt_rn"}
_BINARY = {kind: f"arith.{kind}" for kind in (*protocol.BINARY_INT, *protocol.BINARY_FLOAT)}
_BINARY |= {"mulhisi": "tile.mulhi", "mulhiui": "tile.mulhi", "div_rn": "tile.div_rn"}
_CASTS = {kind: f"arith.{kind}" for kind in protocol.CASTS}
_CASTS |= {kind: f"tile.{kind}" for kind in ("fp_to_fp", "bitcast", "ptr_to_int", "int_to_ptr")}
# values of arith's predicate enums
_CMPI = {name: i for i, name in enumerate(protocol.COMPARE_INT)}
_CMPF = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "une": 13}


class MlirBuilder:
    """Creates operations at `ip` with the location that `locate` returns.

    `ip` is the insertion point, moved by whoever builds regions. `locate` is set by the code generator."""

    def __init__(self, locate: Callable[[], ir.Location]):
        self.types = types()
        self.locate = locate
        self.ip: ir.InsertionPoint | None = None
        self._constants: dict[tuple, ir.Value] = {}
        self._constant_block: ir.Block | None = None
        self._constant_ip: ir.InsertionPoint | None = None

    # ---- creating operations ----------------------------------------------------------------------------------------------------

    def op(
        self, name: str, results: Sequence[ir.Type], operands: Sequence[ir.Value], attributes: dict | None = None, regions: int = 0
    ) -> ir.Operation:
        """Create an operation at the insertion point."""
        return _create(name, results, operands, attributes, None, regions, self.locate(), self.ip)

    def _value(self, name: str, ty: dtype, operands: Sequence[ir.Value], attributes: dict | None = None) -> ir.Value:
        return _create(name, [self.types(ty)], operands, attributes, None, 0, self.locate(), self.ip).result

    def i32_attr(self, value: int) -> ir.IntegerAttr:
        return ir.IntegerAttr.get(self.types.i32, value)

    def enter_function(self, entry: ir.Block) -> tuple:
        """Build in `entry`, the first block of a region that sees no value from outside. Returns what `leave_function` takes."""
        saved = self.ip, self._constants, self._constant_block, self._constant_ip
        self.ip = ir.InsertionPoint(entry)
        self._constants, self._constant_block, self._constant_ip = {}, entry, None
        return saved

    def leave_function(self, saved: tuple) -> None:
        self.ip, self._constants, self._constant_block, self._constant_ip = saved

    # ---- constants and the program's place --------------------------------------------------------------------------------------

    def constant(self, value: float, ty: dtype) -> ir.Value:
        # the bits, not the value: 0.0 and -0.0 are two constants, and a NaN is equal to itself
        key = (ty, struct.pack("<d", value) if type(value) is float else int(value))
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._make_constant(value, ty)
        return found

    def _make_constant(self, value: float, ty: dtype) -> ir.Value:
        ir_type = self.types(ty)
        element = self.types(ty.scalar)
        if isinstance(element, ir.IntegerType):
            attribute = ir.IntegerAttr.get(element, _wrap(_integer_bits(value, ty.scalar), element.width))
        else:
            attribute = ir.FloatAttr.get(element, float(value), loc=ir.Location.unknown(self.types.context))
        if ty.is_block():
            attribute = ir.DenseElementsAttr.get_splat(ir_type, attribute)
        ip = self._constant_ip or ir.InsertionPoint.at_block_begin(self._constant_block)
        op = _create("arith.constant", [ir_type], [], {"value": attribute}, None, 0, self.locate(), ip)
        if self._constant_ip is None:  # before a constant, which stays: a loop that is emitted anew goes
            self._constant_ip = ir.InsertionPoint(op)
        return op.result

    def program_id(self, axis: int) -> ir.Value:
        return self.op("tile.program_id", [self.types.i32], [], {"axis": self.i32_attr(axis)}).result

    def num_programs(self, axis: int) -> ir.Value:
        return self.op("tile.num_programs", [self.types.i32], [], {"axis": self.i32_attr(axis)}).result

    def arange(self, start: int, end: int, ty: block_type) -> ir.Value:
        return self._value("tile.range", ty, [], {"start": self.i32_attr(start), "end": self.i32_attr(end)})

    # ---- shape ------------------------------------------------------------------------------------------------------------------

    def splat(self, a: ir.Value, ty: block_type) -> ir.Value:
        return self._value("tile.splat", ty, [a])

    def unsplat(self, a: ir.Value, ty: dtype) -> ir.Value:
        return self._value("tile.unsplat", ty, [a])

    def expand_dims(self, a: ir.Value, axis: int, ty: block_type) -> ir.Value:
        return self._value("tile.expand_dims", ty, [a], {"axis": self.i32_attr(axis)})

    def broadcast(self, a: ir.Value, ty: block_type) -> ir.Value:
        return self._value("tile.broadcast", ty, [a])

    def reshape(self, a: ir.Value, ty: block_type, allow_reorder: bool = False) -> ir.Value:
        return self._value("tile.reshape", ty, [a], {"allow_reorder": self.types.unit} if allow_reorder else None)

    def trans(self, a: ir.Value, order: tuple[int, ...], ty: block_type) -> ir.Value:
        return self._value("tile.trans", ty, [a], {"order": ir.DenseI32ArrayAttr.get(order)})

    def join(self, a: ir.Value, b: ir.Value, ty: block_type) -> ir.Value:
        return self._value("tile.join", ty, [a, b])

    def split(self, a: ir.Value, ty: block_type) -> tuple[ir.Value, ir.Value]:
        half = self.types(ty)
        op = self.op("tile.split", [half, half], [a])
        return op.results[0], op.results[1]

    def cat(self, a: ir.Value, b: ir.Value, dim: int, ty: block_type) -> ir.Value:
        return self._value("tile.cat", ty, [a, b], {"dim": self.i32_attr(dim)})

    def gather(self, src: ir.Value, indices: ir.Value, axis: int, ty: block_type) -> ir.Value:
        return self._value("tile.gather", ty, [src, indices], {"axis": self.i32_attr(axis)})

    # ---- arithmetic -------------------------------------------------------------------------------------------------------------

    def unary(self, kind: str, a: ir.Value, ty: dtype) -> ir.Value:
        return self._value(_UNARY[kind], ty, [a])

    def binary(self, kind: str, a: ir.Value, b: ir.Value, ty: dtype) -> ir.Value:
        return self._value(_BINARY[kind], ty, [a, b], {"is_signed": self.types.unit} if kind == "mulhisi" else None)

    def compare(self, predicate: str, a: ir.Value, b: ir.Value, ty: dtype) -> ir.Value:
        number = _CMPI.get(predicate)
        name, number = ("arith.cmpi", number) if number is not None else ("arith.cmpf", _CMPF[predicate])
        return self.op(name, [self.types.mask(ty)], [a, b], {"predicate": ir.IntegerAttr.get(self.types.i64, number)}).result

    def select(self, condition: ir.Value, a: ir.Value, b: ir.Value, ty: dtype) -> ir.Value:
        return self._value("arith.select", ty, [condition, a, b])

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value, ty: dtype) -> ir.Value:
        return self._value("math.fma", ty, [a, b, c])

    def clampf(self, x: ir.Value, low: ir.Value, high: ir.Value, propagate_nan: bool, ty: dtype) -> ir.Value:
        return self._value("tile.clampf", ty, [x, low, high], {"propagate_nan": self.types.unit} if propagate_nan else None)

    def cast(self, kind: str, a: ir.Value, source: dtype, ty: dtype, rounding: str | None = None) -> ir.Value:
        if kind == "bitcast" and self.types(source) == self.types(ty):
            return a  # the language's types differ in signedness only
        attributes = {}
        if kind == "fp_to_fp":
            for key, side in (("src_kind", source), ("dst_kind", ty)):
                if side.scalar.name == "fp8e4b15":
                    attributes[key] = ir.StringAttr.get("fp8e4b15")
            if rounding is not None:
                attributes["rounding"] = self.types.attribute(f"#tile<rounding {rounding}>")
        return self._value(_CASTS[kind], ty, [a], attributes)

    # ---- memory -----------------------------------------------------------------------------------------------------------------

    def _cache_attributes(self, cache: str, evict: str) -> dict[str, ir.Attribute]:
        attributes = {}
        if cache:
            attributes["cache"] = self.types.attribute(f"#tile<cache {cache}>")
        if evict:
            attributes["evict"] = self.types.attribute(f"#tile<evict {evict}>")
        return attributes

    def _order_attributes(self, sem: str, scope: str) -> dict[str, ir.Attribute]:
        return {"sem": self.types.attribute(f"#tile<sem {sem}>"), "scope": self.types.attribute(f"#tile<scope {scope}>")}

    def addptr(self, ptr: ir.Value, offset: ir.Value, offset_ty: dtype, ty: dtype) -> ir.Value:
        return self._value("tile.addptr", ty, [ptr, offset])

    def load(
        self,
        ptr: ir.Value,
        mask: ir.Value | None,
        other: ir.Value | None,
        ty: dtype,
        *,
        cache: str = "",
        evict: str = "",
        volatile: bool = False,
    ) -> ir.Value:
        attributes = self._cache_attributes(cache, evict)
        if volatile:
            attributes["is_volatile"] = self.types.unit
        operands = [ptr] + [v for v in (mask, other) if v is not None]
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, mask is not None, other is not None])
        return self._value("tile.load", ty, operands, attributes)

    def store(self, ptr: ir.Value, value: ir.Value, mask: ir.Value | None, ty: dtype, *, cache: str = "", evict: str = "") -> None:
        operands = [ptr, value] if mask is None else [ptr, value, mask]
        self.op("tile.store", [], operands, self._cache_attributes(cache, evict))

    def atomic_rmw(
        self, kind: str, ptr: ir.Value, value: ir.Value, mask: ir.Value | None, ty: dtype, *, sem: str = "acq_rel", scope: str = "gpu"
    ) -> ir.Value:
        attributes = self._order_attributes(sem, scope) | {"kind": self.types.attribute(f"#tile<rmw {kind}>")}
        return self._value("tile.atomic_rmw", ty, [ptr, value] if mask is None else [ptr, value, mask], attributes)

    def atomic_cas(
        self, ptr: ir.Value, compare: ir.Value, value: ir.Value, ty: dtype, *, sem: str = "acq_rel", scope: str = "gpu"
    ) -> ir.Value:
        return self._value("tile.atomic_cas", ty, [ptr, compare, value], self._order_attributes(sem, scope))

    def atomic_load(self, ptr: ir.Value, mask: ir.Value | None, ty: dtype, *, sem: str = "acquire", scope: str = "gpu") -> ir.Value:
        return self._value("tile.atomic_load", ty, [ptr] if mask is None else [ptr, mask], self._order_attributes(sem, scope))

    def atomic_store(
        self, ptr: ir.Value, value: ir.Value, mask: ir.Value | None, ty: dtype, *, sem: str = "release", scope: str = "gpu"
    ) -> None:
        self.op("tile.atomic_store", [], [ptr, value] if mask is None else [ptr, value, mask], self._order_attributes(sem, scope))

    def atomic_poll(
        self, ptr: ir.Value, expected: ir.Value, timeout: ir.Value | None, ty: dtype, *, sem: str = "acquire", scope: str = "gpu"
    ) -> ir.Value:
        operands = [ptr, expected] if timeout is None else [ptr, expected, timeout]
        return self.op("tile.atomic_poll", [self.types.mask(ty)], operands, self._order_attributes(sem, scope)).result

    # ---- tensor descriptors -----------------------------------------------------------------------------------------------------

    def make_descriptor(
        self, base: ir.Value, shape: Sequence[ir.Value], strides: Sequence[ir.Value], padding: str, ty: block_type
    ) -> ir.Value:
        attributes = {
            "padding": self.types.attribute(f"#tile<padding {padding}>"),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(shape), len(strides)]),
        }
        return self._value("tile.make_descriptor", tensor_descriptor_type(ty), [base, *shape, *strides], attributes)

    def descriptor_load(self, desc: ir.Value, offsets: Sequence[ir.Value], ty: block_type, *, cache: str = "", evict: str = "") -> ir.Value:
        return self._value("tile.descriptor_load", ty, [desc, *offsets], self._cache_attributes(cache, evict))

    def descriptor_store(self, desc: ir.Value, value: ir.Value, offsets: Sequence[ir.Value], ty: block_type) -> None:
        self.op("tile.descriptor_store", [], [desc, value, *offsets])

    def descriptor_reduce(self, kind: str, desc: ir.Value, value: ir.Value, offsets: Sequence[ir.Value], ty: block_type) -> None:
        element = ty.element_ty
        prefix = "f" if kind == "add" and element.is_floating() else "u" if kind in ("min", "max") and element.is_int_unsigned() else ""
        attributes = {"kind": self.types.attribute(f"#tile<rmw {prefix}{kind}>")}
        self.op("tile.descriptor_reduce", [], [desc, value, *offsets], attributes)

    def descriptor_gather(self, desc: ir.Value, x_offsets: ir.Value, y_offset: ir.Value, ty: block_type) -> ir.Value:
        return self._value("tile.descriptor_gather", ty, [desc, x_offsets, y_offset])

    def descriptor_scatter(self, desc: ir.Value, value: ir.Value, x_offsets: ir.Value, y_offset: ir.Value, ty: block_type) -> None:
        self.op("tile.descriptor_scatter", [], [desc, value, x_offsets, y_offset])

    # ---- matrix products --------------------------------------------------------------------------------------------------------

    def dot(
        self,
        a: ir.Value,
        b: ir.Value,
        acc: ir.Value,
        a_ty: block_type,
        b_ty: block_type,
        ty: block_type,
        *,
        precision: str,
        max_imprecise: int,
    ) -> ir.Value:
        attributes = {
            "precision": self.types.attribute(f"#tile<precision {precision}>"),
            "max_imprecise": self.i32_attr(max_imprecise),
        }
        for key, side in (("a_unsigned", a_ty), ("b_unsigned", b_ty)):
            if side.element_ty.is_int_unsigned():
                attributes[key] = self.types.unit
        return self._value("tile.dot", ty, [a, b, acc], attributes)

    def dot_scaled(
        self,
        a: ir.Value,
        a_scale: ir.Value | None,
        a_format: str,
        b: ir.Value,
        b_scale: ir.Value | None,
        b_format: str,
        acc: ir.Value,
        types: Sequence[block_type | None],
        ty: block_type,
        *,
        fast_math: bool,
        a_k_pack: bool,
        b_k_pack: bool,
    ) -> ir.Value:
        attributes = {
            "a_format": ir.StringAttr.get(a_format),
            "b_format": ir.StringAttr.get(b_format),
            "a_k_pack": ir.BoolAttr.get(a_k_pack),
            "b_k_pack": ir.BoolAttr.get(b_k_pack),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, a_scale is not None, 1, b_scale is not None, 1]),
        }
        if fast_math:
            attributes["fast_math"] = self.types.unit
        operands = [v for v in (a, a_scale, b, b_scale, acc) if v is not None]
        return self._value("tile.dot_scaled", ty, operands, attributes)

    # ---- regions ----------------------------------------------------------------------------------------------------------------

    def _scalar_region(self, op: ir.Operation, arguments: Sequence[ir.Type], body: Callable[[list], Sequence[ir.Value]]) -> list[ir.Value]:
        """Fill the region of `op`, a function of scalars that captures nothing."""
        block = op.regions[0].blocks.append(*arguments, arg_locs=[self.locate()] * len(arguments))
        saved = self.enter_function(block)
        yielded = list(body(list(block.arguments)))
        self.op("tile.yield", [], yielded)
        self.leave_function(saved)
        return yielded

    def reduce(
        self,
        sources: Sequence[ir.Value],
        axis: int,
        combine: protocol.Combine,
        types: Sequence[block_type],
        tys: Sequence[dtype],
        *,
        commutative: bool = False,
    ) -> list[ir.Value]:
        attributes = {"axis": self.i32_attr(axis)}
        if commutative:
            attributes["tile.commutative"] = self.types.unit
        op = self.op("tile.reduce", [self.types(t) for t in tys], sources, attributes, 1)
        self._scalar_region(op, [self.types(t.element_ty) for t in types] * 2, combine)
        return list(op.results)

    def scan(
        self, sources: Sequence[ir.Value], axis: int, reverse: bool, combine: protocol.Combine, types: Sequence[block_type]
    ) -> list[ir.Value]:
        attributes = {"axis": self.i32_attr(axis)}
        if reverse:
            attributes["reverse"] = self.types.unit
        op = self.op("tile.scan", [self.types(t) for t in types], sources, attributes, 1)
        self._scalar_region(op, [self.types(t.element_ty) for t in types] * 2, combine)
        return list(op.results)

    def map_elementwise(self, sources: Sequence[ir.Value], body: protocol.Region, types: Sequence[block_type]) -> list[ir.Value]:
        attributes = {"pack": self.i32_attr(1)}
        # the result types are known only after the body: it is built in a detached draft
        draft = _create("tile.map_elementwise", [], [], None, None, 1, self.locate(), False)
        try:
            yielded = self._scalar_region(draft, [self.types(t.element_ty) for t in types], body)
            loc = ir.Location.unknown(self.types.context)
            results = [ir.RankedTensorType.get(types[0].shape, v.type, loc=loc) for v in yielded]
            op = self.op("tile.map_elementwise", results, sources, attributes, 1)
            draft.regions[0].blocks[0].append_to(op.regions[0])
        finally:
            draft.erase()
        return list(op.results)

    # ---- the rest ---------------------------------------------------------------------------------------------------------------

    def histogram(self, a: ir.Value, mask: ir.Value | None, source: block_type, ty: block_type) -> ir.Value:
        return self._value("tile.histogram", ty, [a] if mask is None else [a, mask])

    def inline_asm(
        self,
        asm: str,
        constraints: str,
        args: Sequence[ir.Value],
        types: Sequence[dtype],
        tys: Sequence[dtype],
        *,
        pure: bool,
        pack: int,
    ) -> list[ir.Value]:
        attributes = {
            "asm_string": ir.StringAttr.get(asm),
            "constraints": ir.StringAttr.get(constraints),
            "pack": self.i32_attr(pack),
        }
        if pure:
            attributes["pure"] = self.types.unit
        return list(self.op("tile.inline_asm", [self.types(t) for t in tys], args, attributes).results)

    def extern_call(
        self, symbol: str, lib_name: str, lib_path: str, args: Sequence[ir.Value], types: Sequence[dtype], ty: dtype, *, pure: bool
    ) -> ir.Value:
        attributes = {
            "symbol": ir.StringAttr.get(symbol),
            "lib_name": ir.StringAttr.get(lib_name),
            "lib_path": ir.StringAttr.get(lib_path),
        }
        if pure:
            attributes["pure"] = self.types.unit
        return self._value("tile.extern_call", ty, args, attributes)

    def print(self, prefix: str, args: Sequence[ir.Value], types: Sequence[dtype], *, hex: bool, is_signed: Sequence[bool]) -> None:
        attributes = {"prefix": ir.StringAttr.get(prefix), "is_signed": ir.DenseBoolArrayAttr.get(list(is_signed))}
        if hex:
            attributes["hex"] = self.types.unit
        self.op("tile.print", [], args, attributes)

    def assert_(self, condition: ir.Value, mask: ir.Value | None, message: str, ty: dtype) -> None:
        operands = [condition] if mask is None else [condition, mask]
        self.op("tile.assert", [], operands, {"message": ir.StringAttr.get(message)})

    def assume(self, condition: ir.Value) -> None:
        self.op("tile.assume", [], [condition])

    def barrier(self) -> None:
        self.op("tile.barrier", [], [])

    def hint(self, a: ir.Value, name: str, values: tuple[int, ...]) -> None:
        owner = a.owner
        if isinstance(owner, ir.Block):
            self._hint_argument(ir.BlockArgument(a), name, values)
        else:
            owner.attributes[name] = ir.DenseI32ArrayAttr.get(values)

    def _hint_argument(self, argument: ir.BlockArgument, name: str, values: tuple[int, ...]) -> None:
        """Only divisibility of a function's argument has a place in the IR; about a loop's argument nothing can be said."""
        function = argument.owner.owner.operation
        if function.name != "func.func" or name != "tile.divisibility":
            return
        arguments = len(argument.owner.arguments)
        attributes = list(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else [ir.DictAttr.get({})] * arguments
        place = argument.arg_number
        entries = {entry.name: entry.attr for entry in attributes[place]}
        known = ir.IntegerAttr(entries[name]).value if name in entries else 1
        attributes[place] = ir.DictAttr.get(entries | {name: self.i32_attr(max(known, values[0]))})
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)

    def special(self, name: str, ty: dtype | None) -> ir.Value | None:
        if name == "memrealtime":
            raise NotImplementedError("memrealtime is for AMD targets, which have no pipeline yet")
        op = self.op(f"tile.{name}", [] if ty is None else [self.types(ty)], [])
        return None if ty is None else op.result


def _wrap(value: int, width: int) -> int:
    """`value` modulo 2**width as a signed number, which is what MLIR's integer attributes take (i1: 0 or -1 prints as false or true)."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _integer_bits(value: float, ty: dtype) -> int:
    return _fp8e4b15_bits(float(value)) if ty.is_floating() else int(value)


def _fp8e4b15_bits(value: float) -> int:
    """Encode in fp8e4b15 (1 sign, 4 exponent, 3 mantissa bits, bias 15, no infinities or NaNs), to nearest even, saturating."""
    sign = 0x80 if struct.pack(">d", value)[0] & 0x80 else 0
    magnitude = abs(value)
    if not magnitude < 1.875:  # the largest number; NaN comes here too
        return sign | 0x7F
    exponent = 1
    while exponent < 15 and magnitude >= 2.0 ** (exponent + 1 - 15):
        exponent += 1
    steps = round(magnitude / 2.0 ** (exponent - 15 - 3))  # counts of the last place; Python rounds to even
    return sign | min(steps + ((exponent - 1) << 3), 0x7F)
