/* An image of a registry into a layout. Runs in the cli process, after rights are dropped.
 * Nothing that came is looked at before its digest is known, but the document that a tag leads to:
 * its digest is what the tag means today. */
#include "image/pull/fetch.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"
#include "image/pull/layout.h"

void pull_found_done(struct pull_found *found)
{
    free(found->text);
    pull_image_done(&found->image);
    *found = (struct pull_found){ 0 };
}

static int check_digest(const char *what, const char *wanted, const char *hex, struct err *err)
{
    char value[PULL_DIGEST_ROOM + 2];
    if (strcmp(pull_digest_hex(wanted), hex) == 0)
        return 0;
    snprintf(value, sizeof value, "\"sha256:%s\"", hex);
    err_input(err, "digest", value, wanted,
              "the registry's %s has another content than its digest says: sha256:%.16s, not %.23s",
              what, hex, wanted);
    err_hint(err, "the registry is damaged, or somebody changed it: nothing of the image was kept");
    return -1;
}

/* --- documents --- */

static int take_text(void *user, struct str bytes, struct err *err)
{
    if (buf_add_str(user, bytes) == 0)
        return 0;
    return err_set(err, ERR_LIMIT, "the registry's document is larger than %zu MiB",
                   PULL_DOCUMENT_MAX >> 20);
}

static int forget_text(void *user, struct err *err)
{
    struct buf *text = user;
    (void)err;
    buf_drop(text, text->len);
    return 0;
}

/* One manifest or list. `digest` NULL: a tag's. `bytes` -1: of unknown size. */
static int get_document(struct pull_remote *remote, const char *name, const char *digest,
                        int64_t bytes, struct buf *text, char type[128], char hex[HASH_HEX_ROOM],
                        struct err *err)
{
    char path[256];
    struct pull_get get = { .path = path, .accept = PULL_ACCEPT, .bytes = bytes,
                            .max_bytes = bytes >= 0 ? bytes : (int64_t)PULL_DOCUMENT_MAX,
                            .take = take_text, .restart = forget_text, .user = text };
    snprintf(path, sizeof path, "manifests/%s", name);
    if (pull_remote_get(remote, &get, err) < 0)
        return -1;
    hash_hex(buf_str(text), hex);
    snprintf(type, 128, "%s", get.type);
    return digest ? check_digest("manifest", digest, hex, err) : 0;
}

static int keep_manifest(const json_t *document, const struct buf *text, const char *type,
                         const char *hex, struct pull_found *out, struct err *err)
{
    struct str own = json_get_str(document, "mediaType");
    snprintf(out->manifest.digest, sizeof out->manifest.digest, "sha256:%s", hex);
    str_plain(out->manifest.type, sizeof out->manifest.type,
              own.len > 0              ? own
              : strstr(type, "docker") ? str_of(type)
                                       : STR("application/vnd.oci.image.manifest.v1+json"));
    out->manifest.bytes = (int64_t)text->len;
    out->text = buf_strdup(buf_str(text));
    return pull_image_read(document, &out->image, err);
}

int pull_fetch_find(struct pull_remote *remote, const struct pull_fetch_options *options,
                    struct pull_found *out, struct err *err)
{
    const struct pull_ref *ref = options->ref;
    const bool pinned = ref->digest[0] != 0;
    char type[128], hex[HASH_HEX_ROOM];
    own_buf text = BUF_INIT(PULL_DOCUMENT_MAX);
    own_json document = NULL;
    own_pull_found found = { 0 };
    enum pull_document is;
    if (get_document(remote, pinned ? ref->digest : ref->tag, pinned ? ref->digest : NULL,
                     /* bytes= */ -1, &text, type, hex, err) < 0 ||
        pull_document_read(buf_str(&text), type, &document, &is, err) < 0)
        return -1;
    snprintf(found.named, sizeof found.named, "sha256:%s", hex);
    if (is == PULL_INDEX) {
        struct pull_blob chosen;
        if (pull_index_choose(document, options->machine, &chosen, err) < 0)
            return -1;
        json_decref(take_ptr(document));
        buf_drop(&text, text.len);
        if (get_document(remote, chosen.digest, chosen.digest, chosen.bytes, &text, type, hex,
                         err) < 0 ||
            pull_document_read(buf_str(&text), type, &document, &is, err) < 0)
            return -1;
        if (is == PULL_INDEX)
            return err_input(err, "manifests", NULL, "manifests of images",
                             "the registry's list leads to another list");
    }
    if (keep_manifest(document, &text, type, hex, &found, err) < 0)
        return -1;
    *out = found;
    found = (struct pull_found){ 0 };
    return 0;
}

/* --- blobs --- */

struct download {
    const struct pull_fetch_options *options;
    struct pull_layout layout;
    struct hash hash;
    int64_t before, taken, total; /* bytes of earlier blobs, of this one, of all */
};

static int take_blob(void *user, struct str bytes, struct err *err)
{
    struct download *download = user;
    if (pull_layout_write(&download->layout, bytes, err) < 0)
        return -1;
    hash_add(&download->hash, bytes.at, bytes.len);
    download->taken += (int64_t)bytes.len;
    if (download->options->on_bytes)
        download->options->on_bytes(download->options->user, download->before + download->taken,
                                    download->total);
    return 0;
}

static int restart_blob(void *user, struct err *err)
{
    struct download *download = user;
    hash_start(&download->hash);
    download->taken = 0;
    return pull_layout_restart(&download->layout, err);
}

static int get_blob(struct pull_remote *remote, struct download *download,
                    const struct pull_blob *blob, struct err *err)
{
    char path[128], hex[HASH_HEX_ROOM];
    struct pull_get get = { .path = path,
                            .bytes = blob->bytes,
                            .max_bytes = blob->bytes,
                            .resumes = true,
                            .take = take_blob,
                            .restart = restart_blob,
                            .user = download };
    snprintf(path, sizeof path, "blobs/%s", blob->digest);
    if (pull_layout_blob(&download->layout, blob, err) < 0)
        return -1;
    download->taken = 0;
    hash_start(&download->hash);
    if (pull_remote_get(remote, &get, err) < 0)
        return -1;
    hash_end_hex(&download->hash, hex);
    download->before += blob->bytes;
    if (check_digest("blob", blob->digest, hex, err) < 0)
        return -1;
    return pull_layout_blob_end(&download->layout, blob, err);
}

static bool is_repeated(const struct pull_image *image, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(image->layers[k].digest, image->layers[i].digest) == 0)
            return true;
    return strcmp(image->config.digest, image->layers[i].digest) == 0;
}

static int put_manifest(struct download *download, const struct pull_found *found, struct err *err)
{
    const struct str text = { found->text, (size_t)found->manifest.bytes };
    if (pull_layout_blob(&download->layout, &found->manifest, err) < 0 ||
        pull_layout_write(&download->layout, text, err) < 0)
        return -1;
    return pull_layout_blob_end(&download->layout, &found->manifest, err);
}

int pull_fetch_layout(struct pull_remote *remote, const struct pull_fetch_options *options,
                      const struct pull_found *found, int fd, struct err *err)
{
    const struct pull_image *image = &found->image;
    struct download download = { .options = options, .total = image->bytes };
    if (image->bytes > options->max_bytes) {
        err_set(err, ERR_LIMIT, "the image has %lld bytes to load, at most %lld",
                (long long)image->bytes, (long long)options->max_bytes);
        err_hint(err, "allow more by --max-size");
        return -1;
    }
    if (pull_layout_begin(&download.layout, fd, err) < 0 ||
        put_manifest(&download, found, err) < 0 ||
        get_blob(remote, &download, &image->config, err) < 0)
        return -1;
    for (size_t i = 0; i < image->count; i++)
        if (!is_repeated(image, i) && get_blob(remote, &download, &image->layers[i], err) < 0)
            return -1;
    return pull_layout_finish(&download.layout, &found->manifest,
                              options->ref->tag[0] ? options->ref->tag : "latest", err);
}
