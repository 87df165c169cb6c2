//===- TileProgramOps.cpp - Verification of debugging ops ------------------===//

#include "tile/Tile.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace tilewright::tile {

LogicalResult PrintOp::verify() {
  if (!getIsSigned().empty() && getIsSigned().size() != getArgs().size())
    return emitOpError() << "is_signed has " << getIsSigned().size() << " entries for " << getArgs().size() << " arguments";
  return success();
}

LogicalResult AssertOp::verify() {
  if (getMask() && getMask().getType() != getCond().getType())
    return emitOpError() << "mask must have the type of cond";
  return success();
}

LogicalResult AssertOp::canonicalize(AssertOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCond(), m_One()) && !(op.getMask() && matchPattern(op.getMask(), m_Zero())))
    return failure();
  rewriter.eraseOp(op);
  return success();
}

/// The shape of one CTA's part of a tensor of `shape`; fails where a bit adds to several dimensions, or beyond them.
static FailureOr<SmallVector<int64_t>> partOf(ArrayRef<int32_t> shape, ArrayRef<int32_t> bits) {
  SmallVector<int64_t> part(shape.begin(), shape.end());
  for (size_t bit = 0; bit < bits.size(); bit += shape.size()) {
    int moved = 0;
    for (auto [dim, step] : llvm::enumerate(bits.slice(bit, shape.size()))) {
      if (step == 0)
        continue;
      if (++moved > 1 || !llvm::isPowerOf2_32(step) || step >= shape[dim])
        return failure();
      part[dim] /= 2;
    }
  }
  return part;
}

LogicalResult ExchangeOp::verify() {
  if (getSrcs().empty() || getSrcs().size() != getResults().size())
    return emitOpError() << "takes " << getSrcs().size() << " sources for " << getResults().size() << " results";
  ArrayRef<int32_t> shape = getShape();
  if (shape.empty() || getFrom().size() != getTo().size() || getFrom().size() % shape.size())
    return emitOpError() << "needs as many numbers in from and to, " << shape.size() << " for each bit of the rank";
  auto before = partOf(shape, getFrom()), after = partOf(shape, getTo());
  if (failed(before) || failed(after))
    return emitOpError() << "each bit of the rank adds one power of two inside one dimension";
  for (auto [src, result] : llvm::zip(getSrcs(), getResults())) {
    auto from = cast<RankedTensorType>(src.getType()), to = cast<RankedTensorType>(result.getType());
    if (from.getElementType() != to.getElementType() || from.getShape() != ArrayRef(*before) || to.getShape() != ArrayRef(*after))
      return emitOpError() << from << " and " << to << " are not the parts that from and to describe";
  }
  return success();
}

LogicalResult AssumeOp::canonicalize(AssumeOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCond(), m_One()))
    return failure();
  rewriter.eraseOp(op);
  return success();
}

} // namespace tilewright::tile
