"""Every setting of the site. Read from the environment once, by typed readers that refuse what they cannot read.

The variables, with defaults that run on one machine with nothing set:

    PARLEY_VAR            folder of all state: database, key, collected static files (var/)
    PARLEY_DATA           folder of public negotiation data, for importers and tests (../shared/data)
    DATABASE_URL          sqlite:///… or postgres://… (SQLite in PARLEY_VAR)
    REDIS_URL             Redis or Valkey: channel layer and broker (`manage.py lab` starts its own)
    PORT                  where `manage.py lab` listens (8000)
    SECRET_KEY            (made once and kept in PARLEY_VAR/secret_key)
    ALLOWED_HOSTS         host names, with commas (127.0.0.1,localhost,[::1])
    CSRF_TRUSTED_ORIGINS  origins with scheme, with commas, for a proxy that ends TLS
    PARLEY_HTTPS          true behind TLS: secure cookies, redirect, HSTS (false)
    PARLEY_RATE_LIMITS    off: nobody is slowed down, for load tests (on)
    PARLEY_DEBUG          true for Django's error pages (false)
    LOG_LEVEL             (INFO)
    LOG_FORMAT            line, or json: one object a line, for a log collector (line)
    METRICS_TOKEN         bearer token that may read /metrics, beside the staff (nobody)
    PARLEY_ROLE           set by whoever starts several processes: web, worker or clock
    PARLEY_INFERENCE      off: `manage.py lab` serves no language model (on where one is installed)
    PARLEY_INFERENCE_CHECKPOINTS
                          folders of checkpoints that `manage.py lab` serves too, separated as in PATH
    PARLEY_VLLM           servers that runs of training may ask for answers, with spaces: see `training.presets`
    PARLEY_LLM_<NAME>_…   language models on any OpenAI-compatible server: see `agents.backends.config`

No other module reads the environment for configuration. The engine and the agents' strategies take values, never this.
"""

import json
import logging
import os
import secrets
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured
from pythonjsonlogger.core import RESERVED_ATTRS

from agents.backends.config import BackendConfig, BackendConfigError
from agents.backends.config import read as read_back_ends
from negotiation_site.request_log import traced

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()


def folder(name: str, *, default: Path) -> Path:
    """A folder named by the environment, relative to where the command was typed; empty counts as unset."""
    return Path(os.environ.get(name) or default).expanduser().resolve()


def switch(name: str, *, default: bool = False) -> bool:
    """On or off, `default` when unset; any other word is refused rather than read as off."""
    word = os.environ.get(name, "").strip().lower()
    if not word:
        return default
    if word in ("0", "false", "no", "off"):
        return False
    if word in ("1", "true", "yes", "on"):
        return True
    raise ImproperlyConfigured(f"{name} is {word!r}; it may be true or false.")


VAR = folder("PARLEY_VAR", default=BASE_DIR / "var")
VAR.mkdir(parents=True, exist_ok=True)
DATA = folder("PARLEY_DATA", default=BASE_DIR.parent / "shared" / "data")

PORT = env.str("PORT", default="") or "8000"
"""Judged by the command that listens, which says what is wrong with it."""

ROLES = ("", "web", "worker", "clock")
ROLE = env.str("PARLEY_ROLE", default="")
"""Which of several processes this is; empty for a process that serves alone (a command, a test)."""
if ROLE not in ROLES:
    raise ImproperlyConfigured(f"PARLEY_ROLE is {ROLE!r}; it may be one of {', '.join(ROLES[1:])} or unset.")


# Security


def kept_secret_key() -> str:
    """The key in PARLEY_VAR, made on first use. Written whole before it gets its name, so that processes that
    start together agree on one key."""
    path = VAR / "secret_key"
    if not path.exists():
        draft = VAR / f".secret_key.{os.getpid()}.{secrets.token_hex(4)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(50))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()


DEBUG = switch("PARLEY_DEBUG")
SECRET_KEY = env.str("SECRET_KEY", default="") or kept_secret_key()
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
CSRF_FAILURE_VIEW = "negotiation_site.errors.csrf_failure"

HTTPS = switch("PARLEY_HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "font-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# An anonymous player is a session, so it lives long. In the database: a cache would have to be shared by all processes.
SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_AGE = 400 * 24 * 3600
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 1
AXES_LOCKOUT_PARAMETERS = [["ip_address", "username"]]
AXES_LOCKOUT_TEMPLATE = "registration/locked.html"
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True  # Who signed in from where is nobody's business; failures are kept to lock out.
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "history"
LOGOUT_REDIRECT_URL = "home"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]


# Applications

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "servestatic.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "csp",
    "axes",
    "negotiation_site",
    "negotiation_site.api",
    "negotiation_site.exports",
    "negotiation_site.moderation",
    "negotiation_site.reading_room",
    "negotiation_site.sharing",
    "negotiation_site.studies",
    "training",
    "agents",
    "markets",
]

# No GZipMiddleware: pages carry private values and tokens (BREACH). Static files are compressed when collected.
RATE_LIMITS = switch("PARLEY_RATE_LIMITS", default=True)
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")

MIDDLEWARE = [
    "negotiation_site.request_log.RequestTrace",
    "negotiation_site.metrics.AnswerTimes",
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "csp.middleware.CSPMiddleware",
    "negotiation_site.throttle.Throttle",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "negotiation_site.urls"
ASGI_APPLICATION = "negotiation_site.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": [
                "negotiation_site.templatetags.explained",
                "negotiation_site.templatetags.first_game",
            ],
        },
    }
]


# Database

SQLITE_OPTIONS: dict[str, Any] = {
    # Untuned, SQLite loses half of concurrent writes to "database is locked". IMMEDIATE makes every atomic block a
    # writer, so ATOMIC_REQUESTS stays off and blocks stay short.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA mmap_size=134217728;"
        "PRAGMA journal_size_limit=27103364;PRAGMA cache_size=2000;"
    ),
}
POSTGRESQL_OPTIONS: dict[str, Any] = {"pool": {"min_size": 1, "max_size": 10, "timeout": 10}}


def database() -> dict[str, Any]:
    """The default database, tuned for several processes that write at once."""
    config: dict[str, Any] = dict(env.db_url("DATABASE_URL", default=f"sqlite:///{VAR / 'db.sqlite3'}"))
    match config.get("ENGINE"):
        case "django.db.backends.sqlite3":
            tuning, connection_age = SQLITE_OPTIONS, None
        case "django.db.backends.postgresql":
            tuning, connection_age = POSTGRESQL_OPTIONS, 0  # The pool keeps the connections.
        case engine:
            raise ImproperlyConfigured(
                f"DATABASE_URL names {engine or 'no database'}; Parley runs on sqlite:///path and postgres://…"
            )
    return config | {
        "CONN_MAX_AGE": connection_age,
        "CONN_HEALTH_CHECKS": False,
        "ATOMIC_REQUESTS": False,
        "OPTIONS": tuning | config.get("OPTIONS", {}),
    }


DATABASES = {"default": database()}


# Channel layer and broker

REDIS_URL = env.str("REDIS_URL", default="")
if ROLE and not REDIS_URL:
    # Refused here and not in a system check, because neither uvicorn nor Celery's worker stops at those.
    raise ImproperlyConfigured(
        f"This is one of several processes (PARLEY_ROLE={ROLE}) and REDIS_URL is not set: with a channel layer in "
        "memory, moves made here would not reach players connected elsewhere. Set REDIS_URL to a Redis or Valkey "
        "server, or start everything with `manage.py lab`."
    )
CACHES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    if not REDIS_URL
    else {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "parley",
        "OPTIONS": {"socket_timeout": 1, "socket_connect_timeout": 1},
    }
}
if REDIS_URL:
    CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [REDIS_URL], "prefix": "parley"},
        }
    }
else:
    CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

# The broker carries nudges; the database is the truth. So a task is acknowledged when it is taken, and the clock
# sends again what a dead worker held (a redelivery after the visibility timeout would run long tasks twice).
CELERY_BROKER_URL = REDIS_URL or "memory://"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 30 * 24 * 3600, "socket_connect_timeout": 2}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_CREATE_MISSING_QUEUES = False
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_QUEUES: dict[str, dict[str, Any]] = {"default": {}, "agents": {}, "gpu": {}}
CELERY_TASK_ROUTES = {"agents.tasks.*": {"queue": "agents"}, "training.tasks.*": {"queue": "gpu"}}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TIMEZONE = "UTC"


# Language models

INFERENCE = switch("PARLEY_INFERENCE", default=True)
"""Whether `manage.py lab` serves the embedded model, where its packages are installed."""
INFERENCE_CHECKPOINTS = [
    str(Path(folder).expanduser().resolve())
    for folder in os.environ.get("PARLEY_INFERENCE_CHECKPOINTS", "").split(os.pathsep)
    if folder
]
INFERENCE_FILE = VAR / "run" / "inference.json"
"""How a running lab's models are reached, for commands beside it: variables as in `agents.backends.config`."""


def back_ends() -> dict[str, BackendConfig]:
    """Every language model that can be asked: the environment's, and those that a running lab serves."""
    try:
        served = dict(json.loads(INFERENCE_FILE.read_text()))
    except (OSError, ValueError):
        served = {}
    try:
        return read_back_ends(served | os.environ)
    except BackendConfigError as error:
        raise ImproperlyConfigured(str(error)) from error


LLM_BACKENDS = back_ends()


# Language and time

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
FORMAT_MODULE_PATH = "negotiation_site.formats"


# Static files: named by their content, compressed when collected, served by the web process

STATIC_URL = "static/"
STATIC_ROOT = VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "negotiation_site.static_finders.PlotlyFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"},
}
MEDIA_ROOT = VAR / "media"


# Logging: one line an event, to standard error


def without_traces_of_strangers(record: logging.LogRecord) -> bool:
    """A request that Django refuses (a foreign Host, a body too large or unreadable) is no fault of ours: one line."""
    if record.name.startswith("django.security.") or (
        record.name == "django.request" and record.levelno < logging.ERROR
    ):
        record.exc_info = None
    return True


LOG_LEVEL = env.str("LOG_LEVEL", default="INFO").upper()
LOG_FORMAT = env.str("LOG_FORMAT", default="line").lower()
if LOG_FORMAT not in ("line", "json"):
    raise ImproperlyConfigured(f"LOG_FORMAT is {LOG_FORMAT!r}; it may be line or json.")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "format": f"%(asctime)s.%(msecs)03d %(levelname)s {ROLE or 'parley'} %(name)s: %(message)s%(trace)s",
            "datefmt": "%Y-%m-%dT%H:%M:%S",
        },
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "fmt": "%(levelname)s %(name)s %(message)s %(request_id)s %(room_id)s",
            "rename_fields": {"levelname": "level", "name": "logger"},
            "static_fields": {"role": ROLE or "parley"},
            "timestamp": "at",
            "json_ensure_ascii": False,
            "reserved_attrs": [*RESERVED_ATTRS, "trace"],
        },
    },
    "filters": {
        "traced": {"()": "django.utils.log.CallbackFilter", "callback": traced},
        "short": {"()": "django.utils.log.CallbackFilter", "callback": without_traces_of_strangers},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["short", "traced"]},
        "faults": {"()": "negotiation_site.recent_errors.Noting", "folder": VAR, "role": ROLE, "filters": ["traced"]},
    },
    "root": {"handlers": ["stderr", "faults"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"handlers": [], "level": LOG_LEVEL, "propagate": True},
        "celery": {"level": "WARNING" if LOG_LEVEL == "INFO" else LOG_LEVEL},
        "axes": {"level": "WARNING" if LOG_LEVEL == "INFO" else LOG_LEVEL},
        "httpx2": {"level": "WARNING" if LOG_LEVEL == "INFO" else LOG_LEVEL},
    },
}
