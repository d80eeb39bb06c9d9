"""What exports do when a person is erased (those that hold the person are withdrawn, in the same transaction) or merged.

Receivers of `markets.signals`; those of an erasure return how many exports they withdrew.
"""

from typing import Any

from markets.models import Participant
from negotiation_site.exports import jobs
from negotiation_site.exports.models import ExportedPerson


def person_goes(*, participant: Participant, **_more: Any) -> int:
    """Somebody who played here."""
    return jobs.withdraw_person(participant)


def people_merge(*, guest: Participant, own: Participant, **_more: Any) -> None:
    """Somebody's earlier games became their account's: what holds the guest holds the account."""
    known = ExportedPerson.objects.filter(participant=own).values_list("export_id", flat=True)
    ExportedPerson.objects.filter(participant=guest).exclude(export__in=list(known)).update(participant=own)


def party_goes(*, corpora: tuple[str, ...], **_more: Any) -> int:
    """A party of an imported dialogue."""
    return jobs.withdraw_corpora(corpora)
