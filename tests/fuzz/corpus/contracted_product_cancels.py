"""Random program 400655: a difference of products that are not rounded is not zero. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def kernel(a0, n0, a1, a2, a3, a4, a5, a6, a7, a8, a9, C0: tl.constexpr):
    pid = tl.program_id(0)
    v1 = tl.load(a0 + (pid * 128 + tl.arange(0, 128) + 1), mask=((tl.arange(0, 128)) < n0), other=3, eviction_policy='evict_last')
    v2 = tl.load(a1 + pid * 128 + (tl.arange(0, 128)))
    v3 = tl.load(a2 + pid)
    v4 = v2 * v1
    v5 = tl.interleave(v2, v4)
    v6 = tl.load(a3 + pid * 128 + (tl.arange(0, 128)), mask=((tl.arange(0, 128)) < 20), other=1, cache_modifier='.ca')
    v7 = v6 // 1
    v8 = v7 // C0
    v9 = tl.reshape(v5, [32, 8])
    v10 = v5 - v5
    v11 = v8 | v6
    v12 = tl.interleave(v9, v9)
    tl.store(a4 + pid, v3)
    tl.store(a5 + pid * 256 + (tl.arange(0, 256)), v10)
    tl.store(a6 + pid * 128 + (tl.arange(0, 128)), v11)
    tl.store(a7 + pid * 2080 + (tl.arange(0, 32)[:, None] * 65 + tl.arange(0, 16)[None, :] * 4), v12)
    tl.store(a8 + pid * 128 + (tl.arange(0, 128)), v8)
    tl.store(a9 + pid * 128 + (tl.arange(0, 128)), v2, cache_modifier='.cs')

GRID = (2,)
OPTIONS = {'num_warps': 4, 'num_stages': 1}
ARGUMENTS = {'a0': Array(dtype='fp64', size=257, fill='small', seed=153108615),
 'n0': 3,
 'a1': Array(dtype='fp64', size=256, fill='unit', seed=352688565),
 'a2': Array(dtype='fp64', size=2, fill='small', seed=1371656561),
 'a3': Array(dtype='u8', size=256, fill='small', seed=974407085),
 'a4': Array(dtype='fp64', size=2, fill='pattern', seed=0),
 'a5': Array(dtype='fp64', size=512, fill='pattern', seed=0),
 'a6': Array(dtype='u8', size=256, fill='pattern', seed=0),
 'a7': Array(dtype='fp64', size=4160, fill='pattern', seed=0),
 'a8': Array(dtype='u8', size=256, fill='pattern', seed=0),
 'a9': Array(dtype='fp64', size=256, fill='pattern', seed=0),
 'C0': 3}
