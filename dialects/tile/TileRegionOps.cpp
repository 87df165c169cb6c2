//===- TileRegionOps.cpp - Verification of ops with a region ---------------===//

#include "tile/Tile.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace tilewright::tile {

/// Succeeds where every terminator of `body` yields values of `types`.
static LogicalResult verifyYields(Operation *op, Region &body, ArrayRef<Type> types) {
  for (Block &block : body) {
    auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
    if (!yield)
      continue;
    if (!llvm::equal(yield.getValues().getTypes(), types))
      return yield.emitOpError() << "yields (" << yield.getValues().getTypes() << ") where '" << op->getName() << "' needs (" << TypeRange(types)
                                 << ")";
  }
  return success();
}

/// Succeeds where the entry block of `body` takes scalars of `types`.
static LogicalResult verifyArguments(Operation *op, Region &body, ArrayRef<Type> types) {
  if (!llvm::equal(body.front().getArgumentTypes(), types))
    return op->emitOpError() << "region takes (" << body.front().getArgumentTypes() << ") where it needs (" << TypeRange(types) << ")";
  return success();
}

/// Succeeds where the sources of a reduce or scan agree and its region combines them.
static LogicalResult verifyCombine(Operation *op, OperandRange srcs, int64_t axis, Region &combine) {
  if (srcs.empty())
    return op->emitOpError() << "needs at least one source";
  auto first = cast<RankedTensorType>(srcs[0].getType());
  if (axis < 0 || axis >= first.getRank())
    return op->emitOpError() << "axis " << axis << " is outside [0, " << first.getRank() << ")";
  SmallVector<Type> elements;
  for (Value src : srcs) {
    auto type = cast<RankedTensorType>(src.getType());
    if (type.getShape() != first.getShape())
      return op->emitOpError() << "sources differ in shape: " << formatShape(first.getShape()) << " and " << formatShape(type.getShape());
    if (type.getEncoding() != first.getEncoding())
      return op->emitOpError() << "sources differ in layout";
    elements.push_back(type.getElementType());
  }
  SmallVector<Type> arguments(elements);
  arguments.append(elements);
  if (failed(verifyArguments(op, combine, arguments)))
    return failure();
  return verifyYields(op, combine, elements);
}

LogicalResult ReduceOp::verify() {
  if (failed(verifyCombine(*this, getSrcs(), getAxis(), getCombine())))
    return failure();
  if (getOuts().size() != getSrcs().size())
    return emitOpError() << "has " << getSrcs().size() << " sources and " << getOuts().size() << " results";
  for (auto [src, out] : llvm::zip(getSrcs(), getOuts())) {
    auto type = cast<RankedTensorType>(src.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + getAxis());
    Type result = out.getType();
    if (shape.empty() == isa<RankedTensorType>(result) || getShape(result) != ArrayRef<int64_t>(shape) ||
        getElementTypeOrSelf(result) != type.getElementType())
      return emitOpError() << "result of reducing " << formatShape(type.getShape()) << " along axis " << getAxis() << " is "
                           << formatShape(shape) << " of " << type.getElementType() << ", got " << result;
  }
  return success();
}

/// The reduction of one element is that element.
LogicalResult ReduceOp::canonicalize(ReduceOp op, PatternRewriter &rewriter) {
  auto type = cast<RankedTensorType>(op.getSrcs()[0].getType());
  if (type.getDimSize(op.getAxis()) != 1 || type.getEncoding())
    return failure();
  SmallVector<Value> values;
  for (auto [src, out] : llvm::zip(op.getSrcs(), op.getOuts())) {
    if (isa<RankedTensorType>(out.getType()))
      values.push_back(ReshapeOp::create(rewriter, op.getLoc(), out.getType(), src, /*allow_reorder=*/false));
    else
      values.push_back(UnsplatOp::create(rewriter, op.getLoc(), out.getType(), src));
  }
  rewriter.replaceOp(op, values);
  return success();
}

LogicalResult ScanOp::verify() {
  if (failed(verifyCombine(*this, getSrcs(), getAxis(), getCombine())))
    return failure();
  if (!llvm::equal(getSrcs().getTypes(), getOuts().getTypes()))
    return emitOpError() << "results must have the types of the sources";
  return success();
}

LogicalResult MapElementwiseOp::verify() {
  if (getSrcs().empty() || getOuts().empty())
    return emitOpError() << "needs at least one source and one result";
  auto first = cast<RankedTensorType>(getSrcs()[0].getType());
  if (first.getNumElements() % getPack() != 0)
    return emitOpError() << "pack " << getPack() << " does not divide the " << first.getNumElements() << " elements";
  auto scalars = [&](TypeRange types, SmallVectorImpl<Type> &elements) -> LogicalResult {
    for (Type type : types) {
      auto tensor = cast<RankedTensorType>(type);
      if (tensor.getShape() != first.getShape() || tensor.getEncoding() != first.getEncoding())
        return emitOpError() << "sources and results differ in shape or layout";
      elements.append(getPack(), tensor.getElementType());
    }
    return success();
  };
  SmallVector<Type> arguments, yields;
  if (failed(scalars(getSrcs().getTypes(), arguments)) || failed(scalars(getOuts().getTypes(), yields)))
    return failure();
  if (failed(verifyArguments(*this, getBody(), arguments)))
    return failure();
  return verifyYields(*this, getBody(), yields);
}

LogicalResult HistogramOp::verify() {
  RankedTensorType src = getSrc().getType();
  if (src.getRank() != 1 || getResult().getType().getRank() != 1)
    return emitOpError() << "needs a source and a result of rank 1";
  if (getMask() && getMask().getType() != getMaskType(src))
    return emitOpError() << "mask must be i1 of the shape and layout of src";
  return success();
}

} // namespace tilewright::tile
