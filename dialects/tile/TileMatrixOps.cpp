//===- TileMatrixOps.cpp - Verification of matrix products -----------------===//

#include "tile/Tile.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace tilewright::tile {

LogicalResult verifyDotShapes(Operation *op, ArrayRef<int64_t> a, ArrayRef<int64_t> b, ArrayRef<int64_t> acc) {
  size_t rank = acc.size();
  if ((rank != 2 && rank != 3) || a.size() != rank || b.size() != rank)
    return op->emitOpError() << "needs operands of rank 2, or 3 with a batch, got " << formatShape(a) << ", " << formatShape(b) << " and "
                             << formatShape(acc);
  if (rank == 3 && (a[0] != acc[0] || b[0] != acc[0]))
    return op->emitOpError() << "batch sizes differ: " << a[0] << ", " << b[0] << " and " << acc[0];
  int64_t ka = a[rank - 1], kb = b[rank - 2];
  if (ka != kb)
    return op->emitOpError() << "K of a (" << ka << ") differs from K of b (" << kb << ")";
  if (a[rank - 2] != acc[rank - 2])
    return op->emitOpError() << "M of a (" << a[rank - 2] << ") differs from M of acc (" << acc[rank - 2] << ")";
  if (b[rank - 1] != acc[rank - 1])
    return op->emitOpError() << "N of b (" << b[rank - 1] << ") differs from N of acc (" << acc[rank - 1] << ")";
  return success();
}

LogicalResult verifyDotTypes(Operation *op, Type a, Type b, Type acc) {
  bool isFloat = isa<FloatType>(acc);
  if (isa<FloatType>(a) != isFloat || isa<FloatType>(b) != isFloat || (!isFloat && !isa<IntegerType>(acc)))
    return op->emitOpError() << "cannot multiply " << a << " and " << b << " into " << acc;
  bool bothFp8 = isFloat && getElementBits(a) == 8 && getElementBits(b) == 8;
  if (a != b && !bothFp8)
    return op->emitOpError() << "operand types differ: " << a << " and " << b;
  if (getElementBits(acc) < getElementBits(a))
    return op->emitOpError() << "the accumulator (" << acc << ") is narrower than the operands (" << a << ")";
  return success();
}

LogicalResult DotOp::verify() {
  RankedTensorType a = getA().getType(), b = getB().getType(), acc = getAcc().getType();
  if (failed(verifyDotShapes(*this, a.getShape(), b.getShape(), acc.getShape())))
    return failure();
  return verifyDotTypes(*this, a.getElementType(), b.getElementType(), acc.getElementType());
}

/// Succeeds where `operand` can hold `format`.
static LogicalResult verifyFormat(Operation *op, StringRef name, StringRef format, Type element) {
  unsigned bits = llvm::StringSwitch<unsigned>(format).Cases({"e2m1", "e4m3", "e5m2"}, 8).Cases({"bf16", "fp16"}, 16).Default(0);
  if (!bits)
    return op->emitOpError() << "format of " << name << " must be e2m1, e4m3, e5m2, bf16 or fp16, got \"" << format << "\"";
  if (getElementBits(element) != bits)
    return op->emitOpError() << name << " of format " << format << " needs elements of " << bits << " bits, got " << element;
  return success();
}

/// Succeeds where `scale` is [.., rows, K / group] for a whole group.
static LogicalResult verifyScale(Operation *op, StringRef name, Value scale, int64_t rows, int64_t k) {
  if (!scale)
    return success();
  auto type = cast<RankedTensorType>(scale.getType());
  if (getElementBits(type) != 8)
    return op->emitOpError() << "scales are i8 (e8m0) or fp8, got " << type.getElementType();
  ArrayRef<int64_t> shape = type.getShape();
  if (shape.size() < 2 || shape[shape.size() - 2] != rows || shape.back() == 0 || k % shape.back() != 0)
    return op->emitOpError() << name << "_scale of " << formatShape(shape) << " does not scale " << rows << " rows of K = " << k;
  return success();
}

LogicalResult DotScaledOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, SmallVectorImpl<Type> &types) {
  types.push_back(op.getAcc().getType());
  return success();
}

LogicalResult DotScaledOp::verify() {
  RankedTensorType a = getA().getType(), b = getB().getType(), acc = getAcc().getType();
  if (failed(verifyFormat(*this, "a", getAFormat(), a.getElementType())) || failed(verifyFormat(*this, "b", getBFormat(), b.getElementType())))
    return failure();
  if (!isa<FloatType>(acc.getElementType()))
    return emitOpError() << "the accumulator must be a float, got " << acc.getElementType();
  bool fp4A = getAFormat() == "e2m1", fp4B = getBFormat() == "e2m1";
  if ((!getAKPack() && !fp4A) || (!getBKPack() && !fp4B))
    return emitOpError() << "only e2m1 operands can be packed along M or N";
  // Unpack the dimension that holds two elements a byte, then compare as for dot.
  SmallVector<int64_t> shapeA(a.getShape()), shapeB(b.getShape());
  if (shapeA.size() < 2 || shapeB.size() < 2)
    return emitOpError() << "needs operands of rank 2, or 3 with a batch";
  if (fp4A)
    shapeA[shapeA.size() - (getAKPack() ? 1 : 2)] *= 2;
  if (fp4B)
    shapeB[shapeB.size() - (getBKPack() ? 2 : 1)] *= 2;
  if (failed(verifyDotShapes(*this, shapeA, shapeB, acc.getShape())))
    return failure();
  int64_t k = shapeA.back();
  if (failed(verifyScale(*this, "a", getAScale(), shapeA[shapeA.size() - 2], k)))
    return failure();
  return verifyScale(*this, "b", getBScale(), shapeB.back(), k);
}

} // namespace tilewright::tile
