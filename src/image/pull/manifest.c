/* Manifests of images. Runs in the cli process; pure.
 * Every descriptor is checked before anything is asked for: its digest names the file that it
 * becomes, and its size is the bound of the download. */
#include "image/pull/manifest.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"

#define BLOB_BYTES_MAX ((int64_t)1 << 40)
#define ENTRIES_MAX 4096 /* of a list */

static const struct {
    const char *type;
    enum pull_document is;
} types[] = {
    { "application/vnd.oci.image.index.v1+json", PULL_INDEX },
    { "application/vnd.docker.distribution.manifest.list.v2+json", PULL_INDEX },
    { "application/vnd.oci.image.manifest.v1+json", PULL_MANIFEST },
    { "application/vnd.docker.distribution.manifest.v2+json", PULL_MANIFEST },
};

/* Media types that the import can unpack. */
static const char *const layer_types[] = {
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
};

static const char *const config_types[] = {
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
};

void pull_image_done(struct pull_image *image)
{
    free(image->layers);
    *image = (struct pull_image){ 0 };
}

static bool is_one_of(const char *type, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(type, list[i]) == 0)
            return true;
    return false;
}

static int refuse(struct err *err, const char *field, const json_t *value, const char *bound,
                  const char *why)
{
    char brief[120] = "";
    json_brief(value, brief, sizeof brief);
    return err_input(err, field, brief, bound, "the registry's %s %s", field, why);
}

/* --- documents --- */

/* 0: a document of that type; 1: the type says nothing; -1: a type of something else. */
static int kind_of(const char *type, enum pull_document *out)
{
    for (size_t i = 0; i < array_len(types); i++)
        if (strcmp(type, types[i].type) == 0) {
            *out = types[i].is;
            return 0;
        }
    bool silent = !*type || strcmp(type, "application/json") == 0 ||
                  strcmp(type, "text/plain") == 0 || strcmp(type, "application/octet-stream") == 0;
    return silent ? 1 : -1;
}

static int refuse_type(const char *type, struct err *err)
{
    bool old = strstr(type, "manifest.v1+") || strstr(type, "manifest.v1+prettyjws");
    char value[140];
    snprintf(value, sizeof value, "\"%.120s\"", type);
    err_input(err, "mediaType", value, "an image's manifest, or a list of them",
              old ? "the registry has the image only in the old form '%.120s'"
                  : "the registry's document is no image's manifest but '%.120s'",
              type);
    if (old)
        err_hint(err, "push it again by a newer docker, podman or skopeo");
    return -1;
}

/* Both members in one document, or one that the type contradicts: two readers could see two
 * images. */
static int check_kind(const json_t *document, enum pull_document is, struct err *err)
{
    bool lists = json_object_get(document, "manifests") != NULL;
    bool layers = json_object_get(document, "layers") || json_object_get(document, "config");
    if (lists == layers || lists != (is == PULL_INDEX))
        return err_input(err, "manifest", NULL, "either manifests, or config and layers",
                         "the registry's manifest is of no clear kind");
    return 0;
}

int pull_document_read(struct str text, const char *type, json_t **out, enum pull_document *out_is,
                       struct err *err)
{
    char said[128], own[128];
    enum pull_document is = PULL_MANIFEST, inner = PULL_MANIFEST;
    own_json document = json_read(text, PULL_DOCUMENT_MAX, err);
    if (!document)
        return err_wrap(err, "the registry's manifest");
    if (!json_is_object(document))
        return refuse(err, "manifest", document, "an object", "is no object");
    snprintf(said, sizeof said, "%.*s", (int)strcspn(type, "; \t"), type);
    str_plain(own, sizeof own, json_get_str(document, "mediaType"));
    int outer_known = kind_of(said, &is), own_known = kind_of(own, &inner);
    if (outer_known < 0 || own_known < 0)
        return refuse_type(outer_known < 0 ? said : own, err);
    if (outer_known != 0)
        is = own_known == 0                           ? inner
             : json_object_get(document, "manifests") ? PULL_INDEX
                                                      : PULL_MANIFEST;
    if (own_known == 0 && inner != is)
        return refuse(err, "mediaType", json_object_get(document, "mediaType"), said,
                      "contradicts its header");
    if (check_kind(document, is, err) < 0)
        return -1;
    *out_is = is;
    *out = take_ptr(document);
    return 0;
}

/* --- descriptors --- */

static int read_blob(const json_t *descriptor, const char *field, struct pull_blob *out,
                     struct err *err)
{
    const json_t *digest = json_object_get(descriptor, "digest");
    const json_t *size = json_object_get(descriptor, "size");
    const json_t *type = json_object_get(descriptor, "mediaType");
    struct pull_blob blob = { .bytes = json_integer_value(size) };
    if (!json_is_string(digest) || !pull_digest_valid(json_str(digest)))
        return refuse(err, field, digest ? digest : descriptor, "sha256: and 64 digits",
                      "has no SHA-256 digest");
    if (!json_is_integer(size) || blob.bytes < 0 || blob.bytes > BLOB_BYTES_MAX)
        return refuse(err, field, size ? size : descriptor, "0 to 1099511627776 bytes",
                      "has no size that is possible");
    if (!json_is_string(type) || json_string_length(type) >= sizeof blob.type)
        return refuse(err, field, type ? type : descriptor, "a media type of at most 127 bytes",
                      "has no media type");
    snprintf(blob.digest, sizeof blob.digest, "%s", json_string_value(digest));
    str_plain(blob.type, sizeof blob.type, json_str(type));
    *out = blob;
    return 0;
}

/* --- lists --- */

static const struct {
    const char *machine, *architecture;
} machines[] = {
    { "x86_64", "amd64" },     { "aarch64", "arm64" }, { "ppc64le", "ppc64le" },
    { "s390x", "s390x" },      { "riscv64", "riscv64" }, { "i686", "386" },
    { "loongarch64", "loong64" },
};

static const char *architecture_of(const char *machine)
{
    for (size_t i = 0; i < array_len(machines); i++)
        if (strcmp(machine, machines[i].machine) == 0)
            return machines[i].architecture;
    return machine;
}

/* Variants are steps of an architecture: the lowest one, or none, is what every machine runs. */
static bool runs_here(const json_t *platform, const char *architecture)
{
    struct str variant = json_get_str(platform, "variant");
    return str_is(json_get_str(platform, "os"), "linux") &&
           str_is(json_get_str(platform, "architecture"), architecture) &&
           (variant.len == 0 || str_is(variant, "v8") || str_is(variant, "v1"));
}

static void add_platform(struct buf *known, const json_t *platform)
{
    char os[24], architecture[24];
    str_plain(os, sizeof os, json_get_str(platform, "os"));
    str_plain(architecture, sizeof architecture, json_get_str(platform, "architecture"));
    if (os[0] && strcmp(os, "unknown") != 0)
        buf_printf(known, "%s%s/%s", known->len > 0 ? ", " : "", os, architecture);
}

int pull_index_choose(const json_t *index, const char *machine, struct pull_blob *out,
                      struct err *err)
{
    const json_t *list = json_object_get(index, "manifests");
    const char *architecture = architecture_of(machine);
    own_buf known = BUF_INIT(200);
    size_t i;
    json_t *entry;
    if (!json_is_array(list) || json_array_size(list) > ENTRIES_MAX)
        return refuse(err, "manifests", list, "at most 4096 entries", "is no list of them");
    json_array_foreach (list, i, entry) {
        const json_t *platform = json_object_get(entry, "platform");
        if (!runs_here(platform, architecture)) {
            add_platform(&known, platform);
            continue;
        }
        if (read_blob(entry, "manifests", out, err) < 0)
            return -1;
        if (out->bytes > (int64_t)PULL_DOCUMENT_MAX)
            return refuse(err, "manifests", entry, "at most 4194304 bytes", "is too large");
        return 0;
    }
    err_input(err, "platform", NULL, known.at, "the image is not there for linux/%s", architecture);
    err_hint(err, "the registry has it for: %s", known.len > 0 ? known.at : "nothing");
    return -1;
}

/* --- one image --- */

static int check_layer(const struct pull_blob *layer, struct err *err)
{
    char value[140];
    if (is_one_of(layer->type, layer_types, array_len(layer_types)))
        return 0;
    bool foreign = strstr(layer->type, "foreign") || strstr(layer->type, "nondistributable");
    snprintf(value, sizeof value, "\"%s\"", layer->type);
    return err_input(err, "layers", value, "tar, tar+gzip or tar+zstd",
                     foreign ? "the layer %.20s is not in the registry: it is of type '%s'"
                             : "the layer %.20s is no file system: it is of type '%s'",
                     layer->digest, layer->type);
}

/* A digest has one size: two sizes for it are a lie about one of them. */
static int count_bytes(struct pull_image *image, const struct pull_blob *layer, struct err *err)
{
    for (size_t i = 0; i < image->count; i++)
        if (strcmp(image->layers[i].digest, layer->digest) == 0)
            return image->layers[i].bytes == layer->bytes
                       ? 0
                       : err_input(err, "layers", NULL, "one size for one digest",
                                   "the layer %.20s is listed with two sizes", layer->digest);
    image->bytes += layer->bytes;
    return 0;
}

static int read_layers(const json_t *list, struct pull_image *image, struct err *err)
{
    size_t i;
    json_t *entry;
    if (!json_is_array(list) || json_array_size(list) > PULL_LAYERS_MAX)
        return refuse(err, "layers", list, "at most 512 layers", "is no list of them");
    image->layers = buf_alloc_zero(json_array_size(list) + 1, sizeof *image->layers);
    json_array_foreach (list, i, entry) {
        struct pull_blob layer;
        if (read_blob(entry, "layers", &layer, err) < 0 || check_layer(&layer, err) < 0 ||
            count_bytes(image, &layer, err) < 0)
            return -1;
        image->layers[image->count++] = layer;
    }
    return 0;
}

int pull_image_read(const json_t *manifest, struct pull_image *out, struct err *err)
{
    own_pull_image image = { 0 };
    if (read_blob(json_object_get(manifest, "config"), "config", &image.config, err) < 0)
        return -1;
    if (!is_one_of(image.config.type, config_types, array_len(config_types))) {
        char value[140];
        snprintf(value, sizeof value, "\"%s\"", image.config.type);
        return err_input(err, "config", value, config_types[0],
                         "the registry's manifest is of no image but of '%s'", image.config.type);
    }
    if (image.config.bytes > (int64_t)PULL_DOCUMENT_MAX)
        return err_set(err, ERR_LIMIT, "the image's configuration has %lld bytes, at most %zu",
                       (long long)image.config.bytes, PULL_DOCUMENT_MAX);
    image.bytes = image.config.bytes;
    if (read_layers(json_object_get(manifest, "layers"), &image, err) < 0)
        return -1;
    *out = image;
    image = (struct pull_image){ 0 };
    return 0;
}
