/* Reads parts of a request's head. Runs in the serve process; pure. */
#include "serve/http/parse.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/own.h"

#define HOST_MAX 253

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *parse_decode(struct str text, bool plus)
{
    own_str out = buf_alloc(text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex(text.at[i + 1]) : -1;
            int low = high >= 0 ? hex(text.at[i + 2]) : -1;
            if (low < 0)
                return NULL;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c == 0)
            return NULL;
        out[len++] = c;
    }
    out[len] = 0;
    return str_is_utf8((struct str){ out, len }) ? take_ptr(out) : NULL;
}

/* The bytes up to `mark`, which is left out; `rest` begins after it. */
static struct str cut(struct str *rest, char mark)
{
    const char *end = rest->len ? memchr(rest->at, mark, rest->len) : NULL;
    struct str part = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
    size_t skip = part.len + (end != NULL);
    *rest = (struct str){ rest->at + skip, rest->len - skip };
    return part;
}

/* --- query --- */

void parse_query_done(struct parse_query *query)
{
    for (size_t i = 0; i < query->count; i++) {
        free(query->names[i]);
        free(query->values[i]);
    }
    query->count = 0;
}

static bool has_name(const struct parse_query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++)
        if (strcmp(query->names[i], name) == 0)
            return true;
    return false;
}

int parse_query(struct str text, struct parse_query *out, struct err *err)
{
    *out = (struct parse_query){ 0 };
    while (text.len > 0) {
        struct str value = cut(&text, '&');
        if (value.len == 0)
            continue;
        struct str name = cut(&value, '=');
        own_str decoded = parse_decode(name, /* plus= */ true);
        own_str content = parse_decode(value, /* plus= */ true);
        if (out->count == PARSE_QUERY_MAX)
            err_input(err, "query", NULL, "at most 16 parameters",
                      "the query has more than 16 parameters");
        else if (!decoded || !content || !*decoded)
            err_input(err, "query", NULL, "NAME=VALUE, UTF-8, percent-encoded",
                      "the query has a part that is not NAME=VALUE in percent-encoded UTF-8");
        else if (has_name(out, decoded))
            err_input(err, decoded, NULL, "one value", "parameter '%.80s' comes twice", decoded);
        else {
            out->names[out->count] = take_ptr(decoded);
            out->values[out->count++] = take_ptr(content);
            continue;
        }
        parse_query_done(out);
        return -1;
    }
    return 0;
}

/* --- path --- */

static bool is_step(struct str part)
{
    return part.len == 0 || str_is(part, ".") || str_is(part, "..");
}

/* Each segment of a decoded rest must be a name. */
static bool is_clean(const char *text)
{
    struct str rest = str_of(text);
    while (rest.len > 0) {
        struct str part = cut(&rest, '/');
        if (is_step(part))
            return false;
    }
    return *text && text[strlen(text) - 1] != '/';
}

bool parse_path(const char *pattern, struct str path, char *out[HTTP_ARGS])
{
    struct str want = str_of(pattern);
    char *args[HTTP_ARGS] = { NULL };
    size_t count = 0;
    bool fits = path.len > 0 && path.at[0] == '/';
    while (fits && want.len > 0) {
        cut(&want, '/');
        cut(&path, '/'); /* both are at a slash */
        struct str part = { want.at, 0 }, rest = want;
        part = cut(&rest, '/');
        bool all = str_is(part, "{*}");
        struct str got = all ? path : (struct str){ path.at, 0 };
        if (!all) {
            const char *end = path.len ? memchr(path.at, '/', path.len) : NULL;
            got.len = end ? (size_t)(end - path.at) : path.len;
        }
        if (all || str_is(part, "{}")) {
            args[count] = parse_decode(got, /* plus= */ false);
            fits = args[count] && is_clean(args[count]) && (all || !strchr(args[count], '/'));
            count++;
        } else {
            fits = str_eq(part, got);
        }
        want = (struct str){ part.at + part.len, want.len - part.len };
        path = (struct str){ got.at + got.len, path.len - got.len };
        fits = fits && (want.len > 0) == (path.len > 0);
    }
    fits = fits && path.len == 0;
    for (size_t i = 0; i < HTTP_ARGS; i++) {
        if (fits)
            out[i] = args[i];
        else
            free(args[i]);
    }
    return fits;
}

/* --- headers --- */

struct str parse_bearer(struct str header)
{
    static const char scheme[] = "Bearer ";
    size_t len = sizeof scheme - 1;
    if (header.len <= len || strncasecmp(header.at, scheme, len) != 0)
        return STR_NONE;
    return str_trim((struct str){ header.at + len, header.len - len });
}

bool parse_is_header(struct str name, struct str value)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i], low = (char)(c | 0x20);
        bool plain = (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (c == 0 || !strchr(marks, c)))
            return false;
    }
    for (size_t i = 0; i < value.len; i++)
        if (((unsigned char)value.at[i] < ' ' && value.at[i] != '\t') || value.at[i] == 0x7f)
            return false;
    return name.len > 0;
}

/* Nothing, or a colon and a port. */
static bool is_port(struct str text)
{
    uint64_t port = 0;
    return text.len == 0 ||
           (text.at[0] == ':' && text.len > 1 &&
            str_to_u64((struct str){ text.at + 1, text.len - 1 }, &port) && port <= UINT16_MAX);
}

struct str parse_host(struct str header)
{
    bool bracket = header.len > 0 && header.at[0] == '[';
    const char *end = header.len ? memchr(header.at, bracket ? ']' : ':', header.len) : NULL;
    if (bracket && !end)
        return STR_NONE;
    size_t len = end ? (size_t)(end - header.at) : header.len, after = len + bracket;
    if (!is_port((struct str){ header.at + after, header.len - after }))
        return STR_NONE;
    return (struct str){ header.at + bracket, len - bracket };
}

bool parse_is_local_name(struct str host)
{
    char text[HOST_MAX + 1];
    unsigned char address[16];
    if (host.len == 0 || host.len > HOST_MAX || memchr(host.at, 0, host.len))
        return false;
    memcpy(text, host.at, host.len);
    text[host.len] = 0;
    return strcasecmp(text, "localhost") == 0 || inet_pton(AF_INET, text, address) == 1 ||
           inet_pton(AF_INET6, text, address) == 1;
}

bool parse_is_same_origin(struct str origin, struct str host)
{
    static const char *const schemes[] = { "http://", "https://" };
    for (size_t i = 0; i < array_len(schemes); i++) {
        size_t len = strlen(schemes[i]);
        if (origin.len > len && memcmp(origin.at, schemes[i], len) == 0)
            return str_eq((struct str){ origin.at + len, origin.len - len }, host);
    }
    return false;
}

int parse_from(struct str text, const char *field, uint64_t least, uint64_t *out, struct err *err)
{
    uint64_t value = 0;
    if (!str_to_u64(text, &value) || value < least || value >= INT64_MAX)
        return err_input(err, field, NULL, "the number of an event",
                         "'%s' is not the number of an event", field);
    *out = value;
    return 0;
}

enum http_form parse_accept(struct str header)
{
    while (header.len > 0) {
        struct str type = cut(&header, ',');
        type = str_trim(cut(&type, ';'));
        if (str_is(type, "text/event-stream"))
            return HTTP_SSE;
        if (str_is(type, "application/x-ndjson") || str_is(type, "application/jsonl"))
            return HTTP_NDJSON;
    }
    return HTTP_PLAIN;
}
