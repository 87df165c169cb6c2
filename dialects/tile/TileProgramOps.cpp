//===- TileProgramOps.cpp - Verification of debugging ops ------------------===//

#include "tile/Tile.h"

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

} // namespace tilewright::tile
