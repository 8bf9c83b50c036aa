/* An image as the tar of an OCI layout, and a folder as a tar. Runs in the cli process; image_pack in
 * a helper of it. A layer's name is its digest, and stands before its bytes: the tree is read twice. */
#include "image/archive/archive.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"
#include "image/archive/oci.h"
#include "image/archive/writer.h"

#define TIME_0 "1970-01-01T00:00:00Z"
#define LAYER_TYPE "application/vnd.oci.image.layer.v1.tar"
#define CONFIG_TYPE "application/vnd.oci.image.config.v1+json"
#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define INDEX_TYPE "application/vnd.oci.image.index.v1+json"
#define BLOBS "blobs/sha256/"

struct blob {
    char hex[HASH_HEX_ROOM], path[sizeof BLOBS + HASH_HEX_ROOM];
    int64_t size;
    char *text; /* of a document; NULL: the layer */
};

static void blob_done(struct blob *blob)
{
    free(blob->text);
    blob->text = NULL;
}
#define own_blob attr_cleanup(blob_done) struct blob

static void name_blob(struct blob *blob)
{
    snprintf(blob->path, sizeof blob->path, BLOBS "%s", blob->hex);
}

static void document(struct blob *out, json_t *value)
{
    out->text = json_write(value, JSON_COMPACT | JSON_SORT_KEYS);
    out->size = (int64_t)strlen(out->text);
    hash_hex(str_of(out->text), out->hex);
    name_blob(out);
    json_decref(value);
}

static json_t *descriptor(const struct blob *blob, const char *type)
{
    char digest[72];
    snprintf(digest, sizeof digest, "sha256:%s", blob->hex);
    return json_pack("{s:s,s:s,s:I}", "mediaType", type, "digest", digest, "size",
                     (json_int_t)blob->size);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* {"NAME": "VALUE"} as ["NAME=VALUE"], in the order of names. */
static json_t *env_list(const json_t *env)
{
    size_t count = json_object_size(env), i = 0;
    const char **names = buf_alloc_zero(count + 1, sizeof *names);
    const char *name;
    json_t *value, *list = json_array();
    json_object_foreach ((json_t *)(uintptr_t)env, name, value)
        names[i++] = name;
    qsort(names, count, sizeof *names, by_name);
    for (i = 0; i < count; i++) {
        own_buf text = BUF_INIT(OCI_JSON_MAX);
        value = json_object_get(env, names[i]);
        if (json_is_string(value) &&
            buf_printf(&text, "%s=%s", names[i], json_string_value(value)) == 0)
            json_array_append_new(list, json_string(text.at));
    }
    free(names);
    return list;
}

static json_t *make_config(const json_t *facts, const struct blob *layer)
{
    static const struct {
        const char *fact, *member;
    } rows[] = { { "workdir", "WorkingDir" }, { "entrypoint", "Entrypoint" }, { "cmd", "Cmd" } };
    char digest[72];
    snprintf(digest, sizeof digest, "sha256:%s", layer->hex);
    json_t *config = json_pack("{s:o}", "Env", env_list(json_object_get(facts, "env")));
    for (size_t i = 0; i < array_len(rows); i++) {
        json_t *value = json_object_get(facts, rows[i].fact);
        if (value)
            json_object_set(config, rows[i].member, value);
    }
    return json_pack("{s:s,s:s,s:s,s:o,s:{s:s,s:[s]},s:[{s:s,s:s}]}", "architecture",
                     oci_architecture(), "os", "linux", "created", TIME_0, "config", config,
                     "rootfs", "type", "layers", "diff_ids", digest, "history", "created", TIME_0,
                     "created_by", "cupel images export");
}

static json_t *make_index(const char *name, const struct blob *manifest)
{
    char whole[OCI_NAME_ROOM];
    snprintf(whole, sizeof whole, "docker.io/library/%s:latest", name);
    json_t *member = descriptor(manifest, MANIFEST_TYPE);
    json_object_set_new(member, "annotations",
                        json_pack("{s:s,s:s}", "org.opencontainers.image.ref.name", name,
                                  "io.containerd.image.name", whole));
    json_object_set_new(member, "platform",
                        json_pack("{s:s,s:s}", "architecture", oci_architecture(), "os", "linux"));
    return json_pack("{s:i,s:s,s:[o]}", "schemaVersion", 2, "mediaType", INDEX_TYPE, "manifests",
                     member);
}

/* What older versions of `docker load` read. */
static json_t *make_saved(const char *name, const struct blob *config, const struct blob *layer)
{
    char tag[OCI_NAME_ROOM];
    snprintf(tag, sizeof tag, "%s:latest", name);
    return json_pack("[{s:s,s:[s],s:[s]}]", "Config", config->path, "RepoTags", tag, "Layers",
                     layer->path);
}

static int write_tree(int tree, struct writer *to, int64_t *out_bytes, char out_hex[HASH_HEX_ROOM],
                      struct err *err)
{
    int64_t left_out;
    own_writer layer = NULL;
    if (writer_open(-1, to, WRITER_STABLE, &layer, err) < 0 ||
        writer_tree(layer, tree, &left_out, err) < 0)
        return -1;
    return writer_end(layer, out_bytes, out_hex, err);
}

static int write_layer(int tree, const struct blob *layer, struct writer *out, struct err *err)
{
    int64_t bytes;
    char hex[HASH_HEX_ROOM];
    if (writer_file(out, layer->path, layer->size, err) < 0 ||
        write_tree(tree, out, &bytes, hex, err) < 0)
        return -1;
    if (bytes == layer->size && strcmp(hex, layer->hex) == 0)
        return 0;
    err_set(err, ERR_HOST, "the image changed while it was written");
    err_hint(err, "cupel images verify tells what is wrong with it");
    return -1;
}

static int write_all(int tree, const char *name, const json_t *facts, struct writer *out,
                     struct err *err)
{
    own_blob layer = { .size = 0 }, config = { .size = 0 }, manifest = { .size = 0 };
    own_blob index = { .size = 0 }, saved = { .size = 0 };
    int64_t bytes;
    char hex[HASH_HEX_ROOM];
    if (write_tree(tree, NULL, &layer.size, layer.hex, err) < 0)
        return -1;
    name_blob(&layer);
    document(&config, make_config(facts, &layer));
    document(&manifest, json_pack("{s:i,s:s,s:o,s:[o]}", "schemaVersion", 2, "mediaType",
                                  MANIFEST_TYPE, "config", descriptor(&config, CONFIG_TYPE),
                                  "layers", descriptor(&layer, LAYER_TYPE)));
    document(&index, make_index(name, &manifest));
    document(&saved, make_saved(name, &config, &layer));
    if (writer_text(out, "oci-layout", STR("{\"imageLayoutVersion\":\"1.0.0\"}"), err) < 0 ||
        writer_text(out, "index.json", str_of(index.text), err) < 0 ||
        writer_text(out, "manifest.json", str_of(saved.text), err) < 0 ||
        writer_folder(out, "blobs", err) < 0 || writer_folder(out, "blobs/sha256", err) < 0 ||
        writer_text(out, manifest.path, str_of(manifest.text), err) < 0 ||
        writer_text(out, config.path, str_of(config.text), err) < 0 ||
        write_layer(tree, &layer, out, err) < 0)
        return -1;
    return writer_end(out, &bytes, hex, err);
}

int image_export(const struct image_store *store, const struct image_entry *entry, bool added,
                 int out_fd, struct err *err)
{
    char path[sizeof "trees/" + IMAGE_HEX_ROOM];
    own_writer out = NULL;
    if (entry->on_host && !added) {
        err_input(err, "image", NULL, "an image that stands alone",
                  "image '%s' is on the host: its files are not the whole of it", entry->name);
        err_hint(err, "--added writes what it adds to the host, or add to an image that stands "
                      "alone: cupel images add --from IMAGE");
        return -1;
    }
    snprintf(path, sizeof path, "trees/%s", entry->hex);
    own_fd tree = openat(store->dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tree < 0)
        return err_sys(err, "open the tree of image '%s'", entry->name);
    if (writer_open(out_fd, NULL, WRITER_STABLE, &out, err) < 0)
        return -1;
    return write_all(tree, *entry->name ? entry->name : "image", entry->manifest, out, err);
}

int image_pack(int dirfd, int out_fd, struct err *err)
{
    int64_t left_out, bytes;
    char hex[HASH_HEX_ROOM];
    own_writer out = NULL;
    if (writer_open(out_fd, NULL, WRITER_REAL, &out, err) < 0 ||
        writer_tree(out, dirfd, &left_out, err) < 0)
        return -1;
    return writer_end(out, &bytes, hex, err);
}
