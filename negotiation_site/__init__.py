"""The site: settings, addresses, pages that look across packages, and the commands.

Importing the package makes the Celery application the current one, so that a task sent from any
process goes to the configured broker.
"""

from negotiation_site.celery import app as celery_app

__all__ = ["celery_app"]
