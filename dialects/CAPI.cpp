//===- CAPI.cpp - C functions that the Python package calls by ctypes ------===//
//
// MLIR handles are passed by value. A getter returns a null handle where its
// arguments do not make a valid type or attribute; tilewrightLastError says why.
//
//===----------------------------------------------------------------------===//

#include "tilegpu/TileGPU.h"

#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"

using namespace mlir;
using namespace tilewright;

#define TILEWRIGHT_EXPORT extern "C" __attribute__((visibility("default")))

TILEWRIGHT_EXPORT void tilewrightLoadDialects(MlirContext context) {
  DialectRegistry registry;
  registry.insert<tile::TileDialect, tilegpu::TileGPUDialect>();
  unwrap(context)->appendDialectRegistry(registry);
  unwrap(context)->loadDialect<tile::TileDialect, tilegpu::TileGPUDialect>();
}

static thread_local std::string lastError;

/// Why the last getter of this thread returned null; valid until the next one does.
TILEWRIGHT_EXPORT const char *tilewrightLastError() { return lastError.c_str(); }

/// Makes a type or attribute with `get`, given the function to report errors through.
template <typename Get>
static auto getOrReport(MLIRContext *context, Get get) {
  ScopedDiagnosticHandler handler(context, [](Diagnostic &diagnostic) { lastError = diagnostic.str(); });
  return get([context] { return emitError(UnknownLoc::get(context)); });
}

//===----------------------------------------------------------------------===//
// tile types and attributes
//===----------------------------------------------------------------------===//

TILEWRIGHT_EXPORT MlirType tilewrightPtrType(MlirType pointee, unsigned space) {
  MLIRContext *context = unwrap(pointee).getContext();
  return wrap(getOrReport(context, [&](auto report) { return Type(tile::PtrType::getChecked(report, context, unwrap(pointee), space)); }));
}

/// 0 where `type` is no pointer, else 1 + its address space.
TILEWRIGHT_EXPORT unsigned tilewrightPtrSpace(MlirType type) {
  auto ptr = dyn_cast<tile::PtrType>(unwrap(type));
  return ptr ? 1 + ptr.getAddressSpace() : 0;
}

TILEWRIGHT_EXPORT MlirType tilewrightPtrPointee(MlirType type) { return wrap(cast<tile::PtrType>(unwrap(type)).getPointee()); }

TILEWRIGHT_EXPORT MlirType tilewrightDescType(const int64_t *shape, unsigned rank, MlirType element, MlirAttribute layout) {
  MLIRContext *context = unwrap(element).getContext();
  return wrap(getOrReport(context, [&](auto report) {
    return Type(tile::DescType::getChecked(report, context, ArrayRef(shape, rank), unwrap(element), unwrap(layout)));
  }));
}

/// The rank of a descriptor's block, or -1 where `type` is none; `shape` points into the type.
TILEWRIGHT_EXPORT int tilewrightDescInfo(MlirType type, const int64_t **shape, MlirType *element, MlirAttribute *layout) {
  auto desc = dyn_cast<tile::DescType>(unwrap(type));
  if (!desc)
    return -1;
  *shape = desc.getShape().data();
  *element = wrap(desc.getElementType());
  *layout = wrap(desc.getLayout());
  return desc.getShape().size();
}

template <typename Attr, typename Symbolize>
static Attribute makeEnum(MLIRContext *context, StringRef value, Symbolize symbolize) {
  auto symbol = symbolize(value);
  return symbol ? Attr::get(context, *symbol) : Attribute();
}

/// Enum attribute of the tile dialect by its mnemonic ("cache") and value ("cg"); null where there is none.
TILEWRIGHT_EXPORT MlirAttribute tilewrightEnumAttr(MlirContext ctx, const char *mnemonic, const char *value) {
  MLIRContext *context = unwrap(ctx);
  StringRef name(mnemonic);
  Attribute attr;
  if (name == "cache")
    attr = makeEnum<tile::CacheAttr>(context, value, [](StringRef s) { return tile::symbolizeCache(s); });
  else if (name == "evict")
    attr = makeEnum<tile::EvictAttr>(context, value, [](StringRef s) { return tile::symbolizeEvict(s); });
  else if (name == "rmw")
    attr = makeEnum<tile::RMWAttr>(context, value, [](StringRef s) { return tile::symbolizeRMW(s); });
  else if (name == "sem")
    attr = makeEnum<tile::SemAttr>(context, value, [](StringRef s) { return tile::symbolizeSem(s); });
  else if (name == "scope")
    attr = makeEnum<tile::ScopeAttr>(context, value, [](StringRef s) { return tile::symbolizeScope(s); });
  else if (name == "rounding")
    attr = makeEnum<tile::RoundingAttr>(context, value, [](StringRef s) { return tile::symbolizeRounding(s); });
  else if (name == "padding")
    attr = makeEnum<tile::PaddingAttr>(context, value, [](StringRef s) { return tile::symbolizePadding(s); });
  else if (name == "precision")
    attr = makeEnum<tile::PrecisionAttr>(context, value, [](StringRef s) { return tile::symbolizePrecision(s); });
  return wrap(attr);
}

//===----------------------------------------------------------------------===//
// tilegpu types and attributes
//===----------------------------------------------------------------------===//

/// `counts` are the numbers of vectors for register, lane, warp and block; `bases` holds them one after the other.
TILEWRIGHT_EXPORT MlirAttribute tilewrightLinearAttr(MlirContext ctx, unsigned rank, const unsigned *counts, const int32_t *bases) {
  MLIRContext *context = unwrap(ctx);
  ArrayRef<int32_t> parts[4];
  for (unsigned i = 0; i < 4; ++i) {
    parts[i] = ArrayRef(bases, counts[i] * rank);
    bases += counts[i] * rank;
  }
  return wrap(getOrReport(context, [&](auto report) {
    return Attribute(tilegpu::LinearAttr::getChecked(report, context, rank, parts[0], parts[1], parts[2], parts[3]));
  }));
}

/// The rank of a linear layout, or -1 where `attr` is none; `bases[i]` points into the attribute, `counts` as above.
TILEWRIGHT_EXPORT int tilewrightLinearInfo(MlirAttribute attr, unsigned *counts, const int32_t **bases) {
  auto linear = dyn_cast<tilegpu::LinearAttr>(unwrap(attr));
  if (!linear)
    return -1;
  ArrayRef<int32_t> parts[4] = {linear.getRegisterBases(), linear.getLaneBases(), linear.getWarpBases(), linear.getBlockBases()};
  for (unsigned i = 0; i < 4; ++i) {
    counts[i] = parts[i].size() / linear.getRank();
    bases[i] = parts[i].data();
  }
  return linear.getRank();
}

TILEWRIGHT_EXPORT MlirAttribute tilewrightSharedAttr(MlirContext ctx, unsigned rank, unsigned count, const int32_t *bases, int32_t padInterval,
                                                     int32_t padAmount) {
  MLIRContext *context = unwrap(ctx);
  return wrap(getOrReport(context, [&](auto report) {
    return Attribute(tilegpu::SharedAttr::getChecked(report, context, rank, ArrayRef(bases, count * rank), padInterval, padAmount));
  }));
}

/// The rank of a shared layout, or -1 where `attr` is none.
TILEWRIGHT_EXPORT int tilewrightSharedInfo(MlirAttribute attr, unsigned *count, const int32_t **bases, int32_t *pad) {
  auto shared = dyn_cast<tilegpu::SharedAttr>(unwrap(attr));
  if (!shared)
    return -1;
  *count = shared.getOffsetBases().size() / shared.getRank();
  *bases = shared.getOffsetBases().data();
  pad[0] = shared.getPadInterval();
  pad[1] = shared.getPadAmount();
  return shared.getRank();
}

TILEWRIGHT_EXPORT MlirType tilewrightBufferType(const int64_t *shape, unsigned rank, MlirType element, MlirAttribute layout, int64_t slots) {
  MLIRContext *context = unwrap(element).getContext();
  auto shared = dyn_cast<tilegpu::SharedAttr>(unwrap(layout));
  if (!shared) {
    lastError = "the layout of a buffer must be #tilegpu.shared";
    return wrap(Type());
  }
  return wrap(getOrReport(context, [&](auto report) {
    return Type(tilegpu::BufferType::getChecked(report, context, ArrayRef(shape, rank), unwrap(element), shared, slots));
  }));
}

/// The rank of a buffer, or -1 where `type` is none.
TILEWRIGHT_EXPORT int tilewrightBufferInfo(MlirType type, const int64_t **shape, MlirType *element, MlirAttribute *layout, int64_t *slots) {
  auto buffer = dyn_cast<tilegpu::BufferType>(unwrap(type));
  if (!buffer)
    return -1;
  *shape = buffer.getShape().data();
  *element = wrap(buffer.getElementType());
  *layout = wrap(buffer.getLayout());
  *slots = buffer.getSlots();
  return buffer.getShape().size();
}

TILEWRIGHT_EXPORT MlirType tilewrightTokenType(MlirContext context) { return wrap(Type(tilegpu::TokenType::get(unwrap(context)))); }
