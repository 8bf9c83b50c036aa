/* Finding an image and caching its digest. Runs in the engine's process, after it dropped the
 * caller's privileges. The cache file is read as hostile: capped, checked, and ignored when
 * malformed. A wrong cache costs time and never an answer. */
#include "image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "image/beside.h"
#include "image/digest.h"
#include "image/store/store.h"

#ifdef __x86_64__
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#else
#define LOADER "/lib/ld-linux-aarch64.so.1"
#endif
#define CACHE_MAX (4u << 20)
#define CACHE_SCHEMA 2
#define DIGEST_HEAD "sha256:"
#define DIGEST_SKIP (sizeof DIGEST_HEAD - 1)

void image_done(struct image *image)
{
    json_decref(image->manifest);
    json_decref(image->stored);
    json_decref(image->contents);
    own_close_fd(&image->tree);
    *image = IMAGE_INIT;
}

static bool is_hex64(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static bool is_digest(const char *text)
{
    return strncmp(text, DIGEST_HEAD, DIGEST_SKIP) == 0 && is_hex64(text + DIGEST_SKIP);
}

/* --- the cache --- */

static void cache_name(const struct image *image, char out[64])
{
    if (!image->hex[0])
        snprintf(out, 64, "image-host.json");
    else
        snprintf(out, 64, "image-%.16s.json", image->digest + DIGEST_SKIP);
}

static int read_cache_file(const struct image *image, int state_dirfd, struct buf *out)
{
    char name[64];
    cache_name(image, name);
    own_fd fd = openat(state_dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > CACHE_MAX)
        return -1;
    return buf_read(out, fd);
}

/* Fill in the manifest, and of `host` the digest, from the cache where it is of this image. */
static bool load_cache(int state_dirfd, struct image *image)
{
    own_buf text = BUF_INIT(CACHE_MAX);
    struct err ignored = ERR_INIT;
    if (state_dirfd < 0 || read_cache_file(image, state_dirfd, &text) < 0)
        return false;
    own_json root = json_read(buf_str(&text), CACHE_MAX, &ignored);
    const char *key = json_string_value(json_object_get(root, "key"));
    const char *digest = json_string_value(json_object_get(root, "digest"));
    json_t *manifest = json_object_get(root, "manifest");
    if (json_integer_value(json_object_get(root, "schema")) != CACHE_SCHEMA || !key || !digest ||
        !is_digest(digest))
        return false;
    if (image->hex[0] ? strcmp(digest, image->digest) != 0 : strcmp(key, image->key) != 0)
        return false;
    snprintf(image->digest, sizeof image->digest, "%s", digest);
    if (json_is_object(manifest))
        image->manifest = json_incref(manifest);
    image->from_cache = true;
    return true;
}

int image_save(const struct image *image, int state_dirfd, struct err *err)
{
    own_json root = json_pack("{s:i,s:s,s:s,s:O?}", "schema", CACHE_SCHEMA, "key", image->key,
                              "digest", image->digest, "manifest", image->manifest);
    own_str text = root ? json_write(root, JSON_COMPACT) : NULL;
    if (!text)
        return err_set(err, ERR_BUG, "write the cache of image '%s'", image->name);
    char temp[96], name[64];
    cache_name(image, name);
    snprintf(temp, sizeof temp, ".%s.%d", name, (int)getpid());
    /* A dead process with the same pid may have left a file of this name. */
    unlinkat(state_dirfd, temp, 0);
    own_fd fd = openat(state_dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "create '%s' in the state folder", temp);
    if (io_write_all(fd, text, strlen(text)) < 0 ||
        renameat(state_dirfd, temp, state_dirfd, name) < 0) {
        err_sys(err, "write '%s' in the state folder", name);
        unlinkat(state_dirfd, temp, 0);
        return -1;
    }
    return 0;
}

/* --- pins --- */

bool image_is(const struct image *image, const char *digest)
{
    return strcmp(image->digest, digest) == 0 ||
           (image->hex[0] && is_digest(digest) && strcmp(image->hex, digest + DIGEST_SKIP) == 0);
}

int image_check_pin(const struct image *image, const char *digest, struct err *err)
{
    if (!digest || image_is(image, digest))
        return 0;
    err_input(err, "image", digest, image->digest, "image '%s' is '%s', not '%s'", image->name,
              image->digest, digest);
    if (!image->hex[0])
        err_hint(err, "the host's packages changed; see `cupel images`, or name 'host' alone");
    else
        err_hint(err, "it was made again%s; see `cupel images show %s`, or name '%s' alone",
                 image->on_host ? ", or the host's packages changed" : "", image->name,
                 image->name);
    return -1;
}

/* --- image `host` --- */

/* As boxes have them: the host's own, by fixed paths. Its /usr/local is hidden. */
static void look_at_host(int root_dirfd, struct image_facts *facts)
{
    static const char *const paths[] = { "usr/bin/python3", "usr/bin/node", "bin/bash", "bin/sh" };
    char *const out[] = { facts->python, facts->node, facts->bash, facts->sh };
    char target[64] = "";
    for (size_t i = 0; i < array_len(paths); i++) {
        if (faccessat(root_dirfd, paths[i], X_OK, 0) == 0)
            snprintf(out[i], IMAGE_LOOK_PATH, "/%s", paths[i]);
    }
    if (faccessat(root_dirfd, &LOADER[1], X_OK, 0) == 0) {
        snprintf(facts->libc, sizeof facts->libc, "glibc");
        snprintf(facts->loader, sizeof facts->loader, LOADER);
    }
    ssize_t n = readlinkat(root_dirfd, paths[0], target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    unsigned minor = 0;
    if (n > 0 && sscanf(target, "python3.%u", &minor) == 1 && minor < 100)
        facts->python_minor = (int)minor;
}

static int open_host(int root_dirfd, int state_dirfd, bool recompute, struct image *out,
                     struct err *err)
{
    own_image image = IMAGE_INIT;
    snprintf(image.name, sizeof image.name, "host");
    image.on_host = true;
    image_digest_key(root_dirfd, image.key);
    if (recompute || !load_cache(state_dirfd, &image)) {
        if (image_digest_compute(root_dirfd, image.digest, err) < 0)
            return -1;
    }
    look_at_host(root_dirfd, &image.facts);
    *out = image;
    image = IMAGE_INIT; /* handed on */
    return 0;
}

bool image_is_current(const struct image *image)
{
    char key[IMAGE_KEY_ROOM];
    if (!image->on_host)
        return true;
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return false;
    image_digest_key(root, key);
    return strcmp(key, image->key) == 0;
}

/* --- stored images --- */

/* The tree's own facts hide those of the host. */
static void lay_over(struct image_facts *facts, const struct image_facts *host)
{
    const struct {
        char *own;
        const char *hosts;
    } paths[] = {
        { facts->node, host->node },
        { facts->bash, host->bash },
        { facts->sh, host->sh },
        { facts->os, host->os },
    };
    for (size_t i = 0; i < array_len(paths); i++) {
        if (!paths[i].own[0])
            memcpy(paths[i].own, paths[i].hosts, strlen(paths[i].hosts) + 1);
    }
    if (facts->python[0])
        return;
    memcpy(facts->python, host->python, sizeof facts->python);
    memcpy(facts->libc, host->libc, sizeof facts->libc);
    memcpy(facts->loader, host->loader, sizeof facts->loader);
    facts->python_minor = host->python_minor;
}

static int add_host(int root_dirfd, int state_dirfd, const struct image_entry *entry,
                    struct image *image, struct err *err)
{
    own_image host = IMAGE_INIT;
    if (entry->on_host && open_host(root_dirfd, state_dirfd, false, &host, err) < 0)
        return -1;
    if (entry->on_host) {
        struct err ignored = ERR_INIT;
        if (!host.from_cache && state_dirfd >= 0)
            image_save(&host, state_dirfd, &ignored);
        memcpy(image->key, host.key, sizeof image->key);
        lay_over(&image->facts, &host.facts);
    }
    image_store_digest(entry, host.digest, image->digest);
    return 0;
}

static int open_entry(int root_dirfd, int state_dirfd, const struct image_store *store,
                      struct image_entry *entry, const char *name, struct image *out,
                      struct err *err)
{
    own_image image = IMAGE_INIT;
    snprintf(image.name, sizeof image.name, "%s", entry->name[0] ? entry->name : name);
    memcpy(image.hex, entry->hex, sizeof image.hex);
    image.on_host = entry->on_host;
    if (image_store_hold(store, entry, &image.tree, err) < 0 ||
        image_look(image.tree, &image.facts, err) < 0)
        return -1;
    image.stored = json_incref(entry->manifest);
    image.beside = image_is_beside(&image);
    if (add_host(root_dirfd, state_dirfd, entry, &image, err) < 0)
        return -1;
    load_cache(state_dirfd, &image);
    *out = image;
    image = IMAGE_INIT;
    return 0;
}

/* A digest of results, which covers the host's: no name in the store leads to it. */
static int find_outside(int root_dirfd, int state_dirfd, const struct image_store *store,
                        const char *digest, struct image *out)
{
    struct err ignored = ERR_INIT;
    own_json list = NULL;
    size_t i;
    json_t *row;
    if (image_store_list(store, &list, &ignored) < 0)
        return -1;
    json_array_foreach (list, i, row) {
        own_image_entry entry = IMAGE_ENTRY_INIT;
        own_image image = IMAGE_INIT;
        struct str name = json_get_str(row, "name");
        if (!str_is(json_get_str(row, "base"), "host") ||
            image_store_find(store, name.at, &entry, &ignored) < 0 ||
            open_entry(root_dirfd, state_dirfd, store, &entry, name.at, &image, &ignored) < 0 ||
            strcmp(image.digest, digest) != 0)
            continue;
        *out = image;
        image = IMAGE_INIT;
        return 0;
    }
    return -1;
}

static int open_stored(int root_dirfd, const char *name, int state_dirfd, struct image *out,
                       struct err *err)
{
    own_image_store store = IMAGE_STORE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    if (state_dirfd < 0)
        return err_input(err, "image", name, "host",
                         "unknown image '%.80s': there is no state "
                         "folder, and images are kept there",
                         name);
    if (image_store_open(state_dirfd, /* make= */ false, &store, err) < 0) {
        snprintf(err->value, sizeof err->value, "%s", name);
        return -1;
    }
    if (image_store_find(&store, name, &entry, err) < 0)
        return is_digest(name) ? find_outside(root_dirfd, state_dirfd, &store, name, out) : -1;
    return open_entry(root_dirfd, state_dirfd, &store, &entry, name, out, err);
}

/* --- by name --- */

static bool is_host(const char *name)
{
    return strcmp(name, "host") == 0;
}

int image_open_at(int root_dirfd, const char *name, int state_dirfd, bool recompute,
                  struct image *out, struct err *err)
{
    const char *at = strchr(name, '@');
    char plain[IMAGE_NAMES_ROOM];
    own_image image = IMAGE_INIT;
    int len = at ? (int)(at - name) : (int)strlen(name);
    snprintf(plain, sizeof plain, "%.*s", len, name);
    if (at && !is_digest(at + 1))
        return err_input(err, "image", name, "NAME@sha256: and 64 hexadecimal digits",
                         "image '%.100s' has no valid digest", name);
    int rc = is_host(plain) ? open_host(root_dirfd, state_dirfd, recompute, &image, err)
                            : open_stored(root_dirfd, plain, state_dirfd, &image, err);
    if (rc < 0 || image_check_pin(&image, at ? at + 1 : NULL, err) < 0)
        return -1;
    *out = image;
    out->contents = json_object();
    image = IMAGE_INIT; /* handed on */
    return 0;
}

int image_open(const char *name, int state_dirfd, bool recompute, struct image *out,
               struct err *err)
{
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_sys(err, "open '/'");
    return image_open_at(root, name, state_dirfd, recompute, out, err);
}

void image_lead(const char *name, int state_dirfd, char out[IMAGE_LEAD_ROOM])
{
    char path[128], hex[IMAGE_KEY_ROOM + 1] = "";
    struct stat st;
    out[0] = 0;
    if (is_digest(name)) {
        snprintf(hex, sizeof hex, "%s", name + DIGEST_SKIP);
    } else {
        snprintf(path, sizeof path, "images/names/%.*s", IMAGE_NAME_ROOM, name);
        if (strchr(name, '/') || io_read_text(state_dirfd, path, hex, sizeof hex) < 64)
            return;
        hex[64] = 0;
    }
    if (!is_hex64(hex))
        return;
    snprintf(path, sizeof path, "images/bad/%s", hex);
    bool bad = faccessat(state_dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    snprintf(path, sizeof path, "images/manifests/%s.json", hex);
    if (bad || fstatat(state_dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    snprintf(out, IMAGE_LEAD_ROOM, "%s %llu %lld.%09ld", hex, (unsigned long long)st.st_ino,
             (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}
