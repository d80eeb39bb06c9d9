"""Erases a person."""

import sys
from dataclasses import asdict
from typing import Any

from django.core.management import CommandParser

from markets import accounts, erasure
from markets.models import ImportedParty, Participant
from negotiation_site.contract import ContractCommand


class Command(ContractCommand):
    help = (
        "Erase a person: words, pseudonym, account and traces. Moves stay without a name. There is no way back. "
        "Asks first where somebody sits at a terminal; --yes does not ask."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("pseudonym", help="as it stands on leaderboards and in the administration")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def run(self, **options: Any) -> dict[str, Any]:
        pseudonym: str = options["pseudonym"]
        participant = Participant.objects.select_related("account").filter(pseudonym=pseudonym).first()
        if participant is not None:
            accounts.refuse_staff(participant.account)
            self._ask(pseudonym, erasure.foreseen(participant), asked=not options["yes"])
            erased = erasure.erase(participant=participant)
        elif ImportedParty.objects.filter(pseudonym=pseudonym).exists():
            erased = erasure.erase_imported(pseudonym)
        else:
            raise erasure.ErasureError(
                f"There is nobody with the pseudonym {pseudonym!r}. Nothing was erased; capitals and blanks count."
            )
        return {"erased": True} | asdict(erased)

    def _ask(self, pseudonym: str, foreseen: erasure.Erased, *, asked: bool) -> None:
        """Have whoever sits at the terminal confirm. Raises `ErasureError` where they do not."""
        if not asked or not sys.stdin.isatty():
            return
        self.note(
            f"{pseudonym}: {foreseen.rooms} rooms, {foreseen.episodes} records, {foreseen.texts} texts"
            + (", and an account." if foreseen.account else ".")
        )
        if input("Type the pseudonym to erase this person for good: ") != pseudonym:
            raise erasure.ErasureError("Nothing was erased.")

    def describe(self, document: Any) -> str:
        return (
            f"Erased from {document['rooms']} rooms and {document['episodes']} records: {document['texts']} texts of "
            f"their own, {document['others_texts']} of others in which they were named, quoted or thought about, and "
            f"the words of {document['model_calls']} calls to models. {document['exports']} exports were withdrawn."
        )
