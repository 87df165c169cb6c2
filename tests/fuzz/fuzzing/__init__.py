"""Random kernels in the Triton language: making them, running them in two ways, comparing, and making failing ones small."""

import sys
from pathlib import Path

# The simulator of the lowering is a helper module of the tests there.
sys.path.append(str(Path(__file__).resolve().parents[2] / "compile"))
