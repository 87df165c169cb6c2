"""Random program 584: `python tests/fuzz/run.py --file` this one. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def h0(a, b, c, d):
    return a * c, b * c + d


@jit
def h1(x, y):
    return x | y


@jit
def kernel(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9):
    pid = tl.program_id(0)
    v1 = tl.load(a0 + pid)
    v2 = tl.load(a1 + pid * 24 + (tl.arange(0, 1)[:, None] * 16 + tl.arange(0, 16)[None, :]), eviction_policy='evict_last')
    v3 = tl.cumprod(v2, 0)
    v4 = v3 & v2
    v5 = tl.cumsum(v3, 0)
    v6 = tl.ceil(v1)
    v7 = tl.log(tl.abs(v6) + 0.25)
    v8, v9 = tl.reduce((v4, v4), 1, h0)
    v10, v11 = tl.reduce((v8, v9), 0, h0)
    v12 = tl.cast(v3, tl.float32)
    v13 = tl.associative_scan(v9, 0, h1, reverse=True)
    tl.store(a2 + pid * 64 + (tl.arange(0, 1)[:, None] * 64 + tl.arange(0, 16)[None, :] * 4), v5, cache_modifier='.cs')
    tl.store(a3 + pid, v7)
    tl.store(a4 + pid, v10)
    tl.store(a5 + pid, v11)
    tl.store(a6 + pid * 19 + (tl.arange(0, 1)[:, None] * 16 + tl.arange(0, 16)[None, :]), v12, mask=((tl.arange(0, 1)[:, None] * 16 + tl.arange(0, 16)[None, :]) >= 2), eviction_policy='evict_first')
    tl.store(a7 + pid * 1 + (tl.arange(0, 1)), v13)
    tl.store(a8 + pid * 16 + (tl.arange(0, 1)[:, None] * 16 + tl.arange(0, 16)[None, :]), v4, eviction_policy='evict_first')
    tl.store(a9 + pid * 16 + (tl.arange(0, 1)[:, None] * 16 + tl.arange(0, 16)[None, :]), v3)

GRID = (4,)
OPTIONS = {'num_warps': 4, 'num_stages': 1, 'enable_fp_fusion': False}
ARGUMENTS = {'a0': Array(dtype='fp64', size=4, fill='small', seed=1146272939),
 'a1': Array(dtype='u32', size=96, fill='special', seed=260231373),
 'a2': Array(dtype='u32', size=256, fill='pattern', seed=0),
 'a3': Array(dtype='fp64', size=4, fill='pattern', seed=0),
 'a4': Array(dtype='u32', size=4, fill='pattern', seed=0),
 'a5': Array(dtype='u32', size=4, fill='pattern', seed=0),
 'a6': Array(dtype='fp32', size=76, fill='pattern', seed=0),
 'a7': Array(dtype='u32', size=4, fill='pattern', seed=0),
 'a8': Array(dtype='u32', size=64, fill='pattern', seed=0),
 'a9': Array(dtype='u32', size=64, fill='pattern', seed=0)}

