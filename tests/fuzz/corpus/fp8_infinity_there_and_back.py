"""Random program 150111, minimised: an infinity of fp8e5 becomes the largest number on the way back from fp64. The runner provides jit and Array."""
import tilewright.language as tl

@jit
def kernel(a2, a9):
    pid = tl.program_id(0)
    v3 = tl.load(a2 + (pid * 512 + tl.arange(0, 512)), mask=((tl.arange(0, 512)) < 308), other=0)
    v11 = v3.to(tl.float8e5, bitcast=True)
    v15 = tl.cast(v11, tl.float64)
    v11 = v15.to(tl.float8e5)
    tl.store(a9 + pid * 512 + (tl.arange(0, 512)), v11)

GRID = (1,)
OPTIONS = {'num_warps': 1, 'num_stages': 1}
ARGUMENTS = {'a2': Array(dtype='i8', size=1536, fill='small', seed=2108550864),
 'a9': Array(dtype='fp8e5', size=1536, fill='pattern', seed=0)}
