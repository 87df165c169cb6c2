//===- TileShapeOps.cpp - Shape ops: inference and verification ------------===//

#include "tile/Tile.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace tilewright::tile {

/// `value`'s type where that is a tensor; builders infer before the verifier has seen the operands.
static RankedTensorType tensorType(std::optional<Location> loc, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    (void)emitOptionalError(loc, "needs a tensor, got ", value.getType());
  return type;
}

/// Succeeds where `axis` names a dimension of a tensor of `rank`.
static LogicalResult checkAxis(std::optional<Location> loc, int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank)
    return success();
  return emitOptionalError(loc, "axis ", axis, " is outside [0, ", rank, ")");
}

/// A constant with equal elements as a constant of another shape or layout; null for any other attribute.
static Attribute resizeSplat(Attribute attr, Type type) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(attr);
  return splat ? splat.resizeSplat(cast<ShapedType>(type)) : Attribute();
}

/// Replaces an op that only changes the shape of a splat by the splat of its result.
template <typename OpT>
static LogicalResult moveIntoSplat(OpT op, PatternRewriter &rewriter) {
  auto splat = op.getSrc().template getDefiningOp<SplatOp>();
  if (!splat)
    return failure();
  rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), splat.getSrc());
  return success();
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

OpFoldResult SplatOp::fold(FoldAdaptor op) {
  if (!isa_and_nonnull<IntegerAttr, FloatAttr>(op.getSrc()))
    return {};
  return SplatElementsAttr::get(getType(), op.getSrc());
}

LogicalResult UnsplatOp::verify() {
  if (getSrc().getType().getNumElements() != 1)
    return emitOpError() << "needs a tensor of one element, got shape " << formatShape(getSrc().getType().getShape());
  return success();
}

OpFoldResult UnsplatOp::fold(FoldAdaptor op) {
  if (auto splat = getSrc().getDefiningOp<SplatOp>())
    return splat.getSrc();
  auto constant = dyn_cast_or_null<SplatElementsAttr>(op.getSrc());
  return constant ? constant.getSplatValue<Attribute>() : Attribute();
}

//===----------------------------------------------------------------------===//
// expand_dims, broadcast, reshape, trans
//===----------------------------------------------------------------------===//

LogicalResult ExpandDimsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  RankedTensorType src = tensorType(loc, op.getSrc());
  if (!src || failed(checkAxis(loc, op.getAxis(), src.getRank() + 1)))
    return failure();
  SmallVector<int64_t> shape(src.getShape());
  shape.insert(shape.begin() + op.getAxis(), 1);
  auto layout = dyn_cast_or_null<LayoutInterface>(src.getEncoding());
  types.push_back(RankedTensorType::get(shape, src.getElementType(), layout ? layout.expandDims(op.getAxis()) : Attribute()));
  return success();
}

OpFoldResult ExpandDimsOp::fold(FoldAdaptor op) { return resizeSplat(op.getSrc(), getType()); }

LogicalResult ExpandDimsOp::canonicalize(ExpandDimsOp op, PatternRewriter &rewriter) { return moveIntoSplat(op, rewriter); }

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

OpFoldResult BroadcastOp::fold(FoldAdaptor op) {
  if (getSrc().getType() == getType())
    return getSrc();
  if (auto inner = getSrc().getDefiningOp<BroadcastOp>()) {
    getSrcMutable().assign(inner.getSrc());
    return getResult();
  }
  return resizeSplat(op.getSrc(), getType());
}

LogicalResult BroadcastOp::canonicalize(BroadcastOp op, PatternRewriter &rewriter) { return moveIntoSplat(op, rewriter); }

LogicalResult ReshapeOp::verify() {
  if (getSrc().getType().getNumElements() != getResult().getType().getNumElements())
    return emitOpError() << "cannot reshape " << formatShape(getSrc().getType().getShape()) << " to "
                         << formatShape(getResult().getType().getShape()) << ": the numbers of elements differ";
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor op) {
  if (getSrc().getType() == getType())
    return getSrc();
  if (auto inner = getSrc().getDefiningOp<ReshapeOp>(); inner && !inner.getAllowReorder()) {
    getSrcMutable().assign(inner.getSrc());
    return getResult();
  }
  if (auto inner = getSrc().getDefiningOp<ExpandDimsOp>()) {
    getSrcMutable().assign(inner.getSrc());
    return getResult();
  }
  return resizeSplat(op.getSrc(), getType());
}

LogicalResult ReshapeOp::canonicalize(ReshapeOp op, PatternRewriter &rewriter) { return moveIntoSplat(op, rewriter); }

LogicalResult TransOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  RankedTensorType src = tensorType(loc, op.getSrc());
  if (!src)
    return failure();
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
  auto layout = dyn_cast_or_null<LayoutInterface>(src.getEncoding());
  types.push_back(RankedTensorType::get(shape, src.getElementType(), layout ? layout.permute(order) : Attribute()));
  return success();
}

OpFoldResult TransOp::fold(FoldAdaptor op) {
  if (getSrc().getType() == getType() && llvm::is_sorted(getOrder()))
    return getSrc();
  if (auto inner = getSrc().getDefiningOp<TransOp>()) {
    SmallVector<int32_t> order;
    for (int32_t dim : getOrder())
      order.push_back(inner.getOrder()[dim]);
    setOrder(order);
    getSrcMutable().assign(inner.getSrc());
    return getResult();
  }
  return resizeSplat(op.getSrc(), getType());
}

LogicalResult TransOp::canonicalize(TransOp op, PatternRewriter &rewriter) { return moveIntoSplat(op, rewriter); }

//===----------------------------------------------------------------------===//
// join, split, cat, gather
//===----------------------------------------------------------------------===//

LogicalResult JoinOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  RankedTensorType src = tensorType(loc, op.getA());
  if (!src)
    return failure();
  SmallVector<int64_t> shape(src.getShape());
  shape.push_back(2);
  auto layout = dyn_cast_or_null<LayoutInterface>(src.getEncoding());
  types.push_back(RankedTensorType::get(shape, src.getElementType(), layout ? layout.join() : Attribute()));
  return success();
}

OpFoldResult JoinOp::fold(FoldAdaptor op) {
  auto split = getA().getDefiningOp<SplitOp>();
  if (split && getA() == split.getA() && getB() == split.getB() && split.getSrc().getType() == getType())
    return split.getSrc();
  return op.getA() == op.getB() ? resizeSplat(op.getA(), getType()) : Attribute();
}

LogicalResult SplitOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  RankedTensorType src = tensorType(loc, op.getSrc());
  if (!src)
    return failure();
  if (src.getRank() == 0 || src.getShape().back() != 2)
    return emitOptionalError(loc, "the last dimension must be 2, got shape ", formatShape(src.getShape()));
  Type half = src.getElementType();
  if (src.getRank() > 1) {
    auto layout = dyn_cast_or_null<LayoutInterface>(src.getEncoding());
    half = RankedTensorType::get(src.getShape().drop_back(), half, layout ? layout.split() : Attribute());
  }
  types.append({half, half});
  return success();
}

LogicalResult SplitOp::fold(FoldAdaptor op, SmallVectorImpl<OpFoldResult> &results) {
  auto join = getSrc().getDefiningOp<JoinOp>();
  if (join && join.getA().getType() == getA().getType()) {
    results.append({join.getA(), join.getB()});
    return success();
  }
  auto splat = dyn_cast_or_null<SplatElementsAttr>(op.getSrc());
  if (!splat)
    return failure();
  bool isTensor = isa<RankedTensorType>(getA().getType());
  Attribute half = isTensor ? resizeSplat(splat, getA().getType()) : splat.getSplatValue<Attribute>();
  results.append({half, half});
  return success();
}

LogicalResult CatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  RankedTensorType src = tensorType(loc, op.getA());
  if (!src || failed(checkAxis(loc, op.getDim(), src.getRank())))
    return failure();
  SmallVector<int64_t> shape(src.getShape());
  shape[op.getDim()] *= 2;
  auto layout = dyn_cast_or_null<LayoutInterface>(src.getEncoding());
  types.push_back(RankedTensorType::get(shape, src.getElementType(),
                                        layout ? layout.concatenate(op.getDim(), src.getDimSize(op.getDim())) : Attribute()));
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, SmallVectorImpl<Type> &types) {
  RankedTensorType src = tensorType(loc, op.getSrc()), indices = tensorType(loc, op.getIndices());
  if (!src || !indices || failed(checkAxis(loc, op.getAxis(), src.getRank())))
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
