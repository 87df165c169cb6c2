//===- TileGPUDialect.cpp - Registration, aliases, module attributes -------===//

#include "tilegpu/TileGPU.h"

#include "mlir/IR/Builders.h"
#include "mlir/Transforms/InliningUtils.h"

#include "TileGPUDialect.cpp.inc"

#define GET_OP_CLASSES
#include "TileGPUOps.cpp.inc"

using namespace mlir;

namespace tilewright::tilegpu {

namespace {

/// Prints layouts as `#layout`, `#layout1`, ... and `#shared`, `#shared1`, ....
struct TileGPUAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const final {
    if (isa<LinearAttr>(attr)) {
      os << "layout";
      return AliasResult::FinalAlias;
    }
    if (isa<SharedAttr>(attr)) {
      os << "shared";
      return AliasResult::FinalAlias;
    }
    return AliasResult::NoAlias;
  }
};

struct TileGPUInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Operation *, bool) const final { return true; }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
};

} // namespace

void TileGPUDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "TileGPUOps.cpp.inc"
      >();
  addInterfaces<TileGPUAsmInterface, TileGPUInlinerInterface>();
}

Operation *TileGPUDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult TileGPUDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  StringRef name = attr.getName();
  if (name == kTargetAttr && !isa<StringAttr>(attr.getValue()))
    return op->emitOpError() << "'" << name << "' must be a string such as \"cuda:90\"";
  bool isCount = name == kNumWarpsAttr || name == kNumCTAsAttr || name == kThreadsPerWarpAttr;
  if (!isCount && name != kSharedAttr && name != kOffsetAttr)
    return success();
  auto value = dyn_cast<IntegerAttr>(attr.getValue());
  if (!value || !value.getType().isInteger(32) || value.getInt() < 0)
    return op->emitOpError() << "'" << name << "' must be a non-negative i32";
  if (isCount && !llvm::isPowerOf2_64(value.getInt()))
    return op->emitOpError() << "'" << name << "' must be a power of 2, got " << value.getInt();
  return success();
}

} // namespace tilewright::tilegpu
