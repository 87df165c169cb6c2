//===- TileRegionOps.td - Ops with a scalar function as a region -----------===//

#ifndef TILEWRIGHT_TILE_REGION_OPS_TD
#define TILEWRIGHT_TILE_REGION_OPS_TD

include "tile/TileBase.td"

// The region is a function of scalars: it captures nothing, so constants live
// inside and a lowering may instantiate it on vectors.
class Tile_RegionOp<string mnemonic> : Tile_Op<mnemonic, [IsolatedFromAbove, RecursiveMemoryEffects, RecursivelySpeculatable]>;

def Tile_ReduceOp : Tile_RegionOp<"reduce"> {
  let summary = "combine all elements along axis with an associative function";
  let description = [{
    n sources of one shape reduce together. The region takes 2n scalars (the
    accumulated ones, then the new ones) and yields n. A source of rank 1
    reduces to a scalar.
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$srcs, I32Attr:$axis);
  let results = (outs Variadic<Tile_Value>:$outs);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = "`(` $srcs `)` `axis` `=` $axis $combine attr-dict `:` functional-type($srcs, $outs)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Tile_ScanOp : Tile_RegionOp<"scan"> {
  let summary = "inclusive prefix combination along axis";
  let description = "As `reduce`, but every prefix is returned; `reverse` scans from the end.";
  let arguments = (ins Variadic<Tile_Tensor>:$srcs, I32Attr:$axis, UnitAttr:$reverse);
  let results = (outs Variadic<Tile_Tensor>:$outs);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = "`(` $srcs `)` `axis` `=` $axis (`reverse` $reverse^)? $combine attr-dict `:` functional-type($srcs, $outs)";
  let hasVerifier = 1;
}

def Tile_MapElementwiseOp : Tile_RegionOp<"map_elementwise"> {
  let summary = "apply a scalar function with control flow to every element";
  let description = [{
    With `pack` = p the region takes p elements of the first source, then p of
    the second, ..., and yields p elements of the first result, ....
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$srcs, DefaultValuedAttr<ConfinedAttr<I32Attr, [IntPositive]>, "1">:$pack);
  let results = (outs Variadic<Tile_Tensor>:$outs);
  let regions = (region MinSizedRegion<1>:$body);
  let assemblyFormat = "`(` $srcs `)` `pack` `=` $pack $body attr-dict `:` functional-type($srcs, $outs)";
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ParentOneOf<["ReduceOp", "ScanOp", "MapElementwiseOp"]>]> {
  let summary = "the results of a region of scalars";
  let arguments = (ins Variadic<Tile_Scalar>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Tile_HistogramOp : Tile_Op<"histogram", [Pure]> {
  let summary = "count the elements equal to 0, 1, ..., bins - 1 where mask is true";
  let arguments = (ins Tile_IntTensor:$src, Optional<Tile_MaskLike>:$mask);
  let results = (outs Tile_TensorOf<[I32]>:$result);
  let assemblyFormat = "$src (`mask` `=` $mask^ `:` type($mask))? attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILE_REGION_OPS_TD
