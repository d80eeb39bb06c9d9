"""Markets are only as good as the values they draw: right spread, right bands, the same every time."""

import math
import random
import re
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markets.engine import priors
from markets.engine.money import MAX_PRICE_CENTS

edges = st.integers(min_value=0, max_value=4000).map(lambda number: number / 1000)
uniforms = st.tuples(edges, edges).filter(lambda pair: pair[0] < pair[1])
value_specs = st.one_of(
    uniforms.map(lambda pair: priors.UniformSpec(low=pair[0], high=pair[1])),
    st.builds(
        priors.LogNormalSpec,
        median=st.floats(min_value=0.01, max_value=500),
        sigma=st.floats(min_value=0.01, max_value=priors.MAX_SIGMA),
    ),
    edges.map(lambda value: priors.ConstantSpec(value=value)),
    st.lists(edges, min_size=2, max_size=12).map(lambda values: priors.EmpiricalSpec(quantiles=tuple(sorted(values)))),
    st.lists(edges, min_size=2, max_size=2 * priors.MAX_BANDS)
    .filter(lambda values: len(values) % 2 == 0)
    .map(sorted)
    .map(lambda values: priors.BandsSpec(bands=tuple(zip(values[::2], values[1::2], strict=True)))),
    st.builds(
        lambda base, factor: priors.FactorSpec(
            base=priors.UniformSpec(low=base[0], high=base[1]),
            factor=priors.UniformSpec(low=factor[0] + 0.1, high=factor[1] + 0.1),
        ),
        uniforms,
        uniforms,
    ),
)
shares = st.floats(min_value=0, max_value=1)
BANDS = priors.BandsSpec()
UNIFORM = priors.UniformSpec(low=0, high=1)
FACTOR = priors.FactorSpec(base=BANDS, factor=priors.UniformSpec(low=0.6, high=1.6))


def draw(spec, *, seed, rho=0.0, buyers=3, scales=(10_000,), within="buyers"):
    return priors.sample_values(
        spec=spec, rho=rho, buyers=buyers, scales_cents=scales, within=within, rng=random.Random(seed)
    )


# Text


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("bands", BANDS),
        ("uniform:0:1", UNIFORM),
        (" uniform:.5:1.5 ", priors.UniformSpec(low=0.5, high=1.5)),
        ("lognormal:100:0.5", priors.LogNormalSpec(median=100, sigma=0.5)),
        ("constant:1", priors.ConstantSpec(value=1)),
        ("bands:0.1:0.2:0.3:0.3", priors.BandsSpec(bands=((0.1, 0.2), (0.3, 0.3)))),
        ("empirical:0.5:0.7:0.9", priors.EmpiricalSpec(quantiles=(0.5, 0.7, 0.9))),
        ("bands*uniform:0.6:1.6", FACTOR),
        (
            "uniform:0:1 * uniform:.5:2",
            priors.FactorSpec(base=UNIFORM, factor=priors.UniformSpec(low=0.5, high=2)),
        ),
    ],
)
def test_a_value_spec_is_read_from_its_text(text, spec):
    assert priors.parse_value_spec(text) == spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("lowest", priors.LowestSpec()),
        ("lowest:0.6:0.9", priors.LowestRangeSpec(low=0.6, high=0.9)),
        ("uniform:0:1", UNIFORM),
        ("constant:0", priors.ConstantSpec(value=0)),
    ],
)
def test_a_cost_spec_is_read_from_its_text(text, spec):
    assert priors.parse_cost_spec(text) == spec
    assert priors.format_spec(spec) == text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("highest:0.8", priors.HighestSpec(share=0.8)),
        ("range:0.4:0.1", priors.RangeSpec(low=0.4, high=0.1)),
        ("bands*uniform:0.6:1.6", FACTOR),
    ],
)
def test_a_rule_for_values_is_read_from_its_text(text, rule):
    assert priors.parse_value_rule(text) == rule
    assert priors.format_spec(rule) == text


@pytest.mark.parametrize(
    "text", ["highest", "highest:0", "highest:11", "highest:1:2", "range:0.4", "range:0:0.1", "range:1:0", "lowest:1"]
)
def test_a_bad_rule_for_values_is_refused_with_a_sentence_that_shows_it(text):
    with pytest.raises(priors.SpecError, match=re.escape(repr(text)[:8])) as refusal:
        priors.parse_value_rule(text)
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize("text", ["lowest:1", "lowest:0.9:0.6", "lowest:0:1", "lowest:1:20", "highest:0.8"])
def test_a_bad_cost_is_refused_with_a_sentence_that_shows_it(text):
    with pytest.raises(priors.SpecError, match=re.escape(repr(text)[:8])) as refusal:
        priors.parse_cost_spec(text)
    assert str(refusal.value).endswith(".")


@given(spec=value_specs)
def test_the_text_of_a_spec_reads_back_as_the_same_spec(spec):
    assert priors.parse_value_spec(priors.format_spec(spec)) == spec


@pytest.mark.parametrize(
    "text",
    [
        *["", "nan", "normal:1:2", "bands:1", "bands:2:1", "bands:0:1:0.5:2", "bands" + ":1:2" * 6, "x" * 5000],
        *["uniform", "uniform:1", "uniform:0:1:2", "uniform:1:0", "uniform:1:1", "uniform:-1:2", "uniform:nan:1"],
        *["uniform:0:inf", "uniform:0:1e3", "uniform:0:999999999", "uniform:0:1\n2", "constant", "constant:-1"],
        *["constant:x", "constant:1_0", "constant:٣", "lowest", "lowest:1", "empirical:1", "empirical:2:1"],
        *["lognormal:1", "lognormal:0:1", "lognormal:1:0", "lognormal:1:-1", "lognormal:1:99"],
        *["bands*", "bands*2", "bands*uniform:0:1", "bands*constant:1", "lognormal:1:1*uniform:1:2"],
        *["bands*uniform:1:2*uniform:1:2", "bands:0:0:1:2*uniform:1:2", "uniform:0:99999999*uniform:1:2"],
    ],
)
def test_a_bad_value_spec_is_refused_with_a_sentence_that_shows_it(text):
    with pytest.raises(priors.SpecError) as refusal:
        priors.parse_value_spec(text)
    assert repr(text)[1:8] in str(refusal.value)
    assert str(refusal.value).endswith(".")
    assert len(str(refusal.value)) < 300


def test_a_cost_cannot_have_bands():
    with pytest.raises(priors.SpecError, match="write lowest, lowest:LO:HI, uniform:LO:HI or constant:X"):
        priors.parse_cost_spec("bands")


# Distribution functions


@given(spec=value_specs, share=shares)
def test_the_quantile_is_the_first_value_that_reaches_a_share(spec, share):
    value = priors.quantile(spec, share)
    if not math.isinf(value):
        assert priors.cdf(spec, value) >= share - 1e-9
        assert priors.below(spec, value) <= share + 1e-9


@given(spec=value_specs, x=st.floats(min_value=-1, max_value=600), step=st.floats(min_value=0, max_value=10))
def test_distribution_functions_rise_from_0_to_1(spec, x, step):
    assert 0 <= priors.below(spec, x) <= priors.cdf(spec, x) <= priors.below(spec, x + step + 1e-9) + 1e-12
    assert priors.cdf(spec, priors.low(spec) - 1e-6) == 0
    assert priors.cdf(spec, priors.high(spec)) == 1 or math.isinf(priors.high(spec))


def test_a_constant_is_one_jump():
    spec = priors.ConstantSpec(value=0.6)
    assert (priors.below(spec, 0.6), priors.cdf(spec, 0.6)) == (0, 1)
    assert priors.low(spec) == priors.high(spec) == priors.ladder_top(spec) == 0.6


def test_ties_among_quantiles_are_a_jump():
    spec = priors.EmpiricalSpec(quantiles=(0.5, 0.5, 0.7))
    assert (priors.below(spec, 0.5), priors.cdf(spec, 0.5), priors.cdf(spec, 0.6)) == (0, 0.5, 0.75)


def test_a_ladder_starts_at_the_highest_value_or_two_sigma_up():
    assert priors.ladder_top(UNIFORM) == 1
    assert priors.ladder_top(BANDS) == 1.15
    assert priors.ladder_top(priors.LogNormalSpec(median=100, sigma=0.5)) == pytest.approx(100 * math.e)
    assert priors.high(priors.LogNormalSpec(median=100, sigma=0.5)) == math.inf


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_no_quantile_is_invented_beyond_a_probability(share):
    with pytest.raises(ValueError, match="probability"):
        priors.quantile(UNIFORM, share)


# Samples


@given(
    spec=value_specs,
    rho=shares,
    buyers=st.integers(1, 6),
    scales=st.lists(st.integers(1, 10**6), min_size=1, max_size=4).map(tuple),
    within=st.sampled_from(["buyers", "products"]),
    seed=st.integers(),
)
def test_samples_repeat_and_stay_inside_the_support(spec, rho, buyers, scales, within, seed):
    values = draw(spec, seed=seed, rho=rho, buyers=buyers, scales=scales, within=within)
    assert values == draw(spec, seed=seed, rho=rho, buyers=buyers, scales=scales, within=within)
    assert len(values) == buyers
    for row in values:
        for value, scale in zip(row, scales, strict=True):
            assert isinstance(value, int)
            assert 1 <= value <= MAX_PRICE_CENTS
            assert priors.low(spec) * scale - 0.501 <= value <= max(1, priors.high(spec) * scale + 0.501)


def test_the_same_seed_gives_the_same_values_in_another_process():
    script = (
        "import random; from markets.engine import priors; print(priors.sample_values(spec=priors.BandsSpec(), rho=.5,"
        " buyers=3, scales_cents=(10000, 25000), within='products', rng=random.Random(7)))"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    values = draw(BANDS, seed=7, rho=0.5, scales=(10_000, 25_000), within="products")
    assert printed.strip() == str(values) == "((4650, 25464), (6605, 11592), (10136, 19351))"


def bands_of(values, scale=10_000):
    return [next(band for band, (low, high) in enumerate(BANDS.bands) if low <= v / scale <= high) for v in values]


def test_three_buyers_have_one_band_each_in_every_order_equally_often():
    orders = Counter(tuple(bands_of([row[0] for row in draw(BANDS, seed=seed)])) for seed in range(6000))
    assert set(orders) == {(a, b, c) for a in range(3) for b in range(3) for c in range(3) if {a, b, c} == {0, 1, 2}}
    assert all(abs(count - 1000) < 140 for count in orders.values())


@pytest.mark.parametrize("buyers", range(2, 13))
def test_the_top_band_is_always_there_and_bands_are_shared_evenly(buyers):
    dealt = Counter(priors.bands_by_rank(bands=3, buyers=buyers))
    assert dealt[2] >= 1
    assert max(dealt.values()) - min(dealt[band] for band in range(3)) <= 1
    values = draw(BANDS, seed=buyers, buyers=buyers)
    assert sorted(bands_of([row[0] for row in values])) == list(priors.bands_by_rank(bands=3, buyers=buyers))


def test_a_single_buyer_gets_any_band():
    counts = Counter(bands_of(draw(BANDS, seed=seed, buyers=1)[0])[0] for seed in range(1500))
    assert all(abs(counts[band] - 500) < 90 for band in range(3))


def test_a_buyer_that_is_all_factor_has_one_band_on_every_product():
    for seed in range(20):
        values = draw(BANDS, seed=seed, rho=1.0, buyers=4, scales=(10_000,) * 5, within="products")
        assert all(len(set(bands_of(row))) == 1 for row in values)


def test_independent_products_shuffle_the_bands_anew():
    rows = [draw(BANDS, seed=seed, scales=(10_000, 10_000), within="products")[0] for seed in range(900)]
    same = sum(len(set(bands_of(row))) == 1 for row in rows)
    assert abs(same - 300) < 60


@pytest.mark.parametrize(("within", "pairs"), [("buyers", ((0, 0), (1, 0))), ("products", ((0, 0), (0, 1)))])
def test_rho_is_the_correlation_of_the_scores_on_the_axis_it_is_named_for(within, pairs):
    spec = priors.LogNormalSpec(median=1, sigma=0.5)
    samples = [draw(spec, seed=seed, rho=0.6, buyers=2, scales=(10**6, 10**6), within=within) for seed in range(3000)]
    logs = [[math.log(values[buyer][product]) for values in samples] for buyer, product in pairs]
    across = [math.log(values[1][1]) for values in samples]
    assert correlation(logs[0], logs[1]) == pytest.approx(0.6, abs=0.05)
    assert correlation(logs[0], across) == pytest.approx(0, abs=0.06)


@pytest.mark.parametrize("spec", [UNIFORM, BANDS, priors.EmpiricalSpec(quantiles=(0.2, 0.3, 0.9)), FACTOR])
@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_every_buyer_alone_has_the_distribution_of_the_spec(spec, rho):
    values = sorted(draw(spec, seed=seed, rho=rho)[1][0] / 10_000 for seed in range(3000))
    worst = max(abs(priors.cdf(spec, value) - (rank + 0.5) / len(values)) for rank, value in enumerate(values))
    assert worst < 0.035


def test_a_common_factor_moves_the_bands_of_all_buyers_and_products_alike():
    """Otherwise a reply of one buyer would tell nothing about the others, and a constant would win again."""
    for seed in range(30):
        values = draw(FACTOR, seed=seed, scales=(10**6, 2 * 10**6), within="products")
        plain = draw(BANDS, seed=seed, scales=(10**6, 2 * 10**6), within="products")
        tops = [max(row[product] for row in values) / scale for product, scale in ((0, 10**6), (1, 2 * 10**6))]
        assert all(0.6 * 1.0 <= top <= 1.6 * 1.15 for top in tops)
        assert tops[0] / tops[1] == pytest.approx(1, abs=0.15), "both stand in the top band times one factor"
        assert plain != values


@pytest.mark.parametrize(
    ("rule", "spec"),
    [
        (priors.HighestSpec(share=0.8), priors.ConstantSpec(value=0.8 * 1.5)),
        (priors.RangeSpec(low=0.4, high=0.1), priors.UniformSpec(low=0.4 * 0.5, high=1.5 + 0.1 * 1.0)),
        (priors.LowestSpec(), priors.ConstantSpec(value=0.5)),
        (priors.LowestRangeSpec(low=0.6, high=0.9), priors.UniformSpec(low=0.6 * 0.5, high=0.9 * 0.5)),
        (BANDS, BANDS),
    ],
    ids=lambda item: type(item).__name__,
)
def test_a_rule_reads_the_products_own_prices(rule, spec):
    assert priors.drawn_spec(rule, list_price=1.0, lowest_price=0.5, highest_price=1.5) == spec


def test_a_products_list_price_counts_where_it_is_above_its_highest():
    spec = priors.drawn_spec(priors.HighestSpec(share=0.8), list_price=2.0, lowest_price=0.5, highest_price=1.5)
    assert spec == priors.ConstantSpec(value=1.6)


def test_each_product_may_have_a_spec_of_its_own():
    specs = (priors.UniformSpec(low=0, high=1), priors.ConstantSpec(value=3))
    values = draw(specs, seed=1, scales=(100, 100), within="products")
    assert all(row[1] == 300 and row[0] <= 100 for row in values)


def test_a_value_of_nothing_is_one_cent_so_that_a_price_can_be_named():
    assert draw(priors.ConstantSpec(value=0), seed=1) == ((1,), (1,), (1,))


def test_an_endless_tail_ends_at_the_largest_price():
    spec = priors.LogNormalSpec(median=priors.MAX_MULTIPLE, sigma=2)
    assert max(row[0] for row in draw(spec, seed=1, buyers=10)) == MAX_PRICE_CENTS


@pytest.mark.parametrize("rho", [-0.1, 1.1, math.nan])
def test_a_correlation_outside_0_and_1_is_refused(rho):
    with pytest.raises(priors.SpecError, match="rho"):
        draw(UNIFORM, seed=1, rho=rho)


# Joint priors


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9, 0.99])
def test_factor_nodes_average_like_a_normal_variable(rho):
    nodes = priors.factor_nodes(rho)
    assert math.fsum(weight for _, weight in nodes) == pytest.approx(1)
    assert math.fsum(weight * node**2 for node, weight in nodes) == pytest.approx(1, abs=1e-6)
    assert math.fsum(weight * node**4 for node, weight in nodes) == pytest.approx(3, abs=1e-4)


@given(x=st.floats(min_value=0, max_value=1.3))
@pytest.mark.parametrize(
    ("spec", "rho", "buyers"), [(UNIFORM, 0.0, 2), (UNIFORM, 0.5, 3), (UNIFORM, 0.95, 2), (BANDS, 0.0, 6)]
)
def test_the_mixture_of_the_components_is_the_prior_of_each_buyer(spec, rho, buyers, x):
    parts = priors.components(spec=spec, rho=rho, buyers=buyers)
    for buyer in range(buyers):
        mixed = math.fsum(part.weight * part.marginals[buyer].cdf(x) for part in parts)
        assert mixed == pytest.approx(priors.cdf(spec, x), abs=1e-6)


def test_bands_are_dealt_in_as_many_ways_as_there_are():
    counts = {buyers: len(priors.components(spec=BANDS, rho=0.4, buyers=buyers)) for buyers in (1, 2, 3, 4, 6, 8)}
    assert counts == {1: 3, 2: 2, 3: 6, 4: 12, 6: 90, 8: 560}


def test_the_cases_of_a_common_factor_average_to_the_prior_of_each_buyer():
    parts = priors.components(spec=FACTOR, rho=0.0, buyers=3)
    assert len(parts) == 6 * priors.FACTOR_CELLS
    for x in (0.3, 0.5, 0.75, 1.0, 1.3, 1.8):
        mixed = math.fsum(part.weight * part.marginals[1].cdf(x) for part in parts)
        assert mixed == pytest.approx(priors.cdf(FACTOR, x), abs=2e-3)


def test_components_agree_with_samples_of_correlated_buyers():
    parts = priors.components(spec=UNIFORM, rho=0.7, buyers=2)
    both_low = sum(part.weight * part.marginals[0].below(0.3) * part.marginals[1].below(0.4) for part in parts)
    samples = [draw(UNIFORM, seed=seed, rho=0.7, buyers=2) for seed in range(8000)]
    counted = sum(values[0][0] < 3000 and values[1][0] < 4000 for values in samples) / len(samples)
    assert both_low == pytest.approx(counted, abs=0.015)


def correlation(left, right):
    mean_left, mean_right = math.fsum(left) / len(left), math.fsum(right) / len(right)
    pairs = [(a - mean_left, b - mean_right) for a, b in zip(left, right, strict=True)]
    spread = math.sqrt(math.fsum(a * a for a, _ in pairs) * math.fsum(b * b for _, b in pairs))
    return math.fsum(a * b for a, b in pairs) / spread


@pytest.mark.parametrize(
    ("forms", "parse"),
    [(priors.VALUE_FORMS, priors.parse_value_rule), (priors.COST_FORMS, priors.parse_cost_spec)],
    ids=["values", "costs"],
)
def test_every_form_that_is_offered_is_read_with_numbers_for_its_capitals(forms, parse):
    assert len(set(forms)) == len(forms) >= 4
    for form in forms:
        text = re.sub("[A-Z]+", "{}", form).format("0.5", "0.75")
        assert priors.format_spec(parse(text)) == text
