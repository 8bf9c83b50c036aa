/* Fuzz the JSON of images: indexes, manifests, configurations, the list of `docker save`. What is
 * accepted has whole digests and bounded lists; what is refused says so in UTF-8. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "image/archive/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const struct err *err)
{
    if (err->kind != ERR_INPUT || !*err->text || !*err->field || !str_is_utf8(str_of(err->text)) ||
        !str_is_utf8(str_of(err->hint)))
        abort();
}

static void check_hex(const char *hex)
{
    if (strlen(hex) != HASH_HEX_ROOM - 1 || strspn(hex, "0123456789abcdef") != HASH_HEX_ROOM - 1)
        abort();
}

static void check_descriptor(const struct oci_descriptor *descriptor)
{
    check_hex(descriptor->hex);
    if (descriptor->size < 0 || !str_is_utf8(str_of(descriptor->type)))
        abort();
}

static void try_index(const json_t *index, const char *ref, bool top)
{
    struct oci_descriptor found;
    char name[OCI_NAME_ROOM];
    struct err err = ERR_INIT;
    if (oci_index_pick(index, ref, top, "amd64", &found, name, &err) < 0) {
        check_refusal(&err);
        return;
    }
    check_descriptor(&found);
    if (!str_is_utf8(str_of(name)))
        abort();
}

static void try_document(struct str text)
{
    own_json value = NULL;
    enum oci_kind kind;
    struct err err = ERR_INIT;
    if (oci_read(text, &value, &kind, &err) < 0) {
        check_refusal(&err);
        return;
    }
    if (kind == OCI_INDEX) {
        try_index(value, NULL, /* top= */ true);
        try_index(value, NULL, /* top= */ false);
        try_index(value, "one", /* top= */ true);
        return;
    }
    own_oci_manifest manifest = OCI_MANIFEST_INIT;
    if (oci_manifest_read(value, &manifest, &err) < 0) {
        check_refusal(&err);
        return;
    }
    check_descriptor(&manifest.config);
    if (manifest.count > OCI_LAYERS_MAX)
        abort();
    for (size_t i = 0; i < manifest.count; i++)
        check_descriptor(&manifest.layers[i]);
}

static void try_config(struct str text)
{
    own_oci_config config = OCI_CONFIG_INIT;
    struct err err = ERR_INIT;
    if (oci_config_read(text, "amd64", &config, &err) < 0) {
        check_refusal(&err);
        return;
    }
    if (config.count > OCI_LAYERS_MAX || !json_is_object(json_object_get(config.facts, "env")))
        abort();
    for (size_t i = 0; i < config.count; i++)
        check_hex(config.diff_ids[i]);
}

static void try_saved(struct str text, const char *ref)
{
    own_oci_saved saved = OCI_SAVED_INIT;
    struct err err = ERR_INIT;
    if (oci_saved_read(text, ref, &saved, &err) < 0) {
        check_refusal(&err);
        return;
    }
    if (!*saved.config || saved.count > OCI_LAYERS_MAX)
        abort();
    for (size_t i = 0; i < saved.count; i++)
        if (!*saved.layers[i])
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    try_document(text);
    try_config(text);
    try_saved(text, NULL);
    try_saved(text, "one:latest");
    return 0;
}
