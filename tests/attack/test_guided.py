"""The guided fuzzer's own parts, without the guide."""

import pytest

from tests.attack import test_codec_fuzz as attack
from tests.attack.guided import by_hypothesis, forms, one_of


def test_each_form_reads_the_corpus() -> None:
    known = forms()
    one = one_of(known, attack.check)
    one(b"")
    for path in attack.FILES:
        for k in range(len(known)):
            one(bytes([k]) + path.read_bytes())


def test_it_draws_for_as_long_as_it_is_told() -> None:
    assert by_hypothesis(0.2) >= 500


def test_what_breaks_a_decoder_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes, form: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(attack, "check", broken)
    with pytest.raises(ZeroDivisionError):
        by_hypothesis(5)
