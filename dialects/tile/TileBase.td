//===- TileBase.td - The tile dialect, its types and type constraints -----===//
//
// Block-level semantics of a kernel: tensors of scalars and of pointers,
// without a layout. Arithmetic is `arith`/`math`, control flow is `scf`.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_BASE_TD
#define TILEWRIGHT_TILE_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let summary = "Block-level operations of a GPU kernel.";
  let cppNamespace = "::tilewright::tile";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Tile_Type<string name, string typeMnemonic> : TypeDef<Tile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Tile_PtrType : Tile_Type<"Ptr", "ptr"> {
  let summary = "pointer";
  let description = [{
    `!tile.ptr<f32>` points to global memory (address space 1);
    `!tile.ptr<f32, 3>` to shared memory.
  }];
  let parameters = (ins "::mlir::Type":$pointee, DefaultValuedParameter<"unsigned", "1">:$addressSpace);
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::Type":$pointee, CArg<"unsigned", "1">:$addressSpace), [{
    return $_get(pointee.getContext(), pointee, addressSpace);
  }]>];
  let assemblyFormat = "`<` $pointee (`,` $addressSpace^)? `>`";
  let genVerifyDecl = 1;
}

def Tile_DescType : Tile_Type<"Desc", "desc"> {
  let summary = "tensor descriptor";
  let description = [{
    A tensor in global memory that is accessed in blocks of one shape:
    `!tile.desc<128x64xf16>` gives block shape and element type. After layouts are
    chosen it also names the shared layout that hardware copies produce:
    `!tile.desc<128x64xf16, #shared>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType, "::mlir::Attribute":$layout);
  let builders = [TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
                                                      CArg<"::mlir::Attribute", "{}">:$layout), [{
    return $_get(elementType.getContext(), shape, elementType, layout);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Type constraints
//===----------------------------------------------------------------------===//

def Tile_Float : AnyTypeOf<[F64, F32, F16, BF16, F8E5M2, F8E4M3FN, F8E4M3FNUZ, F8E5M2FNUZ], "float">;
def Tile_Int : AnyTypeOf<[I1, I8, I16, I32, I64], "signless integer">;
def Tile_Scalar : AnyTypeOf<[Tile_Float, Tile_Int, Tile_PtrType], "float, integer or pointer">;

// Tensors have a known shape and at least one dimension: a value without dimensions is a scalar.
class Tile_TensorOf<list<Type> elements>
    : RankedTensorOf<elements, [HasStaticShapePred, CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() > 0">],
                     "statically shaped tensor of at least one dimension">;

def Tile_Tensor : Tile_TensorOf<[Tile_Float, Tile_Int, Tile_PtrType]>;
def Tile_FloatTensor : Tile_TensorOf<[Tile_Float]>;
def Tile_IntTensor : Tile_TensorOf<[Tile_Int]>;
def Tile_PtrTensor : Tile_TensorOf<[Tile_PtrType]>;

def Tile_Value : AnyTypeOf<[Tile_Scalar, Tile_Tensor], "scalar or tensor">;
def Tile_FloatLike : AnyTypeOf<[Tile_Float, Tile_FloatTensor], "float or tensor of floats">;
def Tile_IntLike : AnyTypeOf<[Tile_Int, Tile_IntTensor], "integer or tensor of integers">;
def Tile_PtrLike : AnyTypeOf<[Tile_PtrType, Tile_PtrTensor], "pointer or tensor of pointers">;
def Tile_MaskLike : AnyTypeOf<[I1, Tile_TensorOf<[I1]>], "i1 or tensor of i1">;
def Tile_F32Like : AnyTypeOf<[F32, Tile_TensorOf<[F32]>], "f32 or tensor of f32">;
def Tile_ArithLike : AnyTypeOf<[Tile_Float, Tile_Int, Tile_FloatTensor, Tile_IntTensor], "number or tensor of numbers">;

//===----------------------------------------------------------------------===//
// Op classes
//===----------------------------------------------------------------------===//

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

// An op whose result types follow from its operands except for the layout,
// which a pass may choose: inference fills in the natural one.
class Tile_ShapeOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat([Pure, InferTypeOpAdaptor], traits)> {
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::tilewright::tile::sameTypesUpToLayout(inferred, actual);
    }
  }];
}

// An op on one value of any shape that returns the same type.
class Tile_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat([Pure, SameOperandsAndResultType], traits)>;

#endif // TILEWRIGHT_TILE_BASE_TD
