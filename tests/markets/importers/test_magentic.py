"""Profiles of another market give the optimum that was published for them, by its rule and by our own matching."""

from pathlib import Path

import pytest

from markets.engine import metrics
from markets.engine.priors import UniformSpec
from markets.engine.scenarios import Family, Prior, Product, Scenario, SellerTurns
from markets.importers import magentic

CUSTOMER = "id: {key}\nname: Ann\nrequest: food\nmenu_features:\n  Soup: 5\n  Cake: 3.5\namenity_features:\n- Parking\n"
BUSINESS = (
    "id: {key}\nname: Casa {key}\ndescription: Good.\nmin_price_factor: 0.8\nmenu_features:\n  Soup: {soup}\n"
    "  Cake: 4\namenity_features:\n  Parking: {parking}\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, texts in (
        ("customers", {"c1": CUSTOMER.format(key="c1")}),
        (
            "businesses",
            {
                "b1": BUSINESS.format(key="b1", soup=6, parking="true"),
                "b2": BUSINESS.format(key="b2", soup=5.25, parking="true"),
                "b3": BUSINESS.format(key="b3", soup=1, parking="false"),
                "b4": BUSINESS.format(key="b4", soup=1, parking="true").replace("Cake", "Pie"),
            },
        ),
    ):
        (tmp_path / name).mkdir()
        for key, text in texts.items():
            (tmp_path / name / f"{key}.yaml").write_text(text)
    return tmp_path


def test_the_best_has_everything_for_the_least(folder):
    profiles = magentic.read(folder)
    assert magentic.best(profiles) == (magentic.Choice("c1", "b2", 925, 775),)
    assert {(choice.business, choice.utility_cents) for choice in magentic.purchases(profiles)} == {
        ("b1", 700), ("b2", 775), ("b3", -500),
    }  # fmt: skip
    packages = {row.sku: row for row in magentic.packages(profiles, source="here")}
    assert set(packages) == {"b1-c1", "b2-c1"}
    cheap = packages["b2-c1"]
    assert (cheap.list_price_cents, cheap.lowest_price_cents, cheap.highest_price_cents) == (925, 740, 1_700)


def test_the_published_optimum_comes_out_by_both_ways(parley_data):
    profiles = magentic.read(parley_data / "magentic_marketplace" / "data" / "mexican_3_9")
    optimum = sum(choice.utility_cents for choice in magentic.best(profiles))
    assert optimum == 6_378
    pairs = [choice for choice in magentic.purchases(profiles) if choice.utility_cents > 0]
    buyers = [customer.key for customer in profiles.customers]
    anything = UniformSpec(low=0.0, high=1.0)
    scenario = Scenario(
        family=Family.CATALOGUE,
        mechanism=SellerTurns(turns=12),
        products=tuple(Product(sku=f"p{k}", title="x", list_price_cents=100) for k in range(len(pairs))),
        seller_values_cents=tuple(pair.price_cents for pair in pairs),
        buyer_values_cents=tuple(
            tuple(pair.price_cents + pair.utility_cents if pair.customer == buyer else 0 for pair in pairs)
            for buyer in buyers
        ),
        prior=Prior(value_spec=anything, cost_spec=anything, scales_cents=(100,) * len(pairs)),
        seed=0,
    )
    assert metrics.best_assignment(scenario)[0] == optimum


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("id: c1\nmenu_features: {a: [", "not valid YAML"),
        ("just words", "no named fields"),
        ("id: c1\n", "has no menu_features"),
        ("menu_features: {a: 1}\n", "has no id"),
        ("id: c1\nmenu_features: {a: much}\n", "amount of 'a'"),
        ("id: c1\nmenu_features: {a: .nan}\n", "amount of 'a'"),
        ("id: c1\nmenu_features: {a: 1}\namenity_features: yes\n", "no list of words"),
        ("!!python/object/apply:os.system ['true']\n", "not valid YAML"),
    ],
)
def test_a_profile_that_is_none_is_named_in_a_sentence(folder, text, sentence):
    (folder / "customers" / "c1.yaml").write_text(text)
    with pytest.raises(magentic.ProfileError, match=sentence) as told:
        magentic.read(folder)
    assert "c1.yaml" in str(told.value)


def test_a_folder_without_profiles_is_refused(tmp_path):
    with pytest.raises(magentic.ProfileError, match="holds no profiles"):
        magentic.read(tmp_path)
