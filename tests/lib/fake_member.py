"""A member of a cluster without an agent: its key, a hello, and whatever votes a test wants."""
import zmq

import jury_client

HELLO, CHUNK, CHANGE = 1, 2, 3
PASS, FAIL = 1, 2  # opinions
REASON_OK, REASON_FAILED = 1, 3
SLOTS_PER_CHUNK = 4096


class Member:
    """Node 3, connected to one agent; key: a KeyPair, revision: of the agent's catalog."""

    def __init__(self, agent, key, cluster_id, revision):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.curve_serverkey = agent.key.public_z85
        self.socket.curve_publickey, self.socket.curve_secretkey = key.public_z85, key.secret_z85
        self.socket.connect("tcp://%s:%d" % (agent.address, agent.mesh_port))
        self.revision, self.sequence = revision, 0
        hello = jury_client.message("jury.internal.Hello", {
            "node_id": 3, "epoch": 1, "revision": revision, "version_min": 1, "version_max": 1,
            "feature_level": 1, "is_observer": True})
        hello.cluster_id = cluster_id
        self.socket.send(self.bytes_of(HELLO, hello))

    @staticmethod
    def bytes_of(kind, message):
        return b"JM" + bytes([1, kind]) + message.SerializeToString()

    def vote(self, opinion):
        """On slot 0, born with the group: the bytes to send."""
        self.sequence += 1
        return self.bytes_of(CHANGE, jury_client.message("jury.internal.VoteChange", {
            "epoch": 1, "sequence": self.sequence, "opinion": opinion, "streak": 1,
            "target": {"slot": 0, "birth": self.revision},
            "reason": REASON_OK if opinion == PASS else REASON_FAILED}))

    def vector(self, opinions):
        """Opinions on the first slots, as of the next revision: then no digest is asked for."""
        self.sequence += 1
        octets = bytearray(SLOTS_PER_CHUNK // 4)
        for slot, opinion in enumerate(opinions):
            octets[slot // 4] |= opinion << (2 * (slot % 4))
        chunk = jury_client.message("jury.internal.VoteChunk", {
            "epoch": 1, "sequence": self.sequence, "revision": self.revision + 1, "n_chunks": 1})
        chunk.opinions = bytes(octets)
        return self.bytes_of(CHUNK, chunk)

    def close(self):
        self.context.destroy(linger=0)
