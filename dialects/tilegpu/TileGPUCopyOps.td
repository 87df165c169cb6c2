//===- TileGPUCopyOps.td - Asynchronous copies -----------------------------===//

#ifndef TILEWRIGHT_TILEGPU_COPY_OPS_TD
#define TILEWRIGHT_TILEGPU_COPY_OPS_TD

include "tilegpu/TileGPUBase.td"

//===----------------------------------------------------------------------===//
// Copies issued by threads (cp.async)
//===----------------------------------------------------------------------===//

def TileGPU_AsyncCopyOp : TileGPU_Op<"async_copy", [AttrSizedOperandSegments,
    MemoryEffects<[MemRead, TileGPU_SharedWrite, TileGPU_QueueWrite]>]> {
  let summary = "start to copy what ptrs point to into a buffer, each thread its own elements";
  let description = "Elements whose mask is false become `other`, or zero.";
  let arguments = (ins Tile_PtrTensor:$ptrs, TileGPU_BufferType:$buffer, Optional<Tile_TensorOf<[I1]>>:$mask,
                       Optional<Tile_Tensor>:$other, OptionalAttr<Tile_CacheAttr>:$cache, OptionalAttr<Tile_EvictAttr>:$evict);
  let results = (outs TileGPU_TokenType:$token);
  let assemblyFormat = [{
    $ptrs `,` $buffer (`mask` `=` $mask^ `:` type($mask))? (`other` `=` $other^ `:` type($other))? (`cache` `=` `` $cache^)?
    (`evict` `=` `` $evict^)? attr-dict `:` type($ptrs) `,` qualified(type($buffer))
  }];
  let hasVerifier = 1;
}

def TileGPU_AsyncCommitOp : TileGPU_Op<"async_commit", [MemoryEffects<[TileGPU_QueueRead, TileGPU_QueueWrite]>]> {
  let summary = "close the group of this thread's copies started since the last commit";
  let arguments = (ins Variadic<TileGPU_TokenType>:$tokens);
  let results = (outs TileGPU_TokenType:$token);
  let assemblyFormat = "`(` $tokens `)` attr-dict";
}

def TileGPU_AsyncWaitOp : TileGPU_Op<"async_wait", [MemoryEffects<[TileGPU_SharedWrite, TileGPU_QueueRead, TileGPU_QueueWrite]>]> {
  let summary = "wait until at most num groups of this thread are in flight";
  let arguments = (ins Variadic<TileGPU_TokenType>:$tokens, ConfinedAttr<I32Attr, [IntNonNegative]>:$num);
  let results = (outs TileGPU_TokenType:$token);
  let assemblyFormat = "$tokens `num` `=` $num attr-dict";
}

//===----------------------------------------------------------------------===//
// Copies issued for the CTA (TMA)
//===----------------------------------------------------------------------===//

class TileGPU_TMALoadBase<string mnemonic, list<Trait> traits, dag args> : TileGPU_Op<mnemonic, !listconcat(traits, [
    MemoryEffects<[MemRead, TileGPU_SharedWrite, TileGPU_QueueWrite]>])> {
  let arguments = args;
  let hasVerifier = 1;
}

class TileGPU_TMAStoreBase<string mnemonic, list<MemoryEffect> effects, dag args> : TileGPU_Op<mnemonic, [
    MemoryEffects<!listconcat([TileGPU_SharedRead, TileGPU_QueueWrite], effects)>]> {
  let arguments = args;
  let hasVerifier = 1;
}

def TileGPU_TMALoadOp : TileGPU_TMALoadBase<"tma_load", [AttrSizedOperandSegments], (ins Tile_DescType:$desc, Variadic<I32>:$indices,
    TileGPU_BufferType:$buffer, TileGPU_Barrier:$mbarrier, Optional<I1>:$pred, UnitAttr:$multicast,
    OptionalAttr<Tile_EvictAttr>:$evict)> {
  let summary = "start to copy a block into a buffer; its bytes count on mbarrier";
  let description = "`multicast`: the block goes to every CTA of the cluster that holds the same coordinates.";
  let assemblyFormat = [{
    $desc `[` $indices `]` `,` $buffer `,` $mbarrier (`pred` `=` $pred^)? (`multicast` $multicast^)? (`evict` `=` `` $evict^)?
    attr-dict `:` qualified(type($desc)) `,` qualified(type($buffer)) `,` qualified(type($mbarrier))
  }];
}

def TileGPU_TMAGatherOp : TileGPU_TMALoadBase<"tma_gather", [], (ins Tile_DescType:$desc, Tile_IntTensor:$x_offsets, I32:$y_offset,
    TileGPU_BufferType:$buffer, TileGPU_Barrier:$mbarrier, Optional<I1>:$pred)> {
  let summary = "start to copy one row per x offset into a buffer; its bytes count on mbarrier";
  let assemblyFormat = [{
    $desc `[` $x_offsets `,` $y_offset `]` `,` $buffer `,` $mbarrier (`pred` `=` $pred^)?
    attr-dict `:` qualified(type($desc)) `,` type($x_offsets) `,` qualified(type($buffer)) `,` qualified(type($mbarrier))
  }];
}

def TileGPU_TMAStoreOp : TileGPU_TMAStoreBase<"tma_store", [MemWrite], (ins Tile_DescType:$desc, Variadic<I32>:$indices,
    TileGPU_BufferType:$buffer)> {
  let summary = "start to copy a buffer to a block in memory, as one committed group";
  let assemblyFormat = "$desc `[` $indices `]` `,` $buffer attr-dict `:` qualified(type($desc)) `,` qualified(type($buffer))";
}

def TileGPU_TMAReduceOp : TileGPU_TMAStoreBase<"tma_reduce", [MemRead, MemWrite], (ins Tile_DescType:$desc, Variadic<I32>:$indices,
    TileGPU_BufferType:$buffer, Tile_RMWAttr:$kind)> {
  let summary = "start to combine a buffer into a block in memory, as one committed group";
  let assemblyFormat = "`` $kind $desc `[` $indices `]` `,` $buffer attr-dict `:` qualified(type($desc)) `,` qualified(type($buffer))";
}

def TileGPU_TMAScatterOp : TileGPU_TMAStoreBase<"tma_scatter", [MemWrite], (ins Tile_DescType:$desc, Tile_IntTensor:$x_offsets,
    I32:$y_offset, TileGPU_BufferType:$buffer)> {
  let summary = "start to copy each row of a buffer to its x offset, as one committed group";
  let assemblyFormat = [{
    $desc `[` $x_offsets `,` $y_offset `]` `,` $buffer attr-dict `:` qualified(type($desc)) `,` type($x_offsets) `,` qualified(type($buffer))
  }];
}

def TileGPU_TMAStoreWaitOp : TileGPU_Op<"tma_store_wait", [MemoryEffects<[TileGPU_SharedWrite, TileGPU_QueueRead, TileGPU_QueueWrite]>]> {
  let summary = "wait until at most num groups of stores are in flight; with `read`, until they have read their buffers";
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative]>:$num, UnitAttr:$read);
  let assemblyFormat = "`num` `=` $num (`read` $read^)? attr-dict";
}

#endif // TILEWRIGHT_TILEGPU_COPY_OPS_TD
