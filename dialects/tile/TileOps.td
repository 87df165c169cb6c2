//===- TileOps.td - All ops of the tile dialect ----------------------------===//

#ifndef TILEWRIGHT_TILE_OPS_TD
#define TILEWRIGHT_TILE_OPS_TD

include "tile/TileArithOps.td"
include "tile/TileMatrixOps.td"
include "tile/TileMemoryOps.td"
include "tile/TileProgramOps.td"
include "tile/TileRegionOps.td"
include "tile/TileShapeOps.td"

#endif // TILEWRIGHT_TILE_OPS_TD
