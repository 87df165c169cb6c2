"""Random program 101: `python tests/fuzz/run.py --file` this one. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def kernel(a0, n0, a1, a2, a3, a4, n1, a5, a6, n2, a7, a8, a9):
    pid = tl.program_id(0)
    v1 = tl.load(a0 + (pid * 9 + tl.arange(0, 1)[:, None] * 8 + tl.arange(0, 8)[None, :] + 1), mask=tl.broadcast_to((tl.arange(0, 1)[:, None]) < n0, [1, 8]), other=0.0, cache_modifier='.cg')
    v2 = tl.cat(v1, v1, dim=1)
    v3 = v2 * v2 + v2
    v4 = tl.clamp(v1, -1.5, 2.0, propagate_nan=tl.PropagateNan.ALL)
    v5 = tl.load(a1 + (pid * 32 + tl.arange(0, 32) + 16))
    v6 = v5 ^ v5
    v7 = tl.sum(v5)
    v8 = tl.topk(v6, 2)
    v9 = v7 - v2
    v10 = tl.where((v4 < 127.0) & (v4 > -127.0), v4, 1.0).to(tl.int8)
    v11 = tl.maximum(v5, v6)
    v12 = tl.where(((tl.arange(0, 32)) != n0), v11, 2)
    v13 = v6.to(tl.int32, bitcast=True)
    v14 = tl.sqrt(tl.abs(v4))
    v15 = tl.min(v10, 0)
    tl.store(a2 + pid * 2 + (tl.arange(0, 2)), v8)
    tl.store(a3 + pid * 16 + (tl.arange(0, 1)[:, None] * 16 + tl.arange(0, 16)[None, :]), v9, cache_modifier='.cs')
    tl.store(a4 + pid * 32 + (tl.arange(0, 32)), v12, mask=((tl.arange(0, 32)) < n1))
    tl.store(a5 + pid * 32 + (tl.arange(0, 32)), v13)
    tl.store(a6 + pid * 11 + (tl.arange(0, 1)[:, None] * 11 + tl.arange(0, 8)[None, :]), v14, mask=tl.broadcast_to((tl.arange(0, 1)[:, None]) < n2, [1, 8]), cache_modifier='.cs')
    tl.store(a7 + pid * 8 + (tl.arange(0, 8)), v15, eviction_policy='evict_first')
    tl.store(a8 + pid * 32 + (tl.arange(0, 32)), v6, mask=((tl.arange(0, 32)) >= 12))
    tl.store(a9 + pid * 32 + (tl.arange(0, 32)), v11, eviction_policy='evict_first')

GRID = (4,)
OPTIONS = {'num_warps': 2, 'num_stages': 1}
ARGUMENTS = {'a0': Array(dtype='fp32', size=37, fill='small', seed=1574169845),
 'n0': 17,
 'a1': Array(dtype='u32', size=144, fill='full', seed=778064084),
 'a2': Array(dtype='u32', size=8, fill='pattern', seed=0),
 'a3': Array(dtype='fp32', size=64, fill='pattern', seed=0),
 'a4': Array(dtype='u32', size=128, fill='pattern', seed=0),
 'n1': 64,
 'a5': Array(dtype='i32', size=128, fill='pattern', seed=0),
 'a6': Array(dtype='fp32', size=44, fill='pattern', seed=0),
 'n2': 32,
 'a7': Array(dtype='i32', size=32, fill='pattern', seed=0),
 'a8': Array(dtype='u32', size=128, fill='pattern', seed=0),
 'a9': Array(dtype='u32', size=128, fill='pattern', seed=0)}

