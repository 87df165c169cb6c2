//===- TileInterfaces.td - What the tile dialect asks of a tensor layout ---===//

#ifndef TILEWRIGHT_TILE_INTERFACES_TD
#define TILEWRIGHT_TILE_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Tile_LayoutInterface : AttrInterface<"LayoutInterface"> {
  let cppNamespace = "::tilewright::tile";
  let description = [{
    A tensor encoding for which shape operations that move no data have one
    natural result layout. Type inference uses it.
  }];
  let methods = [
    InterfaceMethod<"Layout with a dimension of size 1 inserted before `axis`.",
                    "::mlir::Attribute", "expandDims", (ins "int64_t":$axis)>,
    InterfaceMethod<"Layout of the transposed tensor: dimension i of the result is dimension `order[i]`.",
                    "::mlir::Attribute", "permute", (ins "::llvm::ArrayRef<int32_t>":$order)>,
    InterfaceMethod<"Layout of two joined tensors: a new last dimension of size 2, in the lowest register bit.",
                    "::mlir::Attribute", "join", (ins)>,
    InterfaceMethod<"Layout of each half along the last dimension; null where the halves lie in different threads.",
                    "::mlir::Attribute", "split", (ins)>,
    InterfaceMethod<"Layout of two tensors of `size` one after the other along `dim`, in the highest register bit.",
                    "::mlir::Attribute", "concatenate", (ins "int64_t":$dim, "int64_t":$size)>,
  ];
}

#endif // TILEWRIGHT_TILE_INTERFACES_TD
