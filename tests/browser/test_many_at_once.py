"""People who arrive in the same second, over real sockets: each gets one chair, and the cells come out even.

Thirty by default; `PARLEY_MANY=90` asks for more, in multiples of six, on a machine that has the time.
"""

import json
import os

from tests.lab import RunningLab

STUDY = """
from markets.models import Market
from negotiation_site.studies import authoring, models
from negotiation_site.studies.design import *
pair = Condition(key="pair", market="pair", market_version=1, side=Side.BOTH, matching=Matching.PERSON, weight=2)
alone = Condition(key="alone", market="pair", market_version=1, side=Side.BOTH, agent="linear")
design = Design(title="Many at once", consent=Consent(text="All at once.", version="1"), conditions=(pair, alone),
    scenarios=Scenarios(seed=1), pay=Pay(show_up_cents=100))
study = authoring.create(slug="many", design=design, author=None)
models.RecruitmentLink.objects.create(study=study, kind="open", token="many")
authoring.set_status(study, models.StudyStatus.OPEN, actor=None)
"""


MANY = int(os.environ.get("PARLEY_MANY", "30"))


def test_people_who_come_in_the_same_second_are_each_seated_once_and_evenly(lab: RunningLab) -> None:
    lab.manage("shell", "-v", "0", "-c", STUDY)
    found = json.loads(
        lab.manage("study_bots", "many", "--n", str(MANY), "--leave", "--url", lab.url, "--json", seconds=MANY * 20)
    )
    assert found["errors"] == []
    assert [found[key] for key in ("entered", "consented", "seated", "finished", "paid_rows")] == [MANY] * 5
    sixth = MANY // 6
    assert found["by_condition"] == {"pair": 4 * sixth, "alone": 2 * sixth}
    cells = {"pair:buyer": 2 * sixth, "pair:seller": 2 * sixth, "alone:buyer": sixth, "alone:seller": sixth}
    assert found["by_cell"] == cells
    assert (found["seats"], found["rooms"]) == (MANY, 4 * sixth)
