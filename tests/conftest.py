"""Keeps what the tests compile out of the user's cache, and takes time limits off hypothesis: machines are shared."""

import os
import tempfile

from hypothesis import settings

settings.register_profile("tilewright", deadline=None)
settings.load_profile("tilewright")

# An environment variable, so that programs which tests start see it too.
_cache = tempfile.TemporaryDirectory(prefix="tilewright-tests-", ignore_cleanup_errors=True)
os.environ["TILEWRIGHT_CACHE_DIR"] = _cache.name
