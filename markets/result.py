"""What a finished room says to one of its seats: the result and the replay.

Built from `selectors.Revealed`, which exists for finished rooms only. Here, and nowhere else on the
site for players, are other parties' private values shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from markets import episodes, presentation, room_page
from markets.engine import bounds, metrics, observation
from markets.engine.metrics import Outcome
from markets.engine.money import Cents, format_amount
from markets.engine.protocol import (
    EndReason,
    LogEntry,
    OfferMade,
    Party,
    PartyLeft,
    Role,
    buyer_of,
    buyer_party,
    role_of,
)
from markets.engine.scenarios import Family, Scenario
from markets.engine.state import evolve, initial
from markets.models import Seat, SeatKind
from markets.presentation import Figure, Mark, MarkKind, ThreadResult
from markets.selectors import Revealed, SeatView

OutcomeWord: TypeAlias = Literal["deal", "impasse", "no_deal_possible", "abandoned"]


def result(seat: Seat, view: SeatView, revealed: Revealed) -> presentation.Result:
    """The end of the room as `seat` sees it."""
    if not seat.room.market.reveals_values:
        return _closed_result(seat, view, revealed)
    scenario = revealed.scenario
    outcome = metrics.outcome(scenario, revealed.log)
    own_cents, share = episodes.seat_result(scenario, outcome, seat.party)
    public_id = view.public_id
    among_people = revealed.beside_people(seat.party)
    return presentation.Result(
        outcome=outcome_word(scenario, outcome, seat.party),
        headline=headline(scenario, outcome, seat.party),
        detail=_detail(outcome, seat.party),
        line=result_line(scenario, revealed.log, seat.party),
        figures=_figures(scenario, seat.party, own_cents, share),
        threads=_threads(seat, revealed, outcome),
        matching=() if among_people else _matching(scenario, outcome),
        matching_sentence="" if among_people else _matching_sentence(scenario, outcome),
        rematch_url=reverse("room-rematch", args=[public_id]),
        rematch_fields=(("swap", "1"),),
        again_url=reverse("room-rematch", args=[public_id]),
        again_fields=(("swap", "0"),),
        replay_url=reverse("room-replay", args=[public_id]),
        share_url="" if seat.room.keeper else reverse("room-share", args=[public_id]),
        record_url=reverse("room-record", args=[public_id]),
        history_url=reverse("history"),
        market_url=reverse("market", args=[view.market_slug]),
    )


def _closed_result(seat: Seat, view: SeatView, revealed: Revealed) -> presentation.Result:
    """The end as `seat` sees it where a market keeps values after the game: from what the seat knew all along.

    Nothing here may depend on another's value, so there is no share and no best outcome either.
    """
    scenario, money = revealed.scenario, _money(revealed.scenario)
    outcome = metrics.outcome(scenario, revealed.log)
    own_cents, _share = episodes.seat_result(scenario, outcome, seat.party)
    public_id = view.public_id
    return presentation.Result(
        outcome=closed_outcome_word(outcome, seat.party),
        headline=closed_headline(scenario, outcome, seat.party),
        detail=_detail(outcome, seat.party),
        line=None
        if len(scenario.products) > 1
        else _step_line(scenario, view.observation, seat.party, 0, revealing=False),
        figures=(Figure(label=_("Your gain"), value=money(own_cents)),),
        threads=tuple(replace(row, their_value="") for row in _threads(seat, revealed, outcome)),
        hidden_note=_("This market keeps what it was worth to the other side, also after the game."),
        rematch_url=reverse("room-rematch", args=[public_id]),
        rematch_fields=(("swap", "1"),),
        again_url=reverse("room-rematch", args=[public_id]),
        again_fields=(("swap", "0"),),
        replay_url=reverse("room-replay", args=[public_id]),
        history_url=reverse("history"),
        market_url=reverse("market", args=[view.market_slug]),
    )


def closed_outcome_word(outcome: Outcome, party: Party) -> OutcomeWord:
    """How it ended, without saying whether a deal was possible."""
    if _own_deals(outcome, party):
        return "deal"
    return "abandoned" if outcome.end_reason is EndReason.DEADLINE else "impasse"


def closed_headline(scenario: Scenario, outcome: Outcome, party: Party) -> str:
    """What it came to for a party that learns nothing of the others."""
    deals, money = _own_deals(outcome, party), _money(scenario)
    if not deals:
        return _("No deal.")
    own_cents, _share = episodes.seat_result(scenario, outcome, party)
    text = _("%(outcome)s, which is worth %(gain)s to you.") if own_cents >= 0 else _("%(outcome)s and lost %(gain)s.")
    opening = _("You bought at %(price)s") if role_of(party) is Role.BUYER else _("You sold for %(price)s")
    return text % {
        "outcome": opening % {"price": money(sum(deal.price_cents for deal in deals))},
        "gain": money(abs(own_cents)),
    }


# --- Sentences ------------------------------------------------------------------------------------


def outcome_word(scenario: Scenario, outcome: Outcome, party: Party) -> OutcomeWord:
    """How it ended for a party, in one word for templates."""
    if _own_deals(outcome, party):
        return "deal"
    if outcome.end_reason is EndReason.DEADLINE:
        return "abandoned"
    return "impasse" if _attainable_cents(scenario, party) > 0 else "no_deal_possible"


def _own_deals(outcome: Outcome, party: Party) -> tuple[metrics.DealOutcome, ...]:
    if role_of(party) is Role.SELLER:
        return outcome.deals
    return tuple(deal for deal in outcome.deals if deal.buyer == buyer_of(party))


def _attainable_cents(scenario: Scenario, party: Party) -> Cents:
    """The most that this party could have gained had it known everything."""
    if role_of(party) is Role.SELLER:
        return metrics.best_assignment(scenario)[0]
    own = scenario.buyer_values_cents[buyer_of(party) - 1]
    gains = (value - cost for value, cost in zip(own, scenario.seller_values_cents, strict=True))
    return max(0, *gains) if len(own) > 1 else max(0, next(gains))


def headline(scenario: Scenario, outcome: Outcome, party: Party) -> str:
    """What it came to, in one sentence."""
    money = _money(scenario)
    deals = _own_deals(outcome, party)
    attainable = _attainable_cents(scenario, party)
    if not deals:
        if attainable <= 0:
            return _("There was no price both could accept; walking away was right.")
        if role_of(party) is Role.BUYER and outcome.deals:
            return _("You did not buy. There was %(gain)s in it for you and the seller.") % {"gain": money(attainable)}
        return _("No deal. There was %(gain)s to share and it went to nobody.") % {"gain": money(attainable)}
    own_cents, share = episodes.seat_result(scenario, outcome, party)
    if role_of(party) is Role.BUYER:
        opening = _("You bought at %(price)s") % {"price": money(deals[0].price_cents)}
    elif len(deals) == 1:
        opening = _("You sold at %(price)s") % {"price": money(deals[0].price_cents)}
    else:
        opening = _("You sold %(count)d products for %(sum)s") % {
            "count": len(deals),
            "sum": money(sum(deal.price_cents for deal in deals)),
        }
    if own_cents < 0:
        return _("%(opening)s and lost %(loss)s on it.") % {
            "opening": opening,
            "loss": money(-own_cents),
        }
    if share is None:
        return _("%(opening)s, although there was nothing to share.") % {"opening": opening}
    return _("%(opening)s and took %(share)s of the %(gain)s there was to share.") % {
        "opening": opening,
        "share": percent(share),
        "gain": money(_shared_cents(scenario, outcome, party)),
    }


def _shared_cents(scenario: Scenario, outcome: Outcome, party: Party) -> Cents:
    """What the share of a party with a deal is out of."""
    if role_of(party) is Role.SELLER:
        return outcome.first_best_cents
    return _own_deals(outcome, party)[0].pair_joint_cents


def short_outcome(scenario: Scenario, outcome: Outcome, party: Party) -> str:
    """What it came to, in two or three words for a list."""
    deals = _own_deals(outcome, party)
    if not deals:
        return _("No deal")
    total = format_amount(sum(deal.price_cents for deal in deals), scenario.currency)
    if role_of(party) is Role.BUYER:
        return _("Bought at %(price)s") % {"price": total}
    if len(deals) == 1:
        return _("Sold at %(price)s") % {"price": total}
    return _("Sold %(count)d for %(sum)s") % {"count": len(deals), "sum": total}


def percent(share: float) -> str:
    """A fraction as people read it."""
    number = round(share * 100)
    return _("%(number)s\u00a0%%") % {"number": f"−{-number}" if number < 0 else number}


def _detail(outcome: Outcome, party: Party) -> str:
    if outcome.end_reason is None:
        return ""
    own = _own_deals(outcome, party)
    if own and len(outcome.deals) == len(own) == 1:
        return ""
    if outcome.end_reason is EndReason.DEAL and not own:
        return _("The seller sold to somebody else. The negotiation is over.")
    return room_page.end_sentence(outcome.end_reason, role=role_of(party))


def _money(scenario: Scenario) -> Callable[[Cents], str]:
    return lambda cents: format_amount(cents, scenario.currency)


# --- Line and figures -------------------------------------------------------------------------------


def result_line(scenario: Scenario, log: Sequence[LogEntry], party: Party) -> presentation.PriceLine | None:
    """Both sides' values, the deal and the offers on the way; None for several products."""
    if len(scenario.products) > 1:
        return None
    state = initial(scenario)
    for entry in log:
        state = evolve(state, entry.event)
    marks = [*value_marks(scenario, party, product=0)]
    deal_ids = {(deal.buyer, deal.offer_id) for deal in state.deals}
    visible = _visible_threads(scenario, party)
    for thread in state.threads:
        if thread.buyer not in visible:
            continue
        for offer in thread.offers:
            is_deal = (thread.buyer, offer.offer_id) in deal_ids
            marks.append(
                Mark(
                    kind=MarkKind.DEAL if is_deal else MarkKind.PAST_OFFER,
                    cents=offer.price_cents,
                    label=_("deal") if is_deal else "",
                    money=format_amount(offer.price_cents, scenario.currency),
                    role="" if is_deal else offer.by.value,
                    you=offer.by is role_of(party),
                    key=f"{thread.buyer}-{offer.offer_id}",
                )
            )
    cost = scenario.seller_values_cents[0]
    best = max(own[0] for own in _visible_values(scenario, party))
    return presentation.price_line(
        title=_revealed_title(scenario, party),
        marks=marks,
        money=lambda cents: format_amount(cents, scenario.currency).removesuffix(".00"),
        agreement=(cost, best) if cost <= best else None,
    )


def value_marks(scenario: Scenario, party: Party, *, product: int) -> list[Mark]:
    """The reservation values of everybody this party dealt with, revealed."""
    money = _money(scenario)
    is_seller = role_of(party) is Role.SELLER
    marks = [
        Mark(
            kind=MarkKind.RESERVATION if is_seller else MarkKind.THEIR_RESERVATION,
            cents=scenario.seller_values_cents[product],
            label=_("your cost") if is_seller else _("seller's cost"),
            money=money(scenario.seller_values_cents[product]),
            role=Role.SELLER.value,
            you=is_seller,
            key="seller-value",
        )
    ]
    for buyer in _visible_threads(scenario, party):
        value = scenario.buyer_values_cents[buyer - 1][product]
        if not is_seller:
            label = _("your value")
        elif scenario.buyers == 1:
            label = _("buyer's value")
        else:
            label = room_page.letter(buyer)
        marks.append(
            Mark(
                kind=MarkKind.THEIR_RESERVATION if is_seller else MarkKind.RESERVATION,
                cents=value,
                label=label,
                money=money(value),
                role=Role.BUYER.value,
                you=not is_seller,
                key=f"buyer-value-{buyer}",
            )
        )
    return marks


def _visible_threads(scenario: Scenario, party: Party) -> tuple[int, ...]:
    """Threads that a party was in: a buyer's own, all of the seller's."""
    own = buyer_of(party)
    return (own,) if own else tuple(range(1, scenario.buyers + 1))


def _visible_values(scenario: Scenario, party: Party) -> list[tuple[Cents, ...]]:
    return [scenario.buyer_values_cents[buyer - 1] for buyer in _visible_threads(scenario, party)]


def _revealed_title(scenario: Scenario, party: Party) -> str:
    money = _money(scenario)
    highest = max(own[0] for own in _visible_values(scenario, party))
    return _("The seller's cost was %(cost)s and the buyer's value %(value)s.") % {
        "cost": money(scenario.seller_values_cents[0]),
        "value": money(highest),
    }


def _figures(scenario: Scenario, party: Party, own_cents: Cents, share: float | None) -> tuple[Figure, ...]:
    money = _money(scenario)
    attainable = _attainable_cents(scenario, party)
    bound = bounds.knowing_prior(scenario, party)
    figures = [
        Figure(
            label=_("Your gain"),
            value=money(own_cents),
            out_of="" if share is None else _("%(share)s of what there was to share") % {"share": percent(share)},
            fraction=share,
        ),
        Figure(
            label=_("Best with full information"),
            value=money(attainable),
            note=_("Knowing every value, and with the other side accepting any price it gains from."),
            fraction=None if attainable <= 0 else 1.0,
        ),
        Figure(
            label=_("Best knowing only what was public"),
            value=money(bound.here_cents),
            out_of=_("in this game; %(average)s on average over games like it")
            % {"average": money(bound.expected_cents)},
            note=_bound_note(bound, buyers=scenario.buyers),
            fraction=None if attainable <= 0 else bound.here_cents / attainable,
        ),
    ]
    return tuple(figures)


def _bound_note(bound: bounds.Bound, *, buyers: int) -> str:
    if bound.assumption is bounds.Assumption.THRESHOLD_SELLER and buyers == 1:
        return _("The best rising ladder of bids, if the seller takes the first price at or above its cost.")
    notes = {
        bounds.Assumption.THRESHOLD_BUYERS: _(
            "The best falling ladder of asks, if buyers take the first price at or below their value."
        ),
        bounds.Assumption.THRESHOLD_SELLER: _(
            "The best rising ladder of bids, if the seller takes the first price at "
            "or above its cost and nobody else buys first."
        ),
        bounds.Assumption.PRODUCTS_IN_TURN: _(
            "Selling one unit after another by falling asks, if buyers take the "
            "first price at or below their value: a plan that can be followed, not a proven maximum."
        ),
    }
    return notes[bound.assumption]


# --- Tables -----------------------------------------------------------------------------------------


def _threads(seat: Seat, revealed: Revealed, outcome: Outcome) -> tuple[ThreadResult, ...]:
    """What each conversation came to, for a seller with several buyers."""
    scenario = revealed.scenario
    if role_of(seat.party) is Role.BUYER or scenario.buyers == 1:
        return ()
    money = _money(scenario)
    sitting = {row.party: row for row in revealed.episode.seats.all()}
    names = {other.party: other.agent_name for other in seat.room.seats.all()}
    rows = []
    for buyer in range(1, scenario.buyers + 1):
        party = buyer_party(buyer)
        deal = next((deal for deal in outcome.deals if deal.buyer == buyer), None)
        left = any(isinstance(entry.event, PartyLeft) and entry.event.buyer == buyer for entry in revealed.log)
        bids = [
            entry.event.price_cents
            for entry in revealed.log
            if isinstance(entry.event, OfferMade) and entry.event.buyer == buyer and entry.event.by is Role.BUYER
        ]
        word: Literal["deal", "left", "none"]
        if deal is not None:
            word, text = "deal", _("Bought at %(price)s") % {"price": money(deal.price_cents)}
        elif left:
            word, text = "left", _("Left")
        else:
            word, text = "none", _("No deal")
        kind = sitting[party].kind
        values = scenario.buyer_values_cents[buyer - 1]
        rows.append(
            ThreadResult(
                name=_("Buyer %(letter)s") % {"letter": room_page.letter(buyer)},
                who=names[party] if kind == SeatKind.AGENT else _("a person"),
                outcome=word,
                outcome_text=text,
                product=scenario.products[deal.product].title
                if deal is not None and len(scenario.products) > 1
                else "",
                their_value=money(values[deal.product if deal else 0]) if len(values) == 1 or deal else "",
                best_price_seen=money(max(bids)) if bids else "",
                your_surplus=money(deal.seller_surplus_cents) if deal else "",
            )
        )
    return tuple(rows)


def _matching(scenario: Scenario, outcome: Outcome) -> tuple[presentation.MatchRow, ...]:
    """The best assignment of a catalogue beside what happened."""
    if scenario.family is not Family.CATALOGUE:
        return ()
    money = _money(scenario)
    _total, pairs = metrics.best_assignment(scenario)
    rows = []
    for product, facts in enumerate(scenario.products):
        cost = scenario.seller_values_cents[product]
        best = [buyer for buyer, matched in pairs if matched == product]
        actual = [deal for deal in outcome.deals if deal.product == product]
        best_gain = sum(scenario.buyer_values_cents[buyer][product] - cost for buyer in best)
        rows.append(
            presentation.MatchRow(
                product=facts.title,
                best_buyer=", ".join(_buyer_name(buyer + 1) for buyer in best) or _("nobody"),
                best_gain=money(best_gain),
                actual_buyer=", ".join(_buyer_name(deal.buyer) for deal in actual) or _("nobody"),
                actual_gain=money(sum(deal.pair_joint_cents for deal in actual)),
                same={buyer + 1 for buyer in best} == {deal.buyer for deal in actual},
            )
        )
    return tuple(rows)


def _buyer_name(buyer: int) -> str:
    return _("Buyer %(letter)s") % {"letter": room_page.letter(buyer)}


def _matching_sentence(scenario: Scenario, outcome: Outcome) -> str:
    if scenario.family is not Family.CATALOGUE or outcome.allocation_quality is None:
        return ""
    return _("Together you reached %(share)s of the best total gain of %(gain)s.") % {
        "share": percent(outcome.allocation_quality),
        "gain": format_amount(outcome.first_best_cents, scenario.currency),
    }


# --- Replay -----------------------------------------------------------------------------------------


def replay_page(seat: Seat, view: SeatView, revealed: Revealed) -> presentation.ReplayPage:
    """The finished room step by step, as `seat` saw it, with the values revealed."""
    scenario = revealed.scenario
    outcome = metrics.outcome(scenario, revealed.log)
    revealing = seat.room.market.reveals_values
    shown = []
    for event in view.events:
        item = room_page.event_item(view, event, thread=room_page.thread_number(view, event.thread))
        if item is not None:
            shown.append((event, item))
    steps = []
    state, position = initial(scenario), 0
    for number, (event, item) in enumerate(shown, start=1):
        while position < event.n:
            state = evolve(state, revealed.log[position].event)
            position += 1
        seen = observation.observe(state, seat.party)
        product = getattr(event.event, "product", 0)
        steps.append(
            presentation.ReplayStep(
                number=number,
                item=item,
                line=_step_line(scenario, seen, seat.party, product, revealing=revealing),
                heading=_("Step %(number)d of %(total)d") % {"number": number, "total": len(shown)},
                comment=_comment(seen),
            )
        )
    return presentation.ReplayPage(
        public_id=view.public_id,
        title=room_page.title(view.observation),
        market_name=view.market_name,
        headline=headline(scenario, outcome, seat.party)
        if revealing
        else closed_headline(scenario, outcome, seat.party),
        role_text=room_page.role_text(view.role),
        steps=tuple(steps),
        room_url=reverse("room", args=[view.public_id]),
        record_url=reverse("room-record", args=[view.public_id]) if revealing else "",
        several_threads=len(view.observation.threads) > 1,
    )


def _step_line(
    scenario: Scenario, seen: observation.Observation, party: Party, product: int, *, revealing: bool
) -> presentation.PriceLine:
    """The offers as they stood; with everybody's values, or the party's own alone."""
    money = _money(scenario)
    several = seen.role is Role.SELLER and scenario.buyers > 1
    marks = [mark for mark in value_marks(scenario, party, product=product) if revealing or mark.you]
    for thread in seen.threads:
        offers = [offer for offer in thread.standing if offer.product == product]
        if thread.deal is not None and thread.deal.product == product:
            offers.append(thread.deal)
        for offer in offers:
            is_deal = thread.deal is not None and thread.deal.offer_id == offer.offer_id
            role = seen.role if offer.mine else seen.role.other
            name = _("you") if offer.mine else _("they")
            if several:
                letter = room_page.letter(thread.buyer)
                name = _("you to %(letter)s") % {"letter": letter} if offer.mine else letter
            marks.append(
                Mark(
                    kind=MarkKind.DEAL if is_deal else (MarkKind.YOUR_OFFER if offer.mine else MarkKind.THEIR_OFFER),
                    cents=offer.price_cents,
                    label=_("deal") if is_deal else name,
                    money=money(offer.price_cents),
                    role="" if is_deal else role.value,
                    you=offer.mine,
                    key=f"{thread.buyer}-{offer.offer_id}",
                )
            )
    values = [own[product] for own in _visible_values(scenario, party)]
    listed = scenario.products[product].list_price_cents
    cost = scenario.seller_values_cents[product]
    if not revealing:
        own_cents = seen.products[product].reservation_value_cents
        return presentation.price_line(
            title=scenario.products[product].title,
            marks=marks,
            money=lambda cents: money(cents).removesuffix(".00"),
            core=(min(own_cents, listed) * 3 // 10, max(own_cents, listed) * 115 // 100 + 1),
        )
    return presentation.price_line(
        title=_revealed_title(scenario, party) if product == 0 else scenario.products[product].title,
        marks=marks,
        money=lambda cents: money(cents).removesuffix(".00"),
        core=(min(cost, listed, *values) * 3 // 10, max(cost, listed, *values) * 115 // 100 + 1),
        agreement=(cost, max(values)) if cost <= max(values) else None,
    )


def _comment(seen: observation.Observation) -> str:
    """What the best offer then on the table would have been worth."""
    open_offers = [
        (seen.surplus_cents(product=offer.product, price_cents=offer.price_cents), offer)
        for thread in seen.threads
        for offer in thread.standing
        if not offer.mine
    ]
    if not open_offers:
        return ""
    surplus, offer = max(open_offers, key=lambda pair: pair[0])
    text = (
        _("Accepting %(price)s here would have been worth %(gain)s to you.")
        if surplus >= 0
        else _("Accepting %(price)s here would have cost you %(gain)s.")
    )
    price = format_amount(offer.price_cents, seen.currency)
    if len(seen.products) > 1:
        price = _("%(price)s for %(product)s") % {"price": price, "product": seen.products[offer.product].title}
    return text % {
        "price": price,
        "gain": format_amount(abs(surplus), seen.currency),
    }


def played_text(count: int, with_deal: int) -> str:
    """How often a market was played, for a list."""
    if not count:
        return ""
    return ngettext(
        "played %(count)s time, deal in %(share)s",
        "played %(count)s times, deal in %(share)s",
        count,
    ) % {"count": f"{count:,}", "share": percent(with_deal / count)}
