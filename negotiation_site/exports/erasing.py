"""What exports do when a person is erased: those that hold the person are withdrawn, in the same transaction.

Receivers of `markets.signals`; each returns how many exports it withdrew.
"""

from typing import Any

from markets.models import Participant
from negotiation_site.exports import jobs


def person_goes(*, participant: Participant, **_more: Any) -> int:
    """Somebody who played here."""
    return jobs.withdraw_person(participant)


def party_goes(*, corpora: tuple[str, ...], **_more: Any) -> int:
    """A party of an imported dialogue."""
    return jobs.withdraw_corpora(corpora)
