"""The claims log of our own lane, and records that cannot be read."""

import pytest

from eos_mirror.core.claims import Claim
from eos_mirror.core.records import TopicPartition, TopicRecord
from eos_mirror.wire.builder import record_batch
from eos_mirror.wire.claims import WireClaimsLog
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.codecs import CODECS
from eos_mirror.wire.errors import Malformed
from eos_mirror.wire.security import PLAINTEXT

CLAIM = Claim(remote=TopicPartition("copies", 0), transactional_id="mirror.0", sequence=1)


def test_a_damaged_claim_is_no_fault_of_a_source_partition() -> None:
    """The task cannot claim, and no source partition stops. The log is read when it is whole."""
    record = TopicRecord(key=CLAIM.key.encode(), value=CLAIM.value.encode())
    whole = bytes(record_batch([record], timestamp_ms=1, codec=CODECS["none"]).view)
    cluster = Cluster("127.0.0.1:1", PLAINTEXT, client_id="test")
    log = WireClaimsLog(cluster, "claims", topic_id="")
    with pytest.raises(Malformed, match="claims"):
        log._take(memoryview(whole[:-1] + b"\x7f"))  # noqa: SLF001 (what a broker would answer)
    assert not log._claims.live  # noqa: SLF001
    log._take(memoryview(whole))  # noqa: SLF001
    assert log._claims.live.keys() == {CLAIM.key}  # noqa: SLF001
