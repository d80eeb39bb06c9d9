"""Figures over many seats, with intervals: pure functions of `Facts` and a choice of rows.

Contract.
- A rate is a quotient of sums over seats; undefined is None, and there is never a nan.
- *Intervals* are 95 % percentile intervals of a bootstrap over scenarios: all seats of a scenario are
  drawn together, for all agents alike, with the same draws on every page. More than `MOST_CLUSTERS`
  scenarios are first pooled by their keys, which changes nothing but the cost. Under two scenarios
  there is no interval.
- *On equal terms*: only seats that several agents filled, in the same scenario against the same others
  (a table). An agent's figure is its effect in share = table + agent, least squares, on the mean level
  of all tables; where everybody sat at every table that is the plain mean. Its interval, and that of
  Bradley-Terry, is the score bootstrap (Kline and Santos 2012): the same draws, one Newton step.
- *Bradley-Terry* (1952): at each such table the larger share wins, equal ones are half a win each; one
  tie is added to each pair so that nobody is infinitely good. 400 log10 points around 1000.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from markets.engine.figures import MAX_PATH, ViolationType
from markets.engine.seeds import derive_seed
from negotiation_site.leaderboard.facts import BUYER, SELLER, VIOLATIONS, Array, Facts
from training.bootstrap import snapped

RESAMPLES = 1_000
MOST_CLUSTERS = 600
"""So many as the published tournament design has listings: a tournament's scenarios are never pooled."""
LEVEL = 0.95
PROVISIONAL = 30
"""Tables under which a place on the board is provisional."""
TIERS = 5
BASE, POINTS = 1000.0, 400.0
_EQUAL = 1e-6
_TIE = 0.5


class Estimate(NamedTuple):
    """A number with its interval, as far as they are defined."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


NONE = Estimate()


@dataclass(frozen=True)
class Breaches:
    """Offers and deals that lost money, out of how many."""

    offers: int = 0
    loss_offers: int = 0
    deals: int = 0
    loss_deals: int = 0
    induced: int = 0


@dataclass
class Line:
    """One agent."""

    agent: int
    """Code in `Facts.agents`."""
    games: int = 0
    """Seats it filled."""
    share: Estimate = NONE
    """Mean share, no deal = 0, over its seats where something could be gained."""
    equal_terms: Estimate = NONE
    behind: Estimate = NONE
    """Equal-terms share less that of the best."""
    tables: int = 0
    """Tables that somebody else filled too."""
    points: Estimate = NONE
    deal_rate: Estimate = NONE
    deal_rate_with_gains: Estimate = NONE
    walk_away: Estimate = NONE
    adherence: Estimate = NONE
    overshoot: Estimate = NONE
    quality: Estimate = NONE
    rescaled: Estimate = NONE
    extraction: Estimate = NONE
    match_accuracy: Estimate = NONE
    opening: dict[int, Estimate] = field(default_factory=dict)
    """By role."""
    role_share: dict[int, Estimate] = field(default_factory=dict)
    concession: Estimate = NONE
    patience: Estimate = NONE
    distinct: Estimate = NONE
    slope: float | None = None
    coverage: Estimate = NONE
    entropy: Estimate = NONE
    fixation: Estimate = NONE
    top_buyer: Estimate = NONE
    tier_share: tuple[Estimate, ...] = ()
    tier_deals: tuple[Estimate, ...] = ()
    path: tuple[float | None, ...] = ()
    path_games: tuple[int, ...] = ()
    violations: dict[ViolationType, float] = field(default_factory=dict)
    """Per message."""
    with_gains: Breaches = Breaches()
    without_gains: Breaches = Breaches()

    @property
    def provisional(self) -> bool:
        """Whether too few comparable games stand behind its place."""
        return self.tables < PROVISIONAL

    @property
    def has_place(self) -> bool:
        """Whether it is ranked."""
        return self.equal_terms.value is not None and not self.provisional

    @property
    def tier_spread(self) -> float | None:
        """Highest - lowest share over the price tiers."""
        known = [tier.value for tier in self.tier_share if tier.value is not None]
        return max(known) - min(known) if len(known) > 1 else None


@dataclass(frozen=True)
class Meeting:
    """One seller agent against one buyer agent (every buyer the same)."""

    seller: int
    buyer: int
    games: int
    seller_share: Estimate
    deal_rate: float


@dataclass(frozen=True)
class Board:
    """All of it, best first."""

    lines: tuple[Line, ...] = ()
    games: int = 0
    episodes: int = 0
    scenarios: int = 0
    tables: int = 0
    """Tables that at least two agents filled."""
    apart: int = 0
    """Agents that share tables with each other but not with the rest."""
    strangers: int = 0
    """Pairs of compared agents that share no table: they are compared through others."""
    meetings: tuple[Meeting, ...] = ()
    meetings_paired: int = 0
    """Scenarios that every meeting had in common, where the meetings are over these alone; else 0."""
    tier_edges: tuple[float, ...] = ()
    """Own values, in cents, between the tiers; empty where roles or currencies are mixed."""
    currencies: int = 0


@lru_cache(maxsize=64)
def weights(clusters: int) -> Array:
    """(RESAMPLES, clusters): how often each cluster is drawn; the same for equal numbers."""
    rng = np.random.default_rng(derive_seed("leaderboard", clusters))
    drawn = rng.integers(0, clusters, size=(RESAMPLES, clusters), dtype=np.int64)
    drawn += np.arange(RESAMPLES)[:, None] * clusters
    return np.bincount(drawn.ravel(), minlength=RESAMPLES * clusters).reshape(RESAMPLES, clusters).astype("f4")


class Rows:
    """The chosen rows of `Facts`, a column when it is asked for."""

    def __init__(self, facts: Facts, rows: Array) -> None:
        self._facts = facts
        self._index = np.flatnonzero(rows)
        self._columns: dict[str, Array] = {}

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            whole = getattr(self._facts, name) if name in ("scenarios", "tables", "episodes") else self._facts[name]
            self._columns[name] = whole[self._index]
        return self._columns[name]


def renumbered(numbers: Array) -> tuple[Array, int]:
    """Small whole numbers renumbered from 0 without gaps, and how many there are."""
    there = np.zeros(int(numbers.max()) + 1 if len(numbers) else 0, bool)
    there[numbers] = True
    places = np.cumsum(there) - 1
    return places[numbers], int(there.sum())


class Sample:
    """Rows with a column each (an agent, say), and the bootstrap over their scenarios.

    Questions are collected and answered together: one product of matrices for all of them.
    """

    def __init__(self, column: Array, columns: int, cluster: Array, clusters: int) -> None:
        self.column, self.columns = column, columns
        self.cluster, self.clusters = cluster, clusters
        self._place = cluster * columns + column
        self._asked: list[tuple[int, int, Callable[[list[Estimate]], None]]] = []
        self._sums: list[Array] = []
        self._known: dict[int, tuple[Array, int]] = {}

    def total(self, numbers: Array) -> Array:
        """Sums of a number a row for every column."""
        return np.bincount(self.column, weights=numbers, minlength=self.columns)

    def ask(self, parts: Array, wholes: Array, give: Callable[[list[Estimate]], None]) -> None:
        """Sum of `parts` / sum of `wholes` (numbers a row) for every column, to be given to `give`."""
        self._asked.append((self._summed(parts), self._summed(wholes), give))

    def ask_mean(self, numbers: Array, give: Callable[[list[Estimate]], None]) -> None:
        """Mean of a number a row over the rows that have it."""
        defined = ~np.isnan(numbers)
        self.ask(np.where(defined, numbers, 0.0), defined.astype("f8"), give)

    def answer(self) -> None:
        """Give every answer."""
        if not self._asked:
            return
        stacked = np.concatenate(self._sums, axis=1)
        drawn = weights(self.clusters) @ stacked.astype("f4")
        span = self.columns
        for part, whole, give in self._asked:
            parts, wholes = self._sums[part], self._sums[whole]
            with np.errstate(divide="ignore", invalid="ignore"):
                values = parts.sum(axis=0) / wholes.sum(axis=0)
                draws = drawn[:, part * span : (part + 1) * span] / drawn[:, whole * span : (whole + 1) * span]
            give(intervals(values, draws, (wholes != 0).sum(axis=0) > 1))
        self._asked, self._sums, self._known = [], [], {}

    def _summed(self, numbers: Array) -> int:
        """Place of the (clusters, columns) sums of `numbers` among those that are kept."""
        if id(numbers) not in self._known:
            flat = np.bincount(self._place, weights=numbers, minlength=self.clusters * self.columns)
            self._known[id(numbers)] = (numbers, len(self._sums))  # Held, so that its id stays its own.
            self._sums.append(flat.reshape(self.clusters, self.columns))
        return self._known[id(numbers)][1]


def clusters_of(rows: "Rows") -> tuple[Array, int, int]:
    """(cluster of each row, clusters, scenarios)."""
    codes, count = renumbered(rows["scenarios"])
    if count <= MOST_CLUSTERS:
        return codes, count, count
    return rows["scenario"] % MOST_CLUSTERS, MOST_CLUSTERS, count


def intervals(values: Array, drawn: Array, spread: Array) -> list[Estimate]:
    """Estimates from values and their (resamples, columns) draws; no interval where `spread` is false."""
    half = (1 - LEVEL) / 2
    low, high = _quantiles(drawn, half)
    found = []
    for place, value in enumerate(values.tolist()):
        if not np.isfinite(value):
            found.append(NONE)
        elif spread[place] and np.isfinite(low[place]) and np.isfinite(high[place]):
            found.append(Estimate(value, snapped(value, float(low[place])), snapped(value, float(high[place]))))
        else:
            found.append(Estimate(value))
    return found


def _quantiles(drawn: Array, half: float) -> tuple[Array, Array]:
    """Ends of percentile intervals; draws in which nothing came up are left out."""
    if not drawn.size:
        return np.full(drawn.shape[1], np.nan), np.full(drawn.shape[1], np.nan)
    ordered = np.sort(drawn, axis=0)  # nan last
    known = np.isfinite(drawn).sum(axis=0)
    columns = np.arange(drawn.shape[1])
    last = np.maximum(known - 1, 0)
    low = ordered[np.floor(last * half).astype("i8"), columns]
    high = ordered[np.ceil(last * (1 - half)).astype("i8"), columns]
    return np.where(known > 0, low, np.nan), np.where(known > 0, high, np.nan)


# --- The board --------------------------------------------------------------------------------------


def board(facts: Facts, chosen: Array) -> Board:
    """The agents of the chosen rows (a mask over `facts`), the best on equal terms first."""
    rows = Rows(facts, chosen)
    if not len(rows):
        return Board()
    codes = np.flatnonzero(np.bincount(rows["agent"], minlength=1))
    agent, agents = renumbered(rows["agent"])
    cluster, clusters, scenarios = clusters_of(rows)
    sample = Sample(agent, agents, cluster, clusters)
    games = np.bincount(agent, minlength=agents).tolist()
    lines = [Line(agent=int(code), games=count) for code, count in zip(codes, games, strict=True)]
    one = np.ones(len(rows))
    _results(lines, sample, rows, one)
    _rules(lines, sample, rows, one)
    _style(lines, sample, rows)
    sample.answer()
    edges = _tiers(lines, sample, rows, one)
    _paths(lines, sample, rows)
    tables, apart, strangers = _equal_terms(lines, sample, rows)
    meetings, paired = _meetings(rows)
    return Board(
        lines=tuple(sorted(lines, key=_height, reverse=True)),
        games=len(rows),
        episodes=renumbered(rows["episodes"])[1],
        scenarios=scenarios,
        tables=tables,
        apart=apart,
        strangers=strangers,
        meetings=meetings,
        meetings_paired=paired,
        tier_edges=edges,
        currencies=renumbered(rows["currency"])[1],
    )


def alone(facts: Facts, chosen: Array) -> Line:
    """The figures of all chosen rows (at least one) as if they were one agent's, without comparisons."""
    rows = Rows(facts, chosen)
    cluster, clusters, _scenarios = clusters_of(rows)
    sample = Sample(np.zeros(len(rows), "i8"), 1, cluster, clusters)
    lines, one = [Line(agent=-1, games=len(rows))], np.ones(len(rows))
    _results(lines, sample, rows, one)
    _rules(lines, sample, rows, one)
    _style(lines, sample, rows)
    sample.answer()
    _tiers(lines, sample, rows, one)
    _paths(lines, sample, rows)
    return lines[0]


def usual(facts: Facts, chosen: Array) -> Line:
    """How the chosen rows (at least one) give way, taken as one agent's; nothing else is filled in."""
    rows = Rows(facts, chosen)
    cluster, clusters, _scenarios = clusters_of(rows)
    sample = Sample(np.zeros(len(rows), "i8"), 1, cluster, clusters)
    lines = [Line(agent=-1, games=len(rows))]
    for name in ("concession", "patience"):
        sample.ask_mean(rows[name], _into(lines, name))
    sample.answer()
    _paths(lines, sample, rows)
    return lines[0]


def _into(lines: list[Line], name: str) -> Callable[[list[Estimate]], None]:
    """Puts one estimate into each line."""

    def give(estimates: list[Estimate]) -> None:
        for line, estimate in zip(lines, estimates, strict=True):
            setattr(line, name, estimate)

    return give


def _into_role(lines: list[Line], name: str, role: int) -> Callable[[list[Estimate]], None]:
    def give(estimates: list[Estimate]) -> None:
        for line, estimate in zip(lines, estimates, strict=True):
            if estimate.value is not None:
                getattr(line, name)[role] = estimate

    return give


def _height(line: Line) -> tuple[int, float]:
    """Those with enough comparable games, then provisional ones, then those with none."""
    if line.equal_terms.value is not None:
        return (1 if line.provisional else 2), line.equal_terms.value
    return 0, -np.inf if line.share.value is None else line.share.value


def _results(lines: list[Line], sample: Sample, rows: Rows, one: Array) -> None:
    dealt = (rows["deals"] > 0).astype("f8")
    gains = (rows["joint"] > 0).astype("f8")
    sample.ask_mean(rows["share"], _into(lines, "share"))
    sample.ask(dealt, one, _into(lines, "deal_rate"))
    sample.ask(dealt * gains, gains, _into(lines, "deal_rate_with_gains"))
    sample.ask((1 - dealt) * (1 - gains), 1 - gains, _into(lines, "walk_away"))
    selling = rows["role"] == SELLER
    if selling.any() and renumbered(rows["currency"][selling])[1] == 1:
        _allocation(lines, sample, rows, selling)


def _allocation(lines: list[Line], sample: Sample, rows: Rows, selling: Array) -> None:
    """Of sellers alone: an episode's welfare counts once."""
    first_best = rows["first_best"] * selling
    sample.ask(rows["welfare"] * selling, first_best, _into(lines, "quality"))
    sample.ask(rows["surplus"] * selling, first_best, _into(lines, "extraction"))
    several = selling & ~np.isnan(rows["random_welfare"])
    if several.any():
        lot = np.where(several, rows["random_welfare"], 0.0)
        sample.ask(rows["welfare"] * several - lot, first_best * several - lot, _into(lines, "rescaled"))
        matched, pairs = (np.where(several, rows[name], 0.0) for name in ("matched", "best_pairs"))
        sample.ask(matched, pairs, _into(lines, "match_accuracy"))
        sample.ask(rows["top_deals"] * several, rows["deals"] * several, _into(lines, "top_buyer"))
        for name in ("coverage", "entropy", "fixation"):
            sample.ask_mean(rows[name], _into(lines, name))


def _rules(lines: list[Line], sample: Sample, rows: Rows, one: Array) -> None:
    messages = rows["messages"].astype("f8")
    sample.ask(messages - rows["broken"], messages, _into(lines, "adherence"))
    sample.ask((rows["loss_offers"] > 0).astype("f8"), one, _into(lines, "overshoot"))
    sent = sample.total(messages)
    on = np.flatnonzero(rows["broken"])
    broken, by = rows["violations"][on], sample.column[on]
    by_type = [np.bincount(by, weights=broken[:, kind], minlength=sample.columns) for kind in range(broken.shape[1])]
    gains = rows["joint"] > 0
    counted = {
        has: [
            sample.total(rows[name] * (gains == has)).astype("i8").tolist()
            for name in ("offers", "loss_offers", "deals", "loss_deals", "induced")
        ]
        for has in (True, False)
    }
    for place, line in enumerate(lines):
        if sent[place]:
            line.violations = {
                kind: float(by_type[number][place] / sent[place]) for number, kind in enumerate(VIOLATIONS)
            }
        line.with_gains = Breaches(*(counts[place] for counts in counted[True]))
        line.without_gains = Breaches(*(counts[place] for counts in counted[False]))


def _style(lines: list[Line], sample: Sample, rows: Rows) -> None:
    for name in ("concession", "patience"):
        sample.ask_mean(rows[name], _into(lines, name))
    sample.ask_mean(rows["distinct"].astype("f8"), _into(lines, "distinct"))
    for place, slope in enumerate(_slopes(sample, rows)):
        lines[place].slope = slope
    for role in (SELLER, BUYER):
        own = rows["role"] == role
        if own.any():
            sample.ask_mean(np.where(own, rows["opening"], np.nan), _into_role(lines, "opening", role))
            sample.ask_mean(np.where(own, rows["share"], np.nan), _into_role(lines, "role_share", role))


def _slopes(sample: Sample, rows: Rows) -> list[float | None]:
    """Least-squares slope of deal price on the other side's value, both / list price, over deals."""
    dealt = ~np.isnan(rows["price"])
    agent, scale = sample.column[dealt], rows["list_price"][dealt]
    value, price = rows["other_value"][dealt] / scale, rows["price"][dealt] / scale

    def total(numbers: Array) -> Array:
        return np.bincount(agent, weights=numbers, minlength=sample.columns)

    count = np.bincount(agent, minlength=sample.columns)
    safe = np.maximum(count, 1)
    mean_value, mean_price = total(value) / safe, total(price) / safe
    spread = total((value - mean_value[agent]) ** 2)
    together = total((value - mean_value[agent]) * (price - mean_price[agent]))
    return [
        float(together[place] / spread[place]) if count[place] >= 3 and spread[place] > 1e-12 else None
        for place in range(sample.columns)
    ]


def _tiers(lines: list[Line], sample: Sample, rows: Rows, one: Array) -> tuple[float, ...]:
    """Share and deal rate by quintile of the own value, among seats of the same role and currency."""
    tier = np.zeros(len(one), "i8")
    edges: tuple[float, ...] = ()
    kinds, count = renumbered(rows["role"].astype("i8") * 100 + rows["currency"])
    for kind in range(count):
        own = kinds == kind
        cuts = np.quantile(rows["own_value"][own], np.linspace(0, 1, TIERS + 1)[1:-1])
        tier[own] = np.searchsorted(cuts, rows["own_value"][own], side="right")
        if count == 1:
            edges = tuple(float(cut) for cut in cuts)
    wide = Sample(sample.column * TIERS + tier, sample.columns * TIERS, sample.cluster, sample.clusters)

    def into(name: str) -> Callable[[list[Estimate]], None]:
        def give(estimates: list[Estimate]) -> None:
            for place, line in enumerate(lines):
                setattr(line, name, tuple(estimates[place * TIERS : (place + 1) * TIERS]))

        return give

    wide.ask_mean(rows["share"], into("tier_share"))
    wide.ask((rows["deals"] > 0).astype("f8"), one, into("tier_deals"))
    wide.answer()
    return edges


def _paths(lines: list[Line], sample: Sample, rows: Rows) -> None:
    """Mean part of the way given up after own offer 1, 2, …"""
    steps = rows["steps"]
    on = np.flatnonzero(steps > 1)
    counts = np.bincount(sample.column * (MAX_PATH + 1) + steps, minlength=sample.columns * (MAX_PATH + 1))
    reached = counts.reshape(sample.columns, MAX_PATH + 1)[:, ::-1].cumsum(axis=1)[:, -2::-1]
    totals = np.zeros((sample.columns, MAX_PATH))
    if len(on):
        order = on[np.argsort(sample.column[on].astype("i2"), kind="stable")]
        path = rows["path"][order]
        agent = sample.column[order]
        first = np.flatnonzero(np.concatenate([[True], agent[1:] != agent[:-1]]))
        totals[agent[first]] = np.add.reduceat(path, first, axis=0, dtype="f8")
    for place, line in enumerate(lines):
        line.path_games = tuple(reached[place].tolist())
        line.path = tuple(
            total / count if count else None
            for total, count in zip(totals[place].tolist(), line.path_games, strict=True)
        )


# --- On equal terms ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tables:
    """Seats that several agents filled: one entry an agent and table, sorted by table."""

    agent: Array
    share: Array
    cluster: Array
    table: Array
    sizes: Array
    """Agents at each table."""


def _tables(sample: Sample, rows: Rows) -> _Tables:
    on = np.flatnonzero(~np.isnan(rows["share"]))
    if not len(on):
        nothing = np.empty(0, "i8")
        return _Tables(nothing, nothing.astype("f8"), nothing, nothing, nothing)
    table, _count = renumbered(rows["tables"][on])
    key = table.astype("i8") * sample.columns + sample.column[on]
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    counts = np.diff(np.append(first, len(key)))
    share = np.add.reduceat(rows["share"][on][order].astype("f8"), first) / counts
    entry = key[first]
    table = entry // sample.columns
    sizes = np.bincount(table)
    several = sizes[table] > 1
    if not several.any():
        return _Tables(first[:0], share[:0], first[:0], first[:0], first[:0])
    numbered, _count = renumbered(table[several])
    return _Tables(
        agent=(entry % sample.columns)[several],
        share=share[several],
        cluster=sample.cluster[on][order][first][several],
        table=numbered,
        sizes=sizes[sizes > 1],
    )


def _equal_terms(lines: list[Line], sample: Sample, rows: Rows) -> tuple[int, int, int]:
    """Fill in what is compared at shared tables; (tables, agents apart from the rest, pairs without one)."""
    tables = _tables(sample, rows)
    if not len(tables.sizes):
        return 0, 0, 0
    agents = sample.columns
    duels = _duels(tables)
    wins, met = np.zeros((agents, agents)), np.zeros((agents, agents))
    for each in duels:
        wins[np.ix_(each.agents, each.agents)] += each.wins
        met[np.ix_(each.agents, each.agents)] += len(each.entry) / len(each.agents)
    count = np.bincount(tables.agent, minlength=agents)
    together = _together(met > 0, count)
    effects, drawn = _effects(tables, sample, met)
    points, drawn_points = _bradley_terry(duels, sample, wins, together)
    where = np.zeros((sample.clusters, agents), bool)
    where[tables.cluster, tables.agent] = True
    spread = where.sum(axis=0) > 1
    shares = intervals(effects, drawn, spread)
    best = max((place for place in range(agents) if together[place]), key=lambda place: effects[place])
    behind = intervals(effects - effects[best], drawn - drawn[:, [best]], spread)
    rated = intervals(points, drawn_points, spread)
    for place, line in enumerate(lines):
        if together[place]:
            line.tables = int(count[place])
            line.equal_terms, line.behind, line.points = shares[place], behind[place], rated[place]
            if place == best:
                line.behind = Estimate(0.0)
    strangers = int((met[np.ix_(together, together)] == 0).sum()) // 2
    return len(tables.sizes), int((count > 0).sum() - together.sum()), strangers


def _together(met: Array, count: Array) -> Array:
    """Which agents belong to the largest set that shared tables link."""
    left, largest = set(np.flatnonzero(count).tolist()), np.zeros(len(count), bool)
    while left:
        linked = np.zeros(len(count), bool)
        linked[min(left)] = True
        while (wider := linked | met[linked].any(axis=0)).sum() > linked.sum():
            linked = wider
        left -= set(np.flatnonzero(linked).tolist())
        if count[linked].sum() > count[largest].sum():
            largest = linked
    return largest


def _effects(tables: _Tables, sample: Sample, met: Array) -> tuple[Array, Array]:
    """Shares on equal terms and their (resamples, agents) draws.

    `met[a, b]` sums 1 / agents over the tables of both: the normal equations are diag(tables) - met.
    """
    agents, agent, table = sample.columns, tables.agent, tables.table
    inverse = _inverse(np.diag(np.bincount(agent, minlength=agents).astype("f8")) - met)
    mean = np.bincount(table, weights=tables.share) / tables.sizes
    over = tables.share - mean[table]
    effect = inverse @ np.bincount(agent, weights=over, minlength=agents)
    level = np.bincount(table, weights=effect[agent]) / tables.sizes
    rest = over - (effect[agent] - level[table])
    cluster = np.zeros(len(tables.sizes), "i8")
    cluster[table] = tables.cluster
    base = mean - level
    drawn_weights = weights(sample.clusters)
    scores = np.bincount(tables.cluster * agents + agent, weights=rest, minlength=sample.clusters * agents)
    steps = (drawn_weights - 1) @ scores.reshape(sample.clusters, agents).astype("f4")
    bases = np.bincount(cluster, weights=base, minlength=sample.clusters)
    counts = np.bincount(cluster, minlength=sample.clusters)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn_base = (drawn_weights @ bases) / (drawn_weights @ counts)
    return effect + base.mean(), effect + steps @ inverse + drawn_base[:, None]


def bradley_terry(wins: Array) -> Array:
    """Log strengths that make the wins likeliest, their mean 0; ties are half a win each.

    Newton's method on the concave log likelihood (Bradley and Terry 1952); every two agents that met
    must each have won something, which the added tie sees to.
    """
    met = wins + wins.T
    strength = np.zeros(len(wins))
    for _ in range(100):
        chance = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
        slope = (wins - met * chance).sum(axis=1)
        step = _inverse(_information(met, chance)) @ slope
        strength += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-10:
            break
    return strength - strength.mean()


def _information(met: Array, chance: Array) -> Array:
    each = met * chance * (1 - chance)
    return np.diag(each.sum(axis=1)) - each


def _bradley_terry(duels: "list[_Duels]", sample: Sample, wins: Array, together: Array) -> tuple[Array, Array]:
    """Points and their draws; those of agents apart from the rest mean nothing."""
    agents = sample.columns
    wins = wins + _TIE * ((wins + wins.T) > 0)
    strength = bradley_terry(wins)
    met = wins + wins.T
    chance = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
    scores = np.zeros((sample.clusters, agents))
    for each in duels:
        expected = chance[np.ix_(each.agents, each.agents)].sum(axis=1) - 0.5  # Nobody meets itself.
        for place, agent in enumerate(each.agents.tolist()):
            scores[:, agent] += np.bincount(
                each.cluster, weights=each.won[:, place] - expected[place], minlength=sample.clusters
            )
    steps = (weights(sample.clusters) - 1) @ scores.astype("f4")
    drawn = strength + steps @ _inverse(_information(met, chance))
    scale = POINTS / np.log(10)
    points = BASE + scale * (strength - strength[together].mean())
    return points, BASE + scale * (drawn - drawn[:, together].mean(axis=1, keepdims=True))


def _inverse(matrix: Array) -> Array:
    """Of a matrix whose rows sum to nought: what is left of it is inverted."""
    return np.linalg.pinv(matrix, rcond=1e-9, hermitian=True)


@dataclass(frozen=True)
class _Duels:
    """All tables at which the same agents sat."""

    agents: Array
    entry: Array
    """(tables, agents) places of their entries."""
    cluster: Array
    won: Array
    """(tables, agents) how many of the others each one beat there, ties half."""
    wins: Array
    """(agents, agents) tables at which the first beat the second."""


def _duels(tables: _Tables) -> list[_Duels]:
    starts = np.concatenate([[0], np.cumsum(tables.sizes)[:-1]])
    marks = np.random.default_rng(0).integers(1, 2**62, int(tables.agent.max()) + 1)
    company = np.add.reduceat(marks[tables.agent], starts)  # Equal for the same agents, and for no others.
    found = []
    order = np.argsort(company, kind="stable")
    ends = np.flatnonzero(np.diff(company[order])) + 1
    for group in np.split(order, ends):
        size = int(tables.sizes[group[0]])
        entry = starts[group][:, None] + np.arange(size)
        share = tables.share[entry].astype("f4").T.copy()
        won, wins = np.zeros(share.shape, "f4"), np.zeros((size, size))
        for one in range(size):
            for other in range(one + 1, size):
                gap = share[one] - share[other]
                better, worse = gap > _EQUAL, gap < -_EQUAL
                points = 0.5 + 0.5 * (better.astype("f4") - worse)
                won[one] += points
                won[other] += 1 - points
                wins[one, other] = points.sum(dtype="f8")
                wins[other, one] = len(gap) - wins[one, other]
        found.append(_Duels(tables.agent[entry[0]], entry, tables.cluster[entry[:, 0]], won.T, wins))
    return found


# --- Who met whom -----------------------------------------------------------------------------------


def _meetings(rows: Rows) -> tuple[tuple[Meeting, ...], int]:
    """Sellers against buyers, over the scenarios all of them had where these are many enough."""
    on = np.flatnonzero((rows["role"] == SELLER) & (rows["opponent"] >= 0))
    if not len(on):
        return (), 0
    seller, buyer = rows["agent"][on].astype("i8"), rows["opponent"][on].astype("i8")
    base = int(buyer.max()) + 1
    codes = np.flatnonzero(np.bincount(seller * base + buyer))
    pair, pairs = renumbered(seller * base + buyer)
    scenario, scenarios = renumbered(rows["scenarios"][on])
    met = np.zeros((scenarios, pairs), bool)
    met[scenario, pair] = True
    common = met.sum(axis=1) == pairs
    paired = int(common.sum())
    if paired >= PROVISIONAL:
        kept = common[scenario]
        on, pair, scenario = on[kept], pair[kept], renumbered(scenario[kept])[0]
        scenarios = paired
    if scenarios > MOST_CLUSTERS:
        scenario, scenarios = rows["scenario"][on] % MOST_CLUSTERS, MOST_CLUSTERS
    shares: list[Estimate] = []
    sample = Sample(pair, pairs, scenario, scenarios)
    sample.ask_mean(rows["share"][on], shares.extend)
    sample.answer()
    games = np.bincount(pair, minlength=pairs)
    deals = sample.total((rows["deals"][on] > 0).astype("f8"))
    return (
        tuple(
            Meeting(
                seller=int(code // base),
                buyer=int(code % base),
                games=int(games[place]),
                seller_share=shares[place],
                deal_rate=float(deals[place] / games[place]),
            )
            for place, code in enumerate(codes.tolist())
        ),
        paired if paired >= PROVISIONAL else 0,
    )


# --- One agent --------------------------------------------------------------------------------------


def histogram(numbers: Array, edges: Sequence[float]) -> list[int]:
    """Counts between edges; what lies beyond the outer ones is counted in the outer bins."""
    known = numbers[~np.isnan(numbers)]
    counted, _ = np.histogram(np.clip(known, edges[0], edges[-1]), bins=np.asarray(edges))
    return [int(count) for count in counted]
