"""Lets the unit tests import their helper modules by name, and takes time limits off hypothesis: machines are shared."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("tilewright", deadline=None)
settings.load_profile("tilewright")
