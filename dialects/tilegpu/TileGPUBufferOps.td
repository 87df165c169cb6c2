//===- TileGPUBufferOps.td - Layout conversion and shared memory -----------===//

#ifndef TILEWRIGHT_TILEGPU_BUFFER_OPS_TD
#define TILEWRIGHT_TILEGPU_BUFFER_OPS_TD

include "tilegpu/TileGPUBase.td"

def TileGPU_ConvertLayoutOp : TileGPU_Op<"convert_layout", [Pure]> {
  let summary = "the same tensor in another layout";
  let arguments = (ins Tile_Tensor:$src);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def TileGPU_LocalAllocOp : TileGPU_Op<"local_alloc", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a buffer in shared memory, filled with init if that is given";
  let description = "The allocation pass sets `tilegpu.offset`, in bytes from the start of the CTA's shared memory.";
  let arguments = (ins Optional<Tile_Tensor>:$init);
  let results = (outs TileGPU_BufferType:$result);
  let assemblyFormat = "($init^ `:` type($init) `->`):(`:`)? qualified(type($result)) attr-dict";
  let hasVerifier = 1;
}

def TileGPU_SlotOp : TileGPU_Op<"slot", [Pure, InferTypeOpAdaptor]> {
  let summary = "one of the tensors of a buffer with slots";
  let arguments = (ins TileGPU_BufferType:$buffer, I32:$index);
  let results = (outs TileGPU_BufferType:$result);
  let assemblyFormat = "$buffer `[` $index `]` attr-dict `:` qualified(type($buffer))";
}

def TileGPU_ViewOp : TileGPU_Op<"view", [Pure]> {
  let summary = "the same memory as another shape: a sub-block, a permutation, or a reshape";
  let description = [{
    `offsets` (one per dimension) picks the sub-block that starts there; `order`
    permutes dimensions as `tile.trans`; without either the elements keep their
    row-major order. The result's layout is the new map; no code is made.
  }];
  let arguments = (ins TileGPU_BufferType:$buffer, OptionalAttr<DenseI32ArrayAttr>:$offsets, OptionalAttr<DenseI32ArrayAttr>:$order);
  let results = (outs TileGPU_BufferType:$result);
  let assemblyFormat = [{
    $buffer (`offsets` `=` $offsets^)? (`order` `=` $order^)? attr-dict `:` qualified(type($buffer)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TileGPU_LocalLoadOp : TileGPU_Op<"local_load", [MemoryEffects<[TileGPU_SharedRead]>]> {
  let summary = "read a buffer; a token says which copies have arrived before";
  let arguments = (ins TileGPU_BufferType:$buffer, Optional<TileGPU_TokenType>:$token);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$buffer (`token` $token^)? attr-dict `:` qualified(type($buffer)) `->` type($result)";
  let hasVerifier = 1;
}

def TileGPU_LocalStoreOp : TileGPU_Op<"local_store", [MemoryEffects<[TileGPU_SharedWrite]>]> {
  let summary = "write a tensor to a buffer";
  let arguments = (ins Tile_Tensor:$value, TileGPU_BufferType:$buffer);
  let assemblyFormat = "$value `,` $buffer attr-dict `:` type($value) `,` qualified(type($buffer))";
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILEGPU_BUFFER_OPS_TD
