/* `docker save` archives, OCI layouts and root file systems into a build. Runs in the cli process.
 * A pipe and a compressed archive of blobs are first unpacked into a file of the build, because
 * their parts are not in the order in which they are needed. */
#include "image/archive/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "image/archive/layer.h"
#include "image/archive/oci.h"
#include "image/archive/outer.h"

#define INDEXES_MAX 4 /* an index in an index */
#define BLOBS "blobs/sha256/"
#define BLOB_ROOM (sizeof BLOBS + HASH_HEX_ROOM)

struct import {
    struct layer_job job;
    const struct outer *outer;
};

static int refuse_digest(struct err *err, size_t layer, const char *what, const char *found)
{
    return err_input(err, "image", NULL, NULL,
                     "layer %zu of the image has another digest than its %s says: sha256:%s", layer,
                     what, found);
}

/* A layer whose place is known. `packed_hex` and `size` may be unknown: NULL and -1. */
static int apply(const struct import *import, size_t number, const struct unpack_source *source,
                 const char *packed_hex, int64_t size, const char *diff_id, struct err *err)
{
    struct unpack_sums sums;
    if (size >= 0 && size != source->size)
        return err_input(err, "image", NULL, NULL,
                         "layer %zu of the image has %lld bytes, and its manifest says %lld",
                         number, (long long)source->size, (long long)size);
    if (layer_apply(&import->job, source, LAYER_DIFF, &sums, err) < 0)
        return -1;
    if (packed_hex && strcmp(packed_hex, sums.packed) != 0)
        return refuse_digest(err, number, "manifest", sums.packed);
    if (strcmp(diff_id, sums.plain) != 0)
        return refuse_digest(err, number, "configuration", sums.plain);
    return 0;
}

static int check_layers(size_t in_manifest, size_t in_config, struct err *err)
{
    if (in_manifest == in_config)
        return 0;
    return err_input(err, "image", NULL, NULL,
                     "the manifest has %zu layers, and the configuration %zu", in_manifest,
                     in_config);
}

static void add_facts(struct import *import, struct oci_config *config, const char *config_hex,
                      const char *manifest_hex)
{
    struct image_import_report *report = import->job.report;
    char digest[72];
    report->facts = take_ptr(config->facts);
    snprintf(digest, sizeof digest, "sha256:%s", config_hex);
    json_object_set_new(report->facts, "config", json_string(digest));
    snprintf(digest, sizeof digest, "sha256:%s", manifest_hex);
    if (*manifest_hex)
        json_object_set_new(report->facts, "manifest", json_string(digest));
}

/* --- OCI layouts --- */

static void blob_name(const char *hex, char out[BLOB_ROOM])
{
    snprintf(out, BLOB_ROOM, BLOBS "%s", hex);
}

static int read_blob(const struct import *import, const struct oci_descriptor *of, struct buf *out,
                     struct err *err)
{
    char name[BLOB_ROOM];
    blob_name(of->hex, name);
    if (outer_read(import->outer, name, of->hex, out, err) < 0)
        return -1;
    if ((int64_t)out->len != of->size)
        return err_input(err, "image", NULL, NULL, "blob sha256:%s has %zu bytes, not %lld",
                         of->hex, out->len, (long long)of->size);
    return 0;
}

/* From the index down to the manifest of one image. */
static int find_manifest(const struct import *import, struct oci_manifest *out,
                         char out_hex[HASH_HEX_ROOM], struct err *err)
{
    const char *ref = import->job.options->ref;
    own_buf text = BUF_INIT(OCI_JSON_MAX);
    struct oci_descriptor next = { .hex = "" };
    if (outer_read(import->outer, "index.json", NULL, &text, err) < 0)
        return -1;
    for (int depth = 0; depth < INDEXES_MAX; depth++) {
        enum oci_kind kind;
        char name[OCI_NAME_ROOM];
        own_json value = NULL;
        if (oci_read(buf_str(&text), &value, &kind, err) < 0)
            return -1;
        if (kind == OCI_MANIFEST) {
            memcpy(out_hex, next.hex, HASH_HEX_ROOM);
            return oci_manifest_read(value, out, err);
        }
        bool top = depth == 0;
        if (oci_index_pick(value, top ? ref : NULL, top, oci_architecture(), &next, name, err) < 0)
            return -1;
        if (top)
            memcpy(import->job.report->name, name, sizeof name);
        text.len = 0;
        if (read_blob(import, &next, &text, err) < 0)
            return -1;
    }
    return err_input(err, "image", NULL, NULL, "the index leads to more than %d others",
                     INDEXES_MAX);
}

static int import_layout(struct import *import, struct err *err)
{
    own_oci_manifest manifest = OCI_MANIFEST_INIT;
    own_oci_config config = OCI_CONFIG_INIT;
    own_buf text = BUF_INIT(OCI_JSON_MAX);
    char hex[HASH_HEX_ROOM], name[BLOB_ROOM];
    import->job.report->form = "oci";
    if (find_manifest(import, &manifest, hex, err) < 0 ||
        read_blob(import, &manifest.config, &text, err) < 0 ||
        oci_config_read(buf_str(&text), oci_architecture(), &config, err) < 0 ||
        check_layers(manifest.count, config.count, err) < 0)
        return -1;
    for (size_t i = 0; i < manifest.count; i++) {
        const struct oci_descriptor *layer = &manifest.layers[i];
        struct unpack_source source;
        blob_name(layer->hex, name);
        if (!outer_find(import->outer, name, &source)) {
            err_input(err, "image", NULL, NULL, "layer %zu of the image is missing: sha256:%s",
                      i + 1, layer->hex);
            err_hint(err, "the archive is not complete: save the image again");
            return -1;
        }
        if (apply(import, i + 1, &source, layer->hex, layer->size, config.diff_ids[i], err) < 0)
            return -1;
    }
    add_facts(import, &config, manifest.config.hex, hex);
    return 0;
}

/* --- docker save --- */

/* Does this path say its own digest? "blobs/sha256/HEX", or "HEX.json" for a configuration. */
static const char *hex_of(const char *path, const char *end, char out[HASH_HEX_ROOM])
{
    if (strncmp(path, BLOBS, strlen(BLOBS)) == 0)
        path += strlen(BLOBS);
    else if (!end || strcmp(path + strspn(path, "0123456789abcdef"), end) != 0)
        return NULL;
    if (strspn(path, "0123456789abcdef") != HASH_HEX_ROOM - 1)
        return NULL;
    memcpy(out, path, HASH_HEX_ROOM - 1);
    out[HASH_HEX_ROOM - 1] = '\0';
    return out;
}

static int import_saved(struct import *import, struct err *err)
{
    own_oci_saved saved = OCI_SAVED_INIT;
    own_oci_config config = OCI_CONFIG_INIT;
    own_buf text = BUF_INIT(OCI_JSON_MAX);
    char hex[HASH_HEX_ROOM], config_hex[HASH_HEX_ROOM];
    import->job.report->form = "docker";
    if (outer_read(import->outer, "manifest.json", NULL, &text, err) < 0 ||
        oci_saved_read(buf_str(&text), import->job.options->ref, &saved, err) < 0)
        return -1;
    memcpy(import->job.report->name, saved.name, sizeof saved.name);
    text.len = 0;
    if (outer_read(import->outer, saved.config, hex_of(saved.config, ".json", hex), &text, err) <
            0 ||
        oci_config_read(buf_str(&text), oci_architecture(), &config, err) < 0 ||
        check_layers(saved.count, config.count, err) < 0)
        return -1;
    for (size_t i = 0; i < saved.count; i++) {
        struct unpack_source source;
        if (!outer_find(import->outer, saved.layers[i], &source))
            return err_input(err, "image", NULL, NULL, "layer %zu of the image is missing", i + 1);
        if (apply(import, i + 1, &source, hex_of(saved.layers[i], NULL, hex), -1,
                  config.diff_ids[i], err) < 0)
            return -1;
    }
    hash_hex(buf_str(&text), config_hex);
    add_facts(import, &config, config_hex, "");
    return 0;
}

/* --- all --- */

static int import_blobs(struct import *import, int fd, struct err *err)
{
    own_outer outer = OUTER_INIT;
    struct unpack_source found;
    if (outer_open(fd, &outer, err) < 0)
        return -1;
    import->outer = &outer;
    /* The newer `docker save` has both: the index has more digests. */
    if (outer_find(&outer, "index.json", &found))
        return import_layout(import, err);
    if (outer_find(&outer, "manifest.json", &found))
        return import_saved(import, err);
    err_input(err, "image", NULL, NULL,
              "the archive has neither index.json nor manifest.json, and is no root file system");
    err_hint(err, "make it with docker save, podman save, skopeo copy, or tar -C ROOT -c .");
    return -1;
}

static int import_root(struct import *import, int fd, int64_t size, struct err *err)
{
    const struct unpack_source source = { fd, 0, size };
    struct unpack_sums sums;
    import->job.report->form = "root";
    if (layer_apply(&import->job, &source, LAYER_ROOT, &sums, err) < 0)
        return -1;
    import->job.report->facts = json_pack("{s:{}}", "env");
    return 0;
}

/* The plain bytes of a pipe, or of a compressed file, in a file without a name. */
static int stage(const struct import *import, const struct unpack_source *source, int *out_fd,
                 struct err *err)
{
    const struct image_import_options *options = import->job.options;
    int64_t max = options->bytes_max > 0 ? options->bytes_max : IMAGE_IMPORT_BYTES_MAX, told = 0;
    int dir;
    own_unpack unpack = NULL;
    if (image_build_stage(import->job.build, &dir, err) < 0)
        return -1;
    own_fd fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        fd = openat(dir, "archive", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0)
            unlinkat(dir, "archive", 0);
    }
    if (fd < 0)
        return err_sys(err, "make a file for the archive");
    if (unpack_open(source, max, &unpack, err) < 0)
        return -1;
    const void *piece;
    ssize_t n;
    while ((n = unpack_next(unpack, &piece, err)) > 0) {
        if (io_write_all(fd, piece, (size_t)n) < 0)
            return err_sys(err, "write the archive into the build");
        if (options->progress && (told += n) >= (64 << 20)) {
            options->progress(options->user, 0, 0);
            told = 0;
        }
    }
    if (n < 0)
        return -1;
    *out_fd = take_fd(&fd);
    return 0;
}

static bool is_compressed(int fd)
{
    unsigned char magic[6] = { 0 };
    return pread(fd, magic, sizeof magic, 0) > 2 &&
           (memcmp(magic, "\x1f\x8b", 2) == 0 || memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0 ||
            memcmp(magic,
                   "\xfd"
                   "7zXZ",
                   6) == 0 ||
            memcmp(magic, "BZh", 3) == 0);
}

static int import_file(struct import *import, int fd, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "look at the archive");
    int is_blobs = outer_is_one(fd, err);
    if (is_blobs <= 0)
        return is_blobs < 0 ? -1 : import_root(import, fd, st.st_size, err);
    if (!is_compressed(fd))
        return import_blobs(import, fd, err);
    const struct unpack_source source = { fd, 0, st.st_size };
    own_fd plain = -1;
    if (stage(import, &source, &plain, err) < 0)
        return -1;
    return import_blobs(import, plain, err);
}

static int refuse_kind(struct err *err)
{
    return err_input(err, "image", NULL, NULL, "the archive is neither a file nor a pipe");
}

int image_import(struct image_build *build, int fd, const struct image_import_options *options,
                 struct image_import_report *report, struct err *err)
{
    struct stat st;
    own_paths paths = paths_new();
    own_fd plain = -1;
    struct import import = { .job = { build, paths, options, report } };
    if (fstat(fd, &st) < 0)
        return err_sys(err, "look at the archive");
    if (S_ISREG(st.st_mode))
        return import_file(&import, fd, err);
    if (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
        return refuse_kind(err);
    const struct unpack_source source = { fd, -1, 0 };
    if (stage(&import, &source, &plain, err) < 0)
        return -1;
    return import_file(&import, plain, err);
}
