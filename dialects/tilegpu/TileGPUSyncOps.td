//===- TileGPUSyncOps.td - Barriers and partitions -------------------------===//

#ifndef TILEWRIGHT_TILEGPU_SYNC_OPS_TD
#define TILEWRIGHT_TILEGPU_SYNC_OPS_TD

include "tilegpu/TileGPUBase.td"

//===----------------------------------------------------------------------===//
// Barriers of threads
//===----------------------------------------------------------------------===//

def TileGPU_BarrierOp : TileGPU_SyncOp<"barrier"> {
  let summary = "all threads of the CTA, or of the partition, wait for each other";
  let assemblyFormat = "attr-dict";
  let hasCanonicalizeMethod = 1;
}

class TileGPU_NamedBarrierOp<string mnemonic> : TileGPU_SyncOp<mnemonic> {
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<15>]>:$id, ConfinedAttr<I32Attr, [IntPositive]>:$threads);
  let assemblyFormat = "`id` `=` $id `threads` `=` $threads attr-dict";
}

def TileGPU_NamedBarrierSyncOp : TileGPU_NamedBarrierOp<"named_barrier_sync"> {
  let summary = "arrive at barrier id and wait until `threads` threads have arrived";
}

def TileGPU_NamedBarrierArriveOp : TileGPU_NamedBarrierOp<"named_barrier_arrive"> {
  let summary = "arrive at barrier id without waiting";
}

def TileGPU_ClusterArriveOp : TileGPU_SyncOp<"cluster_arrive"> {
  let summary = "arrive at the barrier of the cluster's threads without waiting";
  let assemblyFormat = "attr-dict";
}

def TileGPU_ClusterWaitOp : TileGPU_SyncOp<"cluster_wait"> {
  let summary = "wait until all threads of the cluster have arrived";
  let assemblyFormat = "attr-dict";
}

def TileGPU_FenceAsyncOp : TileGPU_SyncOp<"fence_async"> {
  let summary = "make this thread's writes to shared memory visible to asynchronous readers (TMA, wgmma)";
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

def TileGPU_MBarrierInitOp : TileGPU_SyncOp<"mbarrier_init"> {
  let summary = "set the number of arrivals of every slot of buffer";
  let arguments = (ins TileGPU_Barrier:$buffer, ConfinedAttr<I32Attr, [IntPositive]>:$count);
  let assemblyFormat = "$buffer `count` `=` $count attr-dict `:` qualified(type($buffer))";
}

def TileGPU_MBarrierExpectOp : TileGPU_SyncOp<"mbarrier_expect"> {
  let summary = "arrive, and let the phase wait for `bytes` more bytes of copies";
  let arguments = (ins TileGPU_Barrier:$buffer, Optional<I1>:$pred, ConfinedAttr<I32Attr, [IntNonNegative]>:$bytes);
  let assemblyFormat = "$buffer `bytes` `=` $bytes (`pred` `=` $pred^)? attr-dict `:` qualified(type($buffer))";
}

def TileGPU_MBarrierArriveOp : TileGPU_SyncOp<"mbarrier_arrive"> {
  let summary = "count arrivals, once per executing partition";
  let arguments = (ins TileGPU_Barrier:$buffer, Optional<I1>:$pred, DefaultValuedAttr<ConfinedAttr<I32Attr, [IntPositive]>, "1">:$count);
  let assemblyFormat = "$buffer `count` `=` $count (`pred` `=` $pred^)? attr-dict `:` qualified(type($buffer))";
}

def TileGPU_MBarrierWaitOp : TileGPU_SyncOp<"mbarrier_wait"> {
  let summary = "wait until the phase of this parity has completed";
  let arguments = (ins TileGPU_Barrier:$buffer, I32:$phase, Optional<I1>:$pred);
  let assemblyFormat = "$buffer `,` $phase (`pred` `=` $pred^)? attr-dict `:` qualified(type($buffer))";
}

//===----------------------------------------------------------------------===//
// Partitions
//===----------------------------------------------------------------------===//

def TileGPU_WarpSpecializeOp : TileGPU_Op<"warp_specialize", [RecursiveMemoryEffects]> {
  let summary = "run one region per role, each on its own warps";
  let description = [{
    Region i runs role `roles[i]` on `warps[i]` warps with `registers[i]`
    registers a thread (0: as launched). Roles take warps in order. A role of
    the name "producer" is run by one thread of its warps. Regions may use what
    dominates the op; what differs from role to role, such as buffers that a
    loop carries, they take as captures. The first region ends with `warp_yield`, whose values are the
    results; the others end with `warp_return`.
  }];
  let arguments = (ins Variadic<AnyType>:$captures, StrArrayAttr:$roles, DenseI32ArrayAttr:$warps, DenseI32ArrayAttr:$registers);
  let results = (outs Variadic<AnyType>:$outs);
  let regions = (region VariadicRegion<SizedRegion<1>>:$partitions);
  let assemblyFormat = [{
    `(` $captures `)` `roles` `=` $roles `warps` `=` $warps `registers` `=` $registers $partitions
    attr-dict `:` functional-type($captures, $outs)
  }];
  let hasVerifier = 1;
}

def TileGPU_WarpYieldOp : TileGPU_Op<"warp_yield", [Pure, Terminator, HasParent<"WarpSpecializeOp">]> {
  let summary = "end of the first role: the results of warp_specialize";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let hasVerifier = 1;
}

def TileGPU_WarpReturnOp : TileGPU_Op<"warp_return", [Pure, Terminator, HasParent<"WarpSpecializeOp">]> {
  let summary = "end of a role that returns nothing";
  let assemblyFormat = "attr-dict";
}

#endif // TILEWRIGHT_TILEGPU_SYNC_OPS_TD
