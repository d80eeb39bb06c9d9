"""Keeps how each seat negotiated with the episode, and works it out for the episodes there are."""

import hashlib

from django.db import migrations, models

from markets.engine import figures, metrics
from markets.engine.protocol import decode_log, encode
from markets.engine.scenarios import decode_scenario

BATCH = 500


def work_out(apps, schema_editor):
    """The figures follow from scenario and log, which never change."""
    Episode, EpisodeSeat = apps.get_model("markets", "Episode"), apps.get_model("markets", "EpisodeSeat")
    numbers = list(Episode.objects.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(numbers), BATCH):
        episodes = list(Episode.objects.filter(pk__in=numbers[start : start + BATCH]))
        styles = {}
        for episode in episodes:
            scenario, log = decode_scenario(episode.scenario), decode_log(episode.log)
            styles[episode.pk] = figures.of_seats(scenario, log, metrics.outcome(scenario, log))
            digest = hashlib.sha256(episode.scenario.encode()).digest()
            episode.scenario_key = int.from_bytes(digest[:8], "big") >> 1
        seats = list(EpisodeSeat.objects.filter(episode__in=episodes))
        for seat in seats:
            seat.figures = encode(styles[seat.episode_id][seat.party]).decode()
        Episode.objects.bulk_update(episodes, ["scenario_key"])
        EpisodeSeat.objects.bulk_update(seats, ["figures"], batch_size=200)


class Migration(migrations.Migration):

    dependencies = [
        ("markets", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="RecordChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("episode_number", models.BigIntegerField()),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.AddField(
            model_name="episode",
            name="scenario_key",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="episodeseat",
            name="figures",
            field=models.TextField(default=""),
        ),
        migrations.RunPython(work_out, migrations.RunPython.noop),
    ]
