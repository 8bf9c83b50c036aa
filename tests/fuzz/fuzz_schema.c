/* Any schema and any value, with a NUL between them. A schema that compiles checks any value, and
 * says why where it refuses one. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "tool/define/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const uint8_t *nul = len ? memchr(bytes, 0, len) : NULL;
    size_t first = nul ? (size_t)(nul - bytes) : len;
    struct err err = ERR_INIT;
    own_json text = json_read((struct str){ (const char *)bytes, first }, 1 << 20, &err);
    if (!text)
        return 0;
    own_schema schema = schema_new(text, &err);
    if (!schema) {
        if (err.kind != ERR_INPUT || !*err.text)
            abort();
        return 0;
    }
    struct str rest = nul ? (struct str){ (const char *)nul + 1, len - first - 1 } : STR("{}");
    own_json value = json_read(rest, 1 << 20, &err);
    if (!value)
        return 0;
    err = ERR_INIT;
    int done = schema_check(schema, value, &err);
    if (done < 0 && (err.kind != ERR_INPUT || !*err.text))
        abort();
    if (done == 0 && *err.text)
        abort();
    return 0;
}
