"""Random program 400627: exp2 on the GPU gives zero for what would be subnormal. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def kernel(a0, n0, a1, a2, a3, a4, a5, a6):
    pid = tl.program_id(0)
    v1 = tl.load(a0 + (pid * 512 + tl.arange(0, 128)[:, None] + tl.arange(0, 4)[None, :] * 128 + 1), cache_modifier='.cg')
    v2 = v1.to(tl.float32)
    v3 = tl.cos(v2)
    v4 = v2 == v3
    if pid % 2 == 1:
        v5 = v2.to(tl.int1)
    else:
        v6 = v2.to(tl.float32) * 0.5
        v7 = tl.max(v6, 1, keep_dims=True)
        v8 = tl.exp(v6 - v7)
        v9 = v8 / tl.sum(v8, 1, keep_dims=True)
        v3 = v3 + -2.0
        v5 = v8.to(tl.int1)
    v10 = tl.where(v5, v3, v2)
    v11 = tl.load(a1 + pid * 1024 + (tl.arange(0, 128)[:, None] * 8 + tl.arange(0, 4)[None, :] * 2 + 16))
    v12 = v11 % ((v11 & 127) + 1)
    v13 = tl.minimum(v12, v10)
    v14 = tl.ravel(v10)
    tl.store(a2 + pid * 513 + (tl.arange(0, 128)[:, None] * 4 + tl.arange(0, 4)[None, :]), v4, cache_modifier='.cs')
    tl.store(a3 + pid * 512 + (tl.arange(0, 128)[:, None] + tl.arange(0, 4)[None, :] * 128), v13, mask=((tl.arange(0, 128)[:, None]) < 57), cache_modifier='.cs')
    tl.store(a4 + pid * 1536 + (tl.arange(0, 512) * 3), v14, mask=((tl.arange(0, 512)) < n0), cache_modifier='.cs')
    tl.store(a5 + pid * 520 + (tl.arange(0, 512)), tl.reshape(v10, [512]), cache_modifier='.cs')
    tl.store(a6 + pid * 640 + (tl.arange(0, 128)[:, None] * 5 + tl.arange(0, 4)[None, :]), v3)

GRID = (3,)
OPTIONS = {'num_warps': 32, 'num_stages': 4, 'enable_fp_fusion': False}
ARGUMENTS = {'a0': Array(dtype='bf16', size=1537, fill='full', seed=1936847791),
 'n0': 5,
 'a1': Array(dtype='u32', size=3088, fill='small', seed=204531064),
 'a2': Array(dtype='u1', size=1539, fill='pattern', seed=0),
 'a3': Array(dtype='fp32', size=1536, fill='pattern', seed=0),
 'a4': Array(dtype='fp32', size=4608, fill='pattern', seed=0),
 'a5': Array(dtype='fp32', size=1560, fill='pattern', seed=0),
 'a6': Array(dtype='fp32', size=1920, fill='pattern', seed=0)}
