//===- TileGPUOps.td - All ops of the tilegpu dialect ----------------------===//

#ifndef TILEWRIGHT_TILEGPU_OPS_TD
#define TILEWRIGHT_TILEGPU_OPS_TD

include "tilegpu/TileGPUBufferOps.td"
include "tilegpu/TileGPUCopyOps.td"
include "tilegpu/TileGPUMatrixOps.td"
include "tilegpu/TileGPUSyncOps.td"

#endif // TILEWRIGHT_TILEGPU_OPS_TD
