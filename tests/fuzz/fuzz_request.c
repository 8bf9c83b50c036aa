/* Any bytes as a request: parsed, checked, hashed, ended; and where it is refused,
 * the refusal is whole. */
#include <stdint.h>
#include <stdlib.h>

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
    if (request.limits.value[LIMITS_DISK] > request.limits.value[LIMITS_MEMORY] / 2)
        abort();
    return 0;
}
