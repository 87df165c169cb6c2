//===- TileMatrixOps.td - Matrix products ----------------------------------===//

#ifndef TILEWRIGHT_TILE_MATRIX_OPS_TD
#define TILEWRIGHT_TILE_MATRIX_OPS_TD

include "tile/TileEnums.td"

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + a * b for matrices, or for batches of matrices in dimension 0";
  let description = [{
    `max_imprecise` is the number of fp8 products that may be summed at reduced
    precision before they are added to the accumulator (0: no limit is asked).
    Integer operands are signed unless `a_unsigned`/`b_unsigned`.
  }];
  let arguments = (ins Tile_Tensor:$a, Tile_Tensor:$b, Tile_Tensor:$acc,
                       DefaultValuedAttr<Tile_PrecisionAttr, "::tilewright::tile::Precision::IEEE">:$precision,
                       DefaultValuedAttr<I32Attr, "0">:$max_imprecise, UnitAttr:$a_unsigned, UnitAttr:$b_unsigned);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc `precision` `=` `` $precision attr-dict `:` type($a) `,` type($b) `->` type($acc)
  }];
  let hasVerifier = 1;
}

def Tile_DotScaledOp : Tile_Op<"dot_scaled", [Pure, AttrSizedOperandSegments, InferTypeOpAdaptor]> {
  let summary = "acc + (a * a_scale) * (b * b_scale) with one scale per group along K";
  let description = [{
    Formats: e2m1, e4m3, e5m2, bf16, fp16. e2m1 holds two elements a byte, the
    low nibble first, packed along K unless `a_k_pack`/`b_k_pack` is false.
    Scales are [M, K / group] and [N, K / group], e8m0 in i8 (group 32) or fp8.
  }];
  let arguments = (ins Tile_Tensor:$a, Optional<Tile_Tensor>:$a_scale, Tile_Tensor:$b, Optional<Tile_Tensor>:$b_scale,
                       Tile_Tensor:$acc, StrAttr:$a_format, StrAttr:$b_format, UnitAttr:$fast_math,
                       DefaultValuedAttr<BoolAttr, "true">:$a_k_pack, DefaultValuedAttr<BoolAttr, "true">:$b_k_pack);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $a (`scale` $a_scale^ `:` type($a_scale))? `format` `=` $a_format `,`
    $b (`scale` $b_scale^ `:` type($b_scale))? `format` `=` $b_format `,`
    $acc (`fast_math` $fast_math^)? attr-dict `:` type($a) `,` type($b) `->` type($acc)
  }];
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILE_MATRIX_OPS_TD
