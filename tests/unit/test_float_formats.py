"""Float conversions of the interpreter: all bit patterns of the 8- and 16-bit formats, against exact rational arithmetic."""

import bisect
import math

import numpy as np
import pytest

from tilewright.runtime.interpreter.float_formats import FORMATS, convert, decode, encode, storage_dtype

FP8 = ["fp8e5", "fp8e5b16", "fp8e4nv", "fp8e4b8", "fp8e4b15"]
NARROW = [*FP8, "fp16", "bf16"]
TORCH_NAMES = {
    "fp8e5": "float8_e5m2",
    "fp8e5b16": "float8_e5m2fnuz",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp16": "float16",
    "bf16": "bfloat16",
}


def all_codes(name):
    fmt = FORMATS[name]
    return np.arange(1 << fmt.bits, dtype=fmt.storage).view(storage_dtype(name))


def raw(data):
    return data.view(np.uint16) if data.dtype == np.float16 else data


def reference_value(code, fmt):
    """Value of one code from the definition of the format."""
    sign = -1.0 if code & fmt.sign_bit else 1.0
    magnitude = code & (fmt.sign_bit - 1)
    if code == fmt.nan and not fmt.signed_zero:
        return math.nan
    if fmt.signed_zero and magnitude > fmt.max_finite:
        return sign * math.inf if magnitude == fmt.infinity else math.nan
    exponent, fraction = divmod(magnitude, 1 << fmt.mantissa_bits)
    significand = fraction + ((1 << fmt.mantissa_bits) if exponent else 0)
    return sign * math.ldexp(significand, max(exponent, 1) - fmt.bias - fmt.mantissa_bits)


def reference_encode(value, fmt, rounding, magnitudes):
    """Code of `value` by search among the non-negative finite values of the format, which are in the order of their codes."""
    if math.isnan(value):
        return fmt.nan
    negative, size = math.copysign(1.0, value) < 0, abs(value)
    top = fmt.max_finite
    if size > magnitudes[top]:
        # One step beyond the largest value is where it would go on if the exponent had no end.
        step = magnitudes[top] - magnitudes[top - 1]
        if fmt.saturates or (not math.isinf(size) and (rounding == "rtz" or size < magnitudes[top] + step / 2)):
            code = top
        else:
            code = fmt.infinity
    else:
        code = bisect.bisect_right(magnitudes, size) - 1
        if rounding == "rtne" and code < top:
            below, above = size - magnitudes[code], magnitudes[code + 1] - size
            code += above < below or (above == below and code % 2 == 1)
    return code | (fmt.sign_bit if negative and (code or fmt.signed_zero) else 0)


@pytest.mark.parametrize("name", NARROW)
def test_decode_every_code(name):
    fmt = FORMATS[name]
    got = decode(all_codes(name), name)
    want = np.array([reference_value(c, fmt) for c in range(1 << fmt.bits)], np.float32)
    assert got.dtype == np.float32
    assert np.array_equal(got, want, equal_nan=True)
    finite = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[finite]), np.signbit(want[finite]))


@pytest.mark.parametrize("name", NARROW)
def test_encode_inverts_decode(name):
    codes = raw(all_codes(name))
    values = decode(all_codes(name), name)
    keep = np.isfinite(values) if FORMATS[name].saturates else ~np.isnan(values)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        double = values.astype(np.float64)
    for source in (values, double):
        for rounding in ("rtne", "rtz"):
            assert np.array_equal(raw(encode(source, name, rounding))[keep], codes[keep])


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("target", NARROW)
@pytest.mark.parametrize("source", NARROW)
def test_convert_every_code(source, target, rounding):
    fmt = FORMATS[target]
    values = decode(all_codes(source), source)
    sample = slice(None) if values.size == 256 else slice(None, None, 7)  # an odd stride meets every exponent and tail
    magnitudes = [reference_value(c, fmt) for c in range(fmt.max_finite + 1)]
    got = raw(convert(all_codes(source), source, target, rounding))[sample]
    want = [reference_encode(float(v), fmt, rounding, magnitudes) for v in values[sample]]
    nan = np.isnan(values[sample])
    if not fmt.saturates:  # any quiet NaN will do
        assert np.isnan(decode(got.view(storage_dtype(target)), target)[nan]).all()
        got = np.where(nan, fmt.nan, got)
    if source == target:
        keep = ~nan & (np.isfinite(values[sample]) | (not fmt.saturates))
        got, want = got[keep], np.array(want)[keep]
    assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", NARROW)
def test_encode_ties_and_neighbours(target, dtype):
    fmt = FORMATS[target]
    magnitudes = [reference_value(c, fmt) for c in range(fmt.max_finite + 1)]
    codes = np.unique(np.linspace(0, fmt.max_finite - 1, 3000).astype(int))
    low, high = np.array(magnitudes)[codes], np.array(magnitudes)[codes + 1]
    middle = ((low + high) / 2).astype(dtype)
    top = magnitudes[-1] + (magnitudes[-1] - magnitudes[-2]) / 2
    edge = np.array([0.0, top, np.nextafter(top, 0), top * 4 if top < 1e30 else top, np.inf, np.nan]).astype(dtype)
    values = np.concatenate([middle, np.nextafter(middle, dtype(0)), np.nextafter(middle, dtype(np.inf)), edge])
    values = np.concatenate([values, -values])
    for rounding in ("rtne", "rtz"):
        got = raw(encode(values, target, rounding))
        want = np.array([reference_encode(float(v), fmt, rounding, magnitudes) for v in values])
        nan = np.isnan(values)
        assert np.array_equal(got[~nan], want[~nan])


def test_single_from_double_towards_zero():
    values = np.array([1 + 2**-24, 1 + 2**-23 - 2**-50, -1e39, 1e39, np.inf, -np.inf, 1e-46, np.nan, 0.1, -0.1])
    got = encode(values, "fp32", "rtz")
    assert got.dtype == np.float32
    big = np.finfo(np.float32).max
    assert got[:7].tolist() == [1.0, 1.0, -big, big, np.inf, -np.inf, 0.0] and np.isnan(got[7])
    assert abs(got[8]) <= 0.1 and abs(got[9]) <= 0.1


@pytest.mark.parametrize("target", sorted(TORCH_NAMES))
def test_against_torch(target):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, TORCH_NAMES[target])
    fmt = FORMATS[target]
    unsigned = torch.uint8 if fmt.bits == 8 else torch.uint16
    codes = torch.from_numpy(raw(all_codes(target)).copy()).view(unsigned).view(dtype)
    assert np.array_equal(decode(all_codes(target), target), codes.float().numpy(), equal_nan=True)
    top = reference_value(fmt.max_finite, fmt)
    rng = np.random.default_rng(0)
    values = (rng.standard_normal(50_000) * np.exp2(rng.integers(-30, 12, 50_000))).astype(np.float32)
    values = values[np.abs(values) <= top]
    want = torch.from_numpy(values).to(dtype).view(unsigned).numpy()
    got = raw(encode(values, target))
    assert np.array_equal(got, want)
