//===- TileDialect.cpp - Registration, types, attributes -------------------===//

#include "tile/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include "TileDialect.cpp.inc"
#include "TileEnums.cpp.inc"
#include "TileInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "TileAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "TileTypes.cpp.inc"

#define GET_OP_CLASSES
#include "TileOps.cpp.inc"

using namespace mlir;

namespace tilewright::tile {

//===----------------------------------------------------------------------===//
// Dialect
//===----------------------------------------------------------------------===//

namespace {

/// Every tile op may be moved into a caller.
struct TileInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Operation *, bool) const final { return true; }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
};

} // namespace

void TileDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "TileAttrs.cpp.inc"
      >();
}

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "TileTypes.cpp.inc"
      >();
}

void TileDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "TileOps.cpp.inc"
      >();
  addInterfaces<TileInlinerInterface>();
}

Operation *TileDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

/// The axis hints `tile.divisibility`, `tile.contiguity`, `tile.constancy`.
static bool isHint(StringRef name) {
  return name == "tile.divisibility" || name == "tile.contiguity" || name == "tile.constancy";
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if (isHint(attr.getName()) && !isa<DenseI32ArrayAttr>(attr.getValue()))
    return op->emitOpError() << "attribute '" << attr.getName().getValue() << "' must be array<i32: one value per dimension>";
  return success();
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argIndex, NamedAttribute attr) {
  if (isHint(attr.getName()) && !isa<IntegerAttr, DenseI32ArrayAttr>(attr.getValue()))
    return op->emitOpError() << "argument " << argIndex << ": attribute '" << attr.getName().getValue() << "' must be an integer";
  return success();
}

//===----------------------------------------------------------------------===//
// Type helpers
//===----------------------------------------------------------------------===//

Type withElementType(Type type, Type element) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return RankedTensorType::get(tensor.getShape(), element, tensor.getEncoding());
  return element;
}

Type getPointeeType(Type type) {
  auto ptr = dyn_cast<PtrType>(getElementTypeOrSelf(type));
  return ptr ? withElementType(type, ptr.getPointee()) : NoneType::get(type.getContext());
}

Type getMaskType(Type type) { return withElementType(type, IntegerType::get(type.getContext(), 1)); }

bool sameTypesUpToLayout(TypeRange a, TypeRange b) {
  return llvm::equal(a, b, [](Type lhs, Type rhs) {
    if (lhs == rhs)
      return true;
    auto x = dyn_cast<RankedTensorType>(lhs), y = dyn_cast<RankedTensorType>(rhs);
    return x && y && x.getShape() == y.getShape() && x.getElementType() == y.getElementType();
  });
}

ArrayRef<int64_t> getShape(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getShape() : ArrayRef<int64_t>();
}

Attribute getEncoding(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getEncoding() : Attribute();
}

unsigned getElementBits(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<PtrType>(element) ? 64 : element.getIntOrFloatBitWidth();
}

std::string formatShape(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(shape, os, "x");
  return text.empty() ? "scalar" : text;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult PtrType::verify(function_ref<InFlightDiagnostic()> emitError, Type pointee, unsigned) {
  if (!pointee.isIntOrFloat() && !isa<PtrType>(pointee))
    return emitError() << "a pointer points to an integer, a float or a pointer, not to " << pointee;
  return success();
}

LogicalResult DescType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type element, Attribute) {
  if (shape.empty() || shape.size() > 5)
    return emitError() << "a tensor descriptor has 1 to 5 dimensions, not " << shape.size();
  if (llvm::any_of(shape, [](int64_t size) { return size <= 0; }))
    return emitError() << "the block shape of a tensor descriptor must be positive";
  if (!element.isIntOrFloat())
    return emitError() << "the elements of a tensor descriptor are integers or floats, not " << element;
  return success();
}

Type DescType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  Attribute layout;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(layout))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<DescType>(parser.getContext(), shape, element, layout);
}

void DescType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType();
  if (getLayout())
    printer << ", " << getLayout();
  printer << ">";
}

} // namespace tilewright::tile
