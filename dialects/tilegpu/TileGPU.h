//===- TileGPU.h - The tilegpu dialect -------------------------------------===//

#ifndef TILEWRIGHT_TILEGPU_TILEGPU_H
#define TILEWRIGHT_TILEGPU_TILEGPU_H

#include "tile/Tile.h"

#include "mlir/IR/TensorEncoding.h"

#include "TileGPUDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "TileGPUAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "TileGPUTypes.h.inc"

namespace tilewright::tilegpu {

/// Shared memory of a CTA.
struct SharedMemory : mlir::SideEffects::Resource::Base<SharedMemory> {
  llvm::StringRef getName() final { return "SharedMemory"; }
};

/// The order of asynchronous copies and matrix products of a thread.
struct AsyncQueue : mlir::SideEffects::Resource::Base<AsyncQueue> {
  llvm::StringRef getName() final { return "AsyncQueue"; }
};

} // namespace tilewright::tilegpu

#define GET_OP_CLASSES
#include "TileGPUOps.h.inc"

#endif // TILEWRIGHT_TILEGPU_TILEGPU_H
