"""Running a program: interpreted, compiled for a target without a GPU, compiled and launched, or simulated."""

from __future__ import annotations

import functools
import os
import tempfile
from typing import Any

import numpy as np

from tilewright import knobs
from tilewright.errors import OutOfResources, TritonError
from tilewright.runtime.interpreter import InterpretedFunction

from .compare import Results, differences
from .data import Typed, fill, language_dtype
from .perturb import run_perturbed
from .program import Array, load
from .types import STORAGE

TARGETS = (90, 80)


class Failure(Exception):
    """A program that does not do what it should. `kind` is a word or two, `text` one line or more."""

    def __init__(self, kind: str, text: str):
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class Unsupported(Exception):
    """A program that this way of running cannot run: not a failure."""


def check(source: str, path: str, mode: str) -> None:
    """Run the program of a text in a mode: "gpu", "compile", "simulate" (for 9.0) or "simulate 80". Raises Failure or Unsupported."""
    if mode == "compile":
        compile_only(source, path)
        return
    interpreted = load(source, path, interpreted_jit)
    arrays = {name: value for name, value in interpreted["ARGUMENTS"].items() if isinstance(value, Array)}
    dtypes = {name: array.dtype for name, array in arrays.items()}
    inputs = {name: fill(array) for name, array in arrays.items()}
    expected = interpret(interpreted, inputs)
    got = launch(source, path, inputs) if mode == "gpu" else simulate(source, path, inputs, int(mode.partition(" ")[2] or 90))
    found = differences(got, expected, dtypes, lambda seed: interpret(interpreted, inputs, seed))
    if found:
        kinds = sorted({"float" if d.kind in ("float", "fp8") else "integer" for d in found})
        raise Failure(f"mismatch of {' and '.join(kinds)}", "\n".join(map(str, found)))


def interpreted_jit(fn: Any = None, **options: Any) -> Any:
    """`jit` of a program for the interpreter."""
    return functools.partial(InterpretedFunction, **options) if fn is None else InterpretedFunction(fn, **options)


def interpret(module: dict[str, Any], inputs: Results, perturbation: int | None = None) -> Results:
    """What the interpreter leaves in the arrays; with a perturbation one of the other results that a GPU might give."""
    results = {name: bits.copy() for name, bits in inputs.items()}
    arguments = {
        name: Typed(results[name], value.dtype) if isinstance(value, Array) else value for name, value in module["ARGUMENTS"].items()
    }
    try:
        if perturbation is None:
            module["kernel"][module["GRID"]](**arguments, **module["OPTIONS"])
        else:
            run_perturbed(module["kernel"], module["GRID"], arguments, module["OPTIONS"], perturbation)
    except Exception as e:
        kind = "interpreter error" if perturbation is None else "error of the perturbed interpreter"
        raise Failure(kind, _summary(e)) from e
    return results


def _summary(e: Exception) -> str:
    """The last lines of what an exception says, with its class."""
    return f"{type(e).__name__}: {e}"


# Compiling


def compile_only(source: str, path: str) -> None:
    """Compile for each target; the program is right, so that any error is a failure."""
    for capability in TARGETS:
        if not suits(source, capability):
            continue
        compile_for(source, path, capability)


def suits(source: str, capability: int) -> bool:
    """Whether a target has the types that a program uses."""
    return capability >= 89 or not any(name in source for name in ("8e4nv", "e4m3"))


def compile_for(source: str, path: str, capability: int) -> Any:
    """The compiled kernel."""
    from tilewright.backends.compiler import GPUTarget
    from tilewright.compiler import compile as compile_kernel
    from tilewright.compiler.backends import make_backend

    target = GPUTarget("cuda", capability, 32)
    try:
        src, options = source_of(source, path, make_backend(target))
        return compile_kernel(src, target=target, options=options)
    except OutOfResources as e:
        raise Unsupported(str(e)) from e
    except TritonError as e:
        raise Failure(f"compile error for {capability}", _summary(e)) from e
    except Exception as e:
        raise Failure(f"internal error for {capability}", _summary(e)) from e


def source_of(source: str, path: str, backend: Any) -> tuple[Any, dict[str, Any]]:
    """(ASTSource, options) of a program, specialized as a launch with aligned arrays specializes it."""
    import tilewright
    from tilewright.compiler import ASTSource
    from tilewright.runtime.jit import MockTensor
    from tilewright.runtime.specialize import collect, specialize_param

    module = load(source, path, tilewright.jit)
    kernel = module["kernel"]
    values = {n: MockTensor(language_dtype(v.dtype)) if isinstance(v, Array) else v for n, v in module["ARGUMENTS"].items()}
    pairs = [specialize_param(param, values[param.name]) for param in kernel.params]
    signature, constants, attrs = collect(kernel.arg_names, pairs, backend.parse_attr)
    options = dict(module["OPTIONS"])
    if not 90 <= backend.target.arch < 120:
        options.pop("num_ctas", None)
    return ASTSource(kernel, signature, constants, attrs), options


# On a GPU


def launch(source: str, path: str, inputs: Results) -> Results:
    """What the compiled kernel leaves in the arrays."""
    import torch

    import tilewright

    module = load(source, path, tilewright.jit)
    tensors = {name: torch.from_numpy(bits.view(np.uint8).copy()).cuda() for name, bits in inputs.items()}
    arguments = {
        name: tilewright.reinterpret(_carrier(torch, tensors[name], value.dtype), language_dtype(value.dtype))
        if isinstance(value, Array)
        else value
        for name, value in module["ARGUMENTS"].items()
    }
    try:
        module["kernel"][module["GRID"]](**arguments, **module["OPTIONS"])
        torch.cuda.synchronize()
    except OutOfResources as e:
        raise Unsupported(str(e)) from e
    except TritonError as e:
        raise Failure("compile error", _summary(e)) from e
    except Exception as e:
        raise Failure("launch error" if "CUDA" in str(e) or "cu" in type(e).__name__.lower() else "internal error", _summary(e)) from e
    return {name: tensor.cpu().numpy().view(inputs[name].dtype) for name, tensor in tensors.items()}


def _carrier(torch: Any, tensor: Any, code: str) -> Any:
    """The bytes as a torch tensor of the element size."""
    return tensor.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[STORAGE[code].itemsize])


# In the simulator


def simulate(source: str, path: str, inputs: Results, capability: int) -> Results:
    """What the lowered kernel leaves in the arrays, on the simulator of tests/compile."""
    from .simulation import run

    return run(source, path, inputs, capability)


def prepare() -> None:
    """Settings of a process that runs programs: kernels are compiled each time and kept nowhere."""
    knobs.compilation.always_compile = True
    os.environ.setdefault("TILEWRIGHT_CACHE_DIR", tempfile.mkdtemp(prefix="tilewright-fuzz-"))
