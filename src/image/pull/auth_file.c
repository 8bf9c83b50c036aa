/* The auth file of docker and podman. Runs in the cli process: opened as the caller, parsed after
 * rights are dropped.
 * Credential helpers are programs that the file names: cupel starts none of them. */
#include "image/pull/auth_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"

/* --- the file --- */

/* The path, heap; NULL: there is none. */
static char *find_path(bool *out_named)
{
    static const struct {
        const char *variable, *tail;
        bool named;
    } rows[] = {
        { "REGISTRY_AUTH_FILE", "", true },
        { "DOCKER_CONFIG", "/config.json", false },
        { "HOME", "/.docker/config.json", false },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        const char *value = getenv(rows[i].variable);
        own_buf path = BUF_INIT(PATH_MAX);
        if (!value || !*value)
            continue;
        *out_named = rows[i].named;
        return buf_printf(&path, "%s%s", value, rows[i].tail) < 0 ? NULL : buf_take(&path);
    }
    return NULL;
}

int pull_auth_file_read(struct buf *out, char **out_path, struct err *err)
{
    bool named = false;
    struct stat st;
    own_str path = find_path(&named);
    own_fd fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0 && path && (named || (errno != ENOENT && errno != ENOTDIR && errno != EACCES)))
        return err_sys(err, "open the credentials '%.200s'", path);
    if (fd < 0) {
        *out_path = NULL;
        return 0;
    }
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_HOST, "the credentials '%.200s' are no regular file", path);
    if (buf_read(out, fd) < 0)
        return errno == EFBIG ? err_set(err, ERR_LIMIT, "'%.200s' is larger than %zu KiB", path,
                                        out->max >> 10)
                              : err_sys(err, "read '%.200s'", path);
    *out_path = take_ptr(path);
    return 0;
}

/* --- an entry --- */

/* How well a key fits: 0 not at all, else the length of what it names. Keys are hosts, with or
 * without a scheme, a port and the beginning of a path. */
static size_t fit_of(const char *key, const struct pull_ref *ref)
{
    static const char *const schemes[] = { "https://", "http://" };
    static const char *const docker_keys[] = { "index.docker.io/v1", "index.docker.io",
                                               "docker.io", "registry-1.docker.io" };
    const bool aliased = strcmp(ref->server, ref->registry) != 0;
    char whole[600];
    for (size_t i = 0; i < array_len(schemes); i++)
        if (strncmp(key, schemes[i], strlen(schemes[i])) == 0)
            key += strlen(schemes[i]);
    size_t len = strlen(key);
    while (len > 0 && key[len - 1] == '/')
        len--;
    for (size_t i = 0; aliased && i < array_len(docker_keys); i++)
        if (strlen(docker_keys[i]) == len && strncmp(key, docker_keys[i], len) == 0)
            return len;
    snprintf(whole, sizeof whole, "%s/%s", ref->registry, ref->repository);
    bool fits = len >= strlen(ref->registry) && len <= strlen(whole) &&
                strncmp(key, whole, len) == 0 && (whole[len] == 0 || whole[len] == '/');
    return fits ? len : 0;
}

static int refuse_helper(const char *key, const char *what, struct err *err)
{
    char plain[120], value[128];
    str_plain(plain, sizeof plain, str_of(key));
    snprintf(value, sizeof value, "\"%s\"", plain);
    err_input(err, "auths", value, "an entry with \"auth\"",
              "the credentials for '%s' are kept by %s, which cupel does not start", plain, what);
    err_hint(err,
             "write a file with them by 'podman login --authfile FILE %s' and name it by "
             "REGISTRY_AUTH_FILE",
             plain);
    return -1;
}

static bool is_printable(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (iscntrl((unsigned char)text[i]))
            return false;
    return true;
}

/* The text goes into a header as it is: it must be base64 of a user and a password. */
static int take_auth(const char *key, struct str auth, char out[PULL_BASIC_ROOM], struct err *err)
{
    size_t len = 0;
    own_str pair = auth.len < PULL_BASIC_ROOM ? base64_decode_exact(auth, &len) : NULL;
    if (!pair || !memchr(pair, ':', len) || !is_printable(pair, len)) {
        char plain[120];
        str_plain(plain, sizeof plain, str_of(key));
        return err_input(err, "auths", NULL, "base64 of USER:PASSWORD",
                         "the credentials for '%s' are no user and password", plain);
    }
    memcpy(out, auth.at, auth.len);
    out[auth.len] = 0;
    return 0;
}

int pull_auth_find(struct str file, const struct pull_ref *ref, char out[PULL_BASIC_ROOM],
                   struct err *err)
{
    const char *key, *best_key = NULL;
    json_t *entry, *best = NULL;
    size_t best_fit = 0;
    *out = 0;
    own_json document = json_read(file, PULL_AUTH_FILE_MAX, err);
    if (!document || !json_is_object(document))
        return document ? err_set(err, ERR_INPUT, "the credentials are no JSON object")
                        : err_wrap(err, "the credentials");
    json_object_foreach (json_object_get(document, "credHelpers"), key, entry)
        if (fit_of(key, ref) > 0)
            return refuse_helper(key, "a credential helper", err);
    json_object_foreach (json_object_get(document, "auths"), key, entry) {
        size_t fit = fit_of(key, ref);
        if (fit > best_fit) {
            best_fit = fit;
            best = entry;
            best_key = key;
        }
    }
    if (!best)
        return 0;
    if (json_get_str(best, "identitytoken").len > 0)
        return refuse_helper(best_key, "an identity token", err);
    struct str auth = json_get_str(best, "auth");
    if (auth.len == 0)
        return json_object_get(document, "credsStore")
                   ? refuse_helper(best_key, "a credential helper", err)
                   : 0;
    return take_auth(best_key, auth, out, err);
}
