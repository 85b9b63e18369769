"""Names of other libraries: the error says what they are here."""

from __future__ import annotations

import re

import pytest

import smelt
from smelt import foreign
from smelt.ir.errors import MissingNameError

LIBRARIES = (foreign.LINALG, *foreign._LIBRARIES.values())
NAMES = {name: text for library in LIBRARIES for name, text in library.items()}


def test_what_is_named_is_there():
    for name, text in NAMES.items():
        for path in re.findall(r"\bsmelt\.([\w.]*\w)", text):
            found = smelt
            for part in path.split("."):
                assert hasattr(found, part), f"{name}: {text}"
                found = getattr(found, part)


@pytest.mark.parametrize("name", ["dot", "tensor", "jit", "cat", "conv2", "vdot"])
def test_the_error_says_what_to_write(name):
    with pytest.raises(MissingNameError) as error:
        getattr(smelt, name)
    assert NAMES[name] in str(error.value) and "test_foreign.py" in str(error.value)
    assert isinstance(error.value, AttributeError) and not hasattr(smelt, name)


def test_names_of_linalg():
    with pytest.raises(AttributeError, match=r"smelt\.linalg has no 'schur'; what SciPy .*eigh.*test_foreign"):
        smelt.linalg.schur  # noqa: B018
    with pytest.raises(AttributeError, match=r"did you mean smelt\.linalg\.cholesky\?"):
        smelt.linalg.choleski  # noqa: B018
    assert not set(foreign.LINALG) & set(smelt.linalg.__all__)
    assert not any(hasattr(smelt, name) for library in foreign._LIBRARIES.values() for name in library)


def test_names_that_nobody_has():
    with pytest.raises(AttributeError, match=r"smelt has no 'softmaxx'; did you mean smelt\.softmax\?"):
        smelt.softmaxx  # noqa: B018
    with pytest.raises(AttributeError, match="smelt has no 'qqqqqqq'; at"):
        smelt.qqqqqqq  # noqa: B018
    with pytest.raises(ImportError, match="qqqqqqq"):
        from smelt import qqqqqqq  # noqa: F401
