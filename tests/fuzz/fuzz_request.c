/* Any bytes as a request: parsed, checked, hashed, ended; and where it is refused,
 * the refusal is whole. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "contract/request.h"
#include "contract/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void refuse(const struct err *err)
{
    own_json refusal = result_refusal(err);
    char *text = json_write(refusal, JSON_COMPACT);
    if (err->kind != ERR_INPUT || !*err->text || !text)
        abort();
    free(text);
}

/* The store makes paths of the name, and hints show commands with the packages. */
static void check_image(const struct request *request)
{
    size_t i;
    json_t *one;
    struct str image = str_of(request->image);
    bool by_digest = request_image_is_digest(image);
    if ((!by_digest && !request_image_is_name(image)) || (by_digest && request->image_digest) ||
        (request->image_digest && !request_image_is_digest(str_of(request->image_digest))))
        abort();
    json_array_foreach ((json_t *)(uintptr_t)request->packages, i, one) {
        struct request_package package;
        struct str text = json_str(one);
        if (request_package_read(text, &package) < 0 || package.name.at != text.at ||
            package.name.len == 0 || i >= REQUEST_PACKAGES_MAX)
            abort();
        for (size_t at = 0; at < text.len; at++) {
            if (!isalnum((unsigned char)text.at[at]) && !strchr("._-+!=>", text.at[at]))
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const struct request_ceilings ceilings = { .host_memory_bytes = (int64_t)8 << 30 };
    own_request request = REQUEST_INIT;
    struct err err = ERR_INIT;
    if (request_parse((struct str){ (const char *)bytes, len }, &ceilings, &request, &err) < 0) {
        refuse(&err);
        return 0;
    }
    char sum[65];
    request_inputs_sha256(&request, sum);
    /* What the engine relies on. */
    for (size_t i = 0; i < request.file_count; i++) {
        if (request_check_path(str_of(request.files[i].path), "path", &err) < 0)
            abort();
    }
    check_image(&request);
    if (request.limits.value[LIMITS_DISK] > request.limits.value[LIMITS_MEMORY] / 2)
        abort();
    return 0;
}
