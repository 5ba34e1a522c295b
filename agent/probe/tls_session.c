#include "agent/probe/tls_session.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

/* Where Debian keeps the authorities' certificates; the environment may say otherwise, as for all
 * programs with OpenSSL. */
#define TRUST_FILE "/etc/ssl/certs/ca-certificates.crt"
#define CERT_DEPTH_MAX 8
#define SECONDS_PER_DAY (24 * 60 * 60)
#define EPOCH_2000 INT64_C(946684800) /* 2000-01-01, where struct cert_end begins */

struct tls_contexts {
    SSL_CTX *any;     /* looks at no signature */
    SSL_CTX *trusted; /* the system's certificates; NULL = there are none */
};

struct tls_session {
    SSL *ssl;
    BIO *in; /* owned by ssl, like `out` */
    BIO *out;
};

/* With verify none a chain is not even built. */
static int accept_any(X509_STORE_CTX *chain, void *unused)
{
    (void)chain;
    (void)unused;
    return 1;
}

/* Settings of the system, such as a least version, are the system's for its own connections: here
 * the document says what passes. Level 1 still asks for keys that resist. */
static SSL_CTX *context_new(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    char groups[] = "X25519:P-256:P-384:P-521"; /* the macro takes a const away */

    if (context == NULL) {
        return NULL;
    }
    SSL_CTX_set_options(context,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_verify_depth(context, CERT_DEPTH_MAX);
    SSL_CTX_set_max_cert_list(context, LIMIT_TLS_BYTES);
    SSL_CTX_set_security_level(context, 1);
    bool is_set = SSL_CTX_set_cipher_list(context, "DEFAULT:!kDHE:!PSK:!SRP:@SECLEVEL=1") == 1 &&
                  SSL_CTX_set1_groups_list(context, groups) == 1;
    if (!is_set) {
        SSL_CTX_free(context);
        return NULL;
    }
    return context;
}

static bool has_trust(SSL_CTX *context)
{
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));

    return sk_X509_OBJECT_num(objects) > 0;
}

struct tls_contexts *tls_contexts_new(void)
{
    struct tls_contexts *contexts = calloc(1, sizeof *contexts);

    if (contexts == NULL) {
        return NULL;
    }
    contexts->any = context_new();
    contexts->trusted = context_new();
    if (contexts->any == NULL || contexts->trusted == NULL) {
        tls_contexts_free(contexts);
        return NULL;
    }
    SSL_CTX_set_cert_verify_callback(contexts->any, accept_any, NULL);
    /* The file alone: looking a name up in the system's directory would be a disk access in the
     * middle of a probe. */
    X509_STORE *store = SSL_CTX_get_cert_store(contexts->trusted);
    const char *file = getenv(X509_get_default_cert_file_env());
    (void)X509_STORE_load_file(store, file != NULL ? file : TRUST_FILE);
    if (!has_trust(contexts->trusted)) {
        SSL_CTX_free(contexts->trusted);
        contexts->trusted = NULL;
    }
    ERR_clear_error();
    return contexts;
}

void tls_contexts_free(struct tls_contexts *contexts)
{
    if (contexts != NULL) {
        SSL_CTX_free(contexts->any);
        SSL_CTX_free(contexts->trusted);
        free(contexts);
    }
}

static int version_number(enum tls_version version)
{
    switch (version) {
    case TLS_VERSION_1_0:
        return TLS1_VERSION;
    case TLS_VERSION_1_1:
        return TLS1_1_VERSION;
    case TLS_VERSION_1_2:
    case TLS_VERSION_NONE:
        return TLS1_2_VERSION;
    case TLS_VERSION_1_3:
        return TLS1_3_VERSION;
    }
    return TLS1_2_VERSION;
}

/* The name as SNI, and of the certificate; the protocol; the version. */
static bool configure(SSL *ssl, const struct tls_check *check)
{
    uint8_t protocols[LIMIT_ALPN_BYTES + 1];
    char name[sizeof check->server_name]; /* the macro takes a const away */
    size_t n = strlen(check->alpn);

    if (check->min_version < TLS_VERSION_1_2) {
        SSL_set_security_level(ssl, 0); /* what those versions have is below level 1 */
    }
    protocols[0] = (uint8_t)n;
    memcpy(protocols + 1, check->alpn, n);
    memcpy(name, check->server_name, sizeof name);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_min_proto_version(ssl, version_number((enum tls_version)check->min_version)) &&
           (n == 0 || SSL_set_alpn_protos(ssl, protocols, (unsigned)n + 1) == 0) &&
           (check->server_name[0] == '\0' || (SSL_set_tlsext_host_name(ssl, name) == 1 &&
                                              SSL_set1_host(ssl, check->server_name) == 1));
}

enum probe_reason tls_session_new(struct tls_contexts *contexts, const struct tls_check *check,
                                  struct tls_session **ret_session)
{
    SSL_CTX *context = check->verify == TLS_VERIFY_CA ? contexts->trusted : contexts->any;
    struct tls_session session = {0};

    if (context == NULL) {
        return REASON_LOCAL_NO_TRUST;
    }
    ERR_clear_error();
    struct tls_session *kept = calloc(1, sizeof *kept);
    session.ssl = kept == NULL ? NULL : SSL_new(context);
    session.in = session.ssl == NULL ? NULL : BIO_new(BIO_s_mem());
    session.out = session.in == NULL ? NULL : BIO_new(BIO_s_mem());
    if (session.out == NULL || !configure(session.ssl, check)) {
        BIO_free(session.in);
        BIO_free(session.out);
        SSL_free(session.ssl);
        free(kept);
        return REASON_LOCAL_NO_BUFFER;
    }
    SSL_set_bio(session.ssl, session.in, session.out);
    SSL_set_connect_state(session.ssl);
    *kept = session;
    *ret_session = kept;
    return REASON_NONE;
}

void tls_session_free(struct tls_session *session)
{
    if (session != NULL) {
        SSL_free(session->ssl);
        free(session);
    }
}

bool tls_session_take(struct tls_session *session, const void *bytes, size_t n_bytes)
{
    assert(n_bytes <= INT32_MAX);
    return BIO_write(session->in, bytes, (int)n_bytes) == (int)n_bytes;
}

size_t tls_session_output(struct tls_session *session, const void **ret_bytes)
{
    char *bytes = NULL;
    long n = BIO_get_mem_data(session->out, &bytes);

    *ret_bytes = bytes;
    return n > 0 ? (size_t)n : 0;
}

void tls_session_drop(struct tls_session *session, size_t n_bytes)
{
    uint8_t scratch[1024];

    while (n_bytes > 0) {
        size_t part = n_bytes < sizeof scratch ? n_bytes : sizeof scratch;
        int n = BIO_read(session->out, scratch, (int)part);

        assert(n > 0);
        n_bytes -= (size_t)n;
    }
}

static enum tls_progress progress_of(const struct tls_session *session, int rc)
{
    switch (SSL_get_error(session->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return TLS_MORE;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_CLOSED;
    default:
        return TLS_FAILED;
    }
}

enum tls_progress tls_session_shake(struct tls_session *session)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(session->ssl);
    return rc == 1 ? TLS_DONE : progress_of(session, rc);
}

static bool has_protocol(const struct tls_session *session, const struct tls_check *check)
{
    const unsigned char *chosen = NULL;
    unsigned n = 0;

    SSL_get0_alpn_selected(session->ssl, &chosen, &n);
    return check->alpn[0] == '\0' ||
           (n == strlen(check->alpn) && memcmp(chosen, check->alpn, n) == 0);
}

enum probe_reason tls_session_judge(struct tls_session *session, const struct tls_check *check)
{
    if (!has_protocol(session, check)) {
        return REASON_TLS_HANDSHAKE_FAILED;
    }
    if (check->verify != TLS_VERIFY_CA || plant_is("tls-verify")) {
        return REASON_OK;
    }
    switch (SSL_get_verify_result(session->ssl)) {
    case X509_V_OK:
        return REASON_OK;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return REASON_TLS_CERT_EXPIRED;
    case X509_V_ERR_HOSTNAME_MISMATCH:
        return REASON_TLS_CERT_WRONG_NAME;
    case X509_V_ERR_OUT_OF_MEM:
        return REASON_LOCAL_NO_BUFFER;
    default:
        return REASON_TLS_CERT_UNTRUSTED;
    }
}

struct cert_end tls_session_cert_end(struct tls_session *session, const struct tls_check *check)
{
    const X509 *cert = SSL_get0_peer_certificate(session->ssl);
    struct cert_end end = {0};
    struct tm tm = {0};

    if (cert == NULL || ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) != 1) {
        return end;
    }
    int64_t end_s = (int64_t)timegm(&tm);
    int64_t day = (end_s - EPOCH_2000) / SECONDS_PER_DAY;
    int64_t left_s = end_s - clock_wall_ms() / 1000;
    day = day < 1 ? 1 : day > CERT_END_DAY_MAX ? CERT_END_DAY_MAX : day;
    end.day = (uint16_t)day & CERT_END_DAY_MAX;
    end.is_near = check->warn_days > 0 && left_s < (int64_t)check->warn_days * SECONDS_PER_DAY;
    return end;
}

bool tls_session_write(struct tls_session *session, const void *bytes, size_t n_bytes)
{
    ERR_clear_error();
    return SSL_write(session->ssl, bytes, (int)n_bytes) == (int)n_bytes;
}

enum tls_progress tls_session_read(struct tls_session *session, void *bytes, size_t n_max,
                                   size_t *ret_n_bytes)
{
    ERR_clear_error();
    int n = SSL_read(session->ssl, bytes, (int)n_max);
    if (n <= 0) {
        return progress_of(session, n);
    }
    *ret_n_bytes = (size_t)n;
    return TLS_DONE;
}

void tls_session_finish(struct tls_session *session)
{
    ERR_clear_error();
    (void)SSL_shutdown(session->ssl);
    ERR_clear_error();
}
