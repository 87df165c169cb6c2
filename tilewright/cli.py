"""The command line: `tilewright demo | run script.py | version | env`."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="tilewright", description="Compiler for GPU kernels in the Triton language.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    demo = commands.add_parser("demo", help="compile three kernels, show their stages, run and check them")
    demo.add_argument("--write", metavar="FOLDER", type=Path, help="also write each stage of each kernel to this folder")
    run = commands.add_parser("run", help="run a Python program in which `import triton` gives Tilewright")
    run.add_argument("-m", dest="module", action="store_true", help="the program is the name of a module")
    run.add_argument("script", help="the program")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    commands.add_parser("version", help="print the version")
    commands.add_parser("env", help="print what Tilewright finds on this machine")
    options = parser.parse_args(argv)
    if options.command == "demo":
        return run_demo(options.write)
    if options.command == "run":
        return run_program(options.script, options.arguments, options.module)
    if options.command == "version":
        import tilewright

        print(tilewright.__version__)
        return 0
    return show_environment()


def run_demo(folder: Path | None) -> int:
    """Run the demo; what is missing on this machine is told without a traceback."""
    from tilewright.errors import TritonError

    try:
        from tilewright import demo

        return demo.main(folder)
    except TritonError as e:
        print(f"tilewright: {e}", file=sys.stderr)
        return 1


def run_program(script: str, arguments: list[str], module: bool = False) -> int:
    """Run a program as `python script arguments` would, with `import triton` giving this package."""
    import tilewright

    if not module and not Path(script).exists():
        print(f"tilewright: there is no file {script}", file=sys.stderr)
        return 2
    tilewright.install_as_triton()
    sys.argv = [script, *arguments]
    if module:
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(script).resolve().parent)
        runpy.run_path(script, run_name="__main__")
    return 0


def show_environment() -> int:
    """Print versions, the tools that were found and where kernels are cached."""
    from importlib.metadata import PackageNotFoundError, version

    import tilewright
    from tilewright import knobs
    from tilewright.compiler.backends.nvidia import libdevice, locate, ptxas
    from tilewright.errors import ToolchainError
    from tilewright.runtime.drivers.cuda import CudaDriver

    def found(function: object) -> str:
        try:
            return str(function())
        except (ToolchainError, RuntimeError) as e:
            return f"not found ({str(e).splitlines()[0]})"

    print(f"tilewright   {tilewright.__version__}, Python {sys.version.split()[0]}")
    for name in ("xtc-mlir-python-bindings", "llvmlite", "numpy", "torch"):
        try:
            print(f"{name:12s} {version(name)}")
        except PackageNotFoundError:
            print(f"{name:12s} not installed")
    path = found(locate.find_ptxas)
    print(f"ptxas        {path}" + (f", version {ptxas.version(path)}" if not path.startswith("not found") else ""))
    print(f"libdevice    {found(libdevice.find_libdevice)}")
    print(f"GPU          {found(lambda: CudaDriver().get_current_target())}")
    print(f"cache        {knobs.cache.dir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
