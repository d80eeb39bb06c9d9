"""SQL that every move asks for, written by Django once and kept by the process.

For a query of this size Django spends many times longer on writing the SQL than the database on answering it. Here:
`Reading`, a queryset whose SQL is kept and into which only values are put, and `Changing`, its update; `insert` and `update` for rows whose columns
are known. Not here: which rows are read or written, and when (`event_log`, `selectors`, `services`).

Contract: what comes back is what the queryset itself would give, read from the database at that moment; only the words of
the SQL are kept. Values go in as parameters, by name. Writes know no signals and no defaults, and raise Django's errors.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Field, Model, QuerySet, Value
from django.db.models.sql import UpdateQuery

_T = TypeVar("_T")


class Slot(Value):
    """A place in a queryset's conditions that gets its value when it is asked."""

    def __init__(self, name: str, field: "Field[Any, Any]") -> None:
        super().__init__(None, output_field=field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        """A parameter that stands for itself."""
        return "%s", (self,)


class _Written(NamedTuple):
    """One queryset in SQL."""

    sql: str
    parameters: tuple[Any, ...]
    converters: tuple[tuple[int, Sequence[Callable[..., Any]], Any], ...]


class Reading(Generic[_T]):
    """A queryset of tuples (`values_list`) that is asked again and again with other values."""

    def __init__(self, queryset: Callable[[], "QuerySet[Any, _T]"]) -> None:
        self._queryset = queryset
        self._written: dict[str, _Written] = {}

    def all(self, **values: object) -> list[_T]:
        """Every row, as the queryset gives it."""
        written = self._written.get(connection.vendor)
        if written is None:
            written = self._written[connection.vendor] = _write(self._queryset())
        parameters = [_bound(each, values) if type(each) is Slot else each for each in written.parameters]
        with connection.cursor() as cursor:
            cursor.execute(written.sql, parameters)
            rows: list[Any] = cursor.fetchall()
        if written.converters:
            rows = [list(row) for row in rows]
            for row in rows:
                for place, converters, expression in written.converters:
                    for convert in converters:
                        row[place] = convert(row[place], expression, connection)
        return rows

    def first(self, **values: object) -> _T | None:
        """The first row, of a queryset that gives one at most or is ordered; None where there is none."""
        found = self.all(**values)
        return found[0] if found else None


class Changing:
    """An update of the rows of a queryset that is carried out again and again with other values."""

    def __init__(self, queryset: "Callable[[], QuerySet[Any, Any]]", **changes: object) -> None:
        self._queryset, self._changes = queryset, changes
        self._written: dict[str, tuple[str, tuple[Any, ...]]] = {}

    def run(self, **values: object) -> int:
        """Carry it out; how many rows there were."""
        written = self._written.get(connection.vendor)
        if written is None:
            query: Any = self._queryset().query.chain(UpdateQuery)
            query.clear_ordering(force=True)
            query.add_update_values(self._changes)
            written = self._written[connection.vendor] = query.get_compiler(DEFAULT_DB_ALIAS).as_sql()
        sql, parameters = written
        with connection.cursor() as cursor:
            cursor.execute(sql, [_bound(each, values) if type(each) is Slot else each for each in parameters])
            return cursor.rowcount


def _bound(slot: Slot, values: dict[str, object]) -> Any:
    """The value of a slot as the database takes it."""
    return slot.output_field.get_db_prep_value(values[slot.name], connection)


def _write(queryset: "QuerySet[Any, Any]") -> _Written:
    compiler = queryset.query.get_compiler(DEFAULT_DB_ALIAS)
    sql, parameters = compiler.as_sql()
    converters = compiler.get_converters([expression for expression, *_ in compiler.select or ()])
    return _Written(
        sql,
        tuple(parameters),
        tuple((place, convert, expression) for place, (convert, expression) in converters.items()),
    )


class Command(NamedTuple):
    """One statement that writes."""

    sql: str
    parameters: Sequence[Any]


@lru_cache(maxsize=256)
def _insert_sql(model: type[Model], names: tuple[str, ...], rows: int) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(_column(model, name).column)) for name in names)
    values = ", ".join(["(" + ", ".join(["%s"] * len(names)) + ")"] * rows)
    return f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES {values}"  # noqa: S608


def insert(model: type[Model], names: tuple[str, ...], rows: Iterable[Sequence[Any]]) -> Command:
    """New rows. `names` are those of columns and name every one that has no default in the database."""
    rows = list(rows)
    fields = [_column(model, name) for name in names]
    parameters = [
        field.get_db_prep_save(value, connection) for row in rows for field, value in zip(fields, row, strict=True)
    ]
    return Command(_insert_sql(model, names, len(rows)), parameters)


@lru_cache(maxsize=256)
def _update_sql(model: type[Model], names: tuple[str, ...]) -> str:
    quote = connection.ops.quote_name
    changes = ", ".join(f"{quote(str(_column(model, name).column))} = %s" for name in names)
    key = quote(str(model._meta.pk.column))
    return f"UPDATE {quote(model._meta.db_table)} SET {changes} WHERE {key} = %s"  # noqa: S608


def update(row: Model, *names: str) -> Command:
    """Write these columns of a row as it is in memory."""
    model = type(row)
    parameters = [_column(model, name).get_db_prep_save(getattr(row, name), connection) for name in names]
    return Command(_update_sql(model, names), [*parameters, row.pk])


@lru_cache(maxsize=1024)
def _column(model: type[Model], name: str) -> "Field[Any, Any]":
    """The field behind a column, by the name under which an instance holds its value."""
    return next(field for field in model._meta.concrete_fields if field.attname == name)


@lru_cache(maxsize=256)
def _once_sql(model: type[Model], names: tuple[str, ...]) -> str:
    key = connection.ops.quote_name(str(model._meta.pk.column))
    return f"{_insert_sql(model, names, 1)} ON CONFLICT DO NOTHING RETURNING {key}"


def insert_once(model: type[Model], names: tuple[str, ...], row: Sequence[Any]) -> int | None:
    """Write a new row and give its key; None where a row that may be there once only is there already."""
    parameters = insert(model, names, [row]).parameters
    with connection.cursor() as cursor:
        cursor.execute(_once_sql(model, names), parameters)
        found = cursor.fetchone()
    return None if found is None else int(found[0])


def run(*commands: Command) -> None:
    """Carry writes out, in order. PostgreSQL gets them in one message: all of them, or an error."""
    if not commands:
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            together = "; ".join(command.sql for command in commands)
            cursor.execute(together, [value for command in commands for value in command.parameters])
            return
        for command in commands:
            cursor.execute(command.sql, command.parameters)
