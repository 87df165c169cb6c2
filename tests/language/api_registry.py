"""The public names of the language, each with a tiny program that uses it: what `docs/language.md` lists and `test_api_table.py` runs.

A row is `names | program`: several names share a program in which `{}` stands for the name and `{.}` for its last part. ` ;; ` is a line
break, an indented line continues the one before; the value of the last line, an expression, is what the program computes. The variables of
a program are those of `PRELUDE`, its functions those of `api_helpers.py`. Rows of a host section are expressions of ordinary Python that
must be true.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.language.extra.libdevice_table import TABLE

# what every program finds: x, y fp32 in (0, 1) and n, m int32 of 16 elements, e and k scalars, a and w 16 x 16 in fp32 and fp16,
# s and f pointers to 64 int32 and fp32 numbers of its own
PRELUDE = """
i = tl.arange(0, 16)
x = tl.load(X + i)
y = tl.load(X + 16 + i)
n = tl.load(N + i)
m = tl.load(N + 16 + i)
e = tl.load(X)
k = tl.load(N + 16)
q = x > y
h = x.to(tl.float16)
d = x.to(tl.float64)
u = m.to(tl.uint32)
l = n.to(tl.int64)
a = tl.load(X + i[:, None] * 16 + i[None, :])
w = a.to(tl.float16)
"""


@dataclass(frozen=True)
class Section:
    title: str
    rows: str
    text: str = ""
    host: bool = False

    def examples(self) -> list[tuple[str, str]]:
        """(name, program) of every name."""
        found = []
        for row in self.rows.strip().replace("\n  ", " ").splitlines():
            names, program = row.split(" | ", 1)
            for name in names.split():
                lines = program.strip().replace("{.}", name.rpartition(".")[2]).replace("{}", name)
                found.append((name, lines.replace(" ;; ", "\n")))
        return found


CREATION = """
tl.program_id tl.num_programs | {}(0) + {}(axis=2)
tl.arange | tl.arange(0, 32)
tl.full | tl.full((4, 4), 3, tl.int32)
tl.zeros | tl.zeros((16,), dtype=tl.float32) + x
tl.zeros_like | tl.zeros_like(x) + x
tl.cast | tl.cast(x, tl.bfloat16, fp_downcast_rounding="rtz")
tl.to_tensor | tl.to_tensor(2.5) * x
tl.cat | tl.cat(x, y, can_reorder=True)
"""

SHAPES = """
tl.broadcast | p, r = tl.broadcast(x[:, None], n[None, :]) ;; p + r
tl.broadcast_to | tl.broadcast_to(x[:, None], 16, 4)
tl.expand_dims | tl.expand_dims(x, (0, -1))
tl.squeeze | tl.squeeze(x[None, :], 0)
tl.unsqueeze | tl.unsqueeze(x, -1)
tl.reshape | tl.reshape(x, (4, 4))
tl.view | tl.view(x, 16)
tl.ravel | tl.ravel(a)
tl.trans | tl.trans(a)
tl.permute | tl.permute(a, 1, 0)
tl.join | tl.join(x, y)
tl.split | p, r = tl.split(tl.reshape(x, 8, 2)) ;; p - r
tl.interleave | tl.interleave(x, y)
tl.flip | tl.flip(x)
tl.where | tl.where(q, x, n)
tl.swizzle2d | tl.swizzle2d(k, k + 1, 8, 8, 2)
tl.gather | tl.gather(x, i ^ 5, 0)
tl.histogram | tl.histogram(m, 16, mask=q)
tl.map_elementwise | tl.map_elementwise(collatz_steps, m)
"""

MEMORY = """
tl.load | tl.load(f + i, mask=q, other=-1.0, cache_modifier=".cg", eviction_policy="evict_last", volatile=False)
tl.store | tl.store(f + i, x, mask=q, cache_modifier=".wb", eviction_policy="evict_first") ;; tl.debug_barrier() ;; tl.load(f + i)
tl.make_block_ptr | p = tl.make_block_ptr(f, (6, 7), (8, 1), (0, 0), (8, 8), (1, 0)) ;; tl.load(p, boundary_check=(0, 1),
  padding_option="zero")
tl.advance | p = tl.make_block_ptr(f, (6, 7), (8, 1), (0, 0), (4, 4), (1, 0)) ;; tl.load(tl.advance(p, (4, 4)), boundary_check=(0, 1))
tl.make_tensor_descriptor | tl.make_tensor_descriptor(f, [6, 7], [8, 1], [8, 8], padding_option="nan").load([0, 0])
tl.load_tensor_descriptor | tl.load_tensor_descriptor(tl.make_tensor_descriptor(f, [6, 7], [8, 1], [8, 8]), [1, 2])
tl.store_tensor_descriptor | tl.store_tensor_descriptor(tl.make_tensor_descriptor(f, [6, 7], [8, 1], [4, 4]), [4, 4], tl.reshape(x, 4, 4))
  ;; tl.debug_barrier() ;; tl.load(f + tl.arange(0, 64))
tl.tensor_descriptor | isinstance(tl.make_tensor_descriptor(f, [8, 8], [8, 1], [8, 8]), tl.tensor_descriptor)
tensor_descriptor.load | tl.make_tensor_descriptor(f, [6, 7], [8, 1], [4, 4]).load([3, 4])
tensor_descriptor.store | tl.make_tensor_descriptor(f, [6, 7], [8, 1], [4, 4]).store([3, 4], tl.reshape(x, 4, 4)) ;; tl.debug_barrier() ;;
  tl.load(f + tl.arange(0, 64))
tensor_descriptor.gather | tl.make_tensor_descriptor(f, [8, 8], [8, 1], [1, 8]).gather(tl.arange(0, 8) ^ 3, 0)
tensor_descriptor.scatter | p = tl.make_tensor_descriptor(f, [8, 8], [8, 1], [1, 8]) ;; p.scatter(p.gather(tl.arange(0, 8), 0) * 2,
  tl.arange(0, 8) ^ 3, 0) ;; tl.debug_barrier() ;; tl.load(f + tl.arange(0, 64))
tensor_descriptor.atomic_add tensor_descriptor.atomic_min tensor_descriptor.atomic_max tensor_descriptor.atomic_and
  tensor_descriptor.atomic_or tensor_descriptor.atomic_xor | tl.make_tensor_descriptor(s, [6, 7], [8, 1], [4, 4]).{.}([3, 4],
  tl.reshape(n, 4, 4)) ;; tl.debug_barrier() ;; tl.load(s + tl.arange(0, 64))
tensor_descriptor.shape tensor_descriptor.strides | p = tl.make_tensor_descriptor(f, [6, 7], [8, 1], [8, 8]) ;; p.{.}[0] + p.{.}[1]
tensor_descriptor.block_shape | tl.zeros(tl.make_tensor_descriptor(f, [6, 7], [8, 1], [8, 8]).block_shape, tl.float32)
tensor_descriptor.dtype | tl.make_tensor_descriptor(f, [6, 7], [8, 1], [8, 8]).dtype == tl.float32
tensor_descriptor.block_type | tl.make_tensor_descriptor(f, [6, 7], [8, 1], [8, 8]).block_type == tl.block_type(tl.float32, [8, 8])
"""

ATOMICS = """
tl.atomic_add tl.atomic_max tl.atomic_min tl.atomic_and tl.atomic_or tl.atomic_xor tl.atomic_xchg | {}(s + i, n, mask=q, sem="relaxed",
  scope="cta") ;; tl.debug_barrier() ;; tl.load(s + i)
tl.atomic_cas | tl.atomic_cas(s, 0, 7, sem="acquire", scope="gpu") ;; tl.debug_barrier() ;; tl.load(s)
tl.atomic_load | tl.atomic_load(s + i, mask=i < 8, sem="acquire", scope="gpu").to(tl.int64)[:, None].broadcast_to(16, 2).sum(1) * (i < 8)
tl.atomic_store | tl.atomic_store(s + i, n, mask=q, sem="release", scope="sys") ;; tl.debug_barrier() ;; tl.load(s + i)
tl.atomic_poll | tl.atomic_poll(s + 3, 3, timeout_ns=1000)
"""

PRODUCTS = """
tl.dot | tl.dot(w, w, acc=a, input_precision="tf32", out_dtype=tl.float32)
tl.dot_scaled | tl.dot_scaled(fp8_bits(16, 32), tl.full((16, 1), 127, tl.uint8), "e5m2", fp8_bits(32, 16), tl.full((16, 1), 128,
  tl.uint8), "e5m2", acc=a)
input_precision="tf32" input_precision="tf32x3" input_precision="ieee" input_precision="bf16x3" input_precision="bf16x6" | tl.dot(a, a, {})
allow_tf32=False | tl.dot(a, a, {})
max_num_imprecise_acc=32 | tl.dot(fp8_bits(16, 32).to(tl.float8e5, bitcast=True), fp8_bits(32, 16).to(tl.float8e5, bitcast=True), {})
out_dtype=tl.float16 | tl.dot(w, w, {})
"""

MATH = """
tl.add tl.sub tl.mul | {}(n, m, sanitize_overflow=False)
tl.exp tl.exp2 tl.log tl.log2 tl.cos tl.sin tl.sqrt tl.rsqrt tl.erf tl.floor tl.ceil tl.abs tl.sqrt_rn | {}(x * 3)
tl.div_rn | tl.div_rn(x, y)
tl.fdiv | tl.fdiv(x, y, ieee_rounding=True)
tl.fma | tl.fma(x, y, x)
tl.umulhi | tl.umulhi(u * 123456789, u * 987654321)
tl.maximum tl.minimum | {}(x, y, propagate_nan=tl.PropagateNan.ALL)
tl.clamp | tl.clamp(x, 0.25, 0.75)
tl.cdiv | tl.cdiv(m, 4)
tl.sigmoid | tl.sigmoid(x)
tl.softmax | tl.softmax(a, dim=1, ieee_rounding=True)
tl.math.umulhi | tl.math.umulhi(u * 123456789, u * 987654321)
tl.math.exp tl.math.exp2 tl.math.log tl.math.log2 tl.math.cos tl.math.sin tl.math.sqrt tl.math.sqrt_rn tl.math.rsqrt tl.math.abs
  tl.math.erf tl.math.floor tl.math.ceil | {}(x * 2)
tl.math.fdiv tl.math.div_rn | {}(x, y)
tl.math.fma | tl.math.fma(x, y, y)
"""

REDUCTIONS = """
tl.reduce | tl.reduce((x, n), 0, affine)
tl.associative_scan | tl.associative_scan((x, y), 0, affine, reverse=True)
tl.sum tl.max tl.min | {}(a, axis=1, keep_dims=True)
tl.argmax tl.argmin | {}(a, 1, tie_break_left=True)
tl.xor_sum tl.reduce_or | {}(n, 0)
tl.cumsum tl.cumprod | {}(x, axis=0, reverse=True, dtype=tl.float64)
tl.sort | tl.sort(x, descending=True)
tl.topk | tl.topk(x, 4)
tl.bitonic_merge | tl.bitonic_merge(tl.where(i < 8, i, 31 - i))
"""

RANDOM = """
tl.philox | tl.philox(42, u, u, u, u)
tl.philox_impl tl.random.philox_impl | {}(u, u, u, u, u, u, n_rounds=7)
tl.randint tl.rand tl.randn tl.randint4x tl.rand4x tl.randn4x | {}(42, m)
tl.uint_to_uniform_float | tl.uint_to_uniform_float(u)
tl.pair_uniform_to_normal | tl.pair_uniform_to_normal(x, y)
"""

HINTS = """
tl.static_print | tl.static_print("shape", x.shape, sep=": ", end="", file=None) ;; x
tl.static_assert | tl.static_assert(x.shape[0] == 16, "sixteen") ;; x
tl.device_print | tl.device_print("k", k, hex=True) ;; x
tl.device_assert | tl.device_assert(x < 2, "in range", mask=q) ;; x
tl.debug_barrier | tl.debug_barrier() ;; x
tl.assume | tl.assume(k > 0) ;; x
tl.multiple_of | tl.load(f + tl.multiple_of(i, 16))
tl.max_contiguous | tl.load(f + tl.max_contiguous(i, 16))
tl.max_constancy | tl.load(f + tl.max_constancy(i // 16, 16))
tl.expect_zero | tl.expect_zero(tl.where(q, x, 0.0), ~q)
tl.inline_asm_elementwise | tl.inline_asm_elementwise("add.s32 $0, $1, 1;", "=r,r", [n], dtype=tl.int32, is_pure=True, pack=1)
tl.extern_elementwise tl.core.extern_elementwise tl.core.extern | cube_root(x)
tl.core.builtin | twice(x)
tl.core.dispatch | dispatched(x)
"""

LOOPS = """
tl.range | t = x ;; for j in tl.range(0, k): t += x ;; t
num_stages=2 loop_unroll_factor=2 disallow_acc_multi_buffer=True flatten=True warp_specialize=True disable_licm=True | t = x ;; for j in
  tl.range(0, k, 1, {}): t += x ;; t
tl.static_range | t = x ;; for j in tl.static_range(3): t += x * j ;; t
tl.condition | t = k ;; while tl.condition(t < 100, disable_licm=True): t *= 2 ;; t
"""

TYPES = """
tl.int1 tl.int8 tl.int16 tl.int32 tl.int64 tl.uint8 tl.uint16 tl.uint32 tl.uint64 tl.float16 tl.bfloat16 tl.float32 tl.float64 tl.float8e5
  tl.float8e4b15 | (x * 8).to({}).to(tl.float32)
tl.float8e4nv | (x * 8).to(tl.float8e4nv).to(tl.float32)
tl.float8e5b16 tl.float8e4b8 | {}.is_fp8()
tl.void | tl.void.is_void()
tl.pi32_t | tl.pi32_t.is_ptr()
tl.dtype | tl.full((16,), 1, tl.dtype("fp16")) + h
tl.pointer_type | tl.load((f + i).to(tl.pointer_type(tl.int32), bitcast=True))
tl.block_type | x.type == tl.block_type(tl.float32, [16])
tl.constexpr | c: tl.constexpr = 3 ;; x * c
tl.constexpr_type tl.tuple_type tl.slice_type tl.tensor_descriptor_type | isinstance({}, type)
tl.const | load_constant(f)
tl.tensor | isinstance(x, tl.tensor)
tl.tuple | isinstance((x, y), tl.tuple)
tl.slice | (x, y, n, m)[1:3]
tl.PropagateNan | tl.maximum(x, y, propagate_nan=tl.PropagateNan.NONE)
tl.TRITON_MAX_TENSOR_NUMEL | tl.TRITON_MAX_TENSOR_NUMEL
tl.str_to_ty | tl.str_to_ty("*fp32", None).is_ptr()
tl.constexpr_function | plus_one(x.shape[0])
tl.get_int_dtype | n.to(tl.get_int_dtype(16, True))
tl.aggregate_replace | tl.aggregate_replace(Pair(x, y), second=n).total()
tl.target_info.current_target | tl.target_info.current_target() is not None
tl.target_info.is_cuda tl.target_info.is_hip tl.target_info.is_hip_cdna3 tl.target_info.is_hip_cdna4 tl.target_info.is_hip_gfx1250 | {}()
tl.target_info.cuda_capability_geq | tl.target_info.cuda_capability_geq(8, 0)
dtype.is_fp8 dtype.is_fp8e4nv dtype.is_fp8e4b8 dtype.is_fp8e4b15 dtype.is_fp8e5 dtype.is_fp8e5b16 dtype.is_fp16 dtype.is_bf16
  dtype.is_fp32 dtype.is_fp64 dtype.is_int1 dtype.is_int8 dtype.is_int16 dtype.is_int32 dtype.is_int64 dtype.is_uint8 dtype.is_uint16
  dtype.is_uint32 dtype.is_uint64 dtype.is_floating dtype.is_standard_floating dtype.is_int dtype.is_int_signed dtype.is_int_unsigned
  dtype.is_bool dtype.is_ptr dtype.is_block dtype.is_const dtype.is_void | x.dtype.{.}()
dtype.is_dtype | tl.dtype.is_dtype("bf16")
dtype.kind | x.dtype.kind() == tl.dtype.KIND.FLOATING
dtype.KIND | n.dtype.kind() == tl.dtype.KIND.INTEGRAL
dtype.SIGNEDNESS | n.dtype.int_signedness == tl.dtype.SIGNEDNESS.SIGNED
dtype.SINT_TYPES dtype.UINT_TYPES dtype.FP_TYPES dtype.STANDARD_FP_TYPES dtype.OTHER_TYPES | len(tl.dtype.{.})
dtype.get_int_max_value dtype.get_int_min_value | n.dtype.{.}()
dtype.name | x.dtype.name == "fp32"
dtype.primitive_bitwidth dtype.itemsize dtype.fp_mantissa_width dtype.exponent_bias | x.dtype.{.}
dtype.int_signedness dtype.int_bitwidth | n.dtype.{.} == n.dtype.{.}
dtype.scalar | x.type.scalar == tl.float32
dtype.shape | x.type.shape[0]
dtype.with_element_ty | x.type.with_element_ty(tl.int8) == tl.block_type(tl.int8, [16])
dtype.codegen_name | x.dtype.codegen_name() == "float32"
dtype.mangle | x.dtype.mangle() == "fp32"
dtype.cache_key_part | x.dtype.cache_key_part == "fp32"
"""

TENSOR = """
tensor.__add__ | x + y
tensor.__radd__ | 1 + x
tensor.__sub__ | x - y
tensor.__rsub__ | 1 - x
tensor.__mul__ | x * y
tensor.__rmul__ | 2 * x
tensor.__truediv__ | x / y
tensor.__rtruediv__ | 1 / x
tensor.__floordiv__ | n // m
tensor.__rfloordiv__ | 100 // m
tensor.__mod__ | n % m
tensor.__rmod__ | 100 % m
tensor.__neg__ | -x
tensor.__invert__ | ~n
tensor.__and__ | n & m
tensor.__rand__ | 12 & n
tensor.__or__ | n | m
tensor.__ror__ | 12 | n
tensor.__xor__ | n ^ m
tensor.__rxor__ | 12 ^ n
tensor.__lshift__ | n << (m & 7)
tensor.__rlshift__ | 1 << (m & 7)
tensor.__rshift__ | n >> (m & 7)
tensor.__rrshift__ | 1000 >> (m & 7)
tensor.__lt__ | x < y
tensor.__le__ | n <= 3
tensor.__gt__ | 3 > n
tensor.__ge__ | x >= h
tensor.__eq__ | n == m
tensor.__ne__ | n != m
tensor.__not__ | not k
tensor.logical_and | q and (n > 0)
tensor.logical_or | q or (n > 0)
tensor.__getitem__ | x[None, :, None]
tensor.__str__ | tl.static_print(x, end="", file=None) ;; x
tensor.handle | x.handle is not None
tensor.type | x.type == tl.block_type(tl.float32, [16])
tensor.dtype | x.dtype == tl.float32
tensor.shape | tl.zeros(a.shape, tl.float32)
tensor.numel | a.numel
tensor.T | a.T
tensor.abs tensor.ceil tensor.cos tensor.erf tensor.exp tensor.exp2 tensor.floor tensor.log tensor.log2 tensor.rsqrt tensor.sin
  tensor.sqrt tensor.sqrt_rn tensor.sigmoid tensor.ravel tensor.sort tensor.flip tensor.sum tensor.max tensor.min | x.{.}()
tensor.argmax tensor.argmin | x.{.}(0)
tensor.advance | p = tl.make_block_ptr(f, (6, 7), (8, 1), (0, 0), (4, 4), (1, 0)).advance((4, 4)) ;; tl.load(p, boundary_check=(0, 1))
tensor.atomic_add tensor.atomic_and tensor.atomic_max tensor.atomic_min tensor.atomic_or tensor.atomic_xor tensor.atomic_xchg | (s +
  i).{.}(n) ;; tl.debug_barrier() ;; tl.load(s + i)
tensor.atomic_cas | s.atomic_cas(0, 7) ;; tl.debug_barrier() ;; tl.load(s)
tensor.atomic_load | (s + 3).atomic_load()
tensor.atomic_store | s.atomic_store(5) ;; tl.debug_barrier() ;; tl.load(s)
tensor.atomic_poll | (s + 3).atomic_poll(3, timeout_ns=1000)
tensor.associative_scan | x.associative_scan(0, largest)
tensor.reduce | x.reduce(0, largest)
tensor.broadcast_to | x[:, None].broadcast_to(16, 4)
tensor.cast | x.cast(tl.float16)
tensor.to | x.to(tl.int32, bitcast=True)
tensor.cdiv | m.cdiv(3)
tensor.cumsum tensor.cumprod | x.{.}(0)
tensor.expand_dims | x.expand_dims(0)
tensor.gather | x.gather(i ^ 5, 0)
tensor.histogram | m.histogram(16)
tensor.item | x.reduce(0, largest, keep_dims=True).item()
tensor.permute | a.permute(1, 0)
tensor.trans | a.trans()
tensor.reshape tensor.view | x.{.}(4, 4)
tensor.reduce_or tensor.xor_sum | n.{.}(0)
tensor.softmax | a.softmax(1)
tensor.split | x.reshape(8, 2).split()
tensor.store | (f + i).store(x, mask=q) ;; tl.debug_barrier() ;; tl.load(f + i)
"""

CONSTEXPR = """
constexpr.__add__ constexpr.__radd__ | c: tl.constexpr = 3 ;; (c + 2) + (2 + c)
constexpr.__sub__ constexpr.__rsub__ | c: tl.constexpr = 3 ;; (c - 2) + (2 - c)
constexpr.__mul__ constexpr.__rmul__ | c: tl.constexpr = 3 ;; (c * 2) + (2 * c)
constexpr.__truediv__ constexpr.__rtruediv__ | c: tl.constexpr = 3 ;; (c / 2) + (2 / c)
constexpr.__floordiv__ constexpr.__rfloordiv__ | c: tl.constexpr = -3 ;; (c // 2) + (2 // c)
constexpr.__mod__ constexpr.__rmod__ | c: tl.constexpr = -3 ;; (c % 2) + (2 % c)
constexpr.__pow__ constexpr.__rpow__ | c: tl.constexpr = 3 ;; (c**2) + (2**c)
constexpr.__and__ constexpr.__rand__ | c: tl.constexpr = 3 ;; (c & 2) + (2 & c)
constexpr.__or__ constexpr.__ror__ | c: tl.constexpr = 3 ;; (c | 4) + (4 | c)
constexpr.__xor__ constexpr.__rxor__ | c: tl.constexpr = 3 ;; (c ^ 2) + (2 ^ c)
constexpr.__lshift__ constexpr.__rlshift__ | c: tl.constexpr = 3 ;; (c << 2) + (2 << c)
constexpr.__rshift__ constexpr.__rrshift__ | c: tl.constexpr = 3 ;; (c >> 1) + (20 >> c)
constexpr.__lt__ constexpr.__le__ constexpr.__gt__ constexpr.__ge__ constexpr.__eq__ constexpr.__ne__ | c: tl.constexpr = 3 ;; (c < 4) +
  (c <= 3) * 2 + (c > 4) * 4 + (c >= 3) * 8 + (c == 3) * 16 + (c != 3) * 32
constexpr.__neg__ constexpr.__pos__ constexpr.__invert__ | c: tl.constexpr = 3 ;; -c + +c + ~c
constexpr.__not__ constexpr.__bool__ | c: tl.constexpr = 3 ;; not c
constexpr.logical_and constexpr.logical_or | c: tl.constexpr = 3 ;; (c and 5) + (c or 5)
constexpr.__index__ constexpr.__getitem__ constexpr.__iter__ constexpr.__len__ | c: tl.constexpr = (3, 4) ;; c[tl.constexpr(1)] + len(c)
constexpr.__call__ | c: tl.constexpr = largest ;; c(x, y)
constexpr.value constexpr.type | x.shape[0].value
"""

CUDA = """
tl.extra.cuda.globaltimer | tl.extra.cuda.globaltimer() >= 0
tl.extra.cuda.smid | tl.extra.cuda.smid() >= 0
tl.extra.cuda.num_threads | tl.extra.cuda.num_threads()
tl.extra.cuda.num_warps | tl.extra.cuda.num_warps()
tl.extra.cuda.gdc_wait tl.extra.cuda.gdc_launch_dependents | if tl.target_info.cuda_capability_geq(9): {}() ;; x
tl.extra.cuda.convert_custom_float8_sm80 | tl.extra.cuda.convert_custom_float8_sm80(h, tl.float8e4b15).to(tl.float16)
tl.extra.cuda.convert_custom_float8_sm70 | tl.extra.cuda.convert_custom_float8_sm70(h, tl.float8e4b15).to(tl.float16)
tl.extra.cuda.libdevice | tl.extra.cuda.libdevice.tanh(x)
tl.extra.libdevice | tl.extra.libdevice.tanh(x)
"""

SYNTAX = """
def(*args,default,keyword_only) | varied(x, y, n, scale=3)
return(several) | p, r = two_results(x, y) ;; p - r
return(early) | early_return(k)
if/elif/else | if k > 100: t = x ;; elif k > 0: t = y ;; else: t = x + y ;; t
if(constexpr) | if x.shape[0] == 16: t = x ;; else: t = no_such_name ;; t
conditional_expression | x if k > 100 else y
for | t = 0 ;; for j in range(10, k, -1): t += j ;; t
while | t = k ;; while t < 50: t = t * 3 ;; t
with | with nothing(): t = x + 1 ;; t
walrus | (t := x + 1) * t
walrus_in_while | t = 0 ;; while (t := t + k) < 50: pass ;; t
augmented_assignment | t = x ;; t *= 2 ;; t
annotated_assignment | t: tl.int64 = k ;; t
tuple_assignment | (p, (r, t)) = (x, (y, n)) ;; p + r + t
comparison_chain | 0 < k < 100
is/is_not | (tl.float32 is x.dtype) and (x is not None)
and/or/not | (k > 0 and k < 9) or not (k == 5)
f-string | tl.static_print(f"{x.shape[0]} elements", end="", file=None) ;; x
tuple(+,*,len,==,slice) | ((x, y) + (n,))[1:] + (x,) * 2
list | [x, y][1]
list_comprehension | [v + 1 for v in (x, y, n) if v is not x]
unpacked_arguments | largest(*(x, y))
function_argument | apply(largest, x, y)
recursion(constexpr) | power(x, 3)
noinline | outlined(k, 2)
min/max | min(k, 7) + max(k, 3, 4) + min(2, 3)
int/float | float(int(3.7)) * x
isinstance/getattr/hasattr | isinstance(x, tl.tensor) and hasattr(x, "shape") and getattr(x, "dtype") is tl.float32
print | print("k", k) ;; x
assert | assert k < 100, "small" ;; x
named_tuple | named(x, y).first
module_attribute | helpers_module.scaled(x)
global_constexpr | x * THREE
nonlocal/closure | closed(x)
"""

HOST = """
triton.__version__ | triton.__version__.startswith("3.")
triton.jit | triton.jit(plain).arg_names == ["p"]
triton.constexpr_function | triton.constexpr_function(lambda v: v + 1)(2) == 3
triton.autotune | triton.autotune([triton.Config({"B": 1})], key=[])(triton.jit(plain)).fn is not None
triton.Config | triton.Config({"B": 1}, num_warps=8, num_stages=2, num_ctas=1, maxnreg=64).num_warps == 8
triton.heuristics | triton.heuristics({"B": lambda args: 1})(triton.jit(plain)).fn is not None
triton.JITFunction triton.KernelInterface triton.TensorWrapper triton.MockTensor triton.FutureKernel triton.AsyncCompileMode |
  isinstance({}, type)
triton.compile | callable(triton.compile)
triton.TritonError triton.CompilationError triton.OutOfResources triton.InterpreterError | issubclass({}, Exception)
triton.reinterpret | callable(triton.reinterpret)
triton.cdiv | triton.cdiv(7, 4) == 2
triton.next_power_of_2 | triton.next_power_of_2(5) == 8
triton.set_allocator | callable(triton.set_allocator)
triton.must_use_result | triton.must_use_result(plain) is plain
triton.aggregate | callable(triton.aggregate)
triton.knobs triton.language triton.runtime triton.compiler triton.backends triton.testing triton.tools triton.errors |
  {}.__name__.endswith("{.}")
triton.install_as_triton | callable(triton.install_as_triton)
"""

_ARGUMENTS = {"i": "n", "u": "u", "l": "l", "m": "u.to(tl.uint64)", "f": "x", "d": "d"}


def _libdevice() -> str:
    """A row per function, one call for each of its types."""
    rows = []
    for line in TABLE.strip().splitlines():
        name, _, rest = line.partition(" ")
        kinds = [row.split(":")[0][:-1] for row in rest.partition("|")[0].split()] or ["f"]
        calls = [f"libdevice.{name}({', '.join(_ARGUMENTS[letter] for letter in kind)})" for kind in kinds]
        rows.append(f"libdevice.{name} | ({', '.join(calls)},)" if len(calls) > 1 else f"libdevice.{name} | {calls[0]}")
    return "\n".join(rows)


SECTIONS = [
    Section("Programs and creation", CREATION),
    Section("Shapes", SHAPES),
    Section("Memory, block pointers, tensor descriptors", MEMORY),
    Section("Atomics", ATOMICS),
    Section("Products", PRODUCTS, "Options of `tl.dot` are listed by their spelling."),
    Section("Arithmetic", MATH),
    Section("Reductions, scans, sorting", REDUCTIONS),
    Section("Random numbers", RANDOM),
    Section("Debugging, hints, foreign code", HINTS, "The interpreter does not carry out assembly."),
    Section("Loops", LOOPS, "Options of `tl.range` are listed by their spelling."),
    Section(
        "Types",
        TYPES,
        "`float8e4nv` needs compute capability 8.9; `float8e5b16` and `float8e4b8` are converted on AMD GPUs and in the interpreter only.",
    ),
    Section("Tensors", TENSOR),
    Section("Constants", CONSTEXPR),
    Section("`tl.extra.cuda`", CUDA),
    Section("Device library", _libdevice(), "`libdevice` is `tl.extra.libdevice`, also found as `tl.extra.cuda.libdevice`."),
    Section("Python in kernels", SYNTAX),
    Section("On the host", HOST, "`triton` is this package; the examples are run by the tests as they stand.", host=True),
]
