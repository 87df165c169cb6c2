//===- TileMemoryOps.td - Loads, stores, atomics, descriptors --------------===//

#ifndef TILEWRIGHT_TILE_MEMORY_OPS_TD
#define TILEWRIGHT_TILE_MEMORY_OPS_TD

include "tile/TileEnums.td"

// `value` is what an access through `ptr` reads or writes.
class Tile_PointeeMatch<string value>
    : TypesMatchWith<value # " type matches the pointee of ptr", "ptr", value, "::tilewright::tile::getPointeeType($_self)">;
// The same for an operand that may be absent.
class Tile_OptionalPointeeMatch<string value>
    : OptionalTypesMatchWith<value # " type matches the pointee of ptr", "ptr", value, "::tilewright::tile::getPointeeType($_self)">;
def Tile_MaskMatch
    : OptionalTypesMatchWith<"mask is i1 of the shape and layout of ptr", "ptr", "mask", "::tilewright::tile::getMaskType($_self)">;

//===----------------------------------------------------------------------===//
// Pointers
//===----------------------------------------------------------------------===//

def Tile_LoadOp : Tile_Op<"load", [AttrSizedOperandSegments, Tile_PointeeMatch<"result">, Tile_MaskMatch,
    Tile_OptionalPointeeMatch<"other">, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "read through pointers; where mask is false give other, or anything";
  let arguments = (ins Tile_PtrLike:$ptr, Optional<Tile_MaskLike>:$mask, Optional<Tile_Value>:$other,
                       OptionalAttr<Tile_CacheAttr>:$cache, OptionalAttr<Tile_EvictAttr>:$evict, UnitAttr:$is_volatile);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = [{
    $ptr (`mask` `=` $mask^)? (`other` `=` $other^)? (`cache` `=` `` $cache^)? (`evict` `=` `` $evict^)?
    (`volatile` $is_volatile^)? attr-dict `:` type($ptr)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_StoreOp : Tile_Op<"store", [Tile_PointeeMatch<"value">, Tile_MaskMatch, MemoryEffects<[MemWrite]>]> {
  let summary = "write through pointers where mask is true";
  let arguments = (ins Tile_PtrLike:$ptr, Tile_Value:$value, Optional<Tile_MaskLike>:$mask,
                       OptionalAttr<Tile_CacheAttr>:$cache, OptionalAttr<Tile_EvictAttr>:$evict);
  let assemblyFormat = [{
    $ptr `,` $value (`mask` `=` $mask^)? (`cache` `=` `` $cache^)? (`evict` `=` `` $evict^)? attr-dict `:` type($ptr)
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

class Tile_AtomicOp<string mnemonic, list<Trait> traits> : Tile_Op<mnemonic, !listconcat([MemoryEffects<[MemRead, MemWrite]>], traits)> {
  let hasVerifier = 1;
}

def Tile_AtomicRMWOp : Tile_AtomicOp<"atomic_rmw", [Tile_PointeeMatch<"val">, Tile_PointeeMatch<"result">, Tile_MaskMatch]> {
  let summary = "read, combine with val and write back as one step; returns the old value";
  let arguments = (ins Tile_PtrLike:$ptr, Tile_Value:$val, Optional<Tile_MaskLike>:$mask, Tile_RMWAttr:$kind,
                       DefaultValuedAttr<Tile_SemAttr, "::tilewright::tile::Sem::AcqRel">:$sem,
                       DefaultValuedAttr<Tile_ScopeAttr, "::tilewright::tile::Scope::GPU">:$scope);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "`` $kind `` $sem `` $scope $ptr `,` $val (`mask` `=` $mask^)? attr-dict `:` type($ptr)";
}

def Tile_AtomicCASOp : Tile_AtomicOp<"atomic_cas", [Tile_PointeeMatch<"cmp">, Tile_PointeeMatch<"val">, Tile_PointeeMatch<"result">]> {
  let summary = "write val if memory equals cmp, as one step; returns the old value";
  let arguments = (ins Tile_PtrLike:$ptr, Tile_Value:$cmp, Tile_Value:$val,
                       DefaultValuedAttr<Tile_SemAttr, "::tilewright::tile::Sem::AcqRel">:$sem,
                       DefaultValuedAttr<Tile_ScopeAttr, "::tilewright::tile::Scope::GPU">:$scope);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "`` $sem `` $scope $ptr `,` $cmp `,` $val attr-dict `:` type($ptr)";
}

def Tile_AtomicLoadOp : Tile_AtomicOp<"atomic_load", [Tile_PointeeMatch<"result">, Tile_MaskMatch]> {
  let summary = "ordered read";
  let arguments = (ins Tile_PtrLike:$ptr, Optional<Tile_MaskLike>:$mask,
                       DefaultValuedAttr<Tile_SemAttr, "::tilewright::tile::Sem::Acquire">:$sem,
                       DefaultValuedAttr<Tile_ScopeAttr, "::tilewright::tile::Scope::GPU">:$scope);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "`` $sem `` $scope $ptr (`mask` `=` $mask^)? attr-dict `:` type($ptr)";
}

def Tile_AtomicStoreOp : Tile_AtomicOp<"atomic_store", [Tile_PointeeMatch<"val">, Tile_MaskMatch]> {
  let summary = "ordered write";
  let arguments = (ins Tile_PtrLike:$ptr, Tile_Value:$val, Optional<Tile_MaskLike>:$mask,
                       DefaultValuedAttr<Tile_SemAttr, "::tilewright::tile::Sem::Release">:$sem,
                       DefaultValuedAttr<Tile_ScopeAttr, "::tilewright::tile::Scope::GPU">:$scope);
  let assemblyFormat = "`` $sem `` $scope $ptr `,` $val (`mask` `=` $mask^)? attr-dict `:` type($ptr)";
}

def Tile_AtomicPollOp : Tile_AtomicOp<"atomic_poll", [Tile_PointeeMatch<"expected">,
    TypesMatchWith<"result is i1 of the shape of ptr", "ptr", "result", "::tilewright::tile::getMaskType($_self)">]> {
  let summary = "spin until memory equals expected; false if timeout nanoseconds pass before";
  let arguments = (ins Tile_PtrLike:$ptr, Tile_Value:$expected, Optional<I64>:$timeout,
                       DefaultValuedAttr<Tile_SemAttr, "::tilewright::tile::Sem::Acquire">:$sem,
                       DefaultValuedAttr<Tile_ScopeAttr, "::tilewright::tile::Scope::GPU">:$scope);
  let results = (outs Tile_MaskLike:$result);
  let assemblyFormat = "`` $sem `` $scope $ptr `,` $expected (`timeout` `=` $timeout^)? attr-dict `:` type($ptr)";
}

//===----------------------------------------------------------------------===//
// Tensor descriptors
//===----------------------------------------------------------------------===//

def Tile_MakeDescriptorOp : Tile_Op<"make_descriptor", [AttrSizedOperandSegments, Pure]> {
  let summary = "describe a strided tensor in global memory; strides in elements";
  let arguments = (ins Tile_PtrType:$base, Variadic<I32>:$shape, Variadic<I64>:$strides,
                       DefaultValuedAttr<Tile_PaddingAttr, "::tilewright::tile::Padding::Zero">:$padding);
  let results = (outs Tile_DescType:$result);
  let assemblyFormat = [{
    $base `,` `shape` `=` `[` $shape `]` `,` `strides` `=` `[` $strides `]` `,` `padding` `=` `` $padding
    attr-dict `:` qualified(type($base)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_DescriptorLoadOp : Tile_Op<"descriptor_load", [MemoryEffects<[MemRead]>, InferTypeOpAdaptor]> {
  let summary = "read the block that starts at indices; outside the tensor read the padding";
  let arguments = (ins Tile_DescType:$desc, Variadic<I32>:$indices,
                       OptionalAttr<Tile_CacheAttr>:$cache, OptionalAttr<Tile_EvictAttr>:$evict);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $desc `[` $indices `]` (`cache` `=` `` $cache^)? (`evict` `=` `` $evict^)? attr-dict `:` qualified(type($desc)) `->` type($result)
  }];
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::tilewright::tile::sameTypesUpToLayout(inferred, actual);
    }
  }];
  let hasVerifier = 1;
}

def Tile_DescriptorStoreOp : Tile_Op<"descriptor_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "write the block that starts at indices; elements outside the tensor are dropped";
  let arguments = (ins Tile_DescType:$desc, Tile_Tensor:$value, Variadic<I32>:$indices);
  let assemblyFormat = "$desc `[` $indices `]` `,` $value attr-dict `:` qualified(type($desc)) `,` type($value)";
  let hasVerifier = 1;
}

def Tile_DescriptorReduceOp : Tile_Op<"descriptor_reduce", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "combine a block into memory, each element atomically";
  let arguments = (ins Tile_DescType:$desc, Tile_Tensor:$value, Variadic<I32>:$indices, Tile_RMWAttr:$kind);
  let assemblyFormat = "`` $kind $desc `[` $indices `]` `,` $value attr-dict `:` qualified(type($desc)) `,` type($value)";
  let hasVerifier = 1;
}

def Tile_DescriptorGatherOp : Tile_Op<"descriptor_gather", [MemoryEffects<[MemRead]>, InferTypeOpAdaptor]> {
  let summary = "read one row of the block's width per x offset, all from column y_offset";
  let arguments = (ins Tile_DescType:$desc, Tile_IntTensor:$x_offsets, I32:$y_offset);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$desc `[` $x_offsets `,` $y_offset `]` attr-dict `:` qualified(type($desc)) `,` type($x_offsets) `->` type($result)";
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::tilewright::tile::sameTypesUpToLayout(inferred, actual);
    }
  }];
}

def Tile_DescriptorScatterOp : Tile_Op<"descriptor_scatter", [MemoryEffects<[MemWrite]>]> {
  let summary = "write one row of value per x offset, all at column y_offset";
  let arguments = (ins Tile_DescType:$desc, Tile_Tensor:$value, Tile_IntTensor:$x_offsets, I32:$y_offset);
  let assemblyFormat = [{
    $desc `[` $x_offsets `,` $y_offset `]` `,` $value attr-dict `:` qualified(type($desc)) `,` type($x_offsets) `,` type($value)
  }];
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILE_MEMORY_OPS_TD
