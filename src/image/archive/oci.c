/* The JSON of images. Any process; pure. */
#include "image/archive/oci.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

#define ENV_MAX 256 /* variables */
#define WORDS_MAX 256 /* of an entry point */
#define PICKS_MAX 10000 /* members of an index */

#if defined(__aarch64__)
#define ARCHITECTURE "arm64"
#elif defined(__x86_64__)
#define ARCHITECTURE "amd64"
#else
#error "which name do images have for this processor?"
#endif

const char *oci_architecture(void)
{
    return ARCHITECTURE;
}

/* Outside text in a message. */
struct shown {
    char text[96];
};

static struct shown show(struct str text)
{
    struct shown shown;
    str_plain(shown.text, sizeof shown.text, text);
    return shown;
}

static int refuse(struct err *err, const char *fmt, ...) attr_printf(2, 3);
static int refuse(struct err *err, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return err_input(err, "image", NULL, NULL, "%s", text);
}

int oci_digest(struct str text, char out_hex[HASH_HEX_ROOM], struct err *err)
{
    static const struct str start = { "sha256:", 7 };
    if (text.len != start.len + HASH_HEX_ROOM - 1 || memcmp(text.at, start.at, start.len) != 0 ||
        strspn(text.at + start.len, "0123456789abcdef") < HASH_HEX_ROOM - 1)
        return refuse(err, "'%s' is no digest: 'sha256:' and 64 hexadecimal digits",
                      show(text).text);
    memcpy(out_hex, text.at + start.len, HASH_HEX_ROOM - 1);
    out_hex[HASH_HEX_ROOM - 1] = '\0';
    return 0;
}

int oci_descriptor_read(const json_t *value, const char *what, struct oci_descriptor *out,
                        struct err *err)
{
    struct oci_descriptor found = { .size = -1 };
    const json_t *size = json_object_get(value, "size");
    if (!json_is_object(value))
        return refuse(err, "the manifest has no %s", what);
    if (oci_digest(json_get_str(value, "digest"), found.hex, err) < 0)
        return err_wrap(err, "the descriptor of its %s", what);
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return refuse(err, "the descriptor of its %s has no size", what);
    found.size = json_integer_value(size);
    str_plain(found.type, sizeof found.type, json_get_str(value, "mediaType"));
    *out = found;
    return 0;
}

int oci_read(struct str text, json_t **out, enum oci_kind *out_kind, struct err *err)
{
    own_json value = json_read(text, OCI_JSON_MAX, err);
    if (!value) {
        err_wrap(err, "a document of the image");
        snprintf(err->field, sizeof err->field, "image");
        return -1;
    }
    bool index = json_is_array(json_object_get(value, "manifests"));
    bool manifest = json_is_array(json_object_get(value, "layers"));
    if (index == manifest)
        return refuse(err, index ? "a document is both index and manifest"
                                 : "a document is neither an index nor a manifest");
    *out_kind = index ? OCI_INDEX : OCI_MANIFEST;
    *out = take_ptr(value);
    return 0;
}

bool oci_ref_is(const char *ref, struct str name)
{
    struct str tail = str_of(ref);
    if (str_eq(tail, name))
        return true;
    return tail.len > 0 && str_ends(name, tail) && name.at[name.len - tail.len - 1] == '/';
}

/* The names of one member of an index. */
static bool is_named(const json_t *member, const char *ref)
{
    const json_t *notes = json_object_get(member, "annotations");
    return oci_ref_is(ref, json_get_str(notes, "io.containerd.image.name")) ||
           oci_ref_is(ref, json_get_str(notes, "org.opencontainers.image.ref.name"));
}

static void name_of(const json_t *member, char out[OCI_NAME_ROOM])
{
    const json_t *notes = json_object_get(member, "annotations");
    struct str name = json_get_str(notes, "io.containerd.image.name");
    if (name.len == 0)
        name = json_get_str(notes, "org.opencontainers.image.ref.name");
    str_plain(out, OCI_NAME_ROOM, name);
}

/* Without a platform, the configuration decides later. */
static bool fits(const json_t *member, const char *architecture)
{
    const json_t *platform = json_object_get(member, "platform");
    if (!platform)
        return true;
    return str_is(json_get_str(platform, "os"), "linux") &&
           str_is(json_get_str(platform, "architecture"), architecture);
}

static int refuse_all(const json_t *members, const char *ref, const char *architecture,
                      struct err *err)
{
    own_buf there = BUF_INIT(300);
    size_t i;
    const json_t *member;
    json_array_foreach (members, i, member) {
        const json_t *platform = json_object_get(member, "platform");
        char name[OCI_NAME_ROOM];
        name_of(member, name);
        if (ref ? *name != '\0' : platform != NULL)
            buf_printf(&there, "%s%s", there.len ? ", " : "",
                       ref ? name : show(json_get_str(platform, "architecture")).text);
    }
    if (ref)
        err_input(err, "ref", NULL, NULL, "the archive has no image '%.100s' for linux/%s", ref,
                  architecture);
    else
        refuse(err, "the archive has no image for linux/%s", architecture);
    if (there.len > 0)
        err_hint(err, "it has %s", there.at);
    return -1;
}

static int refuse_several(const char *first, const char *second, struct err *err)
{
    err_input(err, "ref", NULL, NULL, "the archive holds several images");
    if (*first && *second)
        err_hint(err, "--ref names one: '%s', '%s' ...", first, second);
    else
        err_hint(err, "they have no names: save one of them alone");
    return -1;
}

int oci_index_pick(const json_t *index, const char *ref, bool top, const char *architecture,
                   struct oci_descriptor *out, char out_name[OCI_NAME_ROOM], struct err *err)
{
    const json_t *members = json_object_get(index, "manifests"), *picked = NULL;
    char first[OCI_NAME_ROOM] = "", next[OCI_NAME_ROOM];
    size_t i;
    const json_t *member;
    if (json_array_size(members) > PICKS_MAX)
        return refuse(err, "the index has more than %d members", PICKS_MAX);
    json_array_foreach (members, i, member) {
        if (!fits(member, architecture) || (ref && !is_named(member, ref)))
            continue;
        if (!picked) {
            picked = member;
            name_of(member, first);
            continue;
        }
        /* Another name of the same image is no other image. */
        name_of(member, next);
        if (top && !str_eq(json_get_str(member, "digest"), json_get_str(picked, "digest")))
            return refuse_several(first, next, err);
    }
    if (!picked)
        return refuse_all(members, ref, architecture, err);
    if (oci_descriptor_read(picked, "manifest", out, err) < 0)
        return -1;
    memcpy(out_name, first, OCI_NAME_ROOM);
    return 0;
}

static bool is_layer_type(const char *type)
{
    return !*type || strstr(type, ".image.layer.") || strstr(type, ".image.rootfs.");
}

int oci_manifest_read(const json_t *manifest, struct oci_manifest *out, struct err *err)
{
    const json_t *layers = json_object_get(manifest, "layers"), *layer;
    size_t i, count = json_array_size(layers);
    if (count > OCI_LAYERS_MAX)
        return refuse(err, "the image has %zu layers, at most %d", count, OCI_LAYERS_MAX);
    if (oci_descriptor_read(json_object_get(manifest, "config"), "configuration", &out->config,
                            err) < 0)
        return -1;
    out->layers = buf_alloc_zero(count + 1, sizeof *out->layers);
    out->count = count;
    json_array_foreach (layers, i, layer) {
        if (oci_descriptor_read(layer, "layer", &out->layers[i], err) < 0)
            return -1;
        if (!is_layer_type(out->layers[i].type) || strstr(out->layers[i].type, "+encrypted"))
            return refuse(err, "its layer %zu is '%s', which is no layer of an image", i + 1,
                          out->layers[i].type);
    }
    return 0;
}

void oci_manifest_done(struct oci_manifest *manifest)
{
    free(manifest->layers);
    *manifest = OCI_MANIFEST_INIT;
}

static bool is_word(const json_t *value)
{
    struct str word = json_str(value);
    return json_is_string(value) && !memchr(word.at, '\0', word.len);
}

static int read_env(const json_t *list, json_t *env, struct err *err)
{
    size_t i;
    const json_t *value;
    if (json_array_size(list) > ENV_MAX)
        return refuse(err, "the configuration has more than %d variables", ENV_MAX);
    json_array_foreach (list, i, value) {
        struct str text = json_str(value);
        const char *equals = is_word(value) ? memchr(text.at, '=', text.len) : NULL;
        if (!equals || equals == text.at)
            return refuse(err, "the configuration's variable %zu is no NAME=VALUE", i + 1);
        own_str name = buf_strdup((struct str){ text.at, (size_t)(equals - text.at) });
        json_object_set_new(env, name, json_string(equals + 1));
    }
    return 0;
}

static int read_words(const json_t *list, const char *what, json_t *facts, struct err *err)
{
    size_t i;
    json_t *value;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return 0;
    if (json_array_size(list) > WORDS_MAX)
        return refuse(err, "the configuration's %s has more than %d words", what, WORDS_MAX);
    json_array_foreach (list, i, value)
        if (!is_word(value))
            return refuse(err, "word %zu of the configuration's %s is no text", i + 1, what);
    json_object_set_new(facts, what, json_deep_copy(list));
    return 0;
}

static int read_facts(const json_t *config, struct oci_config *out, struct err *err)
{
    const json_t *work = json_object_get(config, "WorkingDir");
    out->facts = json_object();
    json_t *env = json_object();
    json_object_set_new(out->facts, "env", env);
    if (read_env(json_object_get(config, "Env"), env, err) < 0 ||
        read_words(json_object_get(config, "Entrypoint"), "entrypoint", out->facts, err) < 0 ||
        read_words(json_object_get(config, "Cmd"), "cmd", out->facts, err) < 0)
        return -1;
    if (is_word(work) && json_string_length(work) > 0 && json_string_length(work) < 4096)
        json_object_set_new(out->facts, "workdir", json_string(json_string_value(work)));
    return 0;
}

static int read_diff_ids(const json_t *rootfs, struct oci_config *out, struct err *err)
{
    const json_t *ids = json_object_get(rootfs, "diff_ids"), *id;
    size_t i, count = json_array_size(ids);
    if (!json_is_array(ids))
        return refuse(err, "the configuration names no layers: this is no image of a system");
    if (count > OCI_LAYERS_MAX)
        return refuse(err, "the image has %zu layers, at most %d", count, OCI_LAYERS_MAX);
    out->diff_ids = buf_alloc_zero(count + 1, sizeof *out->diff_ids);
    out->count = count;
    json_array_foreach (ids, i, id)
        if (oci_digest(json_is_string(id) ? json_str(id) : STR(""), out->diff_ids[i], err) < 0)
            return err_wrap(err, "layer %zu of the configuration", i + 1);
    return 0;
}

int oci_config_read(struct str text, const char *architecture, struct oci_config *out,
                    struct err *err)
{
    own_json value = json_read(text, OCI_JSON_MAX, err);
    if (!value) {
        err_wrap(err, "the image's configuration");
        snprintf(err->field, sizeof err->field, "image");
        return -1;
    }
    struct str os = json_get_str(value, "os"), machine = json_get_str(value, "architecture");
    if ((os.len > 0 && !str_is(os, "linux")) ||
        (machine.len > 0 && !str_is(machine, architecture))) {
        refuse(err, "the image is for %s/%s, and this machine is linux/%s", show(os).text,
               show(machine).text, architecture);
        err_hint(err, "save or copy the image for linux/%s", architecture);
        return -1;
    }
    if (read_diff_ids(json_object_get(value, "rootfs"), out, err) < 0)
        return -1;
    return read_facts(json_object_get(value, "config"), out, err);
}

void oci_config_done(struct oci_config *config)
{
    free(config->diff_ids);
    json_decref(config->facts);
    *config = OCI_CONFIG_INIT;
}
