"""Every refusal can be told in the reader's language."""

import pytest
from django.utils.translation import override

from markets import refusals
from markets.engine.protocol import REFUSAL_SENTENCES, RefusalCode


def test_the_sentences_that_translators_see_are_the_engines():
    assert sorted(refusals._MARKED) == sorted(REFUSAL_SENTENCES.values())


@pytest.mark.parametrize("code", RefusalCode)
def test_every_code_has_a_sentence(code):
    with override("en"):
        assert refusals.refusal_sentence(code) == REFUSAL_SENTENCES[code]
    assert REFUSAL_SENTENCES[code].endswith(".")
