"""A running flow becomes exactly once while drivers change, and each rule of that is needed."""

import pytest

from tests.model.migration import VARIANTS, explore


@pytest.mark.parametrize("name", VARIANTS)
def test_a_migration_ends_as_expected(name: str) -> None:
    """A safe one has no bad schedule within its bounds; a mutant has one, and it is found."""
    finding = explore(VARIANTS[name])
    assert finding.result == VARIANTS[name].expect, "\n".join(finding.trace)


def test_a_safe_migration_can_end() -> None:
    """Drivers that never take over would be safe, too."""
    safe = [variant for variant in VARIANTS.values() if variant.expect == "safe"]
    assert safe
    assert all(explore(variant).completed for variant in safe)
