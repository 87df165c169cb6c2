//===- TileShapeOps.td - Creation, shape and indexing of tensors -----------===//

#ifndef TILEWRIGHT_TILE_SHAPE_OPS_TD
#define TILEWRIGHT_TILE_SHAPE_OPS_TD

include "tile/TileBase.td"

def Tile_RangeOp : Tile_ShapeOp<"range"> {
  let summary = "the integers start, start + 1, ..., end - 1";
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs Tile_TensorOf<[I32]>:$result);
  let assemblyFormat = "$start `to` $end attr-dict `:` type($result)";
}

def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "tensor with every element equal to a scalar";
  let arguments = (ins Tile_Scalar:$src);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_UnsplatOp : Tile_Op<"unsplat", [Pure,
    TypesMatchWith<"result type matches the element type of src", "src", "result", "::mlir::getElementTypeOrSelf($_self)">]> {
  let summary = "the only element of a tensor, as a scalar";
  let arguments = (ins Tile_Tensor:$src);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = "$src attr-dict `:` type($src)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_ExpandDimsOp : Tile_ShapeOp<"expand_dims"> {
  let summary = "insert a dimension of size 1 before dimension axis";
  let arguments = (ins Tile_Tensor:$src, I32Attr:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$src `axis` `=` $axis attr-dict `:` type($src) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure, SameOperandsAndResultElementType]> {
  let summary = "repeat a tensor along its dimensions of size 1; the rank stays";
  let arguments = (ins Tile_Tensor:$src);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Tile_ReshapeOp : Tile_Op<"reshape", [Pure, SameOperandsAndResultElementType]> {
  let summary = "same elements in row-major order under another shape";
  let description = "With `allow_reorder` the order of the elements is free.";
  let arguments = (ins Tile_Tensor:$src, UnitAttr:$allow_reorder);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$src (`reorder` $allow_reorder^)? attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Tile_TransOp : Tile_ShapeOp<"trans"> {
  let summary = "permute dimensions: dimension i of the result is dimension order[i] of src";
  let arguments = (ins Tile_Tensor:$src, DenseI32ArrayAttr:$order);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$src `order` `=` $order attr-dict `:` type($src) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Tile_JoinOp : Tile_ShapeOp<"join", [SameTypeOperands]> {
  let summary = "stack two tensors along a new last dimension of size 2";
  let arguments = (ins Tile_Tensor:$a, Tile_Tensor:$b);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `->` type($result)";
  let hasFolder = 1;
}

def Tile_SplitOp : Tile_ShapeOp<"split", [AllTypesMatch<["a", "b"]>]> {
  let summary = "the two halves of the last dimension, which has size 2; inverse of join";
  let description = "The split of a tensor of rank 1 gives two scalars.";
  let arguments = (ins Tile_Tensor:$src);
  let results = (outs Tile_Value:$a, Tile_Value:$b);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($a)";
  let hasFolder = 1;
}

def Tile_CatOp : Tile_ShapeOp<"cat", [SameTypeOperands]> {
  let summary = "concatenate two tensors of one type along dimension dim";
  let arguments = (ins Tile_Tensor:$a, Tile_Tensor:$b, DefaultValuedAttr<I32Attr, "0">:$dim);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$a `,` $b `dim` `=` $dim attr-dict `:` type($a) `->` type($result)";
}

def Tile_GatherOp : Tile_ShapeOp<"gather"> {
  let summary = "result[.., i, ..] = src[.., indices[.., i, ..], ..] along axis";
  let description = "An index outside the dimension gives an unspecified element.";
  let arguments = (ins Tile_Tensor:$src, Tile_IntTensor:$indices, I32Attr:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$src `[` $indices `]` `axis` `=` $axis attr-dict `:` type($src) `,` type($indices) `->` type($result)";
}

#endif // TILEWRIGHT_TILE_SHAPE_OPS_TD
