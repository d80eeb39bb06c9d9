"""Tests mirror the packages' paths; what they need of the outside is in `conftest.py`, `services.py` and `postgres.py`."""
