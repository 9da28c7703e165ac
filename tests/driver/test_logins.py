"""Which flows wait for a login."""

from eos_mirror.core.flow import Flow
from eos_mirror.driver.logins import RefusedLogins


def test_only_the_flows_of_a_cluster_that_refuses_the_login_wait() -> None:
    """Until the cluster accepts it, or does not answer at all."""
    logins = RefusedLogins()
    flows = {name: Flow(*name.split("->")) for name in ("A->B", "B->C", "A->C")}

    logins.note("B", is_refused=True)
    assert [name for name, flow in flows.items() if logins.may_log_in(flow)] == ["A->C"]

    logins.note("B", is_refused=False)
    assert all(logins.may_log_in(flow) for flow in flows.values())
