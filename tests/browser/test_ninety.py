"""Ninety people who arrive in the same second, over real sockets: each gets one chair, and the cells come out even."""

import json

from tests.lab import RunningLab

STUDY = """
from markets.models import Market
from negotiation_site.studies import authoring, models
from negotiation_site.studies.design import *
pair = Condition(key="pair", market="pair", market_version=1, side=Side.BOTH, matching=Matching.PERSON, weight=2)
alone = Condition(key="alone", market="pair", market_version=1, side=Side.BOTH, agent="linear")
design = Design(title="Ninety at once", consent=Consent(text="All at once.", version="1"), conditions=(pair, alone),
    scenarios=Scenarios(seed=1), pay=Pay(show_up_cents=100))
study = authoring.create(slug="ninety", design=design, author=None)
models.RecruitmentLink.objects.create(study=study, kind="open", token="ninety")
authoring.set_status(study, models.StudyStatus.OPEN, actor=None)
"""


def test_ninety_people_in_the_same_second_are_each_seated_once_and_evenly(lab: RunningLab) -> None:
    lab.manage("shell", "-v", "0", "-c", STUDY)
    found = json.loads(
        lab.manage("study_bots", "ninety", "--n", "90", "--leave", "--url", lab.url, "--json", seconds=300)
    )
    assert found["errors"] == []
    assert [found[key] for key in ("entered", "consented", "seated", "finished", "paid_rows")] == [90] * 5
    assert found["by_condition"] == {"pair": 60, "alone": 30}
    assert found["by_cell"] == {"pair:buyer": 30, "pair:seller": 30, "alone:buyer": 15, "alone:seller": 15}
    assert (found["seats"], found["rooms"]) == (90, 60)
