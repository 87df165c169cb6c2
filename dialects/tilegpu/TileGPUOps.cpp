//===- TileGPUOps.cpp - Inference and verification of tilegpu ops ----------===//

#include "tilegpu/TileGPU.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using tilewright::tile::formatShape;
using tilewright::tile::getShape;

namespace tilewright::tilegpu {

/// Succeeds where a tensor and a buffer without slots hold the same elements.
static LogicalResult sameElements(Operation *op, RankedTensorType tensor, BufferType buffer) {
  if (buffer.getSlots())
    return op->emitOpError() << "needs one slot of the buffer: index it with tilegpu.slot";
  if (tensor.getShape() != buffer.getShape() || tensor.getElementType() != buffer.getElementType())
    return op->emitOpError() << "tensor of " << formatShape(tensor.getShape()) << "x" << tensor.getElementType() << " and buffer of "
                             << formatShape(buffer.getShape()) << "x" << buffer.getElementType() << " differ";
  return success();
}

//===----------------------------------------------------------------------===//
// convert_layout and buffers
//===----------------------------------------------------------------------===//

LogicalResult ConvertLayoutOp::verify() {
  RankedTensorType src = getSrc().getType(), dst = getResult().getType();
  if (src.getShape() != dst.getShape() || src.getElementType() != dst.getElementType())
    return emitOpError() << "only the layout may change: " << src << " to " << dst;
  if (!src.getEncoding() || !dst.getEncoding())
    return emitOpError() << "needs tensors with layouts";
  return success();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor op) {
  if (getSrc().getType() == getType())
    return getSrc();
  if (auto inner = getSrc().getDefiningOp<ConvertLayoutOp>()) {
    getSrcMutable().assign(inner.getSrc());
    return getResult();
  }
  auto splat = dyn_cast_or_null<SplatElementsAttr>(op.getSrc());
  return splat ? splat.resizeSplat(getType()) : Attribute();
}

/// Values that every thread can make for itself are made in the layout that is wanted.
LogicalResult ConvertLayoutOp::canonicalize(ConvertLayoutOp op, PatternRewriter &rewriter) {
  if (auto splat = op.getSrc().getDefiningOp<tile::SplatOp>()) {
    rewriter.replaceOpWithNewOp<tile::SplatOp>(op, op.getType(), splat.getSrc());
    return success();
  }
  if (auto range = op.getSrc().getDefiningOp<tile::RangeOp>()) {
    rewriter.replaceOpWithNewOp<tile::RangeOp>(op, op.getType(), range.getStartAttr(), range.getEndAttr());
    return success();
  }
  return failure();
}

void LocalAllocOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Allocate::get(), getOperation()->getOpResult(0), SharedMemory::get());
  if (getInit())
    effects.emplace_back(MemoryEffects::Write::get(), getOperation()->getOpResult(0), SharedMemory::get());
}

LogicalResult LocalAllocOp::verify() {
  if (getInit())
    return sameElements(*this, getInit().getType(), getResult().getType());
  return success();
}

LogicalResult SlotOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  auto buffer = dyn_cast<BufferType>(op.getBuffer().getType());
  if (!buffer || !buffer.getSlots())
    return emitOptionalError(loc, "needs a buffer with slots, got ", op.getBuffer().getType());
  types.push_back(BufferType::get(context, buffer.getShape(), buffer.getElementType(), buffer.getLayout(), 0));
  return success();
}

LogicalResult ViewOp::verify() {
  BufferType src = getBuffer().getType(), dst = getResult().getType();
  ArrayRef<int64_t> from = src.getShape(), to = dst.getShape();
  if (src.getSlots() != dst.getSlots())
    return emitOpError() << "cannot change the number of slots (" << src.getSlots() << " to " << dst.getSlots() << ")";
  if (src.getElementType() != dst.getElementType())
    return emitOpError() << "cannot change the element type (" << src.getElementType() << " to " << dst.getElementType() << ")";
  if (getOffsets() && getOrder())
    return emitOpError() << "takes 'offsets' or 'order', not both";
  if (auto offsets = getOffsets()) {
    if (offsets->size() != from.size() || to.size() != from.size())
      return emitOpError() << "needs one offset per dimension of " << formatShape(from);
    for (size_t i = 0; i < from.size(); ++i)
      if ((*offsets)[i] < 0 || (*offsets)[i] + to[i] > from[i] || (*offsets)[i] % to[i] != 0)
        return emitOpError() << "sub-block of " << to[i] << " at " << (*offsets)[i] << " is not an aligned part of dimension " << i
                             << " of size " << from[i];
    return success();
  }
  if (auto order = getOrder()) {
    SmallVector<bool> seen(from.size(), false);
    for (auto [i, dim] : llvm::enumerate(*order)) {
      if (order->size() != from.size() || to.size() != from.size() || dim < 0 || dim >= int64_t(from.size()) || seen[dim])
        return emitOpError() << "order must be a permutation of the dimensions of " << formatShape(from);
      seen[dim] = true;
      if (to[i] != from[dim])
        return emitOpError() << "dimension " << i << " should be " << from[dim] << ", got " << to[i];
    }
    return success();
  }
  if (llvm::product_of(from) != llvm::product_of(to))
    return emitOpError() << "cannot reshape " << formatShape(from) << " to " << formatShape(to);
  return success();
}

OpFoldResult ViewOp::fold(FoldAdaptor) { return getBuffer().getType() == getType() && !getOffsets() && !getOrder() ? getBuffer() : Value(); }

LogicalResult LocalLoadOp::verify() { return sameElements(*this, getResult().getType(), getBuffer().getType()); }

LogicalResult LocalStoreOp::verify() { return sameElements(*this, getValue().getType(), getBuffer().getType()); }

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

LogicalResult AsyncCopyOp::verify() {
  auto values = cast<RankedTensorType>(tile::getPointeeType(getPtrs().getType()));
  if (failed(sameElements(*this, values, getBuffer().getType())))
    return failure();
  if (getMask() && getMask().getType() != tile::getMaskType(values))
    return emitOpError() << "mask must be i1 of the shape and layout of ptrs";
  if (getOther() && getOther().getType() != values)
    return emitOpError() << "other must have the type that ptrs point to: " << values;
  if (getOther() && !getMask())
    return emitOpError() << "'other' needs a 'mask'";
  return success();
}

/// Succeeds where `buffer` holds one block of `desc`, which `indices` locate.
static LogicalResult verifyBlock(Operation *op, tile::DescType desc, OperandRange indices, BufferType buffer) {
  if (indices.size() != desc.getShape().size())
    return op->emitOpError() << "needs " << desc.getShape().size() << " indices, got " << indices.size();
  if (buffer.getSlots())
    return op->emitOpError() << "needs one slot of the buffer: index it with tilegpu.slot";
  if (buffer.getElementType() != desc.getElementType() || llvm::product_of(buffer.getShape()) != llvm::product_of(desc.getShape()))
    return op->emitOpError() << "buffer of " << formatShape(buffer.getShape()) << "x" << buffer.getElementType()
                             << " does not hold a block of the descriptor: " << formatShape(desc.getShape()) << "x" << desc.getElementType();
  return success();
}

/// Succeeds where `buffer` holds one row of `desc` for each x offset.
static LogicalResult verifyRows(Operation *op, tile::DescType desc, RankedTensorType x, BufferType buffer) {
  if (desc.getShape().size() != 2 || desc.getShape()[0] != 1 || x.getRank() != 1)
    return op->emitOpError() << "needs a descriptor of blocks of one row and x offsets of rank 1";
  if (buffer.getSlots())
    return op->emitOpError() << "needs one slot of the buffer: index it with tilegpu.slot";
  SmallVector<int64_t> shape{x.getDimSize(0), desc.getShape()[1]};
  if (buffer.getElementType() != desc.getElementType() || buffer.getShape() != ArrayRef<int64_t>(shape))
    return op->emitOpError() << "buffer of " << formatShape(buffer.getShape()) << "x" << buffer.getElementType() << " should be "
                             << formatShape(shape) << "x" << desc.getElementType();
  return success();
}

/// Succeeds where `barrier` is a single mbarrier.
static LogicalResult verifyOneBarrier(Operation *op, BufferType barrier) {
  if (barrier.getSlots() || llvm::product_of(barrier.getShape()) != 1)
    return op->emitOpError() << "needs a single mbarrier, got " << barrier;
  return success();
}

LogicalResult TMALoadOp::verify() {
  if (failed(verifyOneBarrier(*this, cast<BufferType>(getMbarrier().getType()))))
    return failure();
  return verifyBlock(*this, getDesc().getType(), getIndices(), getBuffer().getType());
}

LogicalResult TMAGatherOp::verify() {
  if (failed(verifyOneBarrier(*this, cast<BufferType>(getMbarrier().getType()))))
    return failure();
  return verifyRows(*this, getDesc().getType(), getXOffsets().getType(), getBuffer().getType());
}

LogicalResult TMAStoreOp::verify() { return verifyBlock(*this, getDesc().getType(), getIndices(), getBuffer().getType()); }

LogicalResult TMAReduceOp::verify() {
  if (getKind() == tile::RMW::Xchg)
    return emitOpError() << "cannot exchange a block";
  return verifyBlock(*this, getDesc().getType(), getIndices(), getBuffer().getType());
}

LogicalResult TMAScatterOp::verify() { return verifyRows(*this, getDesc().getType(), getXOffsets().getType(), getBuffer().getType()); }

//===----------------------------------------------------------------------===//
// Matrix units
//===----------------------------------------------------------------------===//

static LogicalResult verifyInstr(Operation *op, ArrayRef<int32_t> instr) {
  if (instr.size() != 3 || llvm::any_of(instr, [](int32_t size) { return size <= 0; }))
    return op->emitOpError() << "instr must be [m, n, k]";
  return success();
}

static ArrayRef<int64_t> operandShape(Type type) {
  auto buffer = dyn_cast<BufferType>(type);
  return buffer ? buffer.getShape() : getShape(type);
}

static Type operandElement(Type type) {
  auto buffer = dyn_cast<BufferType>(type);
  return buffer ? buffer.getElementType() : getElementTypeOrSelf(type);
}

LogicalResult MmaOp::verify() {
  RankedTensorType a = getA().getType(), b = getB().getType(), acc = getAcc().getType();
  if (failed(verifyInstr(*this, getInstr())) || failed(tile::verifyDotShapes(*this, a.getShape(), b.getShape(), acc.getShape())))
    return failure();
  return tile::verifyDotTypes(*this, a.getElementType(), b.getElementType(), acc.getElementType());
}

LogicalResult WgmmaOp::verify() {
  Type a = getA().getType(), b = getB().getType();
  RankedTensorType acc = getAcc().getType();
  if (failed(verifyInstr(*this, getInstr())))
    return failure();
  if (getInstr()[0] != 64)
    return emitOpError() << "instr must have m = 64, got " << getInstr()[0];
  for (Type type : {a, b})
    if (auto buffer = dyn_cast<BufferType>(type); buffer && buffer.getSlots())
      return emitOpError() << "needs one slot of the buffer: index it with tilegpu.slot";
  if (failed(tile::verifyDotShapes(*this, operandShape(a), operandShape(b), acc.getShape())))
    return failure();
  return tile::verifyDotTypes(*this, operandElement(a), operandElement(b), acc.getElementType());
}

LogicalResult WgmmaWaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, SmallVectorImpl<Type> &types) {
  llvm::append_range(types, op.getValues().getTypes());
  return success();
}

//===----------------------------------------------------------------------===//
// Barriers and partitions
//===----------------------------------------------------------------------===//

LogicalResult BarrierOp::canonicalize(BarrierOp op, PatternRewriter &rewriter) {
  if (!isa_and_nonnull<BarrierOp>(op->getNextNode()))
    return failure();
  rewriter.eraseOp(op);
  return success();
}

LogicalResult WarpSpecializeOp::verify() {
  size_t count = getPartitions().size();
  if (count == 0)
    return emitOpError() << "needs at least one role";
  if (getRoles().size() != count || getWarps().size() != count || getRegisters().size() != count)
    return emitOpError() << "has " << count << " regions for " << getRoles().size() << " roles, " << getWarps().size() << " warps and "
                         << getRegisters().size() << " registers";
  for (auto [i, region] : llvm::enumerate(getPartitions())) {
    StringRef role = cast<StringAttr>(getRoles()[i]).getValue();
    if (getWarps()[i] <= 0)
      return emitOpError() << "role '" << role << "' needs at least one warp";
    if (!llvm::equal(region.front().getArgumentTypes(), getCaptures().getTypes()))
      return emitOpError() << "role '" << role << "' must take the captures as block arguments";
    Operation *end = region.front().empty() ? nullptr : &region.front().back();
    if (i == 0 ? !isa_and_nonnull<WarpYieldOp>(end) : !isa_and_nonnull<WarpReturnOp>(end))
      return emitOpError() << "role '" << role << "' must end with " << (i == 0 ? "warp_yield" : "warp_return");
  }
  return success();
}

LogicalResult WarpYieldOp::verify() {
  auto parent = cast<WarpSpecializeOp>((*this)->getParentOp());
  if (!llvm::equal(getValues().getTypes(), parent.getOuts().getTypes()))
    return emitOpError() << "yields (" << getValues().getTypes() << ") where the results are (" << parent.getOuts().getTypes() << ")";
  return success();
}

} // namespace tilewright::tilegpu
