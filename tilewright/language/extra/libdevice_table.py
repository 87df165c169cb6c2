"""Functions of the device libraries, by the types of their arguments.

A line is `name rows | rows`: those of NVIDIA's libdevice (symbols without `__nv_`), then those of AMD (without `__`). A row is
`types:symbol`, a letter per argument and one for the result: i int32, u uint32, l int64, m uint64, f float32, d float64.
"""

TABLE = """
clz ii:clz li:clzll | ii:ockl_clz_u32 ll:ockl_clz_u64
popc ii:popc li:popcll | ii:ockl_popcount_u32 li:ockl_popcount_u64
byte_perm iiii:byte_perm
mulhi iii:mulhi uuu:umulhi lll:mul64hi mmm:umul64hi
mul24 iii:mul24 uuu:umul24
brev ii:brev ll:brevll
sad iiui:sad uuuu:usad
abs ii:abs ll:llabs ff:fabsf dd:fabs | ii:triton_hip_iabs ll:triton_hip_iabs ff:triton_hip_fabs dd:triton_hip_fabs
floor ff:floorf dd:floor | ff:ocml_floor_f32 dd:ocml_floor_f64
rcp64h dd:rcp64h
rsqrt ff:rsqrtf dd:rsqrt | ff:ocml_rsqrt_f32 dd:ocml_rsqrt_f64
ceil dd:ceil ff:ceilf | ff:ocml_ceil_f32 dd:ocml_ceil_f64
trunc dd:trunc ff:truncf | ff:ocml_trunc_f32 dd:ocml_trunc_f64
exp2 ff:exp2f dd:exp2 | ff:ocml_exp2_f32 dd:ocml_exp2_f64
saturatef ff:saturatef
fma_rn ffff:fmaf_rn dddd:fma_rn
fma_rz ffff:fmaf_rz dddd:fma_rz
fma_rd ffff:fmaf_rd dddd:fma_rd
fma_ru ffff:fmaf_ru dddd:fma_ru
fast_dividef fff:fast_fdividef | fff:triton_hip_fast_fdividef
div_rn fff:fdiv_rn ddd:ddiv_rn
div_rz fff:fdiv_rz ddd:ddiv_rz
div_rd fff:fdiv_rd ddd:ddiv_rd
div_ru fff:fdiv_ru ddd:ddiv_ru
rcp_rn ff:frcp_rn dd:drcp_rn
rcp_rz ff:frcp_rz dd:drcp_rz
rcp_rd ff:frcp_rd dd:drcp_rd
rcp_ru ff:frcp_ru dd:drcp_ru
sqrt_rn ff:fsqrt_rn dd:dsqrt_rn
sqrt_rz ff:fsqrt_rz dd:dsqrt_rz
sqrt_rd ff:fsqrt_rd dd:dsqrt_rd
sqrt_ru ff:fsqrt_ru dd:dsqrt_ru
sqrt ff:sqrtf dd:sqrt | ff:ocml_sqrt_f32 dd:ocml_sqrt_f64
add_rn ddd:dadd_rn fff:fadd_rn
add_rz ddd:dadd_rz fff:fadd_rz
add_rd ddd:dadd_rd fff:fadd_rd
add_ru ddd:dadd_ru fff:fadd_ru
mul_rn ddd:dmul_rn fff:fmul_rn
mul_rz ddd:dmul_rz fff:fmul_rz
mul_rd ddd:dmul_rd fff:fmul_rd
mul_ru ddd:dmul_ru fff:fmul_ru
double2float_rn df:double2float_rn
double2float_rz df:double2float_rz
double2float_rd df:double2float_rd
double2float_ru df:double2float_ru
double2int_rn di:double2int_rn
double2int_rz di:double2int_rz
double2int_rd di:double2int_rd
double2int_ru di:double2int_ru
double2uint_rn di:double2uint_rn
double2uint_rz di:double2uint_rz
double2uint_rd di:double2uint_rd
double2uint_ru di:double2uint_ru
int2double_rn id:int2double_rn
uint2double_rn ud:uint2double_rn
float2int_rn fi:float2int_rn
float2int_rz fi:float2int_rz
float2int_rd fi:float2int_rd
float2int_ru fi:float2int_ru
float2uint_rn fi:float2uint_rn
float2uint_rz fi:float2uint_rz
float2uint_rd fi:float2uint_rd
float2uint_ru fi:float2uint_ru
int2float_rn if:int2float_rn
int2float_rz if:int2float_rz
int2float_rd if:int2float_rd
int2float_ru if:int2float_ru
uint2float_rn uf:uint2float_rn
uint2float_rz uf:uint2float_rz
uint2float_rd uf:uint2float_rd
uint2float_ru uf:uint2float_ru
hiloint2double iid:hiloint2double
double2loint di:double2loint
double2hiint di:double2hiint
float2ll_rn fl:float2ll_rn
float2ll_rz fl:float2ll_rz
float2ll_rd fl:float2ll_rd
float2ll_ru fl:float2ll_ru
float2ull_rn fl:float2ull_rn
float2ull_rz fl:float2ull_rz
float2ull_rd fl:float2ull_rd
float2ull_ru fl:float2ull_ru
double2ll_rn dl:double2ll_rn
double2ll_rz dl:double2ll_rz
double2ll_rd dl:double2ll_rd
double2ll_ru dl:double2ll_ru
double2ull_rn dl:double2ull_rn
double2ull_rz dl:double2ull_rz
double2ull_rd dl:double2ull_rd
double2ull_ru dl:double2ull_ru
ll2float_rn lf:ll2float_rn
ll2float_rz lf:ll2float_rz
ll2float_rd lf:ll2float_rd
ll2float_ru lf:ll2float_ru
ull2float_rn mf:ull2float_rn
ull2float_rz mf:ull2float_rz
ull2float_rd mf:ull2float_rd
ull2float_ru mf:ull2float_ru
ll2double_rn ld:ll2double_rn
ll2double_rz ld:ll2double_rz
ll2double_rd ld:ll2double_rd
ll2double_ru ld:ll2double_ru
ull2double_rn md:ull2double_rn
ull2double_rz md:ull2double_rz
ull2double_rd md:ull2double_rd
ull2double_ru md:ull2double_ru
int_as_float if:int_as_float
float_as_int fi:float_as_int
uint_as_float uf:uint_as_float
float_as_uint fi:float_as_uint
longlong_as_double ld:longlong_as_double
double_as_longlong dl:double_as_longlong
fast_sinf ff:fast_sinf
fast_cosf ff:fast_cosf
fast_log2f ff:fast_log2f
fast_logf ff:fast_logf
fast_expf ff:fast_expf | ff:triton_hip_fast_expf
fast_tanhf | ff:triton_hip_fast_tanhf
fast_tanf ff:fast_tanf
fast_exp10f ff:fast_exp10f
fast_log10f ff:fast_log10f
fast_powf fff:fast_powf
hadd iii:hadd uuu:uhadd
rhadd iii:rhadd uuu:urhadd
sub_rn fff:fsub_rn ddd:dsub_rn
sub_rz fff:fsub_rz ddd:dsub_rz
sub_rd fff:fsub_rd ddd:dsub_rd
sub_ru fff:fsub_ru ddd:dsub_ru
rsqrt_rn ff:frsqrt_rn
ffs ii:ffs li:ffsll
rint ff:rintf dd:rint | ff:triton_hip_rint dd:triton_hip_rint
llrint fl:llrintf dl:llrint | fl:triton_hip_llrint dl:triton_hip_llrint
nearbyint ff:nearbyintf dd:nearbyint | ff:ocml_nearbyint_f32 dd:ocml_nearbyint_f64
isnan fi:isnanf di:isnand | fi:ocml_isnan_f32 di:ocml_isnan_f64
signbit fi:signbitf di:signbitd | fi:ocml_signbit_f32 di:ocml_signbit_f64
copysign fff:copysignf ddd:copysign | fff:ocml_copysign_f32 ddd:ocml_copysign_f64
finitef fi:finitef | fi:ocml_isfinite_f32
isinf fi:isinff di:isinfd | fi:ocml_isinf_f32 di:ocml_isinf_f64
nextafter fff:nextafterf ddd:nextafter | fff:ocml_nextafter_f32 ddd:ocml_nextafter_f64
sin ff:sinf dd:sin | ff:ocml_sin_f32 dd:ocml_sin_f64
cos ff:cosf dd:cos | ff:ocml_cos_f32 dd:ocml_cos_f64
sinpi ff:sinpif dd:sinpi
cospi ff:cospif dd:cospi
tan ff:tanf dd:tan | ff:ocml_tan_f32 dd:ocml_tan_f64
log2 ff:log2f dd:log2 | ff:ocml_log2_f32 dd:ocml_log2_f64
exp ff:expf dd:exp | ff:ocml_exp_f32 dd:ocml_exp_f64
exp10 ff:exp10f dd:exp10
cosh ff:coshf dd:cosh | ff:ocml_cosh_f32 dd:ocml_cosh_f64
sinh ff:sinhf dd:sinh | ff:ocml_sinh_f32 dd:ocml_sinh_f64
tanh ff:tanhf dd:tanh | ff:ocml_tanh_f32 dd:ocml_tanh_f64
atan2 fff:atan2f ddd:atan2 | fff:ocml_atan2_f32 ddd:ocml_atan2_f64
atan ff:atanf dd:atan | ff:ocml_atan_f32 dd:ocml_atan_f64
asin ff:asinf dd:asin | ff:ocml_asin_f32 dd:ocml_asin_f64
acos ff:acosf dd:acos | ff:ocml_acos_f32 dd:ocml_acos_f64
log ff:logf dd:log | ff:ocml_log_f32 dd:ocml_log_f64
log10 ff:log10f dd:log10 | ff:ocml_log10_f32 dd:ocml_log10_f64
log1p ff:log1pf dd:log1p | ff:ocml_log1p_f32 dd:ocml_log1p_f64
acosh ff:acoshf dd:acosh | ff:ocml_acosh_f32 dd:ocml_acosh_f64
asinh ff:asinhf dd:asinh | ff:ocml_asinh_f32 dd:ocml_asinh_f64
atanh ff:atanhf dd:atanh | ff:ocml_atanh_f32 dd:ocml_atanh_f64
expm1 ff:expm1f dd:expm1 | ff:ocml_expm1_f32 dd:ocml_expm1_f64
hypot fff:hypotf ddd:hypot | fff:ocml_hypot_f32 ddd:ocml_hypot_f64
rhypot fff:rhypotf ddd:rhypot
norm3d ffff:norm3df dddd:norm3d
rnorm3d ffff:rnorm3df dddd:rnorm3d
norm4d fffff:norm4df ddddd:norm4d
rnorm4d fffff:rnorm4df ddddd:rnorm4d
cbrt ff:cbrtf dd:cbrt
rcbrt ff:rcbrtf dd:rcbrt
j0 ff:j0f dd:j0 | ff:ocml_j0_f32 dd:ocml_j0_f64
j1 ff:j1f dd:j1 | ff:ocml_j1_f32 dd:ocml_j1_f64
y0 ff:y0f dd:y0 | ff:ocml_y0_f32 dd:ocml_y0_f64
y1 ff:y1f dd:y1 | ff:ocml_y1_f32 dd:ocml_y1_f64
yn iff:ynf idd:yn
jn iff:jnf idd:jn
cyl_bessel_i0 ff:cyl_bessel_i0f dd:cyl_bessel_i0 | ff:ocml_i0_f32 dd:ocml_i0_f64
cyl_bessel_i1 ff:cyl_bessel_i1f dd:cyl_bessel_i1 | ff:ocml_i1_f32 dd:ocml_i1_f64
erf ff:erff dd:erf | ff:ocml_erf_f32 dd:ocml_erf_f64
erfinv ff:erfinvf dd:erfinv | ff:ocml_erfinv_f32 dd:ocml_erfinv_f64
erfc ff:erfcf dd:erfc | ff:ocml_erfc_f32 dd:ocml_erfc_f64
erfcx ff:erfcxf dd:erfcx | ff:ocml_erfcx_f32 dd:ocml_erfcx_f64
erfcinv ff:erfcinvf dd:erfcinv
normcdfinv ff:normcdfinvf dd:normcdfinv
normcdf ff:normcdff dd:normcdf
lgamma ff:lgammaf dd:lgamma | ff:ocml_lgamma_f32 dd:ocml_lgamma_f64
ldexp fif:ldexpf did:ldexp | fif:ocml_ldexp_f32 did:ocml_ldexp_f64
scalbn fif:scalbnf did:scalbn
fmod fff:fmodf ddd:fmod | fff:ocml_fmod_f32 ddd:ocml_fmod_f64
remainder fff:remainderf ddd:remainder
fma ffff:fmaf dddd:fma | ffff:ocml_fma_f32 dddd:ocml_fma_f64
pow fif:powif did:powi fff:powf ddd:pow | fif:ocml_pown_f32 did:ocml_pown_f64 fff:ocml_pow_f32 ddd:ocml_pow_f64
tgamma ff:tgammaf dd:tgamma
round ff:roundf dd:round | ff:ocml_round_f32 dd:ocml_round_f64
llround fl:llroundf dl:llround
fdim fff:fdimf ddd:fdim
ilogb fi:ilogbf di:ilogb | fi:ocml_ilogb_f32 di:ocml_ilogb_f64
logb ff:logbf dd:logb
isfinited di:isfinited | di:ocml_isfinite_f64
"""
