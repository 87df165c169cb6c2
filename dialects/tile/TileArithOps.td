//===- TileArithOps.td - Arithmetic that arith and math lack ---------------===//

#ifndef TILEWRIGHT_TILE_ARITH_OPS_TD
#define TILEWRIGHT_TILE_ARITH_OPS_TD

include "tile/TileEnums.td"

def Tile_AddPtrOp : Tile_Op<"addptr", [Pure, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "advance pointers by a number of elements";
  let arguments = (ins Tile_PtrLike:$ptr, Tile_IntLike:$offset);
  let results = (outs Tile_PtrLike:$result);
  let assemblyFormat = "$ptr `,` $offset attr-dict `:` type($ptr) `,` type($offset)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_BitcastOp : Tile_Op<"bitcast", [Pure]> {
  let summary = "reinterpret elements as another type of the same width";
  let arguments = (ins Tile_Value:$src);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_PtrToIntOp : Tile_Op<"ptr_to_int", [Pure,
    TypesMatchWith<"result is i64 of the shape of src", "src", "result", "::tilewright::tile::withElementType($_self, ::mlir::IntegerType::get($_self.getContext(), 64))">]> {
  let summary = "the address in bytes";
  let arguments = (ins Tile_PtrLike:$src);
  let results = (outs AnyTypeOf<[I64, Tile_TensorOf<[I64]>]>:$result);
  let assemblyFormat = "$src attr-dict `:` type($src)";
  let hasFolder = 1;
}

def Tile_IntToPtrOp : Tile_Op<"int_to_ptr", [Pure]> {
  let summary = "the pointer with a given address in bytes";
  let arguments = (ins AnyTypeOf<[I64, Tile_TensorOf<[I64]>], "i64 or tensor of i64">:$src);
  let results = (outs Tile_PtrLike:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_FpToFpOp : Tile_Op<"fp_to_fp", [Pure]> {
  let summary = "convert between float types";
  let description = [{
    Widening is exact. Narrowing rounds by `rounding` (to nearest even when it
    is absent). The format fp8e4b15 has no MLIR type: it is carried as i8 and
    named by `src_kind` or `dst_kind`.
  }];
  let arguments = (ins Tile_ArithLike:$src, OptionalAttr<Tile_RoundingAttr>:$rounding,
                       OptionalAttr<StrAttr>:$src_kind, OptionalAttr<StrAttr>:$dst_kind);
  let results = (outs Tile_ArithLike:$result);
  let assemblyFormat = [{
    $src (`rounding` `=` `` $rounding^)? (`src_kind` `=` $src_kind^)? (`dst_kind` `=` $dst_kind^)?
    attr-dict `:` type($src) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_ClampFOp : Tile_ElementwiseOp<"clampf"> {
  let summary = "min(max(x, lo), hi)";
  let description = "A NaN x gives `lo`, or NaN with `propagate_nan`.";
  let arguments = (ins Tile_FloatLike:$x, Tile_FloatLike:$lo, Tile_FloatLike:$hi, UnitAttr:$propagate_nan);
  let results = (outs Tile_FloatLike:$result);
  let assemblyFormat = "$x `,` $lo `,` $hi (`propagate_nan` $propagate_nan^)? attr-dict `:` type($x)";
}

def Tile_SqrtRnOp : Tile_ElementwiseOp<"sqrt_rn"> {
  let summary = "IEEE square root, rounded to nearest even, never approximated";
  let arguments = (ins Tile_F32Like:$x);
  let results = (outs Tile_F32Like:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Tile_DivRnOp : Tile_ElementwiseOp<"div_rn"> {
  let summary = "IEEE division, rounded to nearest even, never approximated";
  let arguments = (ins Tile_F32Like:$a, Tile_F32Like:$b);
  let results = (outs Tile_F32Like:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a)";
}

def Tile_MulHiOp : Tile_ElementwiseOp<"mulhi"> {
  let summary = "the high half of the double-width product";
  let arguments = (ins Tile_IntLike:$a, Tile_IntLike:$b, UnitAttr:$is_signed);
  let results = (outs Tile_IntLike:$result);
  let assemblyFormat = "$a `,` $b (`signed` $is_signed^)? attr-dict `:` type($a)";
}

def Tile_InlineAsmOp : Tile_Op<"inline_asm", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "target assembly applied to `pack` elements at a time";
  let arguments = (ins Variadic<Tile_Value>:$args, StrAttr:$asm_string, StrAttr:$constraints, UnitAttr:$pure,
                       DefaultValuedAttr<ConfinedAttr<I32Attr, [IntPositive]>, "1">:$pack);
  let results = (outs Variadic<Tile_Value>:$outs);
  let assemblyFormat = "$asm_string `,` $constraints `(` $args `)` (`pure` $pure^)? attr-dict `:` functional-type($args, $outs)";
  let hasVerifier = 1;
}

def Tile_ExternCallOp : Tile_Op<"extern_call", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "call a function of a device library on every element";
  let arguments = (ins Variadic<Tile_Value>:$args, StrAttr:$symbol, DefaultValuedStrAttr<StrAttr, "">:$lib_name,
                       DefaultValuedStrAttr<StrAttr, "">:$lib_path, UnitAttr:$pure);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$symbol `(` $args `)` (`pure` $pure^)? attr-dict `:` functional-type($args, $result)";
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILE_ARITH_OPS_TD
