//===- TileGPUMatrixOps.td - Matrix units ----------------------------------===//

#ifndef TILEWRIGHT_TILEGPU_MATRIX_OPS_TD
#define TILEWRIGHT_TILEGPU_MATRIX_OPS_TD

include "tilegpu/TileGPUBase.td"

def TileGPU_MmaOp : TileGPU_Op<"mma", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + a * b by register matrix instructions of shape instr = [m, n, k]";
  let arguments = (ins Tile_Tensor:$a, Tile_Tensor:$b, Tile_Tensor:$acc, DenseI32ArrayAttr:$instr,
                       DefaultValuedAttr<Tile_PrecisionAttr, "::tilewright::tile::Precision::IEEE">:$precision,
                       DefaultValuedAttr<I32Attr, "0">:$max_imprecise, UnitAttr:$a_unsigned, UnitAttr:$b_unsigned);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc `instr` `=` $instr `precision` `=` `` $precision attr-dict `:` type($a) `,` type($b) `->` type($acc)
  }];
  let hasVerifier = 1;
}

def TileGPU_WgmmaOp : TileGPU_Op<"wgmma", [AllTypesMatch<["acc", "result"]>,
    MemoryEffects<[TileGPU_SharedRead, TileGPU_QueueWrite]>]> {
  let summary = "issue acc + a * b on the warpgroup matrix unit, as one committed group";
  let description = [{
    The result is pending until it went through `wgmma_wait`, and so are the
    reads of the buffers. Where `use_acc` is false the product alone is formed.
  }];
  let arguments = (ins TileGPU_TensorOrBuffer:$a, TileGPU_BufferType:$b, Tile_Tensor:$acc, Optional<I1>:$use_acc, DenseI32ArrayAttr:$instr,
                       DefaultValuedAttr<Tile_PrecisionAttr, "::tilewright::tile::Precision::TF32">:$precision,
                       DefaultValuedAttr<I32Attr, "0">:$max_imprecise, UnitAttr:$a_unsigned, UnitAttr:$b_unsigned);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc (`use_acc` `=` $use_acc^)? `instr` `=` $instr `precision` `=` `` $precision attr-dict
    `:` type($a) `,` qualified(type($b)) `->` type($acc)
  }];
  let hasVerifier = 1;
}

def TileGPU_WgmmaWaitOp : TileGPU_Op<"wgmma_wait", [InferTypeOpAdaptor, MemoryEffects<[TileGPU_QueueRead, TileGPU_QueueWrite]>]> {
  let summary = "wait until at most num groups are in flight; gives the values, no longer pending";
  let arguments = (ins Variadic<AnyType>:$values, ConfinedAttr<I32Attr, [IntNonNegative]>:$num);
  let results = (outs Variadic<AnyType>:$outs);
  let assemblyFormat = "`num` `=` $num attr-dict (`(` $values^ `:` type($values) `)`)?";
}

#endif // TILEWRIGHT_TILEGPU_MATRIX_OPS_TD
