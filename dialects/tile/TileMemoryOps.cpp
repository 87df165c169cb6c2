//===- TileMemoryOps.cpp - Verification of memory ops ----------------------===//

#include "tile/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace tilewright::tile {

//===----------------------------------------------------------------------===//
// load, store
//===----------------------------------------------------------------------===//

void LoadOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPtrMutable());
  if (getIsVolatile())
    effects.emplace_back(MemoryEffects::Write::get(), &getPtrMutable());
}

LogicalResult LoadOp::verify() {
  if (getOther() && !getMask())
    return emitOpError() << "'other' needs a 'mask'";
  if (getCache() == Cache::WB || getCache() == Cache::WT)
    return emitOpError() << "cache operator '" << stringifyCache(*getCache()) << "' is for stores; a load takes ca, cg, cs or cv";
  return success();
}

OpFoldResult LoadOp::fold(FoldAdaptor op) {
  if (matchPattern(op.getMask(), m_One())) {
    getMaskMutable().clear();
    getOtherMutable().clear();
    return getResult();
  }
  if (!matchPattern(op.getMask(), m_Zero()) || getIsVolatile())
    return {};
  if (getOther())
    return getOther();
  // Nothing is read, so any value will do.
  return Builder(getContext()).getZeroAttr(getType());
}

LogicalResult StoreOp::canonicalize(StoreOp op, PatternRewriter &rewriter) {
  if (!op.getMask())
    return failure();
  if (matchPattern(op.getMask(), m_Zero())) {
    rewriter.eraseOp(op);
    return success();
  }
  if (!matchPattern(op.getMask(), m_One()))
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
  return success();
}

LogicalResult StoreOp::verify() {
  if (getCache() == Cache::CA || getCache() == Cache::CV)
    return emitOpError() << "cache operator '" << stringifyCache(*getCache()) << "' is for loads; a store takes wb, cg, cs or wt";
  return success();
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

/// Succeeds where `kind` can combine elements of type `element`.
static LogicalResult verifyRMW(Operation *op, RMW kind, Type element) {
  bool isFloat = isa<FloatType>(element);
  if (kind == RMW::FAdd && !isFloat)
    return op->emitOpError() << "'fadd' needs floats, got " << element;
  if (kind != RMW::FAdd && kind != RMW::Xchg && kind != RMW::Max && kind != RMW::Min && !isa<IntegerType>(element))
    return op->emitOpError() << "'" << stringifyRMW(kind) << "' needs integers, got " << element;
  return success();
}

/// Succeeds where an atomic access of an element of type `element` exists.
static LogicalResult verifyAtomicWidth(Operation *op, Type element) {
  unsigned bits = getElementBits(element);
  if (bits != 16 && bits != 32 && bits != 64)
    return op->emitOpError() << "needs elements of 16, 32 or 64 bits, got " << element;
  return success();
}

LogicalResult AtomicRMWOp::verify() {
  Type element = getElementTypeOrSelf(getVal().getType());
  if (failed(verifyAtomicWidth(*this, element)))
    return failure();
  return verifyRMW(*this, getKind(), element);
}

LogicalResult AtomicCASOp::verify() { return verifyAtomicWidth(*this, getElementTypeOrSelf(getVal().getType())); }

LogicalResult AtomicLoadOp::verify() {
  if (getSem() != Sem::Acquire && getSem() != Sem::Relaxed)
    return emitOpError() << "a load is acquire or relaxed, not " << stringifySem(getSem());
  return success();
}

LogicalResult AtomicStoreOp::verify() {
  if (getSem() != Sem::Release && getSem() != Sem::Relaxed)
    return emitOpError() << "a store is release or relaxed, not " << stringifySem(getSem());
  return success();
}

LogicalResult AtomicPollOp::verify() {
  if (getSem() != Sem::Acquire && getSem() != Sem::Relaxed)
    return emitOpError() << "a poll is acquire or relaxed, not " << stringifySem(getSem());
  Type element = getElementTypeOrSelf(getExpected().getType());
  if (!isa<IntegerType>(element))
    return emitOpError() << "needs integers, got " << element;
  return verifyAtomicWidth(*this, element);
}

//===----------------------------------------------------------------------===//
// Tensor descriptors
//===----------------------------------------------------------------------===//

LogicalResult MakeDescriptorOp::verify() {
  DescType desc = getResult().getType();
  size_t rank = desc.getShape().size();
  if (getShape().size() != rank || getStrides().size() != rank)
    return emitOpError() << "needs " << rank << " sizes and strides for block shape " << formatShape(desc.getShape()) << ", got "
                         << getShape().size() << " and " << getStrides().size();
  if (cast<PtrType>(getBase().getType()).getPointee() != desc.getElementType())
    return emitOpError() << "base points to " << cast<PtrType>(getBase().getType()).getPointee() << ", the descriptor's elements are "
                         << desc.getElementType();
  if (getPadding() == Padding::NaN && !isa<FloatType>(desc.getElementType()))
    return emitOpError() << "NaN padding needs floats, got " << desc.getElementType();
  return success();
}

/// Succeeds where there is one index per dimension of `desc`.
static LogicalResult verifyIndices(Operation *op, DescType desc, OperandRange indices) {
  if (indices.size() != desc.getShape().size())
    return op->emitOpError() << "needs " << desc.getShape().size() << " indices, got " << indices.size();
  return success();
}

/// Succeeds where `value` is a block of `desc`.
static LogicalResult verifyBlock(Operation *op, DescType desc, RankedTensorType value) {
  if (value.getShape() != desc.getShape() || value.getElementType() != desc.getElementType())
    return op->emitOpError() << "value of " << formatShape(value.getShape()) << "x" << value.getElementType()
                             << " is not a block of the descriptor: " << formatShape(desc.getShape()) << "x" << desc.getElementType();
  return success();
}

/// Succeeds where `x` are row offsets for the rows that `desc` describes; sets `shape` to that of the rows.
static LogicalResult inferRows(std::optional<Location> loc, DescType desc, RankedTensorType x, SmallVectorImpl<int64_t> &shape) {
  if (desc.getShape().size() != 2 || desc.getShape()[0] != 1)
    return emitOptionalError(loc, "needs a descriptor of blocks of one row, got ", formatShape(desc.getShape()));
  if (x.getRank() != 1)
    return emitOptionalError(loc, "needs x offsets of rank 1, got ", formatShape(x.getShape()));
  shape.assign({x.getDimSize(0), desc.getShape()[1]});
  return success();
}

LogicalResult DescriptorLoadOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  auto desc = dyn_cast<DescType>(op.getDesc().getType());
  if (!desc)
    return emitOptionalError(loc, "needs a tensor descriptor, got ", op.getDesc().getType());
  types.push_back(RankedTensorType::get(desc.getShape(), desc.getElementType()));
  return success();
}

LogicalResult DescriptorLoadOp::verify() { return verifyIndices(*this, getDesc().getType(), getIndices()); }

LogicalResult DescriptorStoreOp::verify() {
  if (failed(verifyIndices(*this, getDesc().getType(), getIndices())))
    return failure();
  return verifyBlock(*this, getDesc().getType(), getValue().getType());
}

LogicalResult DescriptorReduceOp::verify() {
  if (failed(verifyIndices(*this, getDesc().getType(), getIndices())) || failed(verifyBlock(*this, getDesc().getType(), getValue().getType())))
    return failure();
  if (getKind() == RMW::Xchg)
    return emitOpError() << "cannot exchange a block";
  return verifyRMW(*this, getKind(), getDesc().getType().getElementType());
}

LogicalResult DescriptorGatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  auto desc = dyn_cast<DescType>(op.getDesc().getType());
  auto x = dyn_cast<RankedTensorType>(op.getXOffsets().getType());
  if (!desc || !x)
    return emitOptionalError(loc, "needs a tensor descriptor and x offsets");
  SmallVector<int64_t> shape;
  if (failed(inferRows(loc, desc, x, shape)))
    return failure();
  types.push_back(RankedTensorType::get(shape, desc.getElementType()));
  return success();
}

LogicalResult DescriptorScatterOp::verify() {
  DescType desc = getDesc().getType();
  SmallVector<int64_t> shape;
  if (failed(inferRows(getLoc(), desc, getXOffsets().getType(), shape)))
    return failure();
  RankedTensorType value = getValue().getType();
  if (value.getShape() != ArrayRef<int64_t>(shape) || value.getElementType() != desc.getElementType())
    return emitOpError() << "value of " << formatShape(value.getShape()) << "x" << value.getElementType() << " should be "
                         << formatShape(shape) << "x" << desc.getElementType();
  return success();
}

} // namespace tilewright::tile
