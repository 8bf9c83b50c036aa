/* An OCI image layout. Runs in the cli process, after rights are dropped. */
#include "image/pull/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"

#define PATH_ROOM 96

static void path_of(const char *digest, char out[PATH_ROOM])
{
    snprintf(out, PATH_ROOM, "blobs/sha256/%s", pull_digest_hex(digest));
}

/* Why a write failed, with the fix for a full disk. */
static int explain(struct err *err, const char *what)
{
    int saved = errno;
    err_sys(err, "write '%s'", what);
    if (saved == ENOSPC || saved == EDQUOT)
        err_hint(err, "free some space below the state folder, by 'cupel images prune' or "
                      "otherwise; nothing of this image was kept");
    return -1;
}

static int write_file(int dirfd, const char *path, struct str bytes, struct err *err)
{
    own_fd fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || io_write_all(fd, bytes.at, bytes.len) < 0)
        return explain(err, path);
    return 0;
}

int pull_layout_make(int dirfd, struct err *err)
{
    if (mkdirat(dirfd, "blobs", 0700) < 0 || mkdirat(dirfd, "blobs/sha256", 0700) < 0)
        return explain(err, "blobs");
    return write_file(dirfd, "oci-layout", STR("{\"imageLayoutVersion\":\"1.0.0\"}\n"), err);
}

int pull_layout_blob(int dirfd, const char *digest, int *out_fd, struct err *err)
{
    char path[PATH_ROOM];
    path_of(digest, path);
    int fd = openat(dirfd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return explain(err, path);
    *out_fd = fd;
    return 0;
}

void pull_layout_drop(int dirfd, const char *digest)
{
    char path[PATH_ROOM];
    path_of(digest, path);
    unlinkat(dirfd, path, 0);
}

int pull_layout_put(int dirfd, const char *digest, struct str bytes, struct err *err)
{
    char path[PATH_ROOM];
    path_of(digest, path);
    return write_file(dirfd, path, bytes, err);
}

int pull_layout_finish(int dirfd, const struct pull_blob *manifest, const char *ref,
                       struct err *err)
{
    own_json index = json_pack("{s:i, s:s, s:[{s:s, s:s, s:I, s:{s:s}}]}", "schemaVersion", 2,
                               "mediaType", "application/vnd.oci.image.index.v1+json", "manifests",
                               "mediaType", manifest->type, "digest", manifest->digest, "size",
                               (json_int_t)manifest->bytes, "annotations",
                               "org.opencontainers.image.ref.name", ref);
    own_str text = index ? json_write(index, JSON_COMPACT) : NULL;
    if (!text)
        return err_set(err, ERR_BUG, "write the index of the layout");
    return write_file(dirfd, "index.json", str_of(text), err);
}
