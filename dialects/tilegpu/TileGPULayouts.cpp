//===- TileGPULayouts.cpp - Layout attributes and the buffer type ----------===//

#include "tilegpu/TileGPU.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#define GET_ATTRDEF_CLASSES
#include "TileGPUAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "TileGPUTypes.cpp.inc"

using namespace mlir;

namespace tilewright::tilegpu {

void TileGPUDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "TileGPUAttrs.cpp.inc"
      >();
}

void TileGPUDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "TileGPUTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Lists of bases: [[0, 1], [2, 0]]
//===----------------------------------------------------------------------===//

/// Parses `name = [[..], ..]` into `bases`; every vector must have `rank` entries (-1: not known yet).
static ParseResult parseBases(AsmParser &parser, StringRef name, int64_t &rank, SmallVectorImpl<int32_t> &bases) {
  if (parser.parseKeyword(name) || parser.parseEqual())
    return failure();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    int64_t size = 0;
    auto parseEntry = [&]() -> ParseResult {
      ++size;
      return parser.parseInteger(bases.emplace_back());
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseEntry))
      return failure();
    if (rank >= 0 && size != rank)
      return parser.emitError(loc) << "expected " << rank << " coordinates, got " << size;
    rank = size;
    return success();
  });
}

static void printBases(AsmPrinter &printer, StringRef name, unsigned rank, ArrayRef<int32_t> bases) {
  printer << name << " = [";
  for (size_t i = 0; i < bases.size(); i += rank) {
    printer << (i ? ", [" : "[");
    llvm::interleaveComma(bases.slice(i, rank), printer);
    printer << "]";
  }
  printer << "]";
}

/// Parses `, rank = N`, which is needed only where there is no vector to count.
static ParseResult parseRank(AsmParser &parser, int64_t &rank) {
  return failure(parser.parseComma() || parser.parseKeyword("rank") || parser.parseEqual() || parser.parseInteger(rank));
}

static LogicalResult verifyBases(function_ref<InFlightDiagnostic()> emitError, unsigned rank, ArrayRef<int32_t> bases) {
  if (rank == 0)
    return emitError() << "a layout needs at least one dimension";
  if (bases.size() % rank != 0)
    return emitError() << "the number of coordinates (" << bases.size() << ") is not a multiple of the rank (" << rank << ")";
  for (int32_t value : bases)
    if (value < 0)
      return emitError() << "coordinates cannot be negative, got " << value;
  return success();
}

/// The rank over F2 of vectors given as bit masks.
static unsigned rankOverF2(SmallVector<uint64_t> vectors) {
  unsigned rank = 0;
  for (size_t i = 0; i < vectors.size(); ++i) {
    uint64_t pivot = vectors[i];
    if (!pivot)
      continue;
    ++rank;
    uint64_t low = pivot & -pivot;
    for (size_t j = i + 1; j < vectors.size(); ++j)
      if (vectors[j] & low)
        vectors[j] ^= pivot;
  }
  return rank;
}

/// Appends the row-major linear index of every vector of `bases`; fails where a coordinate lies outside `shape`.
static LogicalResult flattenBases(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, ArrayRef<int32_t> bases,
                                  SmallVectorImpl<uint64_t> &flat) {
  for (size_t i = 0; i < bases.size(); i += shape.size()) {
    uint64_t index = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      if (bases[i + dim] >= shape[dim])
        return emitError() << "layout reaches coordinate " << bases[i + dim] << " of dimension " << dim << ", whose size is " << shape[dim];
      index = index * shape[dim] + bases[i + dim];
    }
    flat.push_back(index);
  }
  return success();
}

static LogicalResult verifyShape(function_ref<InFlightDiagnostic()> emitError, unsigned rank, ArrayRef<int64_t> shape) {
  if (shape.size() != rank)
    return emitError() << "layout of rank " << rank << " on a shape of rank " << shape.size();
  for (int64_t size : shape)
    if (size <= 0 || !llvm::isPowerOf2_64(size))
      return emitError() << "dimensions must be powers of 2, got " << tile::formatShape(shape);
  return success();
}

static unsigned log2Elements(ArrayRef<int64_t> shape) {
  unsigned bits = 0;
  for (int64_t size : shape)
    bits += llvm::Log2_64(size);
  return bits;
}

//===----------------------------------------------------------------------===//
// LinearAttr
//===----------------------------------------------------------------------===//

Attribute LinearAttr::parse(AsmParser &parser, Type) {
  SmallVector<int32_t> registerBases, laneBases, warpBases, blockBases;
  int64_t rank = -1;
  if (parser.parseLess() || parseBases(parser, "register", rank, registerBases) || parser.parseComma() ||
      parseBases(parser, "lane", rank, laneBases) || parser.parseComma() || parseBases(parser, "warp", rank, warpBases) ||
      parser.parseComma() || parseBases(parser, "block", rank, blockBases))
    return {};
  if ((rank < 0 && parseRank(parser, rank)) || parser.parseGreater())
    return {};
  return parser.getChecked<LinearAttr>(parser.getContext(), unsigned(rank), registerBases, laneBases, warpBases, blockBases);
}

void LinearAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printBases(printer, "register", getRank(), getRegisterBases());
  printer << ", ";
  printBases(printer, "lane", getRank(), getLaneBases());
  printer << ", ";
  printBases(printer, "warp", getRank(), getWarpBases());
  printer << ", ";
  printBases(printer, "block", getRank(), getBlockBases());
  if (getRegisterBases().empty() && getLaneBases().empty() && getWarpBases().empty() && getBlockBases().empty())
    printer << ", rank = " << getRank();
  printer << ">";
}

LogicalResult LinearAttr::verify(function_ref<InFlightDiagnostic()> emitError, unsigned rank, ArrayRef<int32_t> registerBases,
                                 ArrayRef<int32_t> laneBases, ArrayRef<int32_t> warpBases, ArrayRef<int32_t> blockBases) {
  for (ArrayRef<int32_t> bases : {registerBases, laneBases, warpBases, blockBases})
    if (failed(verifyBases(emitError, rank, bases)))
      return failure();
  return success();
}

LogicalResult LinearAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, function_ref<InFlightDiagnostic()> emitError) const {
  if (failed(verifyShape(emitError, getRank(), shape)))
    return failure();
  SmallVector<uint64_t> flat;
  for (ArrayRef<int32_t> bases : {getRegisterBases(), getLaneBases(), getWarpBases(), getBlockBases()})
    if (failed(flattenBases(emitError, shape, bases, flat)))
      return failure();
  if (rankOverF2(flat) != log2Elements(shape))
    return emitError() << "layout does not reach every element of " << tile::formatShape(shape);
  return success();
}

/// The layout of `rank` dimensions in which `move` has turned every vector of `layout` into a new one.
static LinearAttr remap(LinearAttr layout, unsigned rank, llvm::function_ref<void(ArrayRef<int32_t>, SmallVectorImpl<int32_t> &)> move,
                        ArrayRef<int32_t> firstRegister = {}, ArrayRef<int32_t> lastRegister = {}) {
  SmallVector<int32_t> parts[4];
  ArrayRef<int32_t> bases[4] = {layout.getRegisterBases(), layout.getLaneBases(), layout.getWarpBases(), layout.getBlockBases()};
  llvm::append_range(parts[0], firstRegister);
  for (unsigned i = 0; i < 4; ++i)
    for (size_t j = 0; j < bases[i].size(); j += layout.getRank())
      move(bases[i].slice(j, layout.getRank()), parts[i]);
  llvm::append_range(parts[0], lastRegister);
  return LinearAttr::get(layout.getContext(), rank, parts[0], parts[1], parts[2], parts[3]);
}

Attribute LinearAttr::expandDims(int64_t axis) const {
  return remap(*this, getRank() + 1, [&](ArrayRef<int32_t> from, SmallVectorImpl<int32_t> &to) {
    llvm::append_range(to, from.take_front(axis));
    to.push_back(0);
    llvm::append_range(to, from.drop_front(axis));
  });
}

Attribute LinearAttr::permute(ArrayRef<int32_t> order) const {
  return remap(*this, getRank(), [&](ArrayRef<int32_t> from, SmallVectorImpl<int32_t> &to) {
    for (int32_t dim : order)
      to.push_back(from[dim]);
  });
}

Attribute LinearAttr::join() const {
  SmallVector<int32_t> added(getRank() + 1, 0);
  added.back() = 1;
  return remap(
      *this, getRank() + 1,
      [&](ArrayRef<int32_t> from, SmallVectorImpl<int32_t> &to) {
        llvm::append_range(to, from);
        to.push_back(0);
      },
      added);
}

Attribute LinearAttr::split() const {
  if (getRank() < 2)
    return {};
  // One register bit alone must select the half.
  SmallVector<int32_t> selector(getRank(), 0);
  selector.back() = 1;
  unsigned selectors = 0, movers = 0;
  for (ArrayRef<int32_t> bases : {getRegisterBases(), getLaneBases(), getWarpBases(), getBlockBases()})
    for (size_t i = 0; i < bases.size(); i += getRank()) {
      movers += bases[i + getRank() - 1] != 0;
      selectors += bases.data() == getRegisterBases().data() && bases.slice(i, getRank()) == ArrayRef<int32_t>(selector);
    }
  if (selectors != 1 || movers != 1)
    return {};
  return remap(*this, getRank() - 1, [&](ArrayRef<int32_t> from, SmallVectorImpl<int32_t> &to) {
    if (from.back() == 0)
      llvm::append_range(to, from.drop_back());
  });
}

Attribute LinearAttr::concatenate(int64_t dim, int64_t size) const {
  SmallVector<int32_t> added(getRank(), 0);
  added[dim] = size;
  return remap(*this, getRank(), [&](ArrayRef<int32_t> from, SmallVectorImpl<int32_t> &to) { llvm::append_range(to, from); }, {}, added);
}

//===----------------------------------------------------------------------===//
// SharedAttr
//===----------------------------------------------------------------------===//

Attribute SharedAttr::parse(AsmParser &parser, Type) {
  SmallVector<int32_t> offsetBases;
  int64_t rank = -1;
  int32_t padInterval = 0, padAmount = 0;
  if (parser.parseLess() || parseBases(parser, "offset", rank, offsetBases))
    return {};
  bool hasRank = rank >= 0;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return {};
    if (keyword == "pad") {
      if (parser.parseLSquare() || parser.parseInteger(padInterval) || parser.parseComma() || parser.parseInteger(padAmount) ||
          parser.parseRSquare())
        return {};
    } else if (keyword == "rank" && !hasRank) {
      if (parser.parseInteger(rank))
        return {};
    } else {
      parser.emitError(loc) << "expected 'pad' or 'rank', got '" << keyword << "'";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  if (rank < 0) {
    parser.emitError(parser.getNameLoc()) << "a layout without bases needs 'rank'";
    return {};
  }
  return parser.getChecked<SharedAttr>(parser.getContext(), unsigned(rank), offsetBases, padInterval, padAmount);
}

void SharedAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printBases(printer, "offset", getRank(), getOffsetBases());
  if (getOffsetBases().empty())
    printer << ", rank = " << getRank();
  if (getPadAmount())
    printer << ", pad = [" << getPadInterval() << ", " << getPadAmount() << "]";
  printer << ">";
}

LogicalResult SharedAttr::verify(function_ref<InFlightDiagnostic()> emitError, unsigned rank, ArrayRef<int32_t> offsetBases,
                                 int32_t padInterval, int32_t padAmount) {
  if (failed(verifyBases(emitError, rank, offsetBases)))
    return failure();
  bool noPad = padInterval == 0 && padAmount == 0;
  if (!noPad && (padInterval <= 0 || padAmount <= 0 || !llvm::isPowerOf2_64(padInterval)))
    return emitError() << "pad needs an interval that is a power of 2 and a positive amount, got [" << padInterval << ", " << padAmount
                       << "]";
  return success();
}

//===----------------------------------------------------------------------===//
// BufferType
//===----------------------------------------------------------------------===//

Type BufferType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  Attribute attr;
  int64_t slots = 0;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element) || parser.parseComma())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseAttribute(attr))
    return {};
  auto layout = dyn_cast<SharedAttr>(attr);
  if (!layout) {
    parser.emitError(loc) << "expected a #tilegpu.shared layout";
    return {};
  }
  if (succeeded(parser.parseOptionalComma()) && (parser.parseKeyword("slots") || parser.parseEqual() || parser.parseInteger(slots)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<BufferType>(parser.getContext(), shape, element, layout, slots);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType() << ", " << getLayout();
  if (getSlots())
    printer << ", slots = " << getSlots();
  printer << ">";
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type element, SharedAttr layout,
                                 int64_t slots) {
  if (slots < 0)
    return emitError() << "slots cannot be negative, got " << slots;
  if (!element.isIntOrFloat() && !isa<tile::PtrType>(element))
    return emitError() << "a buffer holds integers, floats or pointers, not " << element;
  if (failed(verifyShape(emitError, layout.getRank(), shape)))
    return failure();
  SmallVector<uint64_t> flat;
  if (failed(flattenBases(emitError, shape, layout.getOffsetBases(), flat)))
    return failure();
  if (rankOverF2(flat) != log2Elements(shape))
    return emitError() << "shared layout does not reach every element of " << tile::formatShape(shape);
  return success();
}

} // namespace tilewright::tilegpu
