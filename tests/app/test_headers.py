"""Headers of a request on the short way, looked up by name."""

import pytest
from starlette.datastructures import Headers

from app.http.short import Known

SENT = [(b"prefer", b"wait=1"), (b"host", b"a"), (b"prefer", b"wait=2"), (b"x-odd", "ä".encode("latin-1"))]


@pytest.mark.parametrize("name", ["Prefer", "prefer", "HOST", "x-odd", "accept"])
def test_they_are_found_as_starlette_finds_them(name: str) -> None:
    scope = {"type": "http", "headers": SENT}
    ours, theirs = Known(scope), Headers(scope=scope)
    assert ours.get(name) == theirs.get(name)
    assert ours.get(name, "none") == theirs.get(name, "none")
    assert (name in ours) == (name in theirs)
    assert ours.getlist(name) == theirs.getlist(name)
    if name in theirs:
        assert ours[name] == theirs[name]
    else:
        with pytest.raises(KeyError):
            ours[name]
