"""Types of the language -> MLIR types, and the attributes that the builder needs often: each made once per context."""

from __future__ import annotations

from mlir import ir

from tilewright import dialects
from tilewright.dialects import tile
from tilewright.language import dtypes

_FLOATS = {
    "fp64": ir.F64Type,
    "fp32": ir.F32Type,
    "fp16": ir.F16Type,
    "bf16": ir.BF16Type,
    "fp8e5": ir.Float8E5M2Type,
    "fp8e4nv": ir.Float8E4M3FNType,
    "fp8e4b8": ir.Float8E4M3FNUZType,
    "fp8e5b16": ir.Float8E5M2FNUZType,
}


class Types:
    """Conversion of types in one context. fp8e4b15 has no MLIR type and is carried as i8; signedness is dropped."""

    def __init__(self, context: ir.Context):
        self.context = context
        self._types: dict[object, ir.Type] = {}
        self._masks: dict[object, ir.Type] = {}
        self._attributes: dict[str, ir.Attribute] = {}
        self.i1, self.i8, self.i32, self.i64 = (ir.IntegerType.get_signless(n, context) for n in (1, 8, 32, 64))
        self.unit = ir.UnitAttr.get(context)

    def __call__(self, ty: dtypes.base_type) -> ir.Type:
        """The MLIR type of a value of type `ty`, which has exactly one handle."""
        found = self._types.get(ty)
        if found is None:
            found = self._types[ty] = self._make(ty)
        return found

    def _make(self, ty: dtypes.base_type) -> ir.Type:
        if isinstance(ty, dtypes.block_type):
            return ir.RankedTensorType.get(ty.shape, self(ty.element_ty), loc=ir.Location.unknown(self.context))
        if isinstance(ty, dtypes.pointer_type):
            return tile.ptr_type(self.i8 if ty.element_ty.is_void() else self(ty.element_ty), ty.address_space)
        if isinstance(ty, dtypes.tensor_descriptor_type):
            return tile.desc_type(ty.block_type.shape, self(ty.block_type.element_ty))
        if ty.name in _FLOATS:
            return _FLOATS[ty.name].get(self.context)
        if ty.name == "fp8e4b15":
            return self.i8
        if ty.is_int():
            return ir.IntegerType.get_signless(ty.int_bitwidth, self.context)
        raise TypeError(f"a value of type {ty} cannot exist in a kernel")

    def mask(self, ty: dtypes.dtype) -> ir.Type:
        """i1 of the shape of `ty`."""
        found = self._masks.get(ty)
        if found is None:
            found = self._masks[ty] = self(ty.with_element_ty(dtypes.int1))
        return found

    def attribute(self, text: str) -> ir.Attribute:
        """A parsed attribute, such as `#tile<cache ca>`."""
        found = self._attributes.get(text)
        if found is None:
            found = self._attributes[text] = ir.Attribute.parse(text, self.context)
        return found


_types: Types | None = None


def types() -> Types:
    """The `Types` of the process's context."""
    global _types
    context = dialects.context()
    if _types is None or _types.context is not context:
        _types = Types(context)
    return _types
