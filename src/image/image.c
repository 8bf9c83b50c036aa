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
#include "image/digest.h"

#define CACHE_NAME "image-host.json"
#define CACHE_MAX (4u << 20)
#define CACHE_SCHEMA 2

void image_done(struct image *image)
{
    json_decref(image->manifest);
    *image = IMAGE_INIT;
}

static bool is_hex64(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static bool is_digest(const char *text)
{
    return strncmp(text, "sha256:", 7) == 0 && is_hex64(text + 7);
}

static int read_cache_file(int state_dirfd, struct buf *out)
{
    own_fd fd = openat(state_dirfd, CACHE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > CACHE_MAX)
        return -1;
    return buf_read(out, fd);
}

/* Fill digest and manifest from the cache where its key is image->key. */
static bool load_cache(int state_dirfd, struct image *image)
{
    own_buf text = BUF_INIT(CACHE_MAX);
    struct err ignored = ERR_INIT;
    if (state_dirfd < 0 || read_cache_file(state_dirfd, &text) < 0)
        return false;
    own_json root = json_read(buf_str(&text), CACHE_MAX, &ignored);
    const char *key = json_string_value(json_object_get(root, "key"));
    const char *digest = json_string_value(json_object_get(root, "digest"));
    json_t *manifest = json_object_get(root, "manifest");
    if (json_integer_value(json_object_get(root, "schema")) != CACHE_SCHEMA || !key || !digest ||
        strcmp(key, image->key) != 0 || !is_digest(digest))
        return false;
    snprintf(image->digest, sizeof image->digest, "%s", digest);
    if (json_is_object(manifest))
        image->manifest = json_incref(manifest);
    image->from_cache = true;
    return true;
}

static int refuse_name(const char *name, struct err *err)
{
    err_input(err, "image", name, "\"host\"", "unknown image '%.60s'", name);
    err_hint(err, "only image 'host' exists: leave the field out, or see `cupel images`");
    return -1;
}

int image_open_at(int root_dirfd, const char *name, int state_dirfd, bool recompute,
                  struct image *out, struct err *err)
{
    const char *at = strchr(name, '@');
    size_t len = at ? (size_t)(at - name) : strlen(name);
    if (len != 4 || strncmp(name, "host", 4) != 0)
        return refuse_name(name, err);
    if (at && !is_digest(at + 1))
        return err_input(err, "image", name, "NAME@sha256: and 64 hexadecimal digits",
                         "image '%.100s' has no valid digest", name);

    own_image image = { .name = "host" };
    image_digest_key(root_dirfd, image.key);
    if (recompute || !load_cache(state_dirfd, &image)) {
        if (image_digest_compute(root_dirfd, image.digest, err) < 0)
            return -1;
    }
    if (at && strcmp(at + 1, image.digest) != 0) {
        err_input(err, "image", name, image.digest, "image 'host' is now '%s'", image.digest);
        err_hint(err, "the host's packages changed; see `cupel images`, or name 'host' alone");
        return -1;
    }
    *out = image;
    image.manifest = NULL; /* handed on */
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

bool image_is_current(const struct image *image)
{
    char key[IMAGE_KEY_ROOM];
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return false;
    image_digest_key(root, key);
    return strcmp(key, image->key) == 0;
}

int image_save(const struct image *image, int state_dirfd, struct err *err)
{
    own_json root = json_pack("{s:i,s:s,s:s,s:O?}", "schema", CACHE_SCHEMA, "key", image->key,
                              "digest", image->digest, "manifest", image->manifest);
    own_str text = root ? json_write(root, JSON_COMPACT) : NULL;
    if (!text)
        return err_set(err, ERR_BUG, "write the cache of image '%s'", image->name);
    char temp[64];
    snprintf(temp, sizeof temp, ".%s.%d", CACHE_NAME, (int)getpid());
    /* A dead process with the same pid may have left a file of this name. */
    unlinkat(state_dirfd, temp, 0);
    own_fd fd = openat(state_dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "create '%s' in the state folder", temp);
    if (io_write_all(fd, text, strlen(text)) < 0 ||
        renameat(state_dirfd, temp, state_dirfd, CACHE_NAME) < 0) {
        err_sys(err, "write '%s' in the state folder", CACHE_NAME);
        unlinkat(state_dirfd, temp, 0);
        return -1;
    }
    return 0;
}
