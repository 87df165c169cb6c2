//===- TileGPUBase.td - The tilegpu dialect, layouts and types -------------===//
//
// The tile dialect with a layout on every tensor type, plus what a GPU has
// besides: shared-memory buffers, asynchronous copies, barriers, matrix units.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILEGPU_BASE_TD
#define TILEWRIGHT_TILEGPU_BASE_TD

include "tile/TileBase.td"
include "tile/TileEnums.td"
include "tile/TileInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"

def TileGPU_Dialect : Dialect {
  let name = "tilegpu";
  let summary = "Kernel operations on tensors with layouts and on shared memory.";
  let cppNamespace = "::tilewright::tilegpu";
  let dependentDialects = ["::tilewright::tile::TileDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();

    static constexpr ::llvm::StringLiteral kTargetAttr = "tilegpu.target";
    static constexpr ::llvm::StringLiteral kNumWarpsAttr = "tilegpu.num_warps";
    static constexpr ::llvm::StringLiteral kNumCTAsAttr = "tilegpu.num_ctas";
    static constexpr ::llvm::StringLiteral kThreadsPerWarpAttr = "tilegpu.threads_per_warp";
    static constexpr ::llvm::StringLiteral kSharedAttr = "tilegpu.shared";
    static constexpr ::llvm::StringLiteral kOffsetAttr = "tilegpu.offset";
  }];
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

// Bases are stored flat: bit i of a hardware index toggles the coordinates
// bases[i * rank, (i + 1) * rank).
class TileGPU_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<TileGPU_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def TileGPU_LinearAttr : TileGPU_Attr<"Linear", "linear", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
                                                         DeclareAttrInterfaceMethods<Tile_LayoutInterface>]> {
  let summary = "distributed layout: (register, lane, warp, block) bits to tensor coordinates";
  let description = [{
    `#tilegpu.linear<register = [[0, 1]], lane = [[0, 2], [1, 0]], warp = [], block = []>`:
    element (r, l, w, b) of the machine holds the tensor element whose
    coordinates are the xor of the vectors of the set bits of r, l, w and b.
    A zero vector is a bit that repeats what the other half holds. The map
    reaches every element of the tensor.
  }];
  let parameters = (ins "unsigned":$rank, ArrayRefParameter<"int32_t">:$registerBases, ArrayRefParameter<"int32_t">:$laneBases,
                        ArrayRefParameter<"int32_t">:$warpBases, ArrayRefParameter<"int32_t">:$blockBases);
}

def TileGPU_SharedAttr : TileGPU_Attr<"Shared", "shared"> {
  let summary = "shared layout: bits of an offset in elements to buffer coordinates";
  let description = [{
    `#tilegpu.shared<offset = [[0, 1], [0, 2], [1, 0]], pad = [64, 8]>`. The map
    reaches every element; a zero vector (an offset that a sub-block view skips
    over) is allowed. `pad = [interval, amount]` leaves `amount` elements free
    after every `interval` elements.
  }];
  let parameters = (ins "unsigned":$rank, ArrayRefParameter<"int32_t">:$offsetBases,
                        "int32_t":$padInterval, "int32_t":$padAmount);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def TileGPU_BufferType : TypeDef<TileGPU_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "buffer";
  let description = [{
    Shared memory that holds a tensor, or `slots` tensors in a ring:
    `!tilegpu.buffer<128x64xf16, #shared, slots = 3>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::tilewright::tilegpu::SharedAttr":$layout, "int64_t":$slots);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def TileGPU_TokenType : TypeDef<TileGPU_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "token";
  let description = "Orders asynchronous copies; carries no data.";
}

//===----------------------------------------------------------------------===//
// Op classes and constraints
//===----------------------------------------------------------------------===//

def TileGPU_TensorOrBuffer : AnyTypeOf<[Tile_Tensor, TileGPU_BufferType], "tensor or buffer">;

def TileGPU_Barrier : Type<And<[TileGPU_BufferType.predicate,
    CPred<"::llvm::cast<::tilewright::tilegpu::BufferType>($_self).getElementType().isInteger(64)">]>, "buffer of i64 mbarriers">;

// Resources: shared memory of the CTA, and the queues of asynchronous work.
def TileGPU_SharedMemory : Resource<"::tilewright::tilegpu::SharedMemory">;
def TileGPU_AsyncQueue : Resource<"::tilewright::tilegpu::AsyncQueue">;
def TileGPU_SharedRead : MemRead<TileGPU_SharedMemory>;
def TileGPU_SharedWrite : MemWrite<TileGPU_SharedMemory>;
def TileGPU_SharedAlloc : MemAlloc<TileGPU_SharedMemory>;
def TileGPU_QueueWrite : MemWrite<TileGPU_AsyncQueue>;
def TileGPU_QueueRead : MemRead<TileGPU_AsyncQueue>;

class TileGPU_Op<string mnemonic, list<Trait> traits = []> : Op<TileGPU_Dialect, mnemonic, traits>;

// A point that orders all memory accesses around it.
class TileGPU_SyncOp<string mnemonic, list<Trait> traits = []>
    : TileGPU_Op<mnemonic, !listconcat([MemoryEffects<[MemRead, MemWrite, TileGPU_SharedRead, TileGPU_SharedWrite,
                                                       TileGPU_QueueRead, TileGPU_QueueWrite]>], traits)>;

#endif // TILEWRIGHT_TILEGPU_BASE_TD
