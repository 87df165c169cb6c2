//===- TileShapeOps.cpp - Shape ops: inference and verification ------------===//

#include "tile/Tile.h"

using namespace mlir;

namespace tilewright::tile {

/// Succeeds where `axis` names a dimension of a tensor of `rank`.
static LogicalResult checkAxis(std::optional<Location> loc, int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank)
    return success();
  return emitOptionalError(loc, "axis ", axis, " is outside [0, ", rank, ")");
}

//===----------------------------------------------------------------------===//
// range
//===----------------------------------------------------------------------===//

LogicalResult RangeOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  int64_t size = int64_t(op.getEnd()) - int64_t(op.getStart());
  if (size <= 0)
    return emitOptionalError(loc, "range end (", op.getEnd(), ") must be greater than its start (", op.getStart(), ")");
  types.push_back(RankedTensorType::get({size}, IntegerType::get(context, 32)));
  return success();
}

//===----------------------------------------------------------------------===//
// splat, unsplat
//===----------------------------------------------------------------------===//

LogicalResult SplatOp::verify() {
  Type element = getResult().getType().getElementType();
  if (element != getSrc().getType())
    return emitOpError() << "element type of the result (" << element << ") differs from the scalar's type (" << getSrc().getType() << ")";
  return success();
}

LogicalResult UnsplatOp::verify() {
  if (getSrc().getType().getNumElements() != 1)
    return emitOpError() << "needs a tensor of one element, got shape " << formatShape(getSrc().getType().getShape());
  return success();
}

//===----------------------------------------------------------------------===//
// expand_dims, broadcast, reshape, trans
//===----------------------------------------------------------------------===//

LogicalResult ExpandDimsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  auto src = cast<RankedTensorType>(op.getSrc().getType());
  if (failed(checkAxis(loc, op.getAxis(), src.getRank() + 1)))
    return failure();
  SmallVector<int64_t> shape(src.getShape());
  shape.insert(shape.begin() + op.getAxis(), 1);
  types.push_back(RankedTensorType::get(shape, src.getElementType()));
  return success();
}

LogicalResult BroadcastOp::verify() {
  ArrayRef<int64_t> from = getSrc().getType().getShape(), to = getResult().getType().getShape();
  if (from.size() != to.size())
    return emitOpError() << "cannot change the rank: " << formatShape(from) << " to " << formatShape(to);
  for (auto [i, sizes] : llvm::enumerate(llvm::zip(from, to))) {
    auto [f, t] = sizes;
    if (f != t && f != 1)
      return emitOpError() << "cannot broadcast dimension " << i << " of size " << f << " to " << t;
  }
  return success();
}

LogicalResult ReshapeOp::verify() {
  if (getSrc().getType().getNumElements() != getResult().getType().getNumElements())
    return emitOpError() << "cannot reshape " << formatShape(getSrc().getType().getShape()) << " to "
                         << formatShape(getResult().getType().getShape()) << ": the numbers of elements differ";
  return success();
}

LogicalResult TransOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  auto src = cast<RankedTensorType>(op.getSrc().getType());
  ArrayRef<int32_t> order = op.getOrder();
  SmallVector<bool> seen(src.getRank(), false);
  for (int32_t dim : order) {
    if (dim < 0 || dim >= src.getRank() || seen[dim])
      return emitOptionalError(loc, "order must be a permutation of the dimensions 0 to ", src.getRank() - 1);
    seen[dim] = true;
  }
  if (int64_t(order.size()) != src.getRank())
    return emitOptionalError(loc, "order has ", order.size(), " entries for a tensor of rank ", src.getRank());
  SmallVector<int64_t> shape;
  for (int32_t dim : order)
    shape.push_back(src.getDimSize(dim));
  types.push_back(RankedTensorType::get(shape, src.getElementType()));
  return success();
}

//===----------------------------------------------------------------------===//
// join, split, cat, gather
//===----------------------------------------------------------------------===//

LogicalResult JoinOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, SmallVectorImpl<Type> &types) {
  auto src = cast<RankedTensorType>(op.getA().getType());
  SmallVector<int64_t> shape(src.getShape());
  shape.push_back(2);
  types.push_back(RankedTensorType::get(shape, src.getElementType()));
  return success();
}

LogicalResult SplitOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  auto src = cast<RankedTensorType>(op.getSrc().getType());
  if (src.getRank() == 0 || src.getShape().back() != 2)
    return emitOptionalError(loc, "the last dimension must be 2, got shape ", formatShape(src.getShape()));
  Type half = src.getElementType();
  if (src.getRank() > 1)
    half = RankedTensorType::get(src.getShape().drop_back(), half);
  types.append({half, half});
  return success();
}

LogicalResult CatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  auto src = cast<RankedTensorType>(op.getA().getType());
  if (failed(checkAxis(loc, op.getDim(), src.getRank())))
    return failure();
  SmallVector<int64_t> shape(src.getShape());
  shape[op.getDim()] *= 2;
  types.push_back(RankedTensorType::get(shape, src.getElementType()));
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  auto src = cast<RankedTensorType>(op.getSrc().getType());
  auto indices = cast<RankedTensorType>(op.getIndices().getType());
  if (failed(checkAxis(loc, op.getAxis(), src.getRank())))
    return failure();
  if (src.getRank() != indices.getRank())
    return emitOptionalError(loc, "rank of indices (", indices.getRank(), ") differs from rank of src (", src.getRank(), ")");
  for (int64_t dim = 0; dim < src.getRank(); ++dim)
    if (dim != op.getAxis() && src.getDimSize(dim) != indices.getDimSize(dim))
      return emitOptionalError(loc, "dimension ", dim, " of indices (", indices.getDimSize(dim), ") differs from that of src (",
                               src.getDimSize(dim), ")");
  types.push_back(RankedTensorType::get(indices.getShape(), src.getElementType(), indices.getEncoding()));
  return success();
}

} // namespace tilewright::tile
