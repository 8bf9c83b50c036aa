/* An OCI image layout as a tar. Runs in the cli process, after rights are dropped. */
#include "image/pull/layout.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"

#define BLOCK 512
#define OCTAL_MAX ((int64_t)1 << 33) /* eleven digits */

/* POSIX.1-1988, "ustar". */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

int pull_layout_write(struct pull_layout *layout, struct str bytes, struct err *err)
{
    if (io_write_all(layout->fd, bytes.at, bytes.len) == 0)
        return 0;
    const bool full = errno == ENOSPC || errno == EDQUOT;
    err_sys(err, "write the image into the state folder");
    if (full)
        err_hint(err, "free some space there, by 'cupel images prune' or otherwise; nothing of "
                      "this image was kept");
    return -1;
}

/* Eleven octal digits, or what GNU tar made of larger numbers: base 256 after a set bit. */
static void put_size(char out[12], int64_t size)
{
    if (size < OCTAL_MAX) {
        snprintf(out, 12, "%011llo", (unsigned long long)size);
        return;
    }
    out[0] = (char)0x80;
    for (int i = 11; i > 3; i--, size >>= 8)
        out[i] = (char)(size & 0xff);
}

static int put_header(struct pull_layout *layout, const char *name, int64_t size, struct err *err)
{
    struct header header = { .type = '0', .magic = "ustar", .version = { '0', '0' } };
    unsigned sum = 0;
    snprintf(header.name, sizeof header.name, "%s", name);
    memcpy(header.mode, "0000644", 8);
    memcpy(header.uid, "0000000", 8);
    memcpy(header.gid, "0000000", 8);
    memcpy(header.mtime, "00000000000", 12);
    memset(header.sum, ' ', sizeof header.sum);
    put_size(header.size, size);
    for (size_t i = 0; i < sizeof header; i++)
        sum += ((const unsigned char *)&header)[i];
    snprintf(header.sum, 7, "%06o", sum & 0777777);
    return pull_layout_write(layout, (struct str){ (const char *)&header, sizeof header }, err);
}

static int pad(struct pull_layout *layout, int64_t size, struct err *err)
{
    static const char zeros[BLOCK];
    size_t rest = (size_t)(size % BLOCK);
    return rest == 0 ? 0 : pull_layout_write(layout, (struct str){ zeros, BLOCK - rest }, err);
}

static int put_file(struct pull_layout *layout, const char *name, struct str text, struct err *err)
{
    if (put_header(layout, name, (int64_t)text.len, err) < 0 ||
        pull_layout_write(layout, text, err) < 0)
        return -1;
    return pad(layout, (int64_t)text.len, err);
}

int pull_layout_begin(struct pull_layout *layout, int fd, struct err *err)
{
    *layout = (struct pull_layout){ .fd = fd };
    return put_file(layout, "oci-layout", STR("{\"imageLayoutVersion\":\"1.0.0\"}"), err);
}

int pull_layout_blob(struct pull_layout *layout, const struct pull_blob *blob, struct err *err)
{
    char name[100];
    snprintf(name, sizeof name, "blobs/sha256/%s", pull_digest_hex(blob->digest));
    if (put_header(layout, name, blob->bytes, err) < 0)
        return -1;
    layout->start = lseek(layout->fd, 0, SEEK_CUR);
    return layout->start < 0 ? err_sys(err, "find the place of a blob") : 0;
}

int pull_layout_restart(struct pull_layout *layout, struct err *err)
{
    if (ftruncate(layout->fd, layout->start) < 0 || lseek(layout->fd, layout->start, SEEK_SET) < 0)
        return err_sys(err, "begin a blob anew");
    return 0;
}

int pull_layout_blob_end(struct pull_layout *layout, const struct pull_blob *blob, struct err *err)
{
    return pad(layout, blob->bytes, err);
}

int pull_layout_finish(struct pull_layout *layout, const struct pull_blob *manifest,
                       const char *ref, struct err *err)
{
    static const char end[2 * BLOCK];
    own_json index = json_pack("{s:i, s:s, s:[{s:s, s:s, s:I, s:{s:s}}]}", "schemaVersion", 2,
                               "mediaType", "application/vnd.oci.image.index.v1+json", "manifests",
                               "mediaType", manifest->type, "digest", manifest->digest, "size",
                               (json_int_t)manifest->bytes, "annotations",
                               "org.opencontainers.image.ref.name", ref);
    own_str text = index ? json_write(index, JSON_COMPACT) : NULL;
    if (!text)
        return err_set(err, ERR_BUG, "write the index of the layout");
    if (put_file(layout, "index.json", str_of(text), err) < 0)
        return -1;
    return pull_layout_write(layout, (struct str){ end, sizeof end }, err);
}
