"""Every mistake of `mistakes.py` is refused with the error it should give: no abort, the user's file and line, what is accepted."""

import pytest

pytest.importorskip("mlir")

import mistakes

from tilewright.errors import CompilationError

ALL = mistakes.IN_THE_KERNEL + mistakes.IN_THE_CALL + mistakes.ON_THIS_MACHINE


@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.title.replace(" ", "-"))
def test_mistake(mistake):
    with pytest.raises(mistake.error) as caught:
        mistake.make()
    text = str(caught.value)
    assert mistake.says in text
    if isinstance(caught.value, CompilationError):
        site = caught.value.site
        assert site.file_name == mistakes.__file__
        assert site.text[site.col : site.end_col].startswith(mistake.at)
        with open(mistakes.__file__, encoding="utf-8") as file:
            assert file.readlines()[site.line - 1].rstrip() == site.text
