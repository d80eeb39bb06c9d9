"""Laws of values and costs in words: `describe` for what people are told who sit down, `describe_rule` also for the rules
that read a product's own prices, as a version says what it draws by."""

from django.utils.translation import gettext as _

from markets.engine import priors
from markets.engine.money import format_amount
from markets.engine.scenarios import Recipe


def describe(spec: priors.ValueSpec, recipe: Recipe) -> str:
    """A distribution of values or costs in a phrase, in money or as shares of the list price."""

    def amount(number: float) -> str:
        if recipe.unit_is_money:
            return format_amount(round(number * 100), recipe.currency)
        return _percent(round(number, 2))

    unit = "" if recipe.unit_is_money else _(" of the list price")
    match spec:
        case priors.BandsSpec():
            bands = ", ".join(f"{amount(low)} – {amount(high)}" for low, high in spec.bands)
            return _("in one of these bands: %(bands)s") % {"bands": bands} + unit
        case priors.UniformSpec():
            return _("anything from %(low)s to %(high)s%(unit)s, all equally likely") % {
                "low": amount(spec.low),
                "high": amount(spec.high),
                "unit": unit,
            }
        case priors.LogNormalSpec():
            low, high = priors.quantile(spec, 0.1), priors.quantile(spec, 0.9)
            return (
                _("around %(middle)s, in eight cases out of ten from %(low)s to %(high)s")
                % {"middle": amount(spec.median), "low": amount(low), "high": amount(high)}
                + unit
            )
        case priors.ConstantSpec():
            return _("always %(value)s") % {"value": amount(spec.value)} + unit
        case priors.FactorSpec():
            return _(
                "%(base)s; all of them times one hidden number from %(low)s to %(high)s, the same for everybody"
            ) % {
                "base": describe(spec.base, recipe),
                "low": f"{spec.factor.low:g}",
                "high": f"{spec.factor.high:g}",
            }
        case priors.EmpiricalSpec():
            low, middle, high = (priors.quantile(spec, share) for share in (0.1, 0.5, 0.9))
            return (
                _("around %(middle)s, in eight cases out of ten from %(low)s to %(high)s")
                % {"middle": amount(middle), "low": amount(low), "high": amount(high)}
                + unit
            )


def describe_rule(spec: priors.ValueRule | priors.CostSpec, recipe: Recipe) -> str:
    """What a market draws values or costs by, in a phrase."""
    match spec:
        case priors.HighestSpec():
            return _("%(share)s of the product's highest price or of its list price, whichever is higher") % {
                "share": _percent(spec.share)
            }
        case priors.RangeSpec():
            return _(
                "anything from %(low)s of the product's lowest price to its highest price and %(high)s of the distance "
                "between the two on top, all equally likely"
            ) % {"low": _percent(spec.low), "high": _percent(spec.high)}
        case priors.LowestSpec():
            return _("the product's own lowest price")
        case priors.LowestRangeSpec():
            return _("anything from %(low)s to %(high)s of the product's own lowest price, all equally likely") % {
                "low": _percent(spec.low),
                "high": _percent(spec.high),
            }
        case _:
            return describe(spec, recipe)


def _percent(number: float) -> str:
    return _("%(number)s\u00a0%%") % {"number": f"{100 * number:.4g}"}
