//===- TileArithOps.cpp - Verification of arithmetic ops -------------------===//

#include "tile/Tile.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright::tile {

/// Succeeds where two values have one shape and one layout.
static LogicalResult sameShape(Operation *op, Type a, Type b, StringRef nameA, StringRef nameB) {
  if (isa<RankedTensorType>(a) != isa<RankedTensorType>(b) || getShape(a) != getShape(b))
    return op->emitOpError() << "shape of " << nameA << " (" << formatShape(getShape(a)) << ") differs from shape of " << nameB << " ("
                             << formatShape(getShape(b)) << ")";
  if (getEncoding(a) != getEncoding(b))
    return op->emitOpError() << "layout of " << nameA << " differs from layout of " << nameB;
  return success();
}

LogicalResult AddPtrOp::verify() { return sameShape(*this, getPtr().getType(), getOffset().getType(), "ptr", "offset"); }

OpFoldResult AddPtrOp::fold(FoldAdaptor op) { return matchPattern(op.getOffset(), m_Zero()) ? getPtr() : Value(); }

LogicalResult BitcastOp::verify() {
  Type src = getSrc().getType(), dst = getResult().getType();
  if (failed(sameShape(*this, src, dst, "src", "result")))
    return failure();
  if (getElementBits(src) != getElementBits(dst))
    return emitOpError() << "cannot reinterpret " << getElementBits(src) << " bits as " << getElementBits(dst);
  if (isa<PtrType>(getElementTypeOrSelf(src)) != isa<PtrType>(getElementTypeOrSelf(dst)))
    return emitOpError() << "cannot turn a pointer into a number: use ptr_to_int or int_to_ptr";
  return success();
}

OpFoldResult BitcastOp::fold(FoldAdaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  if (auto inner = getSrc().getDefiningOp<BitcastOp>()) {
    getSrcMutable().assign(inner.getSrc());
    return getResult();
  }
  return {};
}

OpFoldResult PtrToIntOp::fold(FoldAdaptor) {
  auto inner = getSrc().getDefiningOp<IntToPtrOp>();
  return inner ? inner.getSrc() : Value();
}

OpFoldResult IntToPtrOp::fold(FoldAdaptor) {
  auto inner = getSrc().getDefiningOp<PtrToIntOp>();
  return inner && inner.getSrc().getType() == getType() ? inner.getSrc() : Value();
}

LogicalResult IntToPtrOp::verify() { return sameShape(*this, getSrc().getType(), getResult().getType(), "src", "result"); }

LogicalResult FpToFpOp::verify() {
  if (failed(sameShape(*this, getSrc().getType(), getResult().getType(), "src", "result")))
    return failure();
  auto check = [&](Type type, std::optional<StringRef> kind, StringRef name) -> LogicalResult {
    Type element = getElementTypeOrSelf(type);
    if (kind && *kind != "fp8e4b15")
      return emitOpError() << name << "_kind must be \"fp8e4b15\", got \"" << *kind << "\"";
    if (kind && !element.isInteger(8))
      return emitOpError() << "a " << *kind << " " << name << " is carried as i8, not as " << element;
    if (!kind && !isa<FloatType>(element))
      return emitOpError() << name << " must be a float, got " << element;
    return success();
  };
  if (failed(check(getSrc().getType(), getSrcKind(), "src")))
    return failure();
  return check(getResult().getType(), getDstKind(), "dst");
}

/// True where every value of `narrow` is one of `wide`.
static bool isExact(Type narrow, Type wide) {
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(narrow)), to = dyn_cast<FloatType>(getElementTypeOrSelf(wide));
  return from && to && APFloat::isRepresentableBy(from.getFloatSemantics(), to.getFloatSemantics());
}

/// `attr`, a float constant or one with equal elements, rounded to `type`; null where the target may saturate instead (fp8).
static Attribute convertConstant(Attribute attr, Type type, APFloat::roundingMode mode) {
  Type element = getElementTypeOrSelf(type);
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(attr)) {
    Attribute value = convertConstant(splat.getSplatValue<Attribute>(), element, mode);
    return value ? SplatElementsAttr::get(cast<ShapedType>(type), value) : Attribute();
  }
  auto constant = dyn_cast_or_null<FloatAttr>(attr);
  if (!constant || !isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(element))
    return {};
  APFloat value = constant.getValue();
  bool losesInfo;
  value.convert(cast<FloatType>(element).getFloatSemantics(), mode, &losesInfo);
  return FloatAttr::get(element, value);
}

OpFoldResult FpToFpOp::fold(FoldAdaptor op) {
  if (getSrcKind() || getDstKind())
    return {};
  if (getSrc().getType() == getType())
    return getSrc();
  // There and back: the detour was exact. Not so for infinities of 8-bit types, which the way back saturates.
  auto inner = getSrc().getDefiningOp<FpToFpOp>();
  bool saturates = getElementTypeOrSelf(getType()).getIntOrFloatBitWidth() == 8;
  if (inner && !saturates && !inner.getSrcKind() && inner.getSrc().getType() == getType() && isExact(getType(), getSrc().getType()))
    return inner.getSrc();
  return convertConstant(op.getSrc(), getType(), getRounding() == Rounding::RTZ ? APFloat::rmTowardZero : APFloat::rmNearestTiesToEven);
}

//===----------------------------------------------------------------------===//
// inline_asm, extern_call
//===----------------------------------------------------------------------===//

void InlineAsmOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (getPure())
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

Speculation::Speculatability InlineAsmOp::getSpeculatability() {
  return getPure() ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

LogicalResult InlineAsmOp::verify() {
  // Tensors of one shape go in and out together; scalars are repeated.
  Type first;
  for (Type type : llvm::concat<Type>(SmallVector<Type>(getArgs().getTypes()), SmallVector<Type>(getOuts().getTypes()))) {
    if (!isa<RankedTensorType>(type))
      continue;
    if (!first)
      first = type;
    if (failed(sameShape(*this, first, type, "one tensor", "another")))
      return failure();
  }
  return success();
}

void ExternCallOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (getPure())
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

Speculation::Speculatability ExternCallOp::getSpeculatability() {
  return getPure() ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

LogicalResult ExternCallOp::verify() {
  if (getSymbol().empty())
    return emitOpError() << "needs the name of a function";
  for (Type type : getArgs().getTypes())
    if (failed(sameShape(*this, type, getResult().getType(), "an argument", "the result")))
      return failure();
  return success();
}

} // namespace tilewright::tile
