#include "agent/probe/packet_sender.h"

#include "common/base/clock.h"
#include "common/base/plant.h"

static void set_receive(struct packet_sender *sender, enum packet_receive_why why)
{
    packet_way_set_receive(sender->way, sender->xdp != NULL && packet_xdp_is_attached(sender->xdp),
                           why);
}

/* By the link, or what hinders it. */
static void choose_way(struct packet_sender *sender)
{
    enum link_obstacle obstacle = LINK_CLEAR;

    if (sender->choice == PACKET_SEND_AUTO) {
        obstacle = link_guard_look(&sender->guard);
    } else if (link_guard_is_bound()) {
        obstacle = LINK_BOUND;
    }
    if (obstacle != LINK_CLEAR) {
        packet_way_set_send(sender->way, PACKET_SEND_IP, obstacle);
    } else {
        packet_way_set_send(sender->way, PACKET_SEND_LINK,
                            sender->choice == PACKET_SEND_AUTO ? LINK_CLEAR : PACKET_WAY_CHOSEN);
    }
}

void packet_sender_open(struct packet_sender *sender)
{
    sender->guarded_ns = 0;
    if (sender->choice == PACKET_SEND_IP) {
        packet_way_set_send(sender->way, PACKET_SEND_IP, PACKET_WAY_CHOSEN);
    } else {
        link_hops_open(&sender->hops);
    }
    packet_sender_refresh(sender, 1, clock_monotonic_ns());
}

void packet_sender_close(struct packet_sender *sender)
{
    link_hops_close(&sender->hops);
    link_guard_close(&sender->guard);
}

void packet_sender_refresh(struct packet_sender *sender, uint32_t generation, uint64_t now_ns)
{
    sender->now_ns = now_ns;
    if (sender->choice != PACKET_SEND_IP &&
        (sender->guarded_ns == 0 || now_ns - sender->guarded_ns >= PACKET_GUARD_NS)) {
        sender->guarded_ns = now_ns;
        choose_way(sender);
    }
    if (packet_way_is_by_link(sender->way)) {
        if (sender->xdp != NULL && generation != sender->hops.generation) {
            packet_xdp_renew(sender->xdp);
        }
        link_hops_refresh(&sender->hops, generation);
    } else if (sender->xdp != NULL && !plant_is("xdp-past-filter")) {
        packet_xdp_pause(sender->xdp);
        set_receive(sender, RECEIVE_BY_IP);
    }
}

static enum packet_out out_of(uint8_t family)
{
    return family == ADDR_IPV6 ? PACKET_OUT_IPV6 : PACKET_OUT_IPV4;
}

static void send_out(struct packet_sender *sender, enum packet_out out);

static void put(struct packet_sender *sender, enum packet_out out, uint32_t place)
{
    struct packet_batch *batch = &sender->batches[out];

    sender->places[out][batch->n - 1] = place;
    if (batch->n == PACKET_BATCH) {
        send_out(sender, out);
    }
}

/* Hand over one batch. What a link refuses becomes part of another one. */
static void send_out(struct packet_sender *sender, enum packet_out out)
{
    enum probe_reason reasons[PACKET_BATCH];
    struct packet_batch *batch = &sender->batches[out];
    unsigned n = batch->n;
    unsigned n_sent = 0;

    packet_batch_send(batch, sender->sock, out, reasons);
    for (unsigned i = 0; i < n; i++) {
        uint32_t place = sender->places[out][i];

        if (reasons[i] != REASON_NONE && out == PACKET_OUT_LINK) {
            const struct packet_tcp *tcp = &batch->messages[i].tcp;
            enum packet_out other = out_of(tcp->to.addr.family);

            packet_batch_add(&sender->batches[other], tcp);
            put(sender, other, place);
            continue;
        }
        n_sent += reasons[i] == REASON_NONE ? 1 : 0;
        sender->sent(sender->user, place, reasons[i]);
    }
    probe_counters_add(sender->counters,
                       out == PACKET_OUT_LINK ? PROBE_N_SYNS_BY_LINK : PROBE_N_SYNS_BY_IP, n_sent);
}

void packet_sender_add(struct packet_sender *sender, const struct packet_tcp *tcp, uint32_t slot,
                       uint32_t place, bool is_repeat)
{
    enum packet_out out = out_of(tcp->to.addr.family);
    struct link_hop hop;

    if (packet_way_is_by_link(sender->way) && !is_repeat && !plant_is("link-unused") &&
        link_hops_find(&sender->hops, slot, &tcp->from.addr, &tcp->to.addr, sender->now_ns, &hop)) {
        out = PACKET_OUT_LINK;
        packet_batch_add_link(&sender->batches[out], tcp, &hop);
        if (sender->xdp != NULL) {
            set_receive(sender, packet_xdp_watch(sender->xdp, hop.ifindex, &tcp->from.addr));
        }
    } else {
        packet_batch_add(&sender->batches[out], tcp);
    }
    put(sender, out, place);
}

/* The link first: what it refuses goes out with the others. */
void packet_sender_flush(struct packet_sender *sender)
{
    send_out(sender, PACKET_OUT_LINK);
    send_out(sender, PACKET_OUT_IPV4);
    send_out(sender, PACKET_OUT_IPV6);
}

void packet_sender_forget(struct packet_sender *sender, uint32_t slot)
{
    link_hops_forget(&sender->hops, slot);
}
