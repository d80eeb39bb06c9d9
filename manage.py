#!/usr/bin/env python
"""The command line of Parley: `python manage.py COMMAND`. Commands live in the packages' `management/commands`."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "negotiation_site.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
