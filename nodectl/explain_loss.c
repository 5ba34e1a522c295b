/* `nodectl explain loss`. */
#include <stdio.h>

#include "nodectl/explain.h"

int explain_loss(struct ctl *ctl)
{
    fputs(
        "What the asked node's own probes saw of the way to a backend: RTT and LOST of `backend\n"
        "list`, `path` of `why`, and two series of `node metrics`. No verdict depends on it.\n"
        "\n"
        "  round trip   the time of probes that pass by an answer, smoothed: a new one counts\n"
        "               for an eighth. Of tcp until the SYN-ACK (or the line that it expects),\n"
        "               of a udp exchange until the datagram, of http until the end of the\n"
        "               header, of tls and grpc until what decides. `-`: none passed so yet, or\n"
        "               none can: udp port passes by silence, and port+echo waits for the\n"
        "               timeout.\n"
        "  how exact    half-open ones are timed by the kernel. The others over TCP may take\n"
        "               half a millisecond too long, since their answers are looked at together,\n"
        "               and longer on a node that is short of processor time.\n"
        "  lost         of the last 30 probes that wanted a reply those whose target sent none\n"
        "               at all within the timeout: 2/30. No SYN-ACK and no RST to a SYN, no\n"
        "               datagram and no \"port unreachable\" to an exchange, no echo reply to\n"
        "               port+echo.\n"
        "  not lost     what was refused, answered wrongly, or connected and then silent. So an\n"
        "               unhealthy backend with 0/30 lives, and one with 30/30 is cut off or gone.\n"
        "  counts as    lost: an ICMP error to a SYN, since any router may send one.\n"
        "  not counted  faults of this node (LOCAL_*), rationed ICMP errors (ICMP_LIMITED), and\n"
        "               passes by silence, where no reply is wanted.\n"
        "  repeats      a SYN is sent again after 1 s and 3 s, so with a timeout above 1 s a\n"
        "               single lost packet is no lost probe, but a round trip of more than 1 s.\n"
        "               A datagram is sent once: an exchange shows each.\n"
        "  old          a node that rests (probers), or whose probes stand still for longer than\n"
        "               3 x (T + I), shows none in lists and metrics; `why` has it, with its age.\n"
        "\n"
        "  jury_probe_response_time_seconds{group,backend[,check]}   gauge: the round trip\n"
        "  jury_probe_loss_ratio{group,backend[,check]}              gauge: 0..1, of the last 30\n"
        "  jury_engine_probes_replied_total                          of all targets of the node\n"
        "  jury_engine_probes_without_reply_total                    likewise: the lost ones\n",
        ctl->out);
    return 0;
}
