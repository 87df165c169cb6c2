"""Random program 292: `python tests/fuzz/run.py --file` this one. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def h0(x, y):
    return tl.where(y != 0, y, x)


@jit
def kernel(a0, a1, a2, a3, a4, a5):
    pid = tl.program_id(0)
    v1 = tl.load(a0 + (pid * 256 + tl.arange(0, 8)[:, None] * 32 + tl.arange(0, 32)[None, :]), eviction_policy='evict_last')
    v2 = tl.flip(v1, 0)
    v3 = tl.sort(tl.where(v2 == v2, v2, 0.0))
    v4 = tl.reduce(v2, 0, h0)
    v5 = tl.ravel(v4)
    v6 = tl.sort(tl.where(v4 == v4, v4, 0.0), descending=True)
    v7 = v6 >= v6
    tl.store(a1 + pid * 256 + (tl.arange(0, 8)[:, None] * 32 + tl.arange(0, 32)[None, :]), v3)
    tl.store(a2 + pid * 32 + (tl.arange(0, 32)), v5)
    tl.store(a3 + pid * 32 + (tl.arange(0, 32)), v7, cache_modifier='.cs')
    tl.store(a4 + pid * 32 + (tl.arange(0, 32)), v4)
    tl.store(a5 + pid * 256 + (tl.arange(0, 8)[:, None] * 32 + tl.arange(0, 32)[None, :]), v1, mask=((tl.arange(0, 8)[:, None] * 32 + tl.arange(0, 32)[None, :]) != 32), eviction_policy='evict_first')

GRID = (1,)
OPTIONS = {'num_warps': 4, 'num_stages': 2, 'enable_fp_fusion': False}
ARGUMENTS = {'a0': Array(dtype='fp64', size=256, fill='unit', seed=628145017),
 'a1': Array(dtype='fp64', size=256, fill='pattern', seed=0),
 'a2': Array(dtype='fp64', size=32, fill='pattern', seed=0),
 'a3': Array(dtype='u1', size=32, fill='pattern', seed=0),
 'a4': Array(dtype='fp64', size=32, fill='pattern', seed=0),
 'a5': Array(dtype='fp64', size=256, fill='pattern', seed=0)}

