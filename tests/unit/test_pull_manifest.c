/* Manifests: both kinds of both families, and each lie that one can tell. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "image/pull/manifest.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEX2 "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OCI "application/vnd.oci.image.manifest.v1+json"
#define DOCKER "application/vnd.docker.distribution.manifest.v2+json"
#define OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define CONFIG \
    "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\"," \
    "\"digest\":\"sha256:" HEX "\",\"size\":10}"
#define LAYER(type, hex, size) \
    "{\"mediaType\":\"" type "\",\"digest\":\"sha256:" hex "\",\"size\":" size "}"
#define TAR "application/vnd.oci.image.layer.v1.tar+gzip"

static int read_image(const char *text, const char *type, struct pull_image *out, struct err *err)
{
    own_json document = NULL;
    enum pull_document is;
    *err = ERR_INIT;
    if (pull_document_read(str_of(text), type, &document, &is, err) < 0)
        return -1;
    CHECK_INT(is, PULL_MANIFEST);
    return pull_image_read(document, out, err);
}

TEST(pull_manifest_is_read)
{
    struct err err = ERR_INIT;
    own_pull_image image = { 0 };
    CHECK_INT(read_image("{\"schemaVersion\":2," CONFIG
                         ",\"layers\":[" LAYER(TAR, HEX2, "7") "," LAYER(TAR, HEX2, "7") "]}",
                         OCI "; charset=utf-8", &image, &err),
              0);
    CHECK_INT(image.count, 2);
    CHECK_INT(image.bytes, 17); /* the layer twice is loaded once */
    CHECK_TEXT(image.layers[0].digest, "sha256:" HEX2);
    CHECK_INT(image.config.bytes, 10);
}

static const struct {
    const char *text, *type, *says;
} bad[] = {
    { "[]", OCI, "no object" },
    { "{", OCI, "manifest" },
    { "{\"layers\":[],\"manifests\":[]," CONFIG "}", OCI, "no clear kind" },
    { "{\"manifests\":[]}", OCI, "no clear kind" },
    { "{\"layers\":[]," CONFIG "}", OCI_INDEX, "no clear kind" },
    { "{\"mediaType\":\"" OCI_INDEX "\",\"layers\":[]," CONFIG "}", OCI, "contradicts" },
    { "{\"layers\":[]," CONFIG "}", "text/html", "text/html" },
    { "{\"layers\":[]," CONFIG "}", "application/vnd.docker.distribution.manifest.v1+prettyjws",
      "old form" },
    { "{\"layers\":[]}", OCI, "config" },
    { "{\"layers\":{}," CONFIG "}", OCI, "no list" },
    { "{" CONFIG "}", OCI, "layers" },
    { "{" CONFIG ",\"layers\":[1]}", OCI, "digest" },
    { "{" CONFIG ",\"layers\":[" LAYER(TAR, "00", "1") "]}", OCI, "digest" },
    { "{" CONFIG ",\"layers\":[" LAYER(TAR, HEX2, "-1") "]}", OCI, "size" },
    { "{" CONFIG ",\"layers\":[" LAYER(TAR, HEX2, "1e3") "]}", OCI, "size" },
    { "{" CONFIG ",\"layers\":[" LAYER(TAR, HEX2, "1099511627777") "]}", OCI, "size" },
    { "{" CONFIG ",\"layers\":[" LAYER(TAR, HEX2, "1") "," LAYER(TAR, HEX2, "2") "]}", OCI,
      "two sizes" },
    { "{" CONFIG ",\"layers\":[" LAYER("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
                                       HEX2, "1") "]}", OCI, "not in the registry" },
    { "{" CONFIG ",\"layers\":[" LAYER("application/vnd.cncf.helm.chart", HEX2, "1") "]}", OCI,
      "no file system" },
    { "{\"config\":{\"mediaType\":\"application/vnd.cncf.helm.config.v1+json\",\"digest\":\"sha256:"
      HEX "\",\"size\":1},\"layers\":[]}", OCI, "no image" },
    { "{\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\"digest\":\"sha256:"
      HEX "\",\"size\":4194305},\"layers\":[]}", OCI, "4194305" },
};

TEST(pull_manifest_refuses_lies)
{
    for (size_t i = 0; i < array_len(bad); i++) {
        struct err err;
        own_pull_image image = { 0 };
        if (read_image(bad[i].text, bad[i].type, &image, &err) == 0)
            check_failed(__FILE__, __LINE__, "row %zu was taken: %s", i, bad[i].text);
        if (!strstr(err.text, bad[i].says))
            check_failed(__FILE__, __LINE__, "row %zu: '%s' lacks '%s'", i, err.text, bad[i].says);
    }
}

TEST(pull_manifest_has_a_bound_of_layers)
{
    struct err err = ERR_INIT;
    own_pull_image image = { 0 };
    own_json layers = json_array();
    for (int i = 0; i < PULL_LAYERS_MAX + 1; i++)
        json_array_append_new(layers, json_object());
    own_json manifest = json_pack("{s:{s:s,s:s,s:i},s:O}", "config", "mediaType",
                                  "application/vnd.oci.image.config.v1+json", "digest",
                                  "sha256:" HEX, "size", 1, "layers", layers);
    CHECK_INT(pull_image_read(manifest, &image, &err), -1);
    CHECK_TEXT(err.bound, "at most 512 layers");
}

#define ENTRY(os, arch, variant, hex) \
    "{\"mediaType\":\"" OCI "\",\"digest\":\"sha256:" hex "\",\"size\":9,\"platform\":{\"os\":\"" \
    os "\",\"architecture\":\"" arch "\"" variant "}}"

TEST(pull_index_gives_this_machines_manifest)
{
    static const char list[] = "{\"manifests\":[" ENTRY("unknown", "unknown", "", HEX) "," ENTRY(
        "windows", "amd64", "", HEX) "," ENTRY("linux", "amd64", ",\"variant\":\"v3\"",
                                               HEX) "," ENTRY("linux", "amd64", "",
                                                              HEX2) "," ENTRY("linux", "arm64",
                                                                              ",\"variant\":\"v8\"",
                                                                              HEX) "]}";
    struct err err = ERR_INIT;
    struct pull_blob found;
    own_json index = NULL;
    enum pull_document is;
    CHECK_INT(pull_document_read(str_of(list), "application/json", &index, &is, &err), 0);
    CHECK_INT(is, PULL_INDEX);
    CHECK_INT(pull_index_choose(index, "x86_64", &found, &err), 0);
    CHECK_TEXT(found.digest, "sha256:" HEX2);
    CHECK_INT(pull_index_choose(index, "aarch64", &found, &err), 0);
    CHECK_TEXT(found.digest, "sha256:" HEX);
    CHECK_INT(pull_index_choose(index, "s390x", &found, &err), -1);
    CHECK(strstr(err.text, "linux/s390x") && strstr(err.hint, "windows/amd64"));
}
