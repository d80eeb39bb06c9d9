"""Whoever trains finds every source, sees what it comes to, and gets the very data that was shown."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from markets import corpora, erasure
from markets.engine.protocol import SELLER
from markets.export_files import content_hash
from markets.models import EpisodeSeat, ImportedParty
from tests.markets import dialogues, rooms
from tests.markets.engine.factories import B1, accept, bilateral, offer
from tests.markets.rooms import staged
from tests.negotiation_site.leaderboard.records import stored
from training import datasets
from training.datasets import Chosen, DataError, Kind
from training.rows import Format, Unit

pytestmark = pytest.mark.django_db


@pytest.fixture
def lamps(tmp_path: Path) -> None:
    """Twelve sales of lamps at four targets, two endings of each state."""
    path = tmp_path / "lamps.json"
    path.write_text(
        json.dumps([dialogues.bargain(price=88 + k % 2, targets=(70 + k // 3, 100), key=f"C_{k}") for k in range(12)])
    )
    corpora.store(name="lamps", format="craigslist-bargain", path=path)


@pytest.fixture
def camps(tmp_path: Path) -> None:
    path = tmp_path / "camps.json"
    path.write_text(json.dumps([dialogues.camping(k) for k in range(3)]))
    corpora.store(name="camps", format="casino", path=path)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()
    ]


def sold(*, consent: str = "public", price: int = 6_000) -> None:
    game = staged(bilateral(value=8_000), people=(B1, SELLER), consent=consent)
    game.act(B1, offer(price, talk="Write to jo@example.org."))
    game.act(SELLER, accept(1))


def test_every_source_is_offered_with_what_is_here(lamps, camps):
    bench = rooms.market("bilateral", slug="bench")
    stored(bench, seller="linear", count=2)
    sold()
    offered = {source.kind: source for source in datasets.list_sources()}
    assert set(offered) == set(Kind)
    assert [(each.name, each.perspectives) for each in offered[Kind.CORPUS].options] == [
        ("camps", ("party-1", "party-2")),
        ("lamps", ("buyer", "seller")),
    ]
    assert offered[Kind.ROOMS].options[0].conversations == 2
    assert "bench" in {each.name for each in offered[Kind.DEMONSTRATIONS].options}
    assert offered[Kind.BEST].options[0].conversations == EpisodeSeat.objects.exclude(surplus_share=None).count()
    assert offered[Kind.TOURNAMENT].options == ()
    assert "No tournament has finished" in offered[Kind.TOURNAMENT].problem


@pytest.mark.parametrize(
    "how",
    [
        {"kind": Kind.CORPUS, "name": "lamps"},
        {"kind": Kind.CORPUS, "name": "lamps", "perspective": "buyer", "unit": Unit.EPISODE},
        {"kind": Kind.CORPUS, "name": "camps", "perspective": "party-2"},
        {"kind": Kind.ROOMS, "perspective": "buyer"},
        {"kind": Kind.BEST, "name": "bench"},
        {"kind": Kind.DEMONSTRATIONS, "name": "bench", "most": 6},
        {"kind": Kind.DEMONSTRATIONS, "name": "bench", "most": 6, "perspective": "buyer", "protocol": "tools"},
    ],
    ids=str,
)
def test_what_was_shown_is_what_is_written(lamps, camps, tmp_path, how):
    stored(rooms.market("bilateral", slug="bench"), seller="linear", count=4)
    sold()
    chosen = Chosen(**how)
    shown = datasets.preview(chosen)
    written = datasets.write(chosen, tmp_path / "out")
    assert shown == written.preview
    assert shown.sha256 == content_hash(tmp_path / "out", list(written.files))
    assert len(rows_of(tmp_path / "out")) == shown.rows > 0
    assert shown.moves == shown.moves_answered + shown.moves_left_out
    assert shown.tokens >= shown.longest > 0
    facts = json.loads((tmp_path / "out" / "export.json").read_text())
    assert (facts["rows"], facts["sha256"]) == (shown.rows, shown.sha256)
    assert set(rows_of(tmp_path / "out")[0]) == set(json.loads((tmp_path / "out" / "fields.json").read_text()))


def test_a_tokenizer_counts_where_there_is_one(lamps):
    chosen = Chosen(kind=Kind.CORPUS, name="lamps")
    assert datasets.preview(chosen, count_tokens=lambda text: 1).longest == 3


def test_people_are_counted_and_learned_from_only_under_their_consent():
    for scope in ("public", "research", "private"):
        sold(consent=scope)
    found = [
        datasets.preview(Chosen(kind=Kind.ROOMS, consent=scope, perspective="buyer"))
        for scope in ("public", "research")
    ]
    assert [(each.conversations, each.participants) for each in found] == [(1, 1), (2, 2)]
    assert "jo@example.org" not in json.dumps(found[1].sample)
    assert "[email]" in json.dumps(found[1].sample)


def test_the_best_are_the_best_of_each_scenario():
    bench = rooms.market("bilateral", slug="bench")
    for seller in ("linear", "boulware", "conceder"):
        stored(bench, seller=seller, count=8)
    one = datasets.preview(Chosen(kind=Kind.BEST, name="bench"))
    two = datasets.preview(Chosen(kind=Kind.BEST, name="bench", best_of=2))
    assert two.conversations == 2 * one.conversations
    shares: dict[tuple[int, float], float] = {}
    seats = datasets._seats(Chosen(kind=Kind.BEST, name="bench"))
    best = {}
    for key, share in seats.values_list("episode__scenario_key", "surplus_share"):
        best[key] = max(best.get(key, -9.0), share)
    plan = datasets._plan(Chosen(kind=Kind.BEST, name="bench"), Format.SFT)
    for conversation in plan.conversations(plan):
        assert conversation.source is not None
        (chair,) = conversation.source.chairs.values()
        assert chair.surplus_share == best[conversation.key]
        shares[conversation.key, chair.surplus_share] = 1.0
    assert len(shares) == len(best) == one.conversations


def test_a_tournaments_games_are_those_of_the_agent_named():
    from training.models import Tournament, TournamentGame, TournamentStatus

    bench = rooms.market("bilateral", slug="bench")
    cup = Tournament.objects.create(
        name="cup", market=bench, agents='[["linear","1"],["boulware","1"]]', pairs="[]", scenarios=3, seed=1,
        status=TournamentStatus.DONE,
    )  # fmt: skip
    for pair, seller in enumerate(("linear", "boulware")):
        for number, episode in enumerate(stored(bench, seller=seller, count=3)):
            TournamentGame.objects.create(tournament=cup, pair=pair, scenario=number, episode=episode)
    found = datasets.preview(Chosen(kind=Kind.TOURNAMENT, name="cup", agent="boulware"))
    assert found.conversations == 3
    assert {row["policy"] for row in found.sample} == {"boulware@1"}
    with pytest.raises(DataError, match="'conceder' did not play in 'cup'; there played: linear, boulware"):
        datasets.preview(Chosen(kind=Kind.TOURNAMENT, name="cup", agent="conceder"))


def test_demonstrations_are_the_same_again_and_of_mediocre_agents_alone():
    rooms.market("multi_buyer", slug="stall")
    chosen = Chosen(kind=Kind.DEMONSTRATIONS, name="stall", most=4)
    first = datasets.preview(chosen)
    assert first == datasets.preview(chosen)
    assert first.sha256 != datasets.preview(Chosen(kind=Kind.DEMONSTRATIONS, name="stall", most=4, seed=2)).sha256
    for slug in ("explore-then-commit", "oracle", "falling-ladder"):
        with pytest.raises(DataError, match="too good to be imitated"):
            datasets.preview(Chosen(kind=Kind.DEMONSTRATIONS, name="stall", demonstrators=(slug,)))


def test_nothing_of_an_evaluation_is_trained_on():
    bench = rooms.market("bilateral", slug="bench")
    stored(bench, seller="linear", count=3)
    stored(bench, seller="linear", buyers="impatient", count=3)
    found = datasets.preview(Chosen(kind=Kind.BEST, name="bench", best_of=9))
    assert found.held_out == found.conversations > 0
    with pytest.raises(DataError, match="Held out for evaluation"):
        datasets.preview(Chosen(kind=Kind.DEMONSTRATIONS, name="bench", opponents=("impatient",)))


def test_whoever_was_erased_from_a_corpus_is_not_learned_from(lamps):
    chosen = Chosen(kind=Kind.CORPUS, name="lamps", perspective="buyer")
    assert datasets.preview(chosen).conversations == 12
    gone = ImportedParty.objects.filter(party="buyer-1").first()
    assert gone is not None
    erasure.erase_imported(gone.pseudonym)
    assert datasets.preview(chosen).conversations == 11


def test_two_endings_of_one_state_of_a_corpus_are_a_pair(lamps, tmp_path):
    datasets.write(Chosen(kind=Kind.CORPUS, name="lamps"), tmp_path / "out", form=Format.PREFERENCE)
    pairs = rows_of(tmp_path / "out")
    assert pairs
    for pair in pairs:
        assert pair["chosen_surplus_cents"] > pair["rejected_surplus_cents"]


def test_an_answer_learned_from_people_is_one_that_the_table_reads(lamps, tmp_path):
    datasets.write(Chosen(kind=Kind.CORPUS, name="lamps"), tmp_path / "out", form=Format.PROMPT_COMPLETION)
    found = [row["completion"][0]["content"] for row in rows_of(tmp_path / "out")]
    assert found
    for text in found:
        talk, action = text.split("\n")
        assert talk.startswith("Talk:")
        assert re.fullmatch(r"Action: \[(SELL|DEAL)\] \$[0-9]+\.[0-9]{2}", action)


@pytest.mark.parametrize(
    ("how", "form", "sentence"),
    [
        ({"kind": Kind.CORPUS, "name": "nope"}, Format.SFT, "There is no corpus 'nope'; there is: camps, lamps"),
        ({"kind": Kind.CORPUS, "name": "camps"}, Format.SFT, "The sides of 'camps' are party-1 and party-2"),
        ({"kind": Kind.CORPUS, "name": "camps", "perspective": "party-1"}, Format.PREFERENCE, "is about no price"),
        ({"kind": Kind.CORPUS, "name": "lamps", "protocol": "tools"}, Format.SFT, "four_part alone"),
        ({"kind": Kind.CORPUS, "name": "lamps"}, Format.RL, "no rewards of ours"),
        ({"kind": Kind.DEMONSTRATIONS}, Format.SFT, "There is no market ''"),
        ({"kind": Kind.ROOMS, "name": "no\0pe"}, Format.SFT, "There is no market"),
        ({"kind": Kind.ROOMS, "perspective": "party-1"}, Format.SFT, "must be seller or buyer"),
        ({"kind": Kind.TOURNAMENT, "name": "cup"}, Format.SFT, "Name the agent"),
        ({"kind": Kind.TOURNAMENT, "name": "cup", "agent": "linear"}, Format.SFT, "There is no tournament 'cup'"),
        ({"kind": Kind.BEST, "most": 0}, Format.SFT, "must be 1 to 100,000, not 0"),
        ({"kind": Kind.BEST, "min_share": float("nan")}, Format.SFT, "must be a number"),
    ],
    ids=str,
)
def test_what_cannot_be_chosen_is_said_in_a_sentence_and_leaves_nothing(lamps, camps, tmp_path, how, form, sentence):
    with pytest.raises(DataError, match=sentence):
        datasets.write(Chosen(**how), tmp_path / "out", form=form)
    assert not (tmp_path / "out").exists()


def test_a_data_set_of_nothing_is_valid_and_says_so(tmp_path):
    written = datasets.write(Chosen(kind=Kind.ROOMS), tmp_path / "out")
    assert (written.preview.rows, written.preview.conversations) == (0, 0)
    assert all(path.read_bytes() == b"" for path in written.files)
