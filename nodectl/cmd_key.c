/* key: pairs for nodes, people and programs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jury/v1/cluster.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/load.h"
#include "nodectl/render.h"

#define PATH_BYTES 4096

/* --- generate --- */

/* Beside the pair: the half that may be given away, for --server-key. */
static int write_public(struct ctl *ctl, const char *path, const struct public_key *key)
{
    char hex[PUBLIC_KEY_TEXT_BYTES];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);

    if (fd < 0) {
        return ctl_fail(ctl, err_from_errno(errno), "cannot make %s: %s", path, strerror(errno));
    }
    int n = dprintf(fd, "jury-key 1\npublic %s\n", public_key_format(key, hex));
    if (close(fd) != 0 || n < 0) {
        return ctl_fail(ctl, ERR_IO, "cannot write %s: %s", path, strerror(errno));
    }
    return 0;
}

static int make_pair(struct ctl *ctl, const char *path, struct public_key *ret_key)
{
    struct key_pair pair = {0};
    struct errmsg err = {{0}};
    int rc = key_pair_generate(&pair, &err);

    if (rc == 0) {
        rc = key_file_write(path, &pair, &err);
    }
    if (rc == 0) {
        *ret_key = pair.public_key;
    }
    key_pair_close(&pair);
    return rc == 0 ? 0 : ctl_fail(ctl, rc, "%s", err.text);
}

static int generate_one(struct ctl *ctl, const char *path)
{
    struct public_key key;
    char hex[PUBLIC_KEY_TEXT_BYTES];
    int rc = make_pair(ctl, path, &key);

    if (rc != 0) {
        return rc;
    }
    public_key_format(&key, hex);
    if (ctl_is_json(ctl)) {
        return ctl_print_json(
            ctl, json_pack("{s:[{s:s, s:s}]}", "keys", "file", path, "publicKey", hex));
    }
    fprintf(ctl->out, "%s  %s\n", hex, path);
    return 0;
}

/* Names of the set: node-1 .. node-N, admin. */
static void set_name(uint64_t index, uint64_t n_nodes, char name[24])
{
    if (index < n_nodes) {
        snprintf(name, 24, "node-%u", (unsigned)index + 1);
    } else {
        snprintf(name, 24, "admin");
    }
}

/* Either all files of a set are new, or none is made. */
static int check_new(struct ctl *ctl, const char *folder, uint64_t n_nodes)
{
    static const char *const endings[2] = {"key", "pub"};

    for (uint64_t i = 0; i <= n_nodes; i++) {
        for (size_t e = 0; e < 2; e++) {
            char name[24];
            char path[PATH_BYTES];
            struct stat info;

            set_name(i, n_nodes, name);
            snprintf(path, sizeof path, "%s/%s.%s", folder, name, endings[e]);
            if (lstat(path, &info) == 0) {
                ctl_hint(ctl, "remove it or choose another --out; keys are never overwritten");
                return ctl_fail(ctl, ERR_EXISTS, "%s exists already", path);
            }
        }
    }
    return 0;
}

static int make_folder(struct ctl *ctl, const char *folder)
{
    struct stat info;

    if (mkdir(folder, 0700) == 0) {
        return 0;
    }
    if (errno == EEXIST && stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) {
        return 0;
    }
    return ctl_fail(ctl, err_from_errno(errno), "cannot make the directory %s: %s", folder,
                    strerror(errno));
}

/* One pair of the set and its public half. */
static int generate_member(struct ctl *ctl, const char *folder, const char *name, json_t *list)
{
    char path[PATH_BYTES];
    char public_path[PATH_BYTES];
    char hex[PUBLIC_KEY_TEXT_BYTES];
    struct public_key key;

    snprintf(path, sizeof path, "%s/%s.key", folder, name);
    snprintf(public_path, sizeof public_path, "%s/%s.pub", folder, name);
    int rc = make_pair(ctl, path, &key);
    if (rc == 0) {
        rc = write_public(ctl, public_path, &key);
    }
    if (rc != 0) {
        return rc;
    }
    public_key_format(&key, hex);
    if (list != NULL) {
        json_array_append_new(list, json_pack("{s:s, s:s}", "file", path, "publicKey", hex));
    } else {
        fprintf(ctl->out, "%s  %s\n", hex, path);
    }
    return 0;
}

static int generate_set(struct ctl *ctl, const char *folder, uint64_t n_nodes)
{
    json_t *list = ctl_is_json(ctl) ? json_array() : NULL;
    int rc = make_folder(ctl, folder);

    if (rc == 0) {
        rc = check_new(ctl, folder, n_nodes);
    }
    for (uint64_t i = 0; rc == 0 && i <= n_nodes; i++) {
        char name[24];

        set_name(i, n_nodes, name);
        rc = generate_member(ctl, folder, name, list);
    }
    if (rc == 0 && list != NULL) {
        return ctl_print_json(ctl, json_pack("{s:o}", "keys", list));
    }
    json_decref(list);
    return rc;
}

int cmd_key_generate(struct ctl *ctl)
{
    const char *folder = ctl_text(ctl, FLAG_OUT);
    bool is_set = ctl_has(ctl, FLAG_NODES);

    if (is_set != (folder != NULL)) {
        return ctl_fail(ctl, ERR_USAGE,
                        "--nodes and --out go together: nodectl key generate "
                        "--nodes 3 --out keys");
    }
    if (is_set == (ctl->n_args == 1)) {
        ctl_hint(ctl, "nodectl key generate FILE, or nodectl key generate --nodes 3 --out keys");
        return ctl_fail(ctl, ERR_USAGE,
                        is_set ? "a set goes into --out: no FILE beside it" : "no file is named");
    }
    return is_set ? generate_set(ctl, folder, ctl_number(ctl, FLAG_NODES))
                  : generate_one(ctl, ctl->args[0]);
}

/* --- show, list --- */

int cmd_key_show(struct ctl *ctl)
{
    struct public_key key;
    struct errmsg err = {{0}};
    char hex[PUBLIC_KEY_TEXT_BYTES];
    int rc = key_file_read_public(ctl->args[0], &key, &err);

    if (rc != 0) {
        return ctl_fail(ctl, rc, "%s", err.text);
    }
    public_key_format(&key, hex);
    if (ctl_is_json(ctl)) {
        return ctl_print_json(ctl, json_pack("{s:s, s:s}", "file", ctl->args[0], "publicKey", hex));
    }
    if (ctl_has(ctl, FLAG_PUBLIC)) {
        fprintf(ctl->out, "%s\n", hex);
    } else {
        fprintf(ctl->out, "%s  %s\n", hex, ctl->args[0]);
    }
    return 0;
}

int cmd_key_list(struct ctl *ctl)
{
    Jury__V1__ListKeysRequest request;
    struct rpc_result result = {0};

    jury__v1__list_keys_request__init(&request);
    int rc = ctl_call(ctl, "jury.v1.KeyService/ListKeys", &request.base, &result);

    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        const Jury__V1__ListKeysResponse *keys =
            (const Jury__V1__ListKeysResponse *)(const void *)result.response;

        render_keys(ctl, keys);
        if (keys->n_keys == 0) {
            ctl_note(ctl, "no key may call over the network; the unix socket works by file mode");
        }
    }
    rpc_result_close(&result);
    return rc;
}
