"""LLVM types and attributes of the process-wide MLIR context, each built once.

Asking MLIR for a type costs about 1 us and parsing one 30 to 60 us, so rules take everything that they need from here.
"""

from array import array
from collections.abc import Sequence
from functools import cache

from mlir import ir
from mlir.dialects import llvm

from tilewright.dialects import context, tile, tilegpu

ARRAY_CODES = {8: "b", 16: "h", 32: "i", 64: "q"}
NAMELESS_MEMBERS = 8
FCMP = ("oeq", "ogt", "oge", "olt", "ole")
ICMP = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")  # LLVM::ICmpPredicate
memo = cache  # `Types` lives as long as the process, so a cache on its methods leaks nothing
GEP_DYNAMIC = -(2**31)  # LLVM::GEPOp::kDynamicIndex: "take the next operand"


class Types:
    """The scalar types by name (`i32`, `bf16`, `ptr1`, …) and cached builders for the rest."""

    def __init__(self) -> None:
        with context():
            integer = ir.IntegerType.get_signless
            self.i1, self.i8, self.i16 = integer(1), integer(8), integer(16)
            self.i32, self.i64, self.i128 = integer(32), integer(64), integer(128)
            self.f16, self.bf16 = ir.F16Type.get(), ir.BF16Type.get()
            self.f32, self.f64 = ir.F32Type.get(), ir.F64Type.get()
            self.ptr, self.ptr1, self.ptr3, self.ptr_cluster = (llvm.PointerType.get(space) for space in (None, 1, 3, 7))
            self.void = ir.Type.parse("!llvm.void")
            self.unit = ir.UnitAttr.get()
            self.no_wrap = {"overflowFlags": ir.Attribute.parse("#llvm.overflow<nsw, nuw>")}
            self.no_signed_wrap = {"overflowFlags": ir.Attribute.parse("#llvm.overflow<nsw>")}
            self.disjoint = {"isDisjoint": self.unit}
        self.widths = {self.i1: 1, self.i8: 8, self.i16: 16, self.i32: 32, self.i64: 64, self.i128: 128}
        self.widths |= {self.f16: 16, self.bf16: 16, self.f32: 32, self.f64: 64, self.ptr: 64, self.ptr1: 64, self.ptr3: 32}
        self.floats = {self.f16, self.bf16, self.f32, self.f64}
        self.pointers = {self.ptr, self.ptr1, self.ptr3}
        self._vectors: dict[tuple[int, ir.Type], ir.Type] = {}
        self._parts: dict[ir.Type, tuple[int, ir.Type]] = {}

    def int(self, bits: int) -> ir.Type:
        """The signless integer of `bits` bits (1, 8, 16, 32, 64 or 128)."""
        return getattr(self, f"i{bits}")

    def vector(self, count: int, element: ir.Type) -> ir.Type:
        """`vector<count x element>`."""
        found = self._vectors.get((count, element))
        if found is None:
            found = self._vectors[count, element] = ir.VectorType.get([count], element)
            self._parts[found] = (count, element)
        return found

    def parts(self, type: ir.Type) -> tuple[int, ir.Type]:
        """(count, element) of a vector type; (0, type) of a scalar."""
        found = self._parts.get(type)
        if found is None:
            if isinstance(type, ir.VectorType):
                found = (type.shape[0], self.canonical(type.element_type))
            else:
                found = (0, type)
            self._parts[type] = found
        return found

    def like(self, type: ir.Type, element: ir.Type) -> ir.Type:
        """`element`, or the vector of it with as many elements as `type` has."""
        count, _ = self.parts(type)
        return self.vector(count, element) if count else element

    def width(self, type: ir.Type) -> int:
        """Bits of one element (pointers: 64, shared pointers: 32)."""
        return self.widths[self.parts(type)[1]]

    @staticmethod
    def canonical(type: ir.Type) -> ir.Type:
        """`type` itself; 8-bit floats become i8, as LLVM has none."""
        return types().i8 if isinstance(type, FLOAT8) else type

    @memo
    def struct(self, *members: ir.Type) -> ir.Type:
        """The struct of `members`; a long one has a name, as the text of LLVM IR repeats the type in every use."""
        if len(members) <= NAMELESS_MEMBERS:
            return llvm.StructType.get_literal(list(members))
        return llvm.StructType.new_identified(f"members{len(members)}", list(members))

    @memo
    def function(self, result: ir.Type, *params: ir.Type) -> ir.Type:
        """`!llvm.func<result (params)>`."""
        return ir.Type.parse(f"!llvm.func<{_text(result)} ({', '.join(map(_text, params))})>")

    @memo
    def string(self, text: str) -> ir.Attribute:
        """The string attribute `text`."""
        return ir.StringAttr.get(text)

    @memo
    def symbol(self, name: str) -> ir.Attribute:
        """The flat symbol reference `@name`."""
        return ir.FlatSymbolRefAttr.get(name)

    @memo
    def int_attr(self, bits: int, value: int) -> ir.Attribute:
        """`value : i<bits>`."""
        return ir.IntegerAttr.get(self.int(bits), value)

    @memo
    def i32_array(self, *values: int) -> ir.Attribute:
        """`array<i32: values>`."""
        return ir.DenseI32ArrayAttr.get(values)

    def dense(self, element: ir.Type, values: Sequence[int]) -> ir.Attribute:
        """The dense vector attribute of integer `values`; `element` is i8, i16, i32 or i64 and values may be unsigned."""
        bits = self.widths[element]
        half, full = 1 << (bits - 1), 1 << bits
        wrapped = array(ARRAY_CODES[bits], [v - full if v >= half else v for v in values])
        return ir.DenseElementsAttr.get(wrapped, type=self.vector(len(values), element))

    @memo
    def gep_attrs(self, element: ir.Type) -> dict[str, ir.Attribute]:
        """Attributes of a getelementptr over `element` with one dynamic index."""
        return {"rawConstantIndices": self.i32_array(GEP_DYNAMIC), "elem_type": ir.TypeAttr.get(element)}

    @memo
    def const_gep_attrs(self, element: ir.Type, offset: int) -> dict[str, ir.Attribute]:
        """Attributes of a getelementptr over `element` with the constant index `offset` (32 bits)."""
        return {"rawConstantIndices": self.i32_array(offset), "elem_type": ir.TypeAttr.get(element)}

    @memo
    def call_attrs(self, callee: str, arguments: int) -> dict[str, ir.Attribute]:
        """Attributes of a direct llvm.call of `callee`."""
        segments = self.i32_array(arguments, 0)
        return {"callee": self.symbol(callee), "operandSegmentSizes": segments, "op_bundle_sizes": self.i32_array()}

    @memo
    def intrinsic_attrs(self, name: str, arguments: int) -> dict[str, ir.Attribute]:
        """Attributes of a call of the LLVM intrinsic `name`."""
        segments = self.i32_array(arguments, 0)
        return {"intrin": self.string(name), "operandSegmentSizes": segments, "op_bundle_sizes": self.i32_array()}

    @memo
    def icmp(self, predicate: str) -> dict[str, ir.Attribute]:
        """Attributes of an llvm.icmp: eq, ne, slt, sle, sgt, sge, ult, ule, ugt or uge."""
        return {"predicate": self.int_attr(64, ICMP.index(predicate))}

    @memo
    def fcmp(self, predicate: str) -> dict[str, ir.Attribute]:
        """Attributes of an llvm.fcmp that is false for NaN: oeq, ogt, oge, olt or ole."""
        return {"predicate": self.int_attr(64, 1 + FCMP.index(predicate))}

    @memo
    def position(self, index: int) -> dict[str, ir.Attribute]:
        """Attributes of extractvalue and insertvalue."""
        return {"position": ir.DenseI64ArrayAttr.get([index])}

    @memo
    def shuffle_attrs(self, mask: tuple[int, ...]) -> dict[str, ir.Attribute]:
        """Attributes of a shufflevector."""
        return {"mask": self.i32_array(*mask)}

    @memo
    def asm_attrs(self, text: str, constraints: str, side_effects: bool) -> dict[str, ir.Attribute]:
        """Attributes of an inline asm op."""
        attrs = {"asm_string": self.string(text), "constraints": self.string(constraints)}
        return attrs | {"has_side_effects": self.unit} if side_effects else attrs

    @memo
    def fastmath(self, flags: str) -> dict[str, ir.Attribute]:
        """The attribute dictionary `{fastmathFlags = #llvm.fastmath<flags>}`."""
        return {"fastmathFlags": ir.Attribute.parse(f"#llvm.fastmath<{flags}>")}


FLOAT8 = (ir.Float8E5M2Type, ir.Float8E4M3FNType, ir.Float8E4M3FNUZType, ir.Float8E5M2FNUZType)


def _text(type: ir.Type) -> str:
    return str(type).removeprefix("!llvm.")


@cache
def types() -> Types:
    """The types of the process-wide context."""
    return Types()


def scalar_type(type: ir.Type) -> ir.Type:
    """LLVM type of one element. 8-bit floats are i8, index is i64, tokens are i32, buffers and descriptors are pointers."""
    t = types()
    if tile.is_ptr(type):
        return llvm.PointerType.get(tile.ptr_space(type))
    if isinstance(type, ir.IndexType):
        return t.i64
    if isinstance(type, FLOAT8):
        return t.i8
    if tilegpu.is_buffer(type):
        return t.ptr3
    if tile.is_desc(type):
        return t.ptr
    if type == tilegpu.token_type():
        return t.i32
    return type
