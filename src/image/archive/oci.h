/* The JSON of images: indexes, manifests, configurations, and the list of `docker save`. Pure. All
 * of it is an attacker's. */
#ifndef IMAGE_ARCHIVE_OCI_H
#define IMAGE_ARCHIVE_OCI_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"

#define OCI_JSON_MAX (8u << 20) /* of one document */
#define OCI_LAYERS_MAX 512
#define OCI_NAME_ROOM 256

/* "amd64" or "arm64": this machine's name in indexes. */
const char *oci_architecture(void);

struct oci_descriptor {
    char hex[HASH_HEX_ROOM]; /* of its SHA-256 */
    int64_t size;
    char type[128];
};

/* "sha256:" and 64 digits. */
int oci_digest(struct str text, char out_hex[HASH_HEX_ROOM], struct err *err);
int oci_descriptor_read(const json_t *value, const char *what, struct oci_descriptor *out,
                        struct err *err);

enum oci_kind { OCI_INDEX, OCI_MANIFEST };
/* What a document is: by its members, as its type may be missing. */
int oci_read(struct str text, json_t **out, enum oci_kind *out_kind, struct err *err);

/* The image for this architecture. `ref` names one of several, NULL: there must be one. `top`: the
 * archive's own index, whose members are different images; another one's are the same image for
 * different machines. `out_name` gets the name that stands there, printable, or "". */
int oci_index_pick(const json_t *index, const char *ref, bool top, const char *architecture,
                   struct oci_descriptor *out, char out_name[OCI_NAME_ROOM], struct err *err);

struct oci_manifest {
    struct oci_descriptor config;
    struct oci_descriptor *layers;
    size_t count;
};
#define OCI_MANIFEST_INIT ((struct oci_manifest){ .count = 0 })
int oci_manifest_read(const json_t *manifest, struct oci_manifest *out, struct err *err);
void oci_manifest_done(struct oci_manifest *manifest);
#define own_oci_manifest attr_cleanup(oci_manifest_done) struct oci_manifest

struct oci_config {
    char (*diff_ids)[HASH_HEX_ROOM]; /* of the layers, unpacked */
    size_t count;
    json_t *facts; /* {"env","workdir","entrypoint","cmd"}, what there is of them */
};
#define OCI_CONFIG_INIT ((struct oci_config){ .count = 0 })
/* Refuses one for another system or architecture. */
int oci_config_read(struct str text, const char *architecture, struct oci_config *out,
                    struct err *err);
void oci_config_done(struct oci_config *config);
#define own_oci_config attr_cleanup(oci_config_done) struct oci_config

struct oci_saved {
    json_t *list;       /* the whole document */
    const char *config; /* paths in the archive */
    const char **layers;
    size_t count;
    char name[OCI_NAME_ROOM];
};
#define OCI_SAVED_INIT ((struct oci_saved){ .count = 0 })
/* manifest.json of `docker save`. */
int oci_saved_read(struct str text, const char *ref, struct oci_saved *out, struct err *err);
void oci_saved_done(struct oci_saved *saved);
#define own_oci_saved attr_cleanup(oci_saved_done) struct oci_saved

/* Is `ref` this name, or the end of it: "busybox:latest" of "docker.io/library/busybox:latest"? */
bool oci_ref_is(const char *ref, struct str name);

#endif
