"""Public priors in words, for people who sit down at a market."""

from django.utils.translation import gettext as _

from markets.engine import priors
from markets.engine.money import format_amount
from markets.engine.scenarios import Recipe


def describe(spec: priors.ValueSpec, recipe: Recipe) -> str:
    """A distribution of values or costs in a phrase, in money or as shares of the list price."""

    def amount(number: float) -> str:
        if recipe.unit_is_money:
            return format_amount(round(number * 100), recipe.currency)
        return _("%(number)d\u00a0%%") % {"number": round(number * 100)}

    unit = "" if recipe.unit_is_money else _(" of the list price")
    match spec:
        case priors.BandsSpec():
            bands = ", ".join(f"{amount(low)} – {amount(high)}" for low, high in spec.bands)
            return _("in one of these bands: %(bands)s") % {"bands": bands} + unit
        case priors.UniformSpec():
            return (
                _("anything from %(low)s to %(high)s, all equally likely")
                % {"low": amount(spec.low), "high": amount(spec.high)}
                + unit
            )
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
