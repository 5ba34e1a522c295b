#!/usr/bin/python3
"""Half-open probes on the wire (tests/lib/half_open.py), sent by the IP layer."""
# shows: S3 S4 S6 S40 S42
# seconds: 12
# twin: packet-any-ack WRONG .*ack-of-another.*CONNECT_TIMEOUT
# twin: packet-acks WRONG .*open.*near S
# twin: stale-source WRONG .*the route's new source
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from half_open import Way, wire_main  # noqa: E402

wire_main(Way("ip"))
