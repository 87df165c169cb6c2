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

LogicalResult AssumeOp::canonicalize(AssumeOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCond(), m_One()))
    return failure();
  rewriter.eraseOp(op);
  return success();
}

} // namespace tilewright::tile
