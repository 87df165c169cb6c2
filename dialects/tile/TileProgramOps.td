//===- TileProgramOps.td - The program, its launch, debugging --------------===//

#ifndef TILEWRIGHT_TILE_PROGRAM_OPS_TD
#define TILEWRIGHT_TILE_PROGRAM_OPS_TD

include "tile/TileBase.td"

defvar Tile_Axis = ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<2>]>;

def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure]> {
  let summary = "index of this program in the launch grid";
  let arguments = (ins Tile_Axis:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_NumProgramsOp : Tile_Op<"num_programs", [Pure]> {
  let summary = "size of the launch grid";
  let arguments = (ins Tile_Axis:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_PrintOp : Tile_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "print every element with its index";
  let arguments = (ins Variadic<Tile_Value>:$args, StrAttr:$prefix, UnitAttr:$hex, DefaultValuedAttr<DenseBoolArrayAttr, "{}">:$is_signed);
  let assemblyFormat = "$prefix (`hex` $hex^)? (`signed` `=` $is_signed^)? attr-dict (`(` $args^ `:` type($args) `)`)?";
  let hasVerifier = 1;
}

def Tile_AssertOp : Tile_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "stop the kernel where cond is false and mask is true";
  let arguments = (ins Tile_MaskLike:$cond, Optional<Tile_MaskLike>:$mask, StrAttr:$message);
  let assemblyFormat = "$cond (`mask` `=` $mask^ `:` type($mask))? `,` $message attr-dict `:` type($cond)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Tile_AssumeOp : Tile_Op<"assume", [MemoryEffects<[MemWrite]>]> {
  let summary = "promise that cond holds";
  let arguments = (ins I1:$cond);
  let assemblyFormat = "$cond attr-dict";
  let hasCanonicalizeMethod = 1;
}

def Tile_BarrierOp : Tile_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all threads of the program wait for each other";
  let assemblyFormat = "attr-dict";
}

def Tile_GlobalTimerOp : Tile_Op<"globaltimer", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "nanoseconds of the device's clock";
  let results = (outs I64:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_SmIdOp : Tile_Op<"smid", [Pure]> {
  let summary = "index of the multiprocessor that runs this program";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_ClusterRankOp : Tile_Op<"cluster_rank", [Pure]> {
  let summary = "index of this CTA among those that run the program";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_ExchangeOp : Tile_Op<"exchange", [Pure]> {
  let summary = "split a tensor in another way over the CTAs that run the program";
  let description = [{
    Each CTA holds a part of a tensor of `shape`. `from` and `to` say which before and after: for each bit of the CTA's rank
    the coordinate that it adds, one number per dimension, so that the part is what the other bits of the coordinates reach.
    A bit that adds nothing means copies. Of copies each CTA reads its own, with `from_first` those of the lowest rank.
    All CTAs of the program meet here. Sources may be several, of one shape.
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$srcs, DenseI32ArrayAttr:$shape, DenseI32ArrayAttr:$from, DenseI32ArrayAttr:$to, UnitAttr:$from_first);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let assemblyFormat = "$srcs `of` $shape `from` $from `to` $to (`first` $from_first^)? attr-dict `:` type($srcs) `->` type($results)";
  let hasVerifier = 1;
}

def Tile_GdcWaitOp : Tile_Op<"gdc_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for the kernels that this launch depends on";
  let assemblyFormat = "attr-dict";
}

def Tile_GdcLaunchOp : Tile_Op<"gdc_launch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "let the kernels that depend on this launch start";
  let assemblyFormat = "attr-dict";
}

#endif // TILEWRIGHT_TILE_PROGRAM_OPS_TD
