#include "common/rpc/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/str.h"

#define FILE_BYTES_MAX 4096
#define HEX_BYTES (2 * SECRET_KEY_BYTES + 1)
#define Z85_CHARACTERS 40
#define FORMAT_LINE "jury-key 1"

void key_pair_close(struct key_pair *pair)
{
    sodium_free(pair->secret);
    *pair = (struct key_pair){0};
}

/* Guarded memory for a secret. */
static int secret_new(uint8_t **ret_secret, struct errmsg *err)
{
    if (sodium_init() < 0) {
        return errmsg_set(err, ERR_INTERNAL, "the system gives no random numbers");
    }
    uint8_t *secret = sodium_malloc(SECRET_KEY_BYTES);
    if (secret == NULL) {
        return errmsg_set(err, ERR_NOMEM,
                          "no locked memory for a secret key: raise the limit on locked memory "
                          "(ulimit -l)");
    }
    *ret_secret = secret;
    return 0;
}

int key_pair_generate(struct key_pair *ret_pair, struct errmsg *err)
{
    struct key_pair pair = {0};
    int rc = secret_new(&pair.secret, err);

    if (rc == 0) {
        /* Curve25519, as CURVE wants it. */
        crypto_box_keypair(pair.public_key.bytes, pair.secret);
        *ret_pair = pair;
    }
    return rc;
}

/* --- writing --- */

static int write_all(int fd, const char *text, size_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t n = write(fd, text, n_bytes);

        if (n < 0 && errno != EINTR) {
            return errno;
        }
        if (n > 0) {
            text += n;
            n_bytes -= (size_t)n;
        }
    }
    return fsync(fd) == 0 ? 0 : errno;
}

int key_file_write(const char *path, const struct key_pair *pair, struct errmsg *err)
{
    char public_hex[HEX_BYTES], secret_hex[HEX_BYTES], text[512];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 && errno == EEXIST) {
        return errmsg_set(err, ERR_EXISTS,
                          "key file %s exists already and is never overwritten: remove it or "
                          "choose another name",
                          path);
    }
    if (fd < 0) {
        return errmsg_set(err, err_from_errno(errno), "cannot make the key file %s: %s", path,
                          strerror(errno));
    }
    str_hex(pair->public_key.bytes, SECRET_KEY_BYTES, public_hex);
    str_hex(pair->secret, SECRET_KEY_BYTES, secret_hex);
    int n = snprintf(text, sizeof text,
                     "# The secret line is the key itself: whoever has it is you.\n" FORMAT_LINE
                     "\npublic %s\nsecret %s\n",
                     public_hex, secret_hex);
    int errnum = write_all(fd, text, (size_t)n);
    sodium_memzero(secret_hex, sizeof secret_hex);
    sodium_memzero(text, sizeof text);
    close(fd);
    if (errnum != 0) {
        unlink(path);
        return errmsg_set(err, err_from_errno(errnum), "cannot write the key file %s: %s", path,
                          strerror(errnum));
    }
    return 0;
}

/* --- reading --- */

/* The whole file as text; *ret_mode: its permission bits. */
static int read_file(const char *path, char text[FILE_BYTES_MAX], mode_t *ret_mode,
                     struct errmsg *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        return errmsg_set(err, ERR_CONFIG, "cannot read the key file %s: %s", path,
                          strerror(errno));
    }
    ssize_t n_bytes = -1;
    bool is_regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (is_regular) {
        n_bytes = read(fd, text, FILE_BYTES_MAX - 1);
    }
    int errnum = errno;
    close(fd);
    if (!is_regular) {
        return errmsg_set(err, ERR_CONFIG, "key file %s is not a regular file", path);
    }
    if (n_bytes < 0) {
        return errmsg_set(err, ERR_CONFIG, "cannot read the key file %s: %s", path,
                          strerror(errnum));
    }
    text[n_bytes] = '\0';
    *ret_mode = status.st_mode & 07777;
    return strlen(text) == (size_t)n_bytes
               ? 0
               : errmsg_set(err, ERR_CONFIG, "key file %s is not a text file", path);
}

struct parsed {
    bool has_format;
    bool has_public;
    bool has_secret;
    struct public_key public_key;
    uint8_t *secret; /* where the secret goes; NULL = not wanted */
};

/* One line without its newline. False: not a line of a key file. */
static bool parse_line(const char *line, struct parsed *parsed)
{
    uint8_t dropped[SECRET_KEY_BYTES];
    bool is_fine = false;

    if (line[0] == '\0' || line[0] == '#') {
        return true;
    }
    if (strcmp(line, FORMAT_LINE) == 0) {
        is_fine = !parsed->has_format;
        parsed->has_format = true;
    } else if (strncmp(line, "public ", 7) == 0 && !parsed->has_public) {
        is_fine = str_unhex(line + 7, parsed->public_key.bytes, PUBLIC_KEY_BYTES);
        parsed->has_public = true;
    } else if (strncmp(line, "secret ", 7) == 0 && !parsed->has_secret) {
        uint8_t *to = parsed->secret != NULL ? parsed->secret : dropped;

        is_fine = str_unhex(line + 7, to, SECRET_KEY_BYTES);
        parsed->has_secret = true;
        sodium_memzero(dropped, sizeof dropped);
    }
    return is_fine && parsed->has_format;
}

static int parse_text(const char *path, char *text, struct parsed *parsed, struct errmsg *err)
{
    int number = 0;
    char *rest = text;

    while (rest != NULL) {
        char *line = strsep(&rest, "\n");

        number++;
        line[strcspn(line, "\r")] = '\0';
        if (!parse_line(line, parsed)) {
            /* The line itself may be a secret: it is not quoted. */
            return errmsg_set(err, ERR_CONFIG,
                              "%s:%d: this is not a line of a key file: make one with `nodectl key "
                              "generate`",
                              path, number);
        }
    }
    if (!parsed->has_public) {
        return errmsg_set(err, ERR_CONFIG,
                          "key file %s holds no public key: make one with `nodectl key generate`",
                          path);
    }
    return 0;
}

static int check_secret(const char *path, mode_t mode, const struct parsed *parsed,
                        struct errmsg *err)
{
    uint8_t public_key[PUBLIC_KEY_BYTES];

    if (!parsed->has_secret) {
        return errmsg_set(err, ERR_CONFIG, "key file %s holds a public key only, not a secret one",
                          path);
    }
    if ((mode & 077) != 0) {
        return errmsg_set(err, ERR_CONFIG,
                          "key file %s can be read by others (mode %04o): run chmod 600 %s", path,
                          (unsigned)mode, path);
    }
    crypto_scalarmult_base(public_key, parsed->secret);
    if (memcmp(public_key, parsed->public_key.bytes, sizeof public_key) != 0) {
        return errmsg_set(err, ERR_CONFIG,
                          "key file %s: its public and secret key do not belong together", path);
    }
    return 0;
}

int key_file_read(const char *path, struct key_pair *ret_pair, struct errmsg *err)
{
    char text[FILE_BYTES_MAX];
    struct parsed parsed = {0};
    mode_t mode = 0;
    int rc = secret_new(&parsed.secret, err);

    if (rc != 0) {
        return rc;
    }
    rc = read_file(path, text, &mode, err);
    if (rc == 0) {
        rc = parse_text(path, text, &parsed, err);
    }
    sodium_memzero(text, sizeof text);
    if (rc == 0) {
        rc = check_secret(path, mode, &parsed, err);
    }
    if (rc != 0) {
        sodium_free(parsed.secret);
        return rc;
    }
    *ret_pair = (struct key_pair){.public_key = parsed.public_key, .secret = parsed.secret};
    return 0;
}

int key_file_read_public(const char *path, struct public_key *ret_key, struct errmsg *err)
{
    char text[FILE_BYTES_MAX];
    struct parsed parsed = {0};
    mode_t mode;
    int rc = read_file(path, text, &mode, err);

    if (rc == 0) {
        rc = parse_text(path, text, &parsed, err);
    }
    sodium_memzero(text, sizeof text);
    if (rc == 0) {
        *ret_key = parsed.public_key;
    }
    return rc;
}

/* --- public keys as text --- */

char *public_key_format(const struct public_key *key, char text[PUBLIC_KEY_TEXT_BYTES])
{
    str_hex(key->bytes, sizeof key->bytes, text);
    return text;
}

int public_key_parse(const char *text, const char *what, struct public_key *ret_key,
                     struct errmsg *err)
{
    struct public_key key;
    size_t n = strlen(text);

    if (str_unhex(text, key.bytes, sizeof key.bytes) ||
        (n == Z85_CHARACTERS && zmq_z85_decode(key.bytes, text) != NULL)) {
        *ret_key = key;
        return 0;
    }
    return errmsg_set(err, ERR_INVALID,
                      "%s must be 64 hex digits or 40 characters of Z85, got %zu characters", what,
                      n);
}
