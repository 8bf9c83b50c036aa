/* Fuzz what the HTTP door reads of a head: Authorization, Host, Origin, Accept. Each line of the
 * input is one header's value. A part that is returned lies inside of the value; a host that counts
 * as local is one by an independent reading. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct str part, struct str whole)
{
    if (part.len > 0 && (part.at < whole.at || part.at + part.len > whole.at + whole.len))
        abort();
}

/* A name that DNS could answer for has a letter other than those of an address. */
static bool may_be_local(struct str host)
{
    if (host.len == 9 && strncasecmp(host.at, "localhost", 9) == 0)
        return true;
    for (size_t i = 0; i < host.len; i++)
        if (!strchr("0123456789abcdefABCDEF.:", host.at[i]) || host.at[i] == 0)
            return false;
    return host.len > 0;
}

static void check_value(struct str value)
{
    struct str secret = parse_bearer(value), host = parse_host(value);
    check_inside(secret, value);
    check_inside(host, value);
    if (secret.len > 0 && (secret.at[0] == ' ' || secret.at[secret.len - 1] == ' '))
        abort();
    if (parse_is_local_name(host) && !may_be_local(host))
        abort();
    enum http_form form = parse_accept(value);
    if (form != HTTP_PLAIN && form != HTTP_SSE && form != HTTP_NDJSON)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = { (const char *)data, size }, before = STR_NONE;
    while (rest.len > 0) {
        const char *end = memchr(rest.at, '\n', rest.len);
        struct str value = { rest.at, end ? (size_t)(end - rest.at) : rest.len };
        check_value(value);
        /* An origin is that of its host only if it ends with it. */
        if (parse_is_same_origin(value, before) &&
            (value.len < before.len + 7 ||
             memcmp(value.at + value.len - before.len, before.at, before.len) != 0))
            abort();
        before = value;
        size_t skip = value.len + (end != NULL);
        rest = (struct str){ rest.at + skip, rest.len - skip };
    }
    return 0;
}
