"""Random program 300: `python tests/fuzz/run.py --file` this one. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def h0(a, b, c, d):
    return a * c, b * c + d


@jit
def kernel(a0, a1, a2, a3, a4, a5):
    pid = tl.program_id(0)
    v1 = tl.load(a0 + pid * 128 + (tl.arange(0, 128)), mask=((tl.arange(0, 128)) != 70), other=0)
    v2 = tl.reshape(v1, [1, 128])
    v3 = tl.join(v2, v2)
    v4 = tl.maximum(v2, v2)
    v5, v6 = tl.reduce((v3, v3), 1, h0)
    tl.store(a1 + pid * 256 + (tl.arange(0, 128) * 2), tl.reshape(v4, [128]), mask=((tl.arange(0, 128)) != 43))
    tl.store(a2 + pid * 2 + (tl.arange(0, 1)[:, None] * 2 + tl.arange(0, 2)[None, :]), v5)
    tl.store(a3 + pid * 3 + (tl.arange(0, 1)[:, None] * 3 + tl.arange(0, 2)[None, :]), v6, mask=((tl.arange(0, 1)[:, None] * 2 + tl.arange(0, 2)[None, :]) < 3))
    tl.store(a4 + pid * 384 + (tl.arange(0, 128) * 3), v1, eviction_policy='evict_first')
    tl.store(a5 + pid * 256 + (tl.arange(0, 1)[:, None, None] * 256 + tl.arange(0, 128)[None, :, None] * 2 + tl.arange(0, 2)[None, None, :]), v3)

GRID = (4,)
OPTIONS = {'num_warps': 8, 'num_stages': 2}
ARGUMENTS = {'a0': Array(dtype='u32', size=512, fill='small', seed=282056192),
 'a1': Array(dtype='u32', size=1024, fill='pattern', seed=0),
 'a2': Array(dtype='u32', size=8, fill='pattern', seed=0),
 'a3': Array(dtype='u32', size=12, fill='pattern', seed=0),
 'a4': Array(dtype='u32', size=1536, fill='pattern', seed=0),
 'a5': Array(dtype='u32', size=1024, fill='pattern', seed=0)}

