"""The comparison of machine code sees a changed instruction, and does not see a changed name."""

import pytest

pytest.importorskip("kernels.cuda", reason="cupy is not installed")

from kernels import cubins, sources
from kernels.shelf import Form
from tests.kernels.machine_code import differences, digests, spread

FORM = Form("lap/points/distances.cu", ())


def test_a_name_is_not_seen_and_an_instruction_is(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sources.source(FORM.path)
    before = {str(FORM): digests(FORM, "90")}
    for old, new, changed in (("away", "apart", set()), ("0.5 *", "0.25 *", {".text.distances"})):
        assert old in text
        monkeypatch.setattr(cubins, "source", lambda path, old=old, new=new: text.replace(old, new))
        found = differences(before, {str(FORM): digests(FORM, "90")})
        assert {line.rpartition(" ")[2] for line in found} == changed


def test_a_kernel_that_is_gone_is_a_difference() -> None:
    assert differences({"a.cu": {".text.one": "0", ".text.two": "0"}}, {"a.cu": {".text.one": "0"}}) == [
        "a.cu .text.two"
    ]


def test_forms_are_spread_over_the_list_of_each_source() -> None:
    forms = [Form("a.cu", (f"-DX={k}",)) for k in range(10)] + [Form("b.cu", ())]
    few = spread(forms, 3)
    assert [form.path for form in few] == ["a.cu"] * 3 + ["b.cu"]
    assert len(set(few)) == 4
