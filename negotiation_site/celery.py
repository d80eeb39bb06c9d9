"""The Celery application. Tasks live in each package's `tasks` module; settings are the `CELERY_` names of `settings`.

A worker is started as `celery -A negotiation_site.celery worker -Q agents,default`.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "negotiation_site.settings")

app = Celery("parley")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["training.tournaments"])
