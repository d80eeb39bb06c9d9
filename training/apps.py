"""Django's handle on the training package."""

from django.apps import AppConfig


class TrainingConfig(AppConfig):
    name = "training"
    verbose_name = "Training"
    default_auto_field = "django.db.models.BigAutoField"
