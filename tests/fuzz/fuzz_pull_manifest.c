/* Fuzz target: manifests, lists of them, and the auth file of docker. Each descriptor that is taken
 * has a digest that is safe as the name of a file. The first byte chooses the kind. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "image/pull/auth_file.h"
#include "image/pull/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check(const struct pull_blob *blob)
{
    if (!pull_digest_valid(str_of(blob->digest)) || blob->bytes < 0)
        abort();
}

static void read_auth(struct str text)
{
    struct err err = ERR_INIT;
    struct pull_ref ref;
    char auth[PULL_BASIC_ROOM];
    if (pull_ref_read("docker.io/team/x", NULL, &ref, &err) < 0)
        abort();
    if (pull_auth_find(text, &ref, auth, &err) == 0 && strpbrk(auth, "\r\n "))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const said[] = { "", "application/vnd.oci.image.index.v1+json",
                                        "application/vnd.oci.image.manifest.v1+json",
                                        "application/json; charset=utf-8" };
    struct err err = ERR_INIT;
    struct pull_blob chosen;
    own_pull_image image = { 0 };
    own_json document = NULL;
    enum pull_document is;
    if (len == 0)
        return 0;
    struct str text = { (const char *)bytes + 1, len - 1 };
    if (bytes[0] == 'a')
        read_auth(text);
    if (pull_document_read(text, said[bytes[0] % array_len(said)], &document, &is, &err) < 0)
        return 0;
    if (is == PULL_INDEX && pull_index_choose(document, "x86_64", &chosen, &err) == 0)
        check(&chosen);
    if (is == PULL_MANIFEST && pull_image_read(document, &image, &err) == 0) {
        check(&image.config);
        for (size_t i = 0; i < image.count; i++)
            check(&image.layers[i]);
    }
    return 0;
}
