/* The codec of health checks. */
#include "agent/core/catalog_codec.h"

static void write_http(struct bytes_writer *writer, const struct http_check *http)
{
    bytes_write_u8(writer, http->method);
    bytes_write_u8(writer, http->version);
    bytes_write_u8(writer, http->host);
    bytes_write_string(writer, http->path);
    bytes_write_string(writer, http->domain);
    for (size_t i = 0; i < sizeof http->expect.words / sizeof http->expect.words[0]; i++) {
        bytes_write_u64(writer, http->expect.words[i]);
    }
}

static void read_http(struct codec_in *in, struct http_check *http)
{
    http->method = bytes_read_u8(&in->bytes);
    http->version = bytes_read_u8(&in->bytes);
    http->host = bytes_read_u8(&in->bytes);
    bytes_read_string(&in->bytes, http->path, sizeof http->path);
    bytes_read_string(&in->bytes, http->domain, sizeof http->domain);
    for (size_t i = 0; i < sizeof http->expect.words / sizeof http->expect.words[0]; i++) {
        http->expect.words[i] = bytes_read_u64(&in->bytes);
    }
}

static void write_data(struct bytes_writer *writer, const uint8_t bytes[], uint16_t n_bytes)
{
    bytes_write_u16(writer, n_bytes);
    bytes_write_copy(writer, bytes, n_bytes);
}

static uint16_t read_data(struct codec_in *in, uint8_t bytes[], size_t n_max)
{
    uint16_t n_bytes = bytes_read_u16(&in->bytes);

    if (n_bytes > n_max) {
        in->bytes.failed = true;
        return 0;
    }
    bytes_read_copy(&in->bytes, bytes, n_bytes);
    return n_bytes;
}

static void write_udp(struct bytes_writer *writer, const struct udp_check *udp)
{
    bytes_write_u8(writer, udp->method);
    write_data(writer, udp->payload.bytes, udp->payload.n_bytes);
    write_data(writer, udp->expect.bytes, udp->expect.n_bytes);
    if (udp->mask.n_bytes > 0) {
        write_data(writer, udp->mask.bytes, udp->mask.n_bytes);
    }
}

static void read_udp(struct codec_in *in, struct udp_check *udp)
{
    udp->method = bytes_read_u8(&in->bytes);
    udp->payload.n_bytes = read_data(in, udp->payload.bytes, sizeof udp->payload.bytes);
    udp->expect.n_bytes = read_data(in, udp->expect.bytes, sizeof udp->expect.bytes);
    if (codec_has_more(in)) {
        udp->mask.n_bytes = read_data(in, udp->mask.bytes, sizeof udp->mask.bytes);
    }
}

static void write_tcp(struct bytes_writer *writer, const struct tcp_check *tcp)
{
    bytes_write_u8(writer, tcp->handshake);
    bytes_write_u8(writer, tcp->close);
    bytes_write_u8(writer, tcp->on_timeout);
    if (tcp->send.n_bytes > 0 || tcp->expect.n_bytes > 0) {
        write_data(writer, tcp->send.bytes, tcp->send.n_bytes);
        write_data(writer, tcp->expect.bytes, tcp->expect.n_bytes);
    }
}

static void read_tcp(struct codec_in *in, struct tcp_check *tcp)
{
    tcp->handshake = bytes_read_u8(&in->bytes);
    tcp->close = bytes_read_u8(&in->bytes);
    tcp->on_timeout = bytes_read_u8(&in->bytes);
    if (codec_has_more(in)) {
        tcp->send.n_bytes = read_data(in, tcp->send.bytes, sizeof tcp->send.bytes);
        tcp->expect.n_bytes = read_data(in, tcp->expect.bytes, sizeof tcp->expect.bytes);
    }
}

static void write_tls_fields(struct bytes_writer *writer, const struct tls_check *tls)
{
    bytes_write_u8(writer, tls->verify);
    bytes_write_u8(writer, tls->min_version);
    bytes_write_u16(writer, tls->warn_days);
    bytes_write_string(writer, tls->server_name);
    bytes_write_string(writer, tls->alpn);
}

static void read_tls_fields(struct codec_in *in, struct tls_check *tls)
{
    tls->verify = bytes_read_u8(&in->bytes);
    tls->min_version = bytes_read_u8(&in->bytes);
    tls->warn_days = bytes_read_u16(&in->bytes);
    bytes_read_string(&in->bytes, tls->server_name, sizeof tls->server_name);
    bytes_read_string(&in->bytes, tls->alpn, sizeof tls->alpn);
}

static void write_tls(struct bytes_writer *writer, const struct health_check *check)
{
    write_tls_fields(writer, &check->tls);
    if (check_asks_http(check)) {
        write_http(writer, &check->http);
    }
}

static void read_tls(struct codec_in *in, struct health_check *check)
{
    read_tls_fields(in, &check->tls);
    if (codec_has_more(in)) {
        read_http(in, &check->http);
        in->bytes.failed |= !check_asks_http(check); /* one value has one encoding */
    }
}

static void write_grpc(struct bytes_writer *writer, const struct health_check *check)
{
    bytes_write_string(writer, check->grpc.service);
    if (check_is_secured(check)) {
        write_tls_fields(writer, &check->tls);
    }
}

static void read_grpc(struct codec_in *in, struct health_check *check)
{
    bytes_read_string(&in->bytes, check->grpc.service, sizeof check->grpc.service);
    if (codec_has_more(in)) {
        read_tls_fields(in, &check->tls);
        in->bytes.failed |= !check_is_secured(check); /* one value has one encoding */
    }
}

/* Since minor 3. A check without the three is written as ever: its bytes make the hash by which
 * nodes of different versions agree on a target. */
static void write_more(struct bytes_writer *writer, const struct health_check *check)
{
    bool has_source = check->source == CHECK_SOURCE_SHARED_SPACE;

    if (check_is_shared(check) || has_source) {
        bytes_write_u8(writer, check->probers);
        bytes_write_u8(writer, check->recheck);
    }
    if (has_source) {
        bytes_write_u8(writer, check->source);
    }
}

static void read_more(struct codec_in *in, struct health_check *check)
{
    check->source = CHECK_SOURCE_NODE;
    if (!codec_has_more(in)) {
        return;
    }
    check->probers = bytes_read_u8(&in->bytes);
    check->recheck = codec_read_bool(in);
    if (codec_has_more(in)) {
        check->source = bytes_read_u8(&in->bytes);
        in->bytes.failed |= check->source != CHECK_SOURCE_SHARED_SPACE;
    } else if (!check_is_shared(check)) {
        in->bytes.failed = true; /* one value has one encoding */
    }
}

void codec_write_check(struct bytes_writer *writer, const struct health_check *check)
{
    size_t begin = codec_begin(writer);

    bytes_write_u8(writer, check->is_enabled);
    bytes_write_u8(writer, check->type);
    bytes_write_u8(writer, check->pacing);
    bytes_write_u16(writer, check->port);
    bytes_write_u32(writer, check->timeout_ms);
    bytes_write_u32(writer, check->interval_ms);
    bytes_write_u8(writer, check->healthy_threshold);
    bytes_write_u8(writer, check->unhealthy_threshold);
    size_t type_begin = codec_begin(writer);
    if (check->type == CHECK_TYPE_TCP) {
        write_tcp(writer, &check->tcp);
    } else if (check->type == CHECK_TYPE_HTTP) {
        write_http(writer, &check->http);
    } else if (check->type == CHECK_TYPE_UDP) {
        write_udp(writer, &check->udp);
    } else if (check->type == CHECK_TYPE_TLS) {
        write_tls(writer, check);
    } else if (check->type == CHECK_TYPE_GRPC) {
        write_grpc(writer, check);
    }
    codec_end(writer, type_begin);
    write_more(writer, check);
    codec_end(writer, begin);
}

void codec_read_check(struct codec_in *in, struct health_check *ret_check)
{
    struct codec_in block = codec_open(in);
    struct health_check *check = ret_check;

    *check = (struct health_check){0};
    check->is_enabled = codec_read_bool(&block);
    check->type = bytes_read_u8(&block.bytes);
    check->pacing = bytes_read_u8(&block.bytes);
    check->port = bytes_read_u16(&block.bytes);
    check->timeout_ms = bytes_read_u32(&block.bytes);
    check->interval_ms = bytes_read_u32(&block.bytes);
    check->healthy_threshold = bytes_read_u8(&block.bytes);
    check->unhealthy_threshold = bytes_read_u8(&block.bytes);
    struct codec_in fields = codec_open(&block);
    if (check->type == CHECK_TYPE_TCP) {
        read_tcp(&fields, &check->tcp);
    } else if (check->type == CHECK_TYPE_HTTP) {
        read_http(&fields, &check->http);
    } else if (check->type == CHECK_TYPE_UDP) {
        read_udp(&fields, &check->udp);
    } else if (check->type == CHECK_TYPE_TLS) {
        read_tls(&fields, check);
    } else if (check->type == CHECK_TYPE_GRPC) {
        read_grpc(&fields, check);
    }
    codec_shut(&block, &fields);
    read_more(&block, check);
    codec_shut(in, &block);
}
