/* manifest.json of `docker save`: a list of images with paths of their parts. Any process; pure. */
#include "image/archive/oci.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"

#define IMAGES_MAX 1000

static int refuse(struct err *err, const char *what)
{
    return err_input(err, "image", NULL, NULL, "manifest.json of the archive %s", what);
}

static bool is_path(const json_t *value)
{
    struct str path = json_str(value);
    return json_is_string(value) && path.len > 0 && path.len <= 4095 &&
           !memchr(path.at, '\0', path.len);
}

static bool is_named(const json_t *image, const char *ref)
{
    size_t i;
    const json_t *tag;
    json_array_foreach (json_object_get(image, "RepoTags"), i, tag)
        if (json_is_string(tag) && oci_ref_is(ref, json_str(tag)))
            return true;
    return false;
}

static struct str first_tag(const json_t *image)
{
    const json_t *tag = json_array_get(json_object_get(image, "RepoTags"), 0);
    return json_is_string(tag) ? json_str(tag) : STR("");
}

static int pick(const json_t *list, const char *ref, const json_t **out, struct err *err)
{
    size_t count = json_array_size(list), i;
    const json_t *image;
    char first[96], second[96];
    if (!json_is_array(list) || count == 0 || count > IMAGES_MAX)
        return refuse(err, "is no list of 1 to 1000 images");
    str_plain(first, sizeof first, first_tag(json_array_get(list, 0)));
    str_plain(second, sizeof second, first_tag(json_array_get(list, 1)));
    if (!ref && count > 1) {
        err_input(err, "ref", NULL, NULL, "the archive holds %zu images", count);
        err_hint(err, "--ref names one: '%s', '%s' ...", first, second);
        return -1;
    }
    json_array_foreach (list, i, image)
        if (!ref || is_named(image, ref)) {
            *out = image;
            return 0;
        }
    err_input(err, "ref", NULL, NULL, "the archive has no image '%.100s'", ref);
    if (*first)
        err_hint(err, "it has '%s'", first);
    return -1;
}

int oci_saved_read(struct str text, const char *ref, struct oci_saved *out, struct err *err)
{
    const json_t *image = NULL, *layer;
    size_t i;
    out->list = json_read(text, OCI_JSON_MAX, err);
    if (!out->list) {
        err_wrap(err, "manifest.json of the archive");
        snprintf(err->field, sizeof err->field, "image");
        return -1;
    }
    if (pick(out->list, ref, &image, err) < 0)
        return -1;
    const json_t *config = json_object_get(image, "Config");
    const json_t *layers = json_object_get(image, "Layers");
    if (!is_path(config) || !json_is_array(layers) || json_array_size(layers) > OCI_LAYERS_MAX)
        return refuse(err, "names no configuration, or no list of at most 512 layers");
    out->config = json_string_value(config);
    out->count = json_array_size(layers);
    out->layers = buf_alloc_zero(out->count + 1, sizeof *out->layers);
    json_array_foreach (layers, i, layer) {
        if (!is_path(layer))
            return refuse(err, "has a layer that is no path");
        out->layers[i] = json_string_value(layer);
    }
    str_plain(out->name, sizeof out->name, first_tag(image));
    return 0;
}

void oci_saved_done(struct oci_saved *saved)
{
    free(saved->layers);
    json_decref(saved->list);
    *saved = OCI_SAVED_INIT;
}
