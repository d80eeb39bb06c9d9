"""Conditions fill evenly, whoever comes when, and all of them meet the same draws."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from negotiation_site.studies import assignment, conduct
from negotiation_site.studies.design import Matching, Scenarios, Side
from negotiation_site.studies.models import LinkKind, Participation, State, StudyRound, StudyStatus
from tests.negotiation_site.studies.people import condition, design, enter, link, study, to


def together(*calls):
    """What each call returns or is refused with, all begun at the same moment."""
    gate = threading.Barrier(len(calls))

    def run(call):
        gate.wait()
        try:
            return call()
        except conduct.StudyError as refused:
            return refused
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def cells_of(**filters):
    rows = Participation.objects.filter(slot__isnull=False, **filters)
    return Counter(rows.values_list("condition", "role"))


@pytest.mark.django_db
def test_cells_fill_by_their_weights():
    value = design(condition("one"), condition("two", weight=2), condition("buyers", side=Side.BUYER))
    way = link(study(value))
    for _person in range(16):
        to(State.CONSENTED, enter(way))
    assert cells_of() == {
        ("one", "buyer"): 2,
        ("one", "seller"): 2,
        ("two", "buyer"): 4,
        ("two", "seller"): 4,
        ("buyers", "buyer"): 4,
    }


@pytest.mark.django_db
def test_a_place_that_is_given_up_is_filled_again_with_the_same_draws():
    way = link(study(design(condition(side=Side.BUYER), rounds=2)))
    people = [to(State.CONSENTED, enter(way)) for _person in range(3)]
    conduct.withdraw(people[1])
    late = to(State.CONSENTED, enter(way))
    assert (late.slot, people[1].assigned_slot) == (1, 1)


@pytest.mark.django_db
def test_every_condition_meets_the_same_draws_in_rotated_orders():
    value = design(condition("one"), condition("two"), rounds=3, scenarios=Scenarios(seed=3, sets=2))
    for slot in range(12):
        draws = [assignment.draw(value, slot=slot, number=number, mode="live") for number in (1, 2, 3)]
        assert {each.scenario_set for each in draws} == {slot % 2}
        assert sorted(each.scenario_number for each in draws) == [0, 1, 2]
        assert draws[0].scenario_number == slot // 2 % 3
    way = link(study(value))
    for _person in range(8):
        to(State.FINISHED, enter(way))
    met = {}
    for played in StudyRound.objects.select_related("participation", "room"):
        key = (played.participation.condition, played.participation.role)
        met.setdefault(key, Counter())[played.room.scenario] += 1
    assert len(met) == 4
    assert len({frozenset(scenarios.items()) for scenarios in met.values()}) == 1


@pytest.mark.django_db
def test_a_pilot_and_the_study_do_not_share_places_or_draws():
    value = design()
    assert assignment.seed_of(value, 0, 0, mode="pilot") != assignment.seed_of(value, 0, 0, mode="live")
    made = study(value, status=StudyStatus.PILOT)
    to(State.CONSENTED, enter(link(made)))
    assert assignment.taken_slots(conduct.newest_version(made), mode="live") == {}


# --- At the same moment -----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_people_who_arrive_at_the_same_moment_are_balanced_and_each_has_one_place():
    value = design(condition("one"), condition("two"), condition("three"))
    way = link(study(value))

    def arrive() -> Participation:
        somebody = enter(way)
        conduct.agree(somebody)
        return somebody

    results = together(*[arrive] * 12)
    assert all(isinstance(result, Participation) for result in results), results
    assert set(cells_of().values()) == {2}
    assert len(cells_of()) == 6
    for slots in assignment.taken_slots(results[0].version, mode="live").values():
        assert slots == {0, 1}


@pytest.mark.django_db(transaction=True)
def test_a_one_time_link_that_is_opened_twice_at_once_lets_in_one():
    way = link(study(), LinkKind.ONE_TIME)
    results = together(*[lambda: enter(way)] * 4)
    assert sorted(type(result).__name__ for result in results) == ["Participation"] + ["StudyError"] * 3
    assert Participation.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_person_at_once_is_one_participation():
    way = link(study())
    results = together(*[lambda: enter(way, person="pid")] * 4)
    assert {result.pk for result in results} == {Participation.objects.get().pk}


@pytest.mark.django_db(transaction=True)
def test_the_last_places_are_not_given_twice():
    way = link(study(design(participants=2)))
    results = together(*[lambda: enter(way)] * 5)
    assert sorted(type(result).__name__ for result in results) == ["Participation"] * 2 + ["StudyError"] * 3


@pytest.mark.django_db(transaction=True)
def test_people_who_wait_at_the_same_moment_are_each_seated_once():
    way = link(study(design(condition("pair", matching=Matching.PERSON))))
    waiting = [to(State.PLAYING, enter(way)) for _person in range(8)]
    together(*[lambda somebody=somebody: conduct.go_on(somebody) for somebody in waiting])
    for somebody in waiting:
        conduct.look_for_partner(somebody)
    rounds = list(StudyRound.objects.filter(number=1).values_list("participation", "room"))
    assert len(rounds) == 8
    assert len({person for person, _room in rounds}) == 8
    assert set(Counter(room for _person, room in rounds).values()) == {2}
    assert set(Participation.objects.values_list("state", flat=True)) == {State.PLAYING}


@pytest.mark.django_db(transaction=True)
def test_a_double_click_begins_one_round():
    somebody = to(State.PLAYING, enter(link(study())))
    together(*[lambda: conduct.go_on(somebody)] * 3)
    assert StudyRound.objects.count() == 1
