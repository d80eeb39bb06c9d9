"""A version that was played stays what it was: the builder makes new ones, retires, and keeps what was typed."""

from dataclasses import replace

import msgspec
import pytest
from django.contrib.auth.models import User
from django.http import QueryDict

from markets import builder, builder_form, recipe_text, selectors, services, setup
from markets.builder import BuilderError
from markets.builder_form import FormError, Typed
from markets.engine import priors
from markets.engine.protocol import SELLER, Role
from markets.engine.scenarios import RecipeError, decode_recipe
from markets.models import Market, Room, RoomStatus
from markets.setup import MarketSpec, SetupError
from tests.markets import rooms
from tests.markets.engine.factories import B1, LEAVE
from tests.markets.rooms import together
from tests.markets.test_setup import row

pytestmark = pytest.mark.django_db

SPEC = MarketSpec(
    slug="fair",
    name="Fair",
    summary="A fair.",
    family="bilateral",
    unit="money",
    values="uniform:20:120",
    cost="constant:10",
)


@pytest.fixture
def author() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def shop() -> str:
    """Eleven desks and a lamp."""
    rows = [row(f"s{n}", lowest=4_000 + 200 * n) for n in range(11)]
    setup.import_catalogue(name="shop", rows=[*rows, row("lamp", category="lamps")], source="test")
    return "shop"


def stored() -> list[dict]:
    return list(Market.objects.order_by("pk").values())


# --- Versions ---------------------------------------------------------------------------------------


def test_a_change_is_a_new_version_and_the_old_one_stays_as_it_was(author):
    first = builder.save_market(SPEC, author=author)
    before = stored()
    second = builder.save_version(replace(SPEC, turns=3), based_on=1, note="Shorter.", author=author)
    assert stored()[:1] == before
    assert (second.slug, second.version, second.note, second.created_by) == ("fair", 2, "Shorter.", author)
    assert selectors.market("fair") == second
    assert recipe_text.changes(first, second) == ("Length: 6 rounds → 3 rounds",)


def test_rooms_and_episodes_keep_the_version_they_were_played_under(author):
    first = builder.save_market(SPEC, author=author)
    host = rooms.person()
    room = services.open_room(market=first, host=host, role=Role.BUYER, agents={SELLER: rooms.agent("linear")}, seed=5)
    drawn = services.draw_scenario(first, 5)
    builder.save_version(replace(SPEC, values="constant:50"), based_on=1, note="", author=author)
    builder.retire_all("fair")
    seat = room.seats.get(party=B1)
    services.submit_action(room=room, seat=seat, action=LEAVE, client_move_id="bye")
    room.refresh_from_db()
    assert room.status == RoomStatus.ENDED
    assert room.episode.market == first
    assert services.draw_scenario(Market.objects.get(pk=first.pk), 5) == drawn


def test_a_slug_that_is_taken_is_not_taken_again(author):
    builder.save_market(SPEC, author=author)
    builder.retire_all("fair")
    before = stored()
    with pytest.raises(BuilderError, match="already: choose another"):
        builder.save_market(SPEC, author=author)
    assert stored() == before


def test_two_people_who_change_the_same_version_do_not_overwrite_one_another(author):
    builder.save_market(SPEC, author=author)
    builder.save_version(replace(SPEC, turns=3), based_on=1, note="", author=author)
    before = stored()
    with pytest.raises(BuilderError, match="Version 2 was saved in the meantime"):
        builder.save_version(replace(SPEC, turns=4), based_on=1, note="", author=author)
    assert stored() == before


@pytest.mark.django_db(transaction=True)
def test_two_people_who_save_in_the_same_moment_make_one_version(author):
    builder.save_market(SPEC, author=author)
    results = together(
        *(
            lambda turns=turns: builder.save_version(replace(SPEC, turns=turns), based_on=1, note="", author=author)
            for turns in (3, 4, 5)
        )
    )
    assert sorted(type(result).__name__ for result in results) == ["BuilderError", "BuilderError", "Market"], results
    assert Market.objects.count() == 2


def test_a_version_without_a_difference_is_none(author):
    builder.save_market(SPEC, author=author)
    with pytest.raises(BuilderError, match="Nothing is different from version 1"):
        builder.save_version(SPEC, based_on=1, note="Better.", author=author)
    assert Market.objects.count() == 1


def test_a_summary_that_follows_from_the_rules_is_no_difference_of_its_own():
    first, second = (setup.new_market(replace(SPEC, summary="", turns=turns)) for turns in (6, 3))
    assert first.summary != second.summary
    assert recipe_text.changes(first, second) == ("Length: 6 rounds → 3 rounds",)


def test_an_agent_or_a_word_is_a_difference_too(author):
    builder.save_market(SPEC, author=author)
    builder.save_version(replace(SPEC, seller_agent="boulware"), based_on=1, note="", author=author)
    builder.save_version(
        replace(SPEC, seller_agent="boulware", summary="In other words."), based_on=2, note="", author=author
    )
    assert Market.objects.count() == 3


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (replace(SPEC, buyers=3), RecipeError),
        (replace(SPEC, values="nonsense"), priors.SpecError),
        (replace(SPEC, family="auction"), SetupError),
        (replace(SPEC, name="x" * 300), SetupError),
    ],
    ids=["buyers", "values", "family", "name"],
)
def test_what_cannot_be_drawn_is_no_version(author, spec, error):
    builder.save_market(SPEC, author=author)
    before = stored()
    with pytest.raises(error):
        builder.save_version(spec, based_on=1, note="", author=author)
    assert stored() == before


# --- Retiring ---------------------------------------------------------------------------------------


def test_a_retired_version_gives_way_to_the_one_before(author):
    first = builder.save_market(SPEC, author=author)
    second = builder.save_version(replace(SPEC, turns=3), based_on=1, note="", author=author)
    assert builder.retire(second)
    assert not builder.retire(second)
    assert selectors.market("fair") == first
    assert list(selectors.current_markets()) == [first]
    assert builder.restore(second)
    assert not builder.restore(second)
    assert selectors.market("fair") == second


def test_a_retired_market_is_found_by_nobody_who_wants_to_play(author):
    market = builder.save_market(SPEC, author=author)
    builder.save_version(replace(SPEC, turns=3), based_on=1, note="", author=author)
    assert builder.retire_all("fair") == 2
    assert selectors.market("fair") is None
    assert selectors.market_on_record("fair").version == 2
    assert not selectors.current_markets().exists()
    with pytest.raises(services.RoomError, match="This market is retired"):
        services.open_room(
            market=Market.objects.get(pk=market.pk),
            host=rooms.person(),
            role=Role.BUYER,
            agents={SELLER: rooms.agent("linear")},
        )
    assert not Room.objects.exists()


def test_a_new_version_of_a_retired_market_is_played(author):
    builder.save_market(SPEC, author=author)
    builder.retire_all("fair")
    second = builder.save_version(replace(SPEC, turns=3), based_on=1, note="", author=author)
    assert selectors.market("fair") == second


def test_each_market_is_current_on_its_own(author):
    one = builder.save_market(SPEC, author=author)
    builder.save_market(replace(SPEC, slug="other", name="Other"), author=author)
    two = builder.save_version(replace(SPEC, slug="other", name="Other", turns=2), based_on=1, note="", author=author)
    assert set(selectors.current_markets()) == {one, two}


# --- The form ---------------------------------------------------------------------------------------


def typed(**changes: str) -> Typed:
    words = {**builder_form.blank(catalogue="").words, "name": "Fair"} | changes
    return Typed(words=words, buyers=("linear",))


def test_a_blank_form_makes_a_market_with_and_without_a_catalogue(shop):
    for catalogue in ("", shop):
        form = builder_form.blank(catalogue=catalogue)
        spec = builder_form.spec_of(Typed(words={**form.words, "name": f"Of {catalogue}"}, buyers=form.buyers))
        assert setup.new_market(spec).name == spec.name


def test_a_summary_that_was_composed_is_composed_again_for_the_next_version():
    market = setup.new_market(replace(SPEC, summary=""))
    form = builder_form.typed_of(market)
    later = builder_form.spec_of(Typed(words={**form.words, "turns": "3"}, buyers=form.buyers))
    assert setup.new_market(later).summary.endswith("3 rounds.")
    assert builder_form.typed_of(setup.new_market(SPEC))["summary"] == "A fair."


def test_the_address_is_made_from_the_name_where_it_is_left_out():
    assert builder_form.spec_of(typed(name="A Fair, 2026!")).slug == "a-fair-2026"
    assert builder_form.spec_of(typed(slug="mine")).slug == "mine"
    assert builder_form.spec_of(typed(), slug="fixed").slug == "fixed"


def test_every_kind_of_values_and_costs_the_engine_reads_can_be_filled_in(shop):
    for side, forms in builder_form.FORMS.items():
        for form in forms:
            words = {
                f"{side}_kind": form,
                **{builder_form.number_name(side, form, place): ("0.5", "0.75")[place] for place in range(2)},
            }
            usual = {"catalogue": shop, "unit": "list", "values_kind": "bands", "costs_kind": "lowest"}
            spec = builder_form.spec_of(typed(**(usual | words)))
            text = spec.values if side == "values" else spec.cost
            assert not any(letters in text for letters in ("LO", "HI", "SHARE", "MEDIAN", "SIGMA", "X"))
            setup.new_market(spec)


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"name": ""}, "name", "Give the market a name"),
        ({"turns": "many"}, "turns", "whole number, such as 8"),
        ({"turns": "-1"}, "turns", "whole number"),
        ({"turns": "9" * 40}, "turns", "whole number"),
        ({"buyers": "1.5"}, "buyers", "whole number"),
        ({"rho": "nan"}, "rho", "Give a number"),
        ({"rho": "1e3"}, "rho", "Give a number"),
        ({"unit": "list"}, "unit", "Without a catalogue"),
        ({"costs_kind": "lowest"}, "costs", "no prices to look up"),
        ({"values_kind": "highest:SHARE", "values:highest:SHARE:0": "0.8"}, "values", "no prices to look up"),
        ({"values:uniform:LO:HI:0": ""}, "values", "where a number such as 0.8 belongs"),
        ({"values:uniform:LO:HI:0": "200"}, "values", "must be below"),
        ({"values_kind": "text", "values_text": "drop table"}, "values", "is not a value spec"),
        ({"values_kind": "gaussian:MU", "values_text": ""}, "values", "is not a value spec"),
        ({"told_values": "lowest"}, "told_values", "is not a value spec"),
        ({"told_costs": "lowest"}, "told_costs", "is not a value spec"),
        ({"currency": "BTC"}, "currency", "USD"),
        ({"opening_low": "a quarter"}, "opening_low", "Give a number"),
        ({"catalogue": "c", "prices": "range", "price_from": "1.234,5"}, "price_from", "Write thousands with commas"),
        ({"fill_wait_s": ""}, "fill_wait_s", "whole number, such as 120"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_field_that_cannot_be_read_is_told_by_its_name(changes, field, sentence):
    with pytest.raises(FormError) as refused:
        builder_form.spec_of(typed(**changes))
    assert set(refused.value.errors) == {field}
    assert sentence in refused.value.errors[field]


def test_every_field_that_is_wrong_is_told_at_once():
    with pytest.raises(FormError) as refused:
        builder_form.spec_of(typed(turns="x", buyers="y", rho="z"))
    assert set(refused.value.errors) == {"turns", "buyers", "rho"}


MARKETS = {
    "money": SPEC,
    "shop": MarketSpec(slug="m", family="bilateral", catalogue="shop", turns=6, opener=Role.BUYER),
    "everything": MarketSpec(
        slug="m",
        name="Everything",
        summary="All of it.",
        family="catalogue",
        catalogue="shop",
        category="desks",
        price_from_cents=9_000,
        price_to_cents=11_050,
        buyers=4,
        products=2,
        stock=2,
        turns=10,
        values="lognormal:0.95:0.2",
        cost="uniform:0.1:0.3",
        values_told="lognormal:1:0.5",
        cost_told="uniform:0:1",
        rho=0.123456789,
        currency="EUR",
        regulated=(Role.BUYER,),
        opening_bids=(0.1, 0.125),
        malformed_ends=False,
        seller_agent="greedy",
        buyer_agents="linear,conceder",
        move_deadline_s=77,
        fill_wait_s=33,
        listed=False,
        reveals_values=False,
    ),
    "no-openings": replace(SPEC, opening_bids=None),
    "bands": replace(SPEC, family="multi_buyer", buyers=3, values="bands:10:20:30:40"),
    "factor": replace(SPEC, family="multi_buyer", buyers=3, values="bands*uniform:50:60"),
    "event-driven": replace(SPEC, mechanism="event_driven", events=30, turns=9),
    "part": MarketSpec(
        slug="m", family="bilateral", catalogue="shop", split="training", gains="forced", values="range:0.4:0.1"
    ),
}


@pytest.mark.parametrize("spec", MARKETS.values(), ids=MARKETS)
def test_a_market_as_it_would_be_typed_is_the_same_market(shop, spec):
    market = setup.new_market(spec)
    again = setup.new_market(builder_form.spec_of(builder_form.typed_of(market), slug=market.slug))
    assert setup.rules_of(again) == setup.rules_of(market)
    assert recipe_text.facts(again) == recipe_text.facts(market)


@pytest.mark.parametrize("spec", MARKETS.values(), ids=MARKETS)
def test_a_version_says_everything_it_fixes(shop, spec):
    market = setup.new_market(spec)
    said = {fact.label: fact for fact in recipe_text.facts(market)}
    recipe = decode_recipe(market.recipe)
    assert said["Buyers"].value == str(recipe.buyers)
    law = said["Buyers' values"]
    assert law.written == priors.format_spec(recipe.value_spec)
    assert " " in law.value
    assert law.written not in law.value
    assert recipe_text.changes(market, market) == ()


def test_a_change_of_a_law_is_told_in_words_and_as_it_is_written_where_words_are_too_coarse(shop):
    def market(values):
        return setup.new_market(MarketSpec(slug="m", family="bilateral", catalogue="shop", values=values))

    wide = recipe_text.changes(market("uniform:0.6:1.2"), market("uniform:0.5:1.2"))[0].replace("\u00a0", " ")
    assert wide == (
        "Buyers' values: anything from 60 % to 120 % of the list price, all equally likely → "
        "anything from 50 % to 120 % of the list price, all equally likely"
    )
    near = recipe_text.changes(market("uniform:0.6:1.2"), market("uniform:0.600001:1.2"))
    assert near == ("Buyers' values: uniform:0.6:1.2 → uniform:0.600001:1.2",)


def test_a_price_tier_is_the_range_it_stands_for(shop):
    rows = [replace_price(n) for n in range(1, 11)]
    setup.import_catalogue(name="prices", rows=rows, source="test")
    words = {**builder_form.blank(catalogue="prices").words, "name": "Dear", "prices": "5"}
    market = setup.new_market(builder_form.spec_of(Typed(words=words, buyers=("linear",))))
    assert (market.price_from_cents, market.price_to_cents) == (9_000, 10_000)
    assert builder_form.typed_of(market)["prices"] == builder_form.OWN_RANGE
    assert builder_form.typed_of(market)["price_from"] == "90.00"


def replace_price(n: int):
    return msgspec.structs.replace(row(f"p{n}"), list_price_cents=1_000 * n, lowest_price_cents=500)


def test_buyers_agents_are_kept_without_repetition():
    assert builder_form.spec_of(Typed(words=typed().words, buyers=("linear",) * 5)).buyer_agents == "linear"
    spec = builder_form.spec_of(Typed(words=typed().words, buyers=("linear", "conceder") * 2))
    assert spec.buyer_agents == "linear,conceder"
    spec = builder_form.spec_of(Typed(words=typed().words, buyers=("linear", "linear", "conceder")))
    assert spec.buyer_agents == "linear,linear,conceder"


def test_strange_input_is_kept_short_and_read_as_text():
    data = QueryDict(mutable=True)
    data.setlist("buyer_agent", ["x" * 500] * 3)
    data["name"] = "y" * 5_000
    data["turns"] = "\x00"
    form = builder_form.posted(data)
    assert len(form["name"]) == 2_000
    assert form.buyers == ("x" * 100,) * 3
    with pytest.raises(FormError):
        builder_form.spec_of(form)
