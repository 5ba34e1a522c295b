#!/usr/bin/python3
"""Half-open probes on the wire (tests/lib/half_open.py), sent by the link as frames."""
# seconds: 12
# twin: link-unused WRONG sent by the link
# twin: packet-any-ack WRONG .*ack-of-another.*CONNECT_TIMEOUT
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from half_open import Way, wire_main  # noqa: E402

wire_main(Way("link"))
