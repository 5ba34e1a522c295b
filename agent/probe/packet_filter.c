#include "agent/probe/packet_filter.h"

#include <assert.h>
#include <linux/if_packet.h>

/* Places to jump to. An instruction names them; resolve() makes distances of them. */
enum label {
    NEXT = 0, /* the instruction that follows */
    LABEL_IPV6,
    LABEL_IPV4_ERROR,
    LABEL_IPV6_TCP,
    LABEL_IPV6_ERROR,
    LABEL_PORTS,
    LABEL_ACCEPT,
    LABEL_DROP,
    N_LABELS
};

struct assembler {
    struct sock_filter *program;
    size_t n;
    size_t at[N_LABELS];
};

static void put(struct assembler *to, unsigned code, uint32_t k)
{
    assert(to->n < PACKET_FILTER_MAX);
    to->program[to->n++] = (struct sock_filter){.code = (uint16_t)code, .k = k};
}

static void put_jump(struct assembler *to, unsigned test, uint32_t k, enum label yes, enum label no)
{
    put(to, BPF_JMP | BPF_K | test, k);
    to->program[to->n - 1].jt = (uint8_t)yes;
    to->program[to->n - 1].jf = (uint8_t)no;
}

static void put_label(struct assembler *to, enum label label)
{
    to->at[label] = to->n;
}

static uint8_t distance(const struct assembler *of, size_t from, uint8_t label)
{
    size_t to = label == NEXT ? from + 1 : of->at[label];

    assert(to > from && to - from - 1 <= UINT8_MAX);
    return (uint8_t)(to - from - 1);
}

static void resolve(struct assembler *of)
{
    for (size_t i = 0; i < of->n; i++) {
        struct sock_filter *one = &of->program[i];

        if (BPF_CLASS(one->code) == BPF_JMP && BPF_OP(one->code) != BPF_JA) {
            one->jt = distance(of, i, one->jt);
            one->jf = distance(of, i, one->jf);
        }
    }
}

#define SYN_OR_RST 0x06

/* A load beyond the end of the packet drops it: BPF's own rule. */
static void put_ipv4(struct assembler *to)
{
    put(to, BPF_LDX | BPF_B | BPF_MSH, 0); /* X = length of the header */
    put(to, BPF_LD | BPF_B | BPF_ABS, 9);
    put_jump(to, BPF_JEQ, 1, LABEL_IPV4_ERROR, NEXT);
    put_jump(to, BPF_JEQ, 6, NEXT, LABEL_DROP);
    put(to, BPF_LD | BPF_H | BPF_ABS, 6);
    put_jump(to, BPF_JSET, 0x3fff, LABEL_DROP, NEXT); /* a fragment */
    put(to, BPF_LD | BPF_B | BPF_IND, 13);
    put_jump(to, BPF_JSET, SYN_OR_RST, NEXT, LABEL_DROP);
    put(to, BPF_LD | BPF_H | BPF_IND, 2);
    put_jump(to, BPF_JEQ, 0, LABEL_DROP, LABEL_PORTS);

    put_label(to, LABEL_IPV4_ERROR);
    put(to, BPF_LD | BPF_B | BPF_IND, 8 + 9); /* protocol of the quotation */
    put_jump(to, BPF_JEQ, 6, LABEL_ACCEPT, LABEL_DROP);
}

static void put_ipv6(struct assembler *to)
{
    put_label(to, LABEL_IPV6);
    put(to, BPF_LD | BPF_B | BPF_ABS, 6);
    put_jump(to, BPF_JEQ, 6, LABEL_IPV6_TCP, NEXT);
    put_jump(to, BPF_JEQ, 58, LABEL_IPV6_ERROR, NEXT);
    put_jump(to, BPF_JEQ, 0, LABEL_ACCEPT, NEXT);
    put_jump(to, BPF_JEQ, 43, LABEL_ACCEPT, NEXT);
    put_jump(to, BPF_JEQ, 60, LABEL_ACCEPT, LABEL_DROP);

    put_label(to, LABEL_IPV6_ERROR);
    put(to, BPF_LD | BPF_B | BPF_ABS, 40 + 8 + 6);
    put_jump(to, BPF_JEQ, 6, LABEL_ACCEPT, LABEL_DROP);

    put_label(to, LABEL_IPV6_TCP);
    put(to, BPF_LD | BPF_B | BPF_ABS, 40 + 13);
    put_jump(to, BPF_JSET, SYN_OR_RST, NEXT, LABEL_DROP);
    put(to, BPF_LD | BPF_H | BPF_ABS, 40 + 2);
}

size_t packet_filter_build(const uint16_t ports[], size_t n_ports,
                           struct sock_filter program[PACKET_FILTER_MAX])
{
    struct assembler to = {.program = program};

    assert(n_ports >= 1 && n_ports <= PACKET_FILTER_PORTS_MAX);
    put(&to, BPF_LD | BPF_B | BPF_ABS, 0);
    put(&to, BPF_ALU | BPF_RSH | BPF_K, 4);
    put_jump(&to, BPF_JEQ, 6, LABEL_IPV6, NEXT);
    put_jump(&to, BPF_JEQ, 4, NEXT, LABEL_DROP);
    put_ipv4(&to);
    put_ipv6(&to);
    put_label(&to, LABEL_PORTS); /* the port is in A */
    for (size_t i = 0; i < n_ports; i++) {
        put_jump(&to, BPF_JEQ, ports[i], LABEL_ACCEPT, i + 1 < n_ports ? NEXT : LABEL_DROP);
    }
    put_label(&to, LABEL_ACCEPT);
    put(&to, BPF_RET | BPF_K, UINT16_MAX);
    put_label(&to, LABEL_DROP);
    put(&to, BPF_RET | BPF_K, 0);
    resolve(&to);
    return to.n;
}

/* FIN, SYN, RST and ACK: of the first segment of a connection it is SYN alone. */
static void put_only_syn(struct assembler *to)
{
    put(to, BPF_ALU | BPF_AND | BPF_K, 0x17);
    put_jump(to, BPF_JEQ, 0x02, LABEL_ACCEPT, LABEL_DROP);
}

size_t packet_filter_build_syns(struct sock_filter program[PACKET_FILTER_MAX])
{
    struct assembler to = {.program = program};

    put(&to, BPF_LD | BPF_B | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE));
    put_jump(&to, BPF_JEQ, PACKET_OUTGOING, NEXT, LABEL_DROP);
    put(&to, BPF_LD | BPF_B | BPF_ABS, 0);
    put(&to, BPF_ALU | BPF_RSH | BPF_K, 4);
    put_jump(&to, BPF_JEQ, 6, LABEL_IPV6, NEXT);
    put_jump(&to, BPF_JEQ, 4, NEXT, LABEL_DROP);
    put(&to, BPF_LDX | BPF_B | BPF_MSH, 0);
    put(&to, BPF_LD | BPF_B | BPF_ABS, 9);
    put_jump(&to, BPF_JEQ, 6, NEXT, LABEL_DROP);
    put(&to, BPF_LD | BPF_B | BPF_IND, 13);
    put_only_syn(&to);
    put_label(&to, LABEL_IPV6);
    put(&to, BPF_LD | BPF_B | BPF_ABS, 6);
    put_jump(&to, BPF_JEQ, 6, NEXT, LABEL_DROP);
    put(&to, BPF_LD | BPF_B | BPF_ABS, 40 + 13);
    put_only_syn(&to);
    put_label(&to, LABEL_ACCEPT);
    put(&to, BPF_RET | BPF_K, UINT16_MAX);
    put_label(&to, LABEL_DROP);
    put(&to, BPF_RET | BPF_K, 0);
    resolve(&to);
    return to.n;
}
