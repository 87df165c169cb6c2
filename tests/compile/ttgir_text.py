"""Kernels written as `ttgir` text: the frame of a module, and the code of pointers to the elements of a row-major array."""

from dataclasses import dataclass

import numpy as np

from tilewright.compiler.encoding import encode
from tilewright.compiler.layouts import LinearLayout, expand_dims, slice_dim
from tilewright.dialects import context


@dataclass(frozen=True)
class Source:
    """A kernel for `lowering_harness`, the same for every target."""

    module: str
    num_warps: int

    def text(self, arch: int) -> str:
        return self.module


def build(arguments: str, body: str, num_warps: int = 4, **layouts: LinearLayout) -> Source:
    """The kernel with these arguments and ops; `#name` in them is the layout of that name."""
    with context():
        aliases = "\n".join(f"#{name} = {encode(layout)}" for name, layout in layouts.items())
    module = f"""{aliases}
module attributes {{tilegpu.num_warps = {num_warps} : i32, tilegpu.num_ctas = 1 : i32, tilegpu.threads_per_warp = 32 : i32}} {{
  func.func public @kernel({arguments}) {{
{body}
    func.return
  }}
}}
"""
    return Source(module, num_warps)


def pointers(name: str, base: str, shape: tuple[int, ...], element: str, layout: str = "l", strided: bool = False) -> str:
    """Code for `%name`, the tensor of pointers to the elements of a row-major array at `%base`."""
    sizes = "x".join(map(str, shape))
    code, strides = [], [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    code.append(f"%{name}_0 = tile.splat %{base} : !tile.ptr<{element}> -> tensor<{sizes}x!tile.ptr<{element}>, #{layout}>")
    for d, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        code.append(index(f"{name}_i{d}", shape, d, layout))
        code.append(f"%{name}_c{d} = arith.constant dense<{stride}> : tensor<{sizes}xi32, #{layout}>")
        code.append(f"%{name}_s{d} = arith.muli %{name}_i{d}, %{name}_c{d} : tensor<{sizes}xi32, #{layout}>")
        target = name if d == len(shape) - 1 else f"{name}_{d + 1}"
        kind = f"tensor<{sizes}x!tile.ptr<{element}>, #{layout}>, tensor<{sizes}xi32, #{layout}>"
        code.append(f"%{target} = tile.addptr %{name}_{d}, %{name}_s{d} : {kind}")
    return "\n".join(code)


def index(name: str, shape: tuple[int, ...], dim: int, layout: str) -> str:
    """Code for `%name`, the coordinate along `dim` as a tensor of `shape` (rank 1 or 2)."""
    sizes = "x".join(map(str, shape))
    if len(shape) == 1:
        return f"%{name} = tile.range 0 to {shape[0]} : tensor<{shape[0]}xi32, #{layout}>"
    flat, size = f"#{layout}_s{1 - dim}", shape[dim]
    column = f"{size}x1" if dim == 0 else f"1x{size}"
    middle = f"tensor<{column}xi32, #{layout}_e{1 - dim}>"
    return f"""%{name}_r = tile.range 0 to {size} : tensor<{size}xi32, {flat}>
%{name}_e = tile.expand_dims %{name}_r axis = {1 - dim} : tensor<{size}xi32, {flat}> -> {middle}
%{name} = tile.broadcast %{name}_e : {middle} -> tensor<{sizes}xi32, #{layout}>"""


def with_slices(name: str, layout: LinearLayout) -> dict[str, LinearLayout]:
    """A layout of rank 2 with those of its coordinates along one dimension, flat (`_s`) and expanded (`_e`)."""
    found = {name: layout}
    for axis in (0, 1):
        flat = slice_dim(layout, axis)
        found[f"{name}_s{axis}"], found[f"{name}_e{axis}"] = flat, expand_dims(flat, axis)
    return found
