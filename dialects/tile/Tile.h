//===- Tile.h - The tile dialect -------------------------------------------===//

#ifndef TILEWRIGHT_TILE_TILE_H
#define TILEWRIGHT_TILE_TILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "TileDialect.h.inc"
#include "TileInterfaces.h.inc"
#include "TileEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "TileAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "TileTypes.h.inc"

namespace tilewright::tile {

/// `type` with its element type, or itself where it is a scalar, replaced; shape and layout stay.
mlir::Type withElementType(mlir::Type type, mlir::Type element);

/// What a load through a pointer or tensor of pointers gives; none, which no op takes, for any other type.
mlir::Type getPointeeType(mlir::Type type);

/// i1 of the shape and layout of `type`.
mlir::Type getMaskType(mlir::Type type);

/// Equal types where the encoding of a tensor does not count.
bool sameTypesUpToLayout(mlir::TypeRange a, mlir::TypeRange b);

/// The shape of a ranked tensor; empty for a scalar.
llvm::ArrayRef<int64_t> getShape(mlir::Type type);

/// The layout of a tensor; null for a scalar and for a tensor without one.
mlir::Attribute getEncoding(mlir::Type type);

/// Bits of an element in registers; pointers have 64.
unsigned getElementBits(mlir::Type type);

/// Succeeds where a [.., M, K] times b [.., K, N] can be added to acc [.., M, N].
llvm::LogicalResult verifyDotShapes(mlir::Operation *op, llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b, llvm::ArrayRef<int64_t> acc);

/// Succeeds where products of elements of `a` and `b` can be summed in `acc`.
llvm::LogicalResult verifyDotTypes(mlir::Operation *op, mlir::Type a, mlir::Type b, mlir::Type acc);

/// "64x32" for messages.
std::string formatShape(llvm::ArrayRef<int64_t> shape);

} // namespace tilewright::tile

#define GET_OP_CLASSES
#include "TileOps.h.inc"

#endif // TILEWRIGHT_TILE_TILE_H
