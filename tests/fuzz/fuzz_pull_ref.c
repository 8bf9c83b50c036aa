/* Fuzz target: references to images. One that is taken is written as a text that is taken again and
 * means the same, and never has a byte that could leave its place in a URL. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "image/pull/ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct err err = ERR_INIT;
    struct pull_ref ref, again;
    char written[PULL_REF_ROOM], name[64];
    own_str text = buf_strdup((struct str){ (const char *)bytes, len });
    if (pull_ref_read(text, len % 2 ? "docker.io" : NULL, &ref, &err) < 0) {
        if (err.kind != ERR_INPUT || !err.text[0])
            abort();
        return 0;
    }
    pull_ref_text(&ref, written);
    pull_ref_name(&ref, name, sizeof name);
    pull_ref_is_loopback(&ref);
    if (pull_ref_read(written, NULL, &again, &err) < 0 ||
        strcmp(again.repository, ref.repository) != 0 || strcmp(again.tag, ref.tag) != 0 ||
        strcmp(again.digest, ref.digest) != 0 || strcmp(again.server, ref.server) != 0 || !name[0])
        abort();
    if (strpbrk(ref.repository, " ?#%@:\\\r\n") || strstr(ref.repository, "..") ||
        strpbrk(ref.server, " ?#%@/\\\r\n") || strpbrk(ref.tag, " ?#%@/:\\\r\n"))
        abort();
    return 0;
}
