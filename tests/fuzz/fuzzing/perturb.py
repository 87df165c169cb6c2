"""The interpreter with the freedom of a GPU: results that may differ there are varied at random.

Run several times, it shows how far a result may rightly be off: elements that change between runs depend on rounding, on the order of a
sum, or on what is undefined. Integer arithmetic, copies, conversions and comparisons are never varied themselves.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

from tilewright.runtime.interpreter import InterpretedFunction, function, session
from tilewright.runtime.interpreter.numpy_builder import NumpyBuilder
from tilewright.runtime.interpreter.values import Pointers, from_real, numpy_dtype, real_values

_MANTISSA = {"fp64": 52, "fp32": 23, "fp16": 10, "bf16": 7, "fp8e5": 2, "fp8e4nv": 3, "fp8e4b15": 3}
_LARGEST = {"fp64": 1.7e308, "fp32": 3.4e38, "bf16": 3.3e38, "fp16": 65504.0}
# Units in the last place that a function may be off in fp32
_FUNCTIONS = {"exp": 6.0, "exp2": 4.0, "log": 4.0, "log2": 4.0, "sin": 4.0, "cos": 4.0, "sqrt": 3.0, "rsqrt": 3.0, "erf": 4.0}
# Relative error of a product of matrices, by precision of fp32 operands or by the operands' type
_PRODUCTS = {"tf32": 2.0**-10, "tf32x3": 2.0**-19, "ieee": 2.0**-20, "bf16x3": 2.0**-14, "bf16x6": 2.0**-19}
_PRODUCTS_OF = {"fp16": 2.0**-20, "bf16": 2.0**-20, "fp64": 2.0**-49, "fp8e5": 2.0**-11, "fp8e4nv": 2.0**-11, "fp8e4b15": 2.0**-11}


class PerturbedBuilder(NumpyBuilder):
    """A NumPy builder whose float results are off by a few units in the last place, and whose undefined results are random."""

    rng: np.random.Generator
    contracts = True  # products may keep their exact value until they are added
    has_products = has_dots = False
    in_region = 0

    order: dict[tuple[int, ...], tuple[int, ...]] = {}  # which program runs in whose turn

    def shuffle_programs(self):
        everyone = list(np.ndindex(*self.grid))
        self.order = dict(zip(everyone, (everyone[i] for i in self.rng.permutation(len(everyone))), strict=True))

    def place(self, programs):
        super().place([self.order.get(program, program) for program in programs])

    def _signs(self, shape: tuple[int, ...]) -> np.ndarray:
        """Factors of magnitude 0.5 to 1.5 of either sign: two of them rarely cancel."""
        return self.rng.uniform(0.5, 1.5, shape) * np.where(self.rng.random(shape) < 0.5, -1.0, 1.0)

    def _vary(self, value: np.ndarray, ty: Any, ulps: float | np.ndarray) -> np.ndarray:
        """`value` off by about `ulps`."""
        exact = real_values(value, ty).astype(np.float64)
        varied = exact * (1 + self._signs(exact.shape) * ulps * 2.0 ** -_MANTISSA[ty.scalar.name])
        varied = np.where(np.isfinite(exact), varied, exact)
        return varied.astype(numpy_dtype(ty)) if ty.scalar.primitive_bitwidth >= 32 else from_real(varied, ty)

    def unary(self, kind, a, ty):
        ulps = _FUNCTIONS.get(kind)
        if ulps is None:
            return super().unary(kind, a, ty)
        if ty.scalar.primitive_bitwidth == 32 and kind not in ("sin", "cos", "erf") and self.rng.random() < 0.5:
            a = np.where(np.abs(a) < 2.0**-126, np.copysign(np.float32(0), a), a)  # approximate instructions flush subnormals
        if kind == "exp":
            ulps = ulps + np.abs(np.nan_to_num(a.astype(np.float64), posinf=0, neginf=0))
        result = self._vary(super().unary(kind, a, ty), ty, ulps)
        if ty.scalar.primitive_bitwidth == 32 and kind in ("exp", "exp2") and self.rng.random() < 0.5:
            result = np.where(np.abs(result) < 2.0**-126, np.float32(0), result)
        if kind in ("log", "log2") and ty.scalar.primitive_bitwidth == 32:
            result = (result + self._signs(result.shape) * 2.0**-21).astype(np.float32)
        return result

    def binary(self, kind, a, b, ty):
        if kind in ("minnumf", "maxnumf", "minimumf", "maximumf"):
            result = super().binary(kind, a, b, ty)
            values = real_values(result, ty)
            both = (values == 0) & (np.signbit(real_values(a, ty)) != np.signbit(real_values(b, ty)))
            if not both.any():
                return result
            flipped = np.where(both & (self.rng.random(values.shape) < 0.5), -values, values)
            return flipped.astype(numpy_dtype(ty)) if ty.scalar.primitive_bitwidth >= 32 else from_real(flipped, ty)
        result = super().binary(kind, a, b, ty)
        if kind == "remf":  # computed as a - b * trunc(a / b), which is off by what a large quotient is rounded by
            varied = super().binary(kind, self._vary(np.asarray(a), ty, 2.0), b, ty)
            off = self._signs(varied.shape) * np.abs(real_values(a, ty)) * 2.0 ** -_MANTISSA[ty.scalar.name]
            return np.where(np.isfinite(varied), varied + off, varied).astype(numpy_dtype(ty))
        if kind == "divf" and ty.scalar.name != "fp64":
            return self._vary(np.asarray(result), ty, 3.0)
        if (kind == "mulf" and (self.contracts or self.in_region)) or (kind in ("addf", "subf") and self.in_region):
            self.has_products |= kind == "mulf"
            varied = self._vary(np.asarray(result), ty, 1.5)
            return self._not_overflowing(varied, a, b, ty) if kind == "mulf" else varied
        if kind in ("addf", "subf") and self.has_products:
            return self._with_exact_product(np.asarray(result), a, b, ty)
        return result

    def _with_exact_product(self, result: np.ndarray, a: Any, b: Any, ty: Any) -> np.ndarray:
        """A sum as if one of its operands were a product that was not rounded before: `x * y - x * y` need not be zero."""
        values = real_values(result, ty).astype(np.float64)
        largest = np.maximum(np.abs(real_values(a, ty)), np.abs(real_values(b, ty))).astype(np.float64)
        off = self._signs(values.shape) * np.nan_to_num(largest, posinf=0) * 2.0 ** -_MANTISSA[ty.scalar.name]
        if self.has_dots and self.rng.random() < 0.25:  # each of a dot's terms may have been too small beside what they were added to
            exact = np.maximum(real_values(a, ty), real_values(b, ty)), np.minimum(real_values(a, ty), real_values(b, ty))
            values = np.where(np.abs(exact[0]) > np.abs(exact[1]), *exact).astype(np.float64)
        varied = np.where(np.isfinite(values) & (self.rng.random(values.shape) < 0.5), values + off, values)
        return varied.astype(numpy_dtype(ty)) if ty.scalar.primitive_bitwidth >= 32 else from_real(varied, ty)

    def _not_overflowing(self, product: np.ndarray, a: Any, b: Any, ty: Any) -> np.ndarray:
        """`product`, at random finite where it overflows: it need not if it is added without being rounded before."""
        values = real_values(product, ty)
        overflows = np.isinf(values) & np.isfinite(real_values(a, ty)) & np.isfinite(real_values(b, ty))
        if not overflows.any():
            return product
        largest = np.copysign(_LARGEST[ty.scalar.name], values)
        kept = np.where(overflows & (self.rng.random(values.shape) < 0.5), largest, values)
        return kept.astype(numpy_dtype(ty)) if ty.scalar.primitive_bitwidth >= 32 else from_real(kept, ty)

    def cast(self, kind, a, source, ty, rounding=None):
        if kind == "bitcast" and source.scalar.is_floating() and source.scalar.name in ("fp16", "fp32", "fp64"):
            a = np.where(np.isnan(a), -a, a) if self.rng.random() < 0.5 else a
        return super().cast(kind, a, source, ty, rounding)

    def load(self, ptr, mask, other, ty, **modifiers):
        loaded = super().load(ptr, mask, other, ty, **modifiers)
        if mask is None or other is not None or not isinstance(loaded, np.ndarray):
            return loaded
        garbage = self.rng.integers(0, 256, (*loaded.shape, loaded.dtype.itemsize), np.uint8).view(loaded.dtype)[..., 0]
        if loaded.dtype == np.bool_:
            garbage = self.rng.random(loaded.shape) < 0.5
        elif loaded.dtype.kind == "f" and self.rng.random() < 0.5:
            garbage = np.full_like(loaded, np.nan)
        return np.where(mask, loaded, garbage)

    def _region(self, run, sources: list, types: list, axis: int, keeps_axis: bool) -> list:
        """Reductions and scans that round: floats are off before and in the combinations, which stand in any order. What overflows in some
        order may be anything."""
        floats = [ty.scalar.is_floating() and not ty.scalar.is_fp8() and self.rounds for ty in types]
        varied = [self._vary(np.asarray(h), ty, 3.0) if f else h for h, ty, f in zip(sources, types, floats, strict=True)]
        self.in_region += 1
        try:
            results = run(varied)
        finally:
            self.in_region -= 1
        return [
            self._overflowing(r, h, ty, axis, keeps_axis) if f else r for r, h, ty, f in zip(results, sources, types, floats, strict=True)
        ]

    def _overflowing(self, result: np.ndarray, source: np.ndarray, ty: Any, axis: int, keeps_axis: bool) -> np.ndarray:
        """`result` of a reduction of `source` along an axis, NaN at random where the sum of magnitudes does not fit the type."""
        numbers = np.abs(real_values(source, ty)).astype(np.float64)
        with np.errstate(over="ignore"):
            total = np.where(np.isfinite(numbers), numbers, 0.0).sum(axis - len(ty.shape), keepdims=keeps_axis)
        unsure = total > _LARGEST[ty.scalar.name]
        if not unsure.any():
            return result
        unsure = np.broadcast_to(unsure, result.shape) & (self.rng.random(result.shape) < 0.5)
        values = np.where(unsure, np.nan, real_values(result, ty))
        return values.astype(numpy_dtype(ty)) if ty.scalar.primitive_bitwidth >= 32 else from_real(values, ty)

    rounds = True

    def reduce(self, sources, axis, combine, types, tys, **facts):
        self.rounds = self._rounds(combine, types)
        return self._region(lambda s: NumpyBuilder.reduce(self, s, axis, combine, types, tys, **facts), sources, types, axis, False)

    def scan(self, sources, axis, reverse, combine, types):
        self.rounds = self._rounds(combine, types)
        return self._region(lambda s: NumpyBuilder.scan(self, s, axis, reverse, combine, types), sources, types, axis, True)

    def _rounds(self, combine, types) -> bool:
        """Whether combining rounds: whether it computes other values than it is given."""
        ones = [np.full((), 3, numpy_dtype(ty)) if ty.scalar.name != "bf16" else np.full((), 0x4040, numpy_dtype(ty)) for ty in types]
        twos = [np.full((), 5, numpy_dtype(ty)) if ty.scalar.name != "bf16" else np.full((), 0x40A0, numpy_dtype(ty)) for ty in types]
        results = combine([*ones, *twos])
        return any(r != a and r != b for r, a, b in zip(results, ones, twos, strict=True))

    def dot(self, a, b, acc, a_ty, b_ty, ty, *, precision, max_imprecise):
        result = super().dot(a, b, acc, a_ty, b_ty, ty, precision=precision, max_imprecise=max_imprecise)
        self.has_products = self.has_dots = True  # what is added to it later may be the accumulator from the start
        if a_ty.scalar.is_int():
            return result
        relative = _PRODUCTS[precision] if a_ty.scalar.name == "fp32" else _PRODUCTS_OF[a_ty.scalar.name]
        if ty.scalar.name == "fp16":
            relative = 2.0**-9
        x, y = (np.abs(real_values(v, t)).astype(np.float64) for v, t in ((a, a_ty), (b, b_ty)))
        magnitude = np.matmul(x, y) + np.abs(real_values(acc, ty))
        exact = real_values(result, ty).astype(np.float64)
        varied = np.where(np.isfinite(exact), exact + self._signs(exact.shape) * relative * np.nan_to_num(magnitude), exact)
        return varied.astype(numpy_dtype(ty)) if ty.scalar.primitive_bitwidth >= 32 else from_real(varied, ty)

    def dot_scaled(self, a, a_scale, a_format, b, b_scale, b_format, acc, types, ty, **how):
        result = super().dot_scaled(a, a_scale, a_format, b, b_scale, b_format, acc, types, ty, **how)
        self.has_products = self.has_dots = True
        largest = np.abs(np.nan_to_num(result, posinf=0, neginf=0)).max()
        return np.where(np.isfinite(result), result + self._signs(result.shape) * largest * 2.0**-16, result).astype(result.dtype)

    def atomic_rmw(self, kind, ptr, value, mask, ty, **order):
        if kind != "fadd":
            return super().atomic_rmw(kind, ptr, value, mask, ty, **order)
        value = self._vary(np.asarray(value), ty, 4.0)
        # Lanes add in any order; sums of large numbers overflow in some, most of all where the negative ones come last or first.
        shape = (self.batch, *ty.shape) if self.batch else ptr.address.shape
        numbers = np.nan_to_num(real_values(np.broadcast_to(value, shape), ty).ravel())
        orders = (lambda: self.rng.permutation(numbers.size), lambda: np.argsort(numbers), lambda: np.argsort(-numbers))
        lanes = orders[self.rng.integers(3)]()

        def shuffled(x):
            return np.broadcast_to(x, shape).ravel()[lanes].reshape(shape)

        old = super().atomic_rmw(
            kind, Pointers(shuffled(ptr.address), ptr.base), shuffled(value), None if mask is None else shuffled(mask), ty, **order
        )
        result = np.empty_like(old).ravel()
        result[lanes] = old.ravel()
        return result.reshape(shape)


class PerturbedSession(session.InterpreterSession):
    """The interpreter's session over a perturbed builder."""

    seed = 0

    def __init__(self, memory: Any, grid: tuple[int, int, int], options: dict[str, Any]):
        super().__init__(memory, grid, options)
        self.builder = PerturbedBuilder(memory, grid)
        self.builder.rng = np.random.default_rng(self.seed)
        self.builder.shuffle_programs()
        self.builder.contracts = options.get("enable_fp_fusion", True)


def run_perturbed(kernel: InterpretedFunction, grid: tuple[int, ...], arguments: dict[str, Any], options: dict, seed: int) -> None:
    """Interpret a kernel once with results varied as the seed says."""
    with mock.patch.object(function, "InterpreterSession", type("Session", (PerturbedSession,), {"seed": seed})):
        kernel[grid](**arguments, **options)
