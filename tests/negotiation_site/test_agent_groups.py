"""Lists of agents: nobody is left out or told twice, and who knows the values stands apart."""

from agents import registry
from agents.base import Kind
from negotiation_site import agent_groups


def test_every_agent_is_found_in_exactly_one_group() -> None:
    listed = [spec.slug for group in agent_groups.grouped(registry.all_specs()) for spec in group.specs]
    assert sorted(listed) == sorted(spec.slug for spec in registry.all_specs())


def test_policies_that_know_the_values_stand_apart_and_last() -> None:
    groups = agent_groups.grouped(registry.all_specs())
    assert {spec.kind for spec in groups[-1].specs} == {Kind.REFERENCE}
    assert all(spec.kind is not Kind.REFERENCE for group in groups[:-1] for spec in group.specs)


def test_a_heading_without_agents_is_not_shown() -> None:
    assert [group.key for group in agent_groups.grouped([registry.get("linear")])] == ["either"]
