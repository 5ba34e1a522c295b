/* Backends for measuring probes: answers each SYN that comes in by a link with a SYN-ACK, from the
 * driver's receive path (XDP), for every address and port. So a backend costs less than the
 * cheapest prober, and what it costs is the same for all. Any other TCP segment is dropped there;
 * what is no TCP over IPv4 goes to the kernel.
 *
 * usage: syn_reflector LINK, on the far end of a veth pair, whose near end sends whole checksums
 * and has a program, too, that lets everything pass: `syn_reflector --pass LINK`. (veth wakes a
 * receiver for what XDP sends back only if it has one.) Prints "ready"; for each line of its input,
 * the number of SYNs so far; ends with the input. Needs root. */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Offsets from the Ethernet header on, of IPv4 without options. */
enum {
    ETHER_TYPE = 12,
    IP = 14,
    IP_PROTOCOL = 23,
    IP_FROM = 26,
    IP_TO = 30,
    TCP = 34
};
enum {
    TCP_SEQ = TCP + 4,
    TCP_ACK = TCP + 8,
    TCP_OFFSET = TCP + 12,
    TCP_FLAGS = TCP + 13
};
enum {
    TCP_SUM = TCP + 16,
    TCP_END = TCP + 20
};

enum {
    R0,
    R1,
    R2,
    R3,
    DATA = 6
};

#define LOAD(size, to, from, at)                                                            \
    {                                                                                       \
        .code = BPF_LDX | BPF_MEM | (size), .dst_reg = (to), .src_reg = (from), .off = (at) \
    }
#define STORE(size, to, at, from)                                                           \
    {                                                                                       \
        .code = BPF_STX | BPF_MEM | (size), .dst_reg = (to), .src_reg = (from), .off = (at) \
    }
#define ALU_K(op, to, k)                                              \
    {                                                                 \
        .code = BPF_ALU64 | BPF_K | (op), .dst_reg = (to), .imm = (k) \
    }
#define ALU_X(op, to, from)                                                  \
    {                                                                        \
        .code = BPF_ALU64 | BPF_X | (op), .dst_reg = (to), .src_reg = (from) \
    }
#define JUMP_NOT(reg, k, by)                                                         \
    {                                                                                \
        .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = (reg), .off = (by), .imm = (k) \
    }
#define SWAP(size, one, other)                                                          \
    LOAD(size, R0, DATA, one), LOAD(size, R1, DATA, other), STORE(size, DATA, one, R1), \
        STORE(size, DATA, other, R0)
#define RETURN(what)               \
    ALU_K(BPF_MOV, R0, what),      \
    {                              \
        .code = BPF_JMP | BPF_EXIT \
    }
/* A sum of 16-bit words is the same in either order of bytes, but for the order of its own. */
#define FOLD(sum, spare)                                                                \
    ALU_X(BPF_MOV, spare, sum), ALU_K(BPF_RSH, spare, 16), ALU_K(BPF_AND, sum, 0xffff), \
        ALU_X(BPF_ADD, sum, spare)

static void die(const char *what)
{
    fprintf(stderr, "syn_reflector: %s: %s\n", what, strerror(errno));
    exit(2);
}

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

static int make_counter(void)
{
    union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY,
                           .key_size = sizeof(uint32_t),
                           .value_size = sizeof(uint64_t),
                           .max_entries = 1};

    return bpf(BPF_MAP_CREATE, &attr);
}

static int load(const struct bpf_insn program[], size_t n)
{
    static char log[65536];
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_XDP,
                           .insns = (uint64_t)(uintptr_t)program,
                           .insn_cnt = (uint32_t)n,
                           .license = (uint64_t)(uintptr_t) "none",
                           .log_buf = (uint64_t)(uintptr_t)log,
                           .log_size = sizeof log,
                           .log_level = 1};

    int fd = bpf(BPF_PROG_LOAD, &attr);
    if (fd < 0) {
        fprintf(stderr, "%s", log);
        die("the program is refused");
    }
    return fd;
}

static int load_pass(void)
{
    const struct bpf_insn program[] = {RETURN(XDP_PASS)};

    return load(program, sizeof program / sizeof program[0]);
}

static int load_reflector(int counter_fd)
{
    const struct bpf_insn program[] = {
        LOAD(BPF_W, DATA, R1, offsetof(struct xdp_md, data)),
        LOAD(BPF_W, R3, R1, offsetof(struct xdp_md, data_end)),
        ALU_X(BPF_MOV, R0, DATA),
        ALU_K(BPF_ADD, R0, TCP_END),
        {.code = BPF_JMP | BPF_JGT | BPF_X, .dst_reg = R0, .src_reg = R3, .off = 6},
        LOAD(BPF_H, R0, DATA, ETHER_TYPE),
        JUMP_NOT(R0, 0x0008, 4),
        LOAD(BPF_B, R0, DATA, IP),
        JUMP_NOT(R0, 0x45, 2),
        LOAD(BPF_B, R0, DATA, IP_PROTOCOL),
        {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = R0, .off = 2, .imm = 6},
        RETURN(XDP_PASS),
        LOAD(BPF_B, R0, DATA, TCP_FLAGS),
        {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = R0, .off = 2, .imm = 2},
        RETURN(XDP_DROP),
        {.code = BPF_LD | BPF_DW | BPF_IMM,
         .dst_reg = R1,
         .src_reg = BPF_PSEUDO_MAP_VALUE,
         .imm = counter_fd},
        {0},
        ALU_K(BPF_MOV, R0, 1),
        {.code = BPF_STX | BPF_ATOMIC | BPF_DW, .dst_reg = R1, .src_reg = R0, .imm = BPF_ADD},
        SWAP(BPF_W, 0, 6),
        SWAP(BPF_H, 4, 10),
        SWAP(BPF_W, IP_FROM, IP_TO),
        SWAP(BPF_H, TCP, TCP + 2),
        /* Acknowledge the sequence number, and keep it as our own. */
        LOAD(BPF_W, R2, DATA, TCP_SEQ),
        {.code = BPF_ALU | BPF_END | BPF_TO_BE, .dst_reg = R2, .imm = 32},
        {.code = BPF_ALU | BPF_ADD | BPF_K, .dst_reg = R2, .imm = 1},
        {.code = BPF_ALU | BPF_END | BPF_TO_BE, .dst_reg = R2, .imm = 32},
        STORE(BPF_W, DATA, TCP_ACK, R2),
        ALU_K(BPF_MOV, R0, 0x12),
        STORE(BPF_B, DATA, TCP_FLAGS, R0),
        /* What was added to the words: the acknowledgement, where 0 was, and the flag ACK. */
        FOLD(R2, R1),
        LOAD(BPF_H, R0, DATA, TCP_SUM),
        ALU_K(BPF_XOR, R0, 0xffff),
        ALU_X(BPF_ADD, R0, R2),
        ALU_K(BPF_ADD, R0, 0x1000),
        FOLD(R0, R1),
        FOLD(R0, R1),
        ALU_K(BPF_XOR, R0, 0xffff),
        STORE(BPF_H, DATA, TCP_SUM, R0),
        RETURN(XDP_TX),
    };

    return load(program, sizeof program / sizeof program[0]);
}

int main(int argc, char **argv)
{
    bool is_pass = argc == 3 && strcmp(argv[1], "--pass") == 0;
    unsigned link_index = argc == 2 || is_pass ? if_nametoindex(argv[argc - 1]) : 0;

    if (link_index == 0) {
        fprintf(stderr, "usage: syn_reflector [--pass] LINK\n");
        return 2;
    }
    int counter_fd = make_counter();
    if (counter_fd < 0) {
        die("no map");
    }
    int prog_fd = is_pass ? load_pass() : load_reflector(counter_fd);
    union bpf_attr link = {.link_create = {.prog_fd = (uint32_t)prog_fd,
                                           .target_ifindex = link_index,
                                           .attach_type = BPF_XDP,
                                           .flags = XDP_FLAGS_DRV_MODE}};
    if (bpf(BPF_LINK_CREATE, &link) < 0) {
        die("the link takes no program");
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    for (int c = getchar(); c != EOF; c = getchar()) {
        uint32_t key = 0;
        uint64_t n_syns = 0;
        union bpf_attr look = {.map_fd = (uint32_t)counter_fd,
                               .key = (uint64_t)(uintptr_t)&key,
                               .value = (uint64_t)(uintptr_t)&n_syns};

        if (c == '\n') {
            if (bpf(BPF_MAP_LOOKUP_ELEM, &look) != 0) {
                die("no count");
            }
            printf("%llu\n", (unsigned long long)n_syns);
        }
    }
    return 0;
}
