"""The site's settings for tests: a folder of their own, nothing shared with a site that may be running here.

`DATABASE_URL` is kept, so that `tests.postgres` can name a server. `REDIS_URL` is not, because a cache that a test empties
must be nobody's: one process, in memory, unless `PARLEY_TEST_REDIS` names a server of the tests' own. Then channel layer,
cache and broker are there, in a database and under a prefix of each process; the site itself still takes itself for one
of one process, as every test does that does not say otherwise.
"""

import atexit
import os
import shutil
import tempfile

for name in ("REDIS_URL", "PARLEY_ROLE", "PARLEY_HTTPS", "PARLEY_DEBUG", "SECRET_KEY", "ALLOWED_HOSTS", "PORT"):
    os.environ.pop(name, None)
for name in [name for name in os.environ if name.startswith(("PARLEY_LLM_", "PARLEY_INFERENCE"))]:
    os.environ.pop(name)
os.environ["PARLEY_VAR"] = tempfile.mkdtemp(prefix="parley-test-")
atexit.register(shutil.rmtree, os.environ["PARLEY_VAR"], ignore_errors=True)

from negotiation_site.settings import *  # noqa: E402, F403  (what a settings module is)
from negotiation_site.settings import DATABASES, STATIC_ROOT, STORAGES, VAR  # noqa: E402

STATIC_ROOT.mkdir()
STORAGES = STORAGES | {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
RATE_LIMITS = False  # Tests come from one address, and fast; those of the limits switch them on.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, as in a real start: an in-memory database has other locks.
    DATABASES["default"]["TEST"] = {"NAME": str(VAR / "test.sqlite3")}
if own_redis := os.environ.get("PARLEY_TEST_REDIS"):
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    CELERY_BROKER_URL = f"{own_redis}/{number}"
    CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": f"{own_redis}/{number}"}
    }
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [f"{own_redis}/{number}"], "prefix": f"parley-{number}"},
        }
    }
