"""The ledger in hundredths of the highest value that is publicly possible, instead of the list price.

Here: what differs from `agents.learned.ledger`: the unit of prices, and the law of the buyers' values, both from the
public prior that every rule may read. Not here: everything else.

    system     seller t8 cost 41 law 37 63 94
    user       1st 25 none 2nd 24 none 3rd 22 none left t8
    assistant  ask 3rd 97

Contract: as the ledger's. A product's unit is the top of the public distribution of its values (two sigma up where
there is none, `priors.ladder_top`), so that games in which all values are a publicly known multiple of other games'
are told in the same words, but for the cost. `law` is followed by its first, fifth and ninth decile.
"""

from functools import partial

from agents.learned import ledger
from agents.learned.dialogue import Message
from markets.engine import priors
from markets.engine.money import Cents
from markets.engine.observation import Observation

HIGHEST_NUMBER = 120
"""Nobody pays more than the top; the law that has none goes on a little."""
DECILES = (0.1, 0.5, 0.9)


def vocabulary() -> tuple[str, ...]:
    """Every word, in the order of token ids, which never changes."""
    kept = (word for word in ledger.vocabulary() if not word.isdecimal() or int(word) <= HIGHEST_NUMBER)
    return (*kept, "law")


SAMPLE = (
    Message("system", ("seller", "t8", "cost", "41", "law", "37", "63", "94")),
    Message("user", ("1st", "25", "none", "2nd", "24", "none", "left", "t8")),
    Message("assistant", ("ask", "2nd", "97")),
    Message("user", ("1st", "53", "97", "2nd", "25", "none", "left", "t7")),
    Message("assistant", ("leave",)),
)
"""A dialogue for checks of tokenizers and templates."""


class Conversation(ledger.Conversation):
    """What a seller of several buyers was told and wrote, in hundredths of the top."""

    highest_number = HIGHEST_NUMBER

    def __init__(self, observation: Observation) -> None:
        super().__init__(observation)
        prior = observation.prior
        self._top = priors.ladder_top(prior.value_spec)
        self._units = [max(1, round(self._top * scale)) for scale in prior.scales_cents]

    def phrase(self, *, buyer: int, product: int, number: int) -> tuple[str, ...]:
        """An own price in words; for whoever reckons in hundredths of the list price."""
        price = number * self._seen.products[product].list_price_cents // 100
        return self._phrase(buyer=buyer, product=product, number=self._number(product, max(0, price), up=self._seller))

    def _unit(self, product: int) -> Cents:
        return self._units[product]

    def _law(self) -> tuple[str, ...]:
        spec = self._seen.prior.value_spec
        shares = (priors.quantile(spec, decile) / self._top for decile in DECILES)
        return "law", *(str(max(0, min(HIGHEST_NUMBER, round(100 * share)))) for share in shares)


conversation = partial(ledger.conversation, start=Conversation)
"""The whole dialogue of a seat about to move, rebuilt from its own past."""
