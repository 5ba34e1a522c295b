#include "agent/probe/link_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/plant.h"

const char *link_obstacle_text(enum link_obstacle obstacle)
{
    static const char *const texts[] = {
#define LINK_OBSTACLE_TEXT(name, text) text,
        LINK_OBSTACLES(LINK_OBSTACLE_TEXT)
#undef LINK_OBSTACLE_TEXT
    };

    return texts[obstacle];
}

void link_guard_close(struct link_guard *guard)
{
    netlink_ask_close(&guard->netfilter);
    netlink_ask_close(&guard->ipsec);
}

/* Whether it is open, or why not. */
static int open_once(struct netlink_ask *ask, int protocol)
{
    return ask->socket != NULL ? 0 : netlink_ask_open(ask, protocol);
}

/* What a kernel without the part in question answers. */
static bool is_absent(int errnum)
{
    return errnum == EPROTONOSUPPORT || errnum == EINVAL || errnum == EOPNOTSUPP ||
           errnum == ENOENT || errnum == ECONNREFUSED;
}

static enum link_obstacle judge(int errnum, bool is_there, enum link_obstacle obstacle)
{
    if (errnum == 0 || is_absent(errnum)) {
        return is_there ? obstacle : LINK_CLEAR;
    }
    return LINK_UNSEEN;
}

/* --- nftables --- */

/* A chain with a hook is where packets are stopped; others are called by one. One is enough: there
 * may be as many chains as a cluster has services, and probes wait meanwhile. */
static int take_chain(const struct nlmsghdr *message, void *user)
{
    bool *is_there = user;

    *is_there = netlink_find(message, sizeof(struct nfgenmsg), NFTA_CHAIN_HOOK, 0) != NULL;
    return *is_there ? MNL_CB_STOP : MNL_CB_OK;
}

static enum link_obstacle look_at_nftables(struct link_guard *guard)
{
    _Alignas(struct nlmsghdr) uint8_t room[64];
    struct nlmsghdr *request = mnl_nlmsg_put_header(room);
    bool is_there = false;
    int errnum = open_once(&guard->netfilter, NETLINK_NETFILTER);

    if (errnum == 0) {
        request->nlmsg_type = (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETCHAIN;
        request->nlmsg_flags = NLM_F_DUMP;
        struct nfgenmsg *family = mnl_nlmsg_put_extra_header(request, sizeof *family);
        family->version = NFNETLINK_V0;
        errnum = netlink_ask(&guard->netfilter, request, take_chain, &is_there);
    }
    if (is_there) {
        netlink_ask_close(&guard->netfilter); /* and the rest of the answer with it */
    }
    return judge(errnum, is_there, LINK_NFTABLES);
}

/* --- what has a file --- */

/* ret_text: its beginning. Returns 0 or an errno; without the file it is empty. */
static int read_file(const char *path, char *ret_text, size_t text_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    ret_text[0] = '\0';
    if (fd < 0) {
        return errno;
    }
    ssize_t n = read(fd, ret_text, text_bytes - 1);
    int errnum = n < 0 ? errno : 0;
    close(fd);
    ret_text[n < 0 ? 0 : n] = '\0';
    return errnum;
}

static enum link_obstacle look_at_iptables(void)
{
    static const char *const paths[] = {"/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"};
    enum link_obstacle found = LINK_CLEAR;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0] && found == LINK_CLEAR; i++) {
        char text[64];
        int errnum = read_file(paths[i], text, sizeof text);

        found = judge(errnum, text[0] != '\0', LINK_IPTABLES);
    }
    return found;
}

/* Rules that ask for it were found above; Open vSwitch and traffic control begin it, too. */
static enum link_obstacle look_at_conntrack(void)
{
    char text[32];
    int errnum = read_file("/proc/sys/net/netfilter/nf_conntrack_count", text, sizeof text);

    return judge(errnum, text[0] != '\0' && strcmp(text, "0\n") != 0, LINK_CONNTRACK);
}

/* Three lines are heads of columns. */
static enum link_obstacle look_at_ipvs(void)
{
    char text[512];
    int n_lines = 0;
    int errnum = read_file("/proc/net/ip_vs", text, sizeof text);

    for (const char *at = strchr(text, '\n'); at != NULL; at = strchr(at + 1, '\n')) {
        n_lines++;
    }
    return judge(errnum, n_lines > 3, LINK_IPVS);
}

/* --- IPsec --- */

static int take_policies(const struct nlmsghdr *message, void *user)
{
    uint32_t *n_policies = user;
    struct xfrmu_spdinfo info;
    const struct nlattr *found =
        netlink_find(message, sizeof(uint32_t), XFRMA_SPD_INFO, sizeof info);

    if (found != NULL) {
        memcpy(&info, mnl_attr_get_payload(found), sizeof info);
        *n_policies = info.outcnt;
    }
    return MNL_CB_STOP;
}

static enum link_obstacle look_at_ipsec(struct link_guard *guard)
{
    _Alignas(struct nlmsghdr) uint8_t room[64];
    struct nlmsghdr *request = mnl_nlmsg_put_header(room);
    uint32_t n_policies = 0;
    int errnum = open_once(&guard->ipsec, NETLINK_XFRM);

    if (errnum == 0) {
        request->nlmsg_type = XFRM_MSG_GETSPDINFO;
        uint32_t *flags = mnl_nlmsg_put_extra_header(request, sizeof *flags);
        *flags = 0;
        errnum = netlink_ask(&guard->ipsec, request, take_policies, &n_policies);
    }
    return judge(errnum, n_policies > 0, LINK_IPSEC);
}

/* --- the control group --- */

static bool is_cgroup2(const char *path)
{
    struct statfs about;

    return statfs(path, &about) == 0 && about.f_type == CGROUP2_SUPER_MAGIC;
}

/* The group of this process, in the unified hierarchy: "0::/PATH". -1: it is not to be found. */
static int open_own_group(void)
{
    const char *root = is_cgroup2("/sys/fs/cgroup")           ? "/sys/fs/cgroup"
                       : is_cgroup2("/sys/fs/cgroup/unified") ? "/sys/fs/cgroup/unified"
                                                              : NULL;
    char text[4096], path[4096 + 32];

    if (root == NULL || read_file("/proc/self/cgroup", text, sizeof text) != 0) {
        return -1;
    }
    const char *own = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    own = own == NULL ? NULL : strchr(own, '/');
    if (own == NULL) {
        return -1;
    }
    snprintf(path, sizeof path, "%s%.*s", root, (int)strcspn(own, "\n"), own);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Those of the groups above count, too. Where the hierarchy is not mounted there is nobody to ask;
 * `ip netns exec` covers it, for one. */
static enum link_obstacle look_at_cgroup(void)
{
    int fd = open_own_group();

    if (fd < 0) {
        return LINK_CLEAR;
    }
    union bpf_attr attr = {.query = {.target_fd = (uint32_t)fd,
                                     .attach_type = BPF_CGROUP_INET_EGRESS,
                                     .query_flags = BPF_F_QUERY_EFFECTIVE}};
    int errnum = syscall(SYS_bpf, BPF_PROG_QUERY, &attr, sizeof attr) == 0 ? 0 : errno;
    close(fd);
    return judge(errnum == ENOSYS ? EINVAL : errnum, attr.query.prog_cnt > 0, LINK_CGROUP);
}

/* --- sockets --- */

/* Seen by what was done to one: the group's hierarchy may be mounted anywhere, or nowhere. */
static enum link_obstacle look_at_socket(int family)
{
    uint32_t device = 0, mark = 0;
    socklen_t n_bytes = sizeof device;
    int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);

    if (fd < 0) {
        return errno == EAFNOSUPPORT ? LINK_CLEAR : LINK_UNSEEN;
    }
    bool is_told = getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, &n_bytes) == 0 &&
                   getsockopt(fd, SOL_SOCKET, SO_MARK, &mark, &n_bytes) == 0;
    close(fd);
    if (plant_is("link-unbound")) {
        return LINK_CLEAR;
    }
    return !is_told ? LINK_UNSEEN : device != 0 || mark != 0 ? LINK_BOUND : LINK_CLEAR;
}

static enum link_obstacle look_at_sockets(void)
{
    enum link_obstacle found = look_at_socket(AF_INET);

    return found != LINK_CLEAR ? found : look_at_socket(AF_INET6);
}

bool link_guard_is_bound(void)
{
    return look_at_sockets() == LINK_BOUND;
}

enum link_obstacle link_guard_look(struct link_guard *guard)
{
    enum link_obstacle found;

    if (plant_is("link-blind")) {
        return LINK_CLEAR;
    }
    if ((found = look_at_nftables(guard)) == LINK_CLEAR &&
        (found = look_at_iptables()) == LINK_CLEAR && (found = look_at_conntrack()) == LINK_CLEAR &&
        (found = look_at_ipvs()) == LINK_CLEAR && (found = look_at_ipsec(guard)) == LINK_CLEAR &&
        (found = look_at_cgroup()) == LINK_CLEAR) {
        found = look_at_sockets();
    }
    return found;
}
