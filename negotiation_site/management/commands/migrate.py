"""Django's `migrate`, which answers with JSON like every other command when asked to."""

import json
from typing import Any

from django.core.management import CommandParser
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder


class Command(migrate.Command):
    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options.pop("json"):
            super().handle(*args, **options)
            return
        recorder = MigrationRecorder(connections[options["database"]])
        before = set(recorder.applied_migrations())
        super().handle(*args, **{**options, "verbosity": 0})
        applied = sorted(f"{app}.{name}" for app, name in set(recorder.applied_migrations()) - before)
        self.stdout.write(json.dumps({"applied": applied}))
