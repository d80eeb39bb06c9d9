"""What a round came to, in words for one participant: what the seat knew all along, or with the others' values.

Contract: `told` depends on nothing but what the party saw. `others_values` is what a study reveals, by its rule
(`pages.may_reveal`); a buyer learns of the seller alone, never of other buyers. Both take a finished room.
"""

from django.utils.translation import gettext as _

from markets import episodes, result
from markets.engine import metrics
from markets.engine.money import format_amount
from markets.engine.protocol import Party, Role, role_of
from markets.selectors import Revealed


def told(revealed: Revealed, party: Party) -> tuple[str, str]:
    """How it ended, and the own gain as money."""
    outcome = metrics.outcome(revealed.scenario, revealed.log)
    own_cents, _share = episodes.seat_result(revealed.scenario, outcome, party)
    headline = result.closed_headline(revealed.scenario, outcome, party)
    return headline, format_amount(own_cents, revealed.scenario.currency)


def others_values(revealed: Revealed, party: Party) -> str:
    """What it was worth to the other side, in a sentence."""
    scenario = revealed.scenario

    def amounts(values: list[int]) -> str:
        return ", ".join(format_amount(value, scenario.currency) for value in values)

    if role_of(party) is Role.BUYER:
        costs = amounts(list(scenario.seller_values_cents))
        if len(scenario.products) == 1:
            return _("It cost the seller %(amount)s.") % {"amount": costs}
        return _("The products cost the seller %(amounts)s.") % {"amounts": costs}
    if len(scenario.products) > 1:
        return ""
    values = amounts([values[0] for values in scenario.buyer_values_cents])
    if scenario.buyers == 1:
        return _("It was worth %(amount)s to the buyer.") % {"amount": values}
    return _("It was worth %(amounts)s to the buyers.") % {"amounts": values}
