"""A list of legal moves that is wrong teaches a learner a game that nobody plays."""

from hypothesis import given, settings

from markets.engine import rules
from markets.engine.legal import LegalMoves, legal_moves
from markets.engine.observation import observe
from markets.engine.protocol import (
    AcceptOffer,
    Action,
    IllegalAction,
    Leave,
    MakeOffer,
    Party,
    RejectOffer,
    Say,
)
from markets.engine.state import State
from tests.markets.engine.games import Play, plays


def _is_listed(moves: LegalMoves, action: Action, *, threads: int) -> bool:
    """Whether `action` is inside the description."""
    if isinstance(action, Leave):
        return moves.may_leave
    buyer = 1 if action.buyer == 0 and threads == 1 and any(t.buyer for t in moves.threads) else action.buyer
    for thread in moves.threads:
        if thread.buyer not in (0, buyer):
            continue
        match action:
            case MakeOffer():
                return any(
                    prices.product == action.product
                    and prices.lowest_cents <= action.price_cents <= prices.highest_cents
                    for prices in thread.offers
                )
            case AcceptOffer():
                return action.offer_id in thread.accept
            case RejectOffer():
                return action.offer_id in thread.reject
            case Say():
                return True
    return False


def _goes_through(state: State, party: Party, action: Action) -> bool:
    try:
        rules.step(state, party, action)
    except IllegalAction:
        return False
    return True


@settings(max_examples=150)
@given(plays())
def test_the_rules_take_what_is_listed_and_refuse_the_rest(play: Play) -> None:
    for step in play.steps:
        action = step.action
        if not isinstance(action, MakeOffer | AcceptOffer | RejectOffer | Leave):
            continue
        observation = observe(step.before, step.party)
        own_thread = getattr(action, "buyer", 0)
        if step.party != "seller" and own_thread not in (0, int(step.party.removeprefix("buyer-"))):
            continue
        listed = _is_listed(legal_moves(observation), action, threads=len(observation.threads))
        assert listed is _goes_through(step.before, step.party, action)


@settings(max_examples=100)
@given(plays())
def test_every_listed_move_can_be_made(play: Play) -> None:
    for step in play.steps:
        for party in play.parties:
            moves = legal_moves(observe(step.before, party))
            actions: list[Action] = [Leave()] if moves.may_leave else []
            for thread in moves.threads:
                for prices in thread.offers:
                    for cents in (prices.lowest_cents, prices.highest_cents):
                        actions.append(MakeOffer(buyer=thread.buyer, product=prices.product, price_cents=cents))
                actions += [AcceptOffer(buyer=thread.buyer, offer_id=number) for number in thread.accept]
                actions += [RejectOffer(buyer=thread.buyer, offer_id=number) for number in thread.reject]
                actions.append(Say(buyer=thread.buyer, talk="Let me think."))
            for action in actions:
                assert _goes_through(step.before, party, action), action


@settings(max_examples=100)
@given(plays())
def test_who_has_left_or_was_served_has_nothing_to_do(play: Play) -> None:
    for party in play.parties:
        moves = legal_moves(observe(play.final, party))
        if play.final.ended:
            assert moves == LegalMoves((), may_leave=False)
