/* A first byte for the kind, or for a file of requirements, then any text. A wish that is taken is
 * one line that no tool takes for an option or a path. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/make/want.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    own_make_wants wants = { 0 };
    struct err err = ERR_INIT;
    if (len == 0)
        return 0;
    struct str text = { (const char *)bytes + 1, len - 1 };
    unsigned kind = bytes[0] % (MAKE_KINDS + 1);
    int rc = kind == MAKE_KINDS ? make_wants_add_file(&wants, text, "requirements.txt", &err)
                                : make_wants_add(&wants, (enum make_kind)kind, text, &err);
    if (rc < 0 && (!err.text[0] || (err.kind != ERR_INPUT && err.kind != ERR_LIMIT)))
        abort();
    for (size_t i = 0; i < wants.count; i++) {
        const char *at = wants.at[i].text;
        size_t name = strlen(wants.at[i].name);
        if (!at[0] || at[0] == '-' || at[0] == '/' || at[0] == '.' || strpbrk(at, "\n\r") ||
            name == 0 || name >= MAKE_NAME_ROOM)
            abort();
    }
    return 0;
}
