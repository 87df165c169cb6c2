"""Random program 22125, minimised: a product that overflows unless it is added without being rounded. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def kernel(a0, a5):
    pid = tl.program_id(0)
    v1 = tl.load(a0 + (pid * 128 + tl.arange(0, 128)[:, None] + tl.arange(0, 1)[None, :]), mask=((tl.arange(0, 128)[:, None]) < 63), other=3)
    v3 = v1
    for v4 in range(0, 8, 2):
        v7 = v3 * 3
        v3 = v1
        v1 = v1 - v7
        v3 = v3 + v3
    tl.store(a5 + pid * 128 + (tl.arange(0, 128)[:, None] + tl.arange(0, 1)[None, :] * 128), v3, mask=tl.broadcast_to((tl.arange(0, 1)[None, :]) < 126, [128, 1]))

GRID = (1,)
OPTIONS = {'num_warps': 1, 'num_stages': 1}
ARGUMENTS = {'a0': Array(dtype='fp16', size=256, fill='full', seed=476150973),
 'a5': Array(dtype='fp16', size=256, fill='pattern', seed=0)}
