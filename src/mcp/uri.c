/* Makes and reads the names of resources. Pure; runs in every process that serves MCP. Only the
 * letters of RFC 3986's unreserved set and '/' stand for themselves. */
#include "mcp/uri.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/own.h"

#define SCHEME "cupel://"

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~/", c));
}

char *mcp_uri_make(const char *owner, struct str path)
{
    struct buf out = BUF_INIT(sizeof SCHEME + MCP_OWNER_ROOM + 3 * path.len);
    buf_printf(&out, SCHEME "%s/", owner);
    for (size_t i = 0; i < path.len; i++) {
        if (is_plain(path.at[i]))
            buf_add(&out, path.at + i, 1);
        else
            buf_printf(&out, "%%%02X", (unsigned char)path.at[i]);
    }
    return buf_take(&out);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int decode(const char *text, struct buf *out)
{
    for (; *text; text++) {
        char byte = *text;
        if (byte == '%') {
            int high = digit(text[1]), low = high < 0 ? -1 : digit(text[2]);
            if (low < 0 || (high == 0 && low == 0))
                return -1;
            byte = (char)(high * 16 + low);
            text += 2;
        }
        if (buf_add(out, &byte, 1) < 0)
            return -1;
    }
    return 0;
}

int mcp_uri_read(const char *uri, char out_owner[MCP_OWNER_ROOM], char **out_path)
{
    const size_t scheme = sizeof SCHEME - 1;
    own_buf path = BUF_INIT(MCP_URI_MAX);
    if (strlen(uri) > MCP_URI_MAX || strncmp(uri, SCHEME, scheme) != 0)
        return -1;
    const char *owner = uri + scheme;
    const size_t len = strcspn(owner, "/");
    if (len == 0 || len >= MCP_OWNER_ROOM || owner[len] != '/' || !owner[len + 1] ||
        decode(owner + len + 1, &path) < 0 || !str_is_utf8(buf_str(&path)))
        return -1;
    memcpy(out_owner, owner, len);
    out_owner[len] = 0;
    *out_path = buf_take(&path);
    return 0;
}
