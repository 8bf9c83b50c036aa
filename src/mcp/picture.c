/* Which pictures go to a model. Pure; runs in every process that serves MCP. The driver in the box
 * shrinks what it draws; what it says of itself is not believed: the size is judged here. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "mcp/answer.h"

/* Those that models take. */
static const char *const mimes[] = { "image/png", "image/jpeg", "image/webp", "image/gif" };

#define PNG_HEAD 24 /* bytes up to the height's end */

struct str mcp_picture_of(const json_t *forms, const char **out_mime)
{
    for (size_t i = 0; i < array_len(mimes); i++) {
        const json_t *form = json_object_get(forms, mimes[i]);
        if (!json_is_string(form) || json_string_length(form) == 0)
            continue;
        *out_mime = mimes[i];
        return json_str(form);
    }
    return STR_NONE;
}

static uint32_t number(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

bool mcp_picture_is_sane(struct str base64, const char *mime)
{
    static const unsigned char magic[] = { 0x89, 'P', 'N', 'G', 13, 10, 26, 10 };
    size_t len = 0;
    if (base64.len > MCP_PICTURE_BYTES || base64.len % 4 != 0)
        return false;
    if (strcmp(mime, "image/png") != 0) {
        own_str bytes = base64_decode_exact(base64, &len);
        return bytes != NULL;
    }
    struct str head = { base64.at, base64.len < 4 * PNG_HEAD / 3 ? 0 : 4 * PNG_HEAD / 3 };
    own_str bytes = base64_decode(head, &len);
    const unsigned char *png = (const unsigned char *)bytes;
    if (!png || len < PNG_HEAD || memcmp(png, magic, sizeof magic) != 0)
        return false;
    const uint32_t width = number(png + 16), height = number(png + 20);
    return width > 0 && height > 0 && width <= MCP_PICTURE_MOST_PX && height <= MCP_PICTURE_MOST_PX;
}
