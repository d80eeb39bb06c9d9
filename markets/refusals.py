"""The engine's refusals in the reader's language.

The engine gives a code and an English sentence; here each sentence is marked for translation.
"""

from django.utils.translation import gettext, gettext_noop

from markets.engine.protocol import REFUSAL_SENTENCES, RefusalCode

_MARKED = (
    gettext_noop("This negotiation is over."),
    gettext_noop("Too late: this product has just been sold."),
    gettext_noop("It is not your turn yet."),
    gettext_noop("Wait for this buyer's answer before you write again."),
    gettext_noop("There is no such buyer in this negotiation."),
    gettext_noop("This conversation is closed."),
    gettext_noop("This buyer has already bought and wants one unit only."),
    gettext_noop("There is no such product in this negotiation."),
    gettext_noop("A price must be at least one cent and at most 100 million."),
    gettext_noop("There is no such offer in this conversation."),
    gettext_noop("That offer was rejected, replaced or withdrawn and no longer stands."),
    gettext_noop("That is your own offer; only the other side can accept or reject it."),
    gettext_noop("This market refuses prices that would cost you money."),
    gettext_noop("All the seller's messages have been used."),
    gettext_noop("Write something, or name a price."),
    gettext_noop("A message may be at most 2,000 characters long."),
    gettext_noop("The message holds characters that cannot be stored. Type it again."),
    gettext_noop("This market has no clock to wait on."),
    gettext_noop("A wait lasts at most ten minutes and never goes back in time."),
    gettext_noop("This market has no prices to look up."),
    gettext_noop("The deadline has passed."),
    gettext_noop("The message could not be read."),
)
"""The same sentences as the engine's, where the translation tools find them (a test compares)."""


def refusal_sentence(code: RefusalCode) -> str:
    """What to tell the sender."""
    return gettext(REFUSAL_SENTENCES[code])
