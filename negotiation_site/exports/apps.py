"""Django's handle on exports."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "negotiation_site.exports"
    label = "exports"
    verbose_name = "Exports"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Withdraw data sets that hold somebody who is erased, under whatever name they played."""
        from markets.signals import party_erased, people_merged, person_erased
        from negotiation_site.exports import erasing

        person_erased.connect(erasing.person_goes, dispatch_uid="exports.person_goes")
        people_merged.connect(erasing.people_merge, dispatch_uid="exports.people_merge")
        party_erased.connect(erasing.party_goes, dispatch_uid="exports.party_goes")
