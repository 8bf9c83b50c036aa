/* Fuzz target: WWW-Authenticate. A realm that is taken holds no control character. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/pull/challenge.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct pull_challenge found = { 0 };
    struct str header = { (const char *)bytes, len };
    pull_challenge_add(&found, header);
    check(found.realm);
    check(found.service);
    check(found.scope);
    if (found.bearer != (found.realm[0] != 0))
        abort();
    pull_challenge_add(&found, header);
    return 0;
}
