"""Triton's import path of the compile driver."""

from .backends import GPUTarget, make_backend
from .driver import compile
from .fingerprint import compiler_key as triton_key
from .kernel import CompiledKernel, max_shared_mem
from .source import ASTSource, IRSource

__all__ = ["ASTSource", "CompiledKernel", "GPUTarget", "IRSource", "compile", "make_backend", "max_shared_mem", "triton_key"]
