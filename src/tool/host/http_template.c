/* Templates of HTTP tools. Runs in the tool host; pure. An argument becomes one or more encoded
 * characters of one segment of the path; scheme, host, port and the number of segments are those of
 * the tool file. */
#include "tool/host/http_template.h"

#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"

#define SECRET STR("${secret:")
#define NAME_MAX_BYTES 128

/* ---- pieces ---- */

static bool starts(struct str text, struct str with)
{
    return text.len >= with.len && memcmp(text.at, with.at, with.len) == 0;
}

static struct str after(struct str text, size_t len)
{
    return (struct str){ text.at + len, text.len - len };
}

static bool is_name(struct str name)
{
    if (name.len == 0 || name.len > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.at[i] <= ' ' || strchr("{}$\"\\\x7f", name.at[i]))
            return false;
    return true;
}

static int refuse_brace(struct str text, struct err *err)
{
    char shown[96];
    str_plain(shown, sizeof shown, text);
    err_set(err, ERR_INPUT, "'%s' has a brace that holds no name", shown);
    err_hint(err, "write {argument} or ${secret:NAME}");
    return -1;
}

int http_walk(struct str text, int (*on_piece)(void *user, enum http_piece piece, struct str name),
              void *user, struct err *err)
{
    struct str whole = text;
    while (text.len > 0) {
        size_t plain = 0;
        while (plain < text.len && text.at[plain] != '{' && text.at[plain] != '}' &&
               !starts(after(text, plain), STR("${")))
            plain++;
        if (plain > 0 && on_piece(user, HTTP_TEXT, (struct str){ text.at, plain }) < 0)
            return -1;
        text = after(text, plain);
        if (text.len == 0)
            return 0;
        bool secret = starts(text, SECRET);
        text = after(text, secret ? SECRET.len : 1);
        const char *end = text.len > 0 ? memchr(text.at, '}', text.len) : NULL;
        struct str name = { text.at, end ? (size_t)(end - text.at) : 0 };
        if (!is_name(name) || (!secret && text.at[-1] != '{'))
            return refuse_brace(whole, err);
        if (on_piece(user, secret ? HTTP_SECRET : HTTP_ARGUMENT, name) < 0)
            return -1;
        text = after(text, name.len + 1);
    }
    return 0;
}

int http_encode(struct buf *out, struct str text)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t before = out->len;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool plain = (c < 0x80 && isalnum(c)) || (c && strchr("-._~", c));
        const char code[] = { '%', hex[c >> 4], hex[c & 15] };
        if (buf_add(out, plain ? &text.at[i] : code, plain ? 1 : 3) < 0) {
            out->len = before;
            return -1;
        }
    }
    return 0;
}

bool http_scalar(const json_t *value, struct buf *out)
{
    if (json_is_string(value))
        return buf_add_str(out, json_str(value)) == 0;
    if (json_is_boolean(value))
        return buf_add_text(out, json_is_true(value) ? "true" : "false") == 0;
    return json_is_number(value) && json_add(out, value) == 0;
}

/* ---- the URL ---- */

static size_t scheme_len(struct str url)
{
    return starts(url, STR("https://")) ? 8 : starts(url, STR("http://")) ? 7 : 0;
}

struct str http_url_origin(struct str url)
{
    size_t end = scheme_len(url);
    while (end < url.len && !memchr("/?#", url.at[end], 3))
        end++;
    return (struct str){ url.at, end };
}

/* No user, no brace, nothing that some parser could take for the end of the host. */
static bool is_good_host(struct str host)
{
    for (size_t i = 0; i < host.len; i++) {
        unsigned char c = (unsigned char)host.at[i];
        if (!(c < 0x80 && isalnum(c)) && !strchr("-._:[]", c))
            return false;
    }
    return host.len > 0 && host.at[0] != ':';
}

/* Is a part between slashes, of either kind, "." or ".."? */
static bool climbs(struct str text)
{
    size_t start = 0;
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.at[i] != '/' && text.at[i] != '\\')
            continue;
        struct str part = { text.at + start, i - start };
        if (str_is(part, ".") || str_is(part, ".."))
            return true;
        start = i + 1;
    }
    return false;
}

static int check_piece(void *user, enum http_piece piece, struct str name)
{
    bool *secret = user;
    (void)name;
    *secret = *secret || piece == HTTP_SECRET;
    return 0;
}

static const char *fault_of(struct str url, bool has_secret)
{
    struct str origin = http_url_origin(url), path = after(url, origin.len);
    const char *query = path.len > 0 ? memchr(path.at, '?', path.len) : NULL;
    size_t until = query ? (size_t)(query - path.at) : path.len;
    if (scheme_len(url) == 0)
        return "must begin with https:// or http://";
    if (!is_good_host(after(origin, scheme_len(url))))
        return "must have a literal host, with neither user nor argument in it";
    if (has_secret)
        return "holds a secret; secrets go into 'headers' or 'query'";
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.at[i] <= ' ' || (unsigned char)path.at[i] >= 0x7f ||
            strchr("#\\\"<>", path.at[i]))
            return "has a character that a URL may not hold, or a '#'";
    if (query && memchr(query, '{', path.len - until))
        return "has an argument after '?'; such arguments go into 'query'";
    if (climbs((struct str){ path.at, until }))
        return "has '.' or '..' in its path";
    return NULL;
}

int http_url_check(struct str url, struct err *err)
{
    bool has_secret = false;
    if (http_walk(url, check_piece, &has_secret, err) < 0)
        return -1;
    const char *fault = url.len > HTTP_URL_MAX / 2 ? "exceeds 4096 bytes"
                                                   : fault_of(url, has_secret);
    if (!fault)
        return 0;
    char shown[120];
    str_plain(shown, sizeof shown, url);
    return err_input(err, "http.url", shown, NULL, "'http.url' %s", fault);
}

struct filling {
    const json_t *arguments;
    struct buf *out;
    struct err *err;
};

static int refuse(struct filling *filling, struct str name, const char *why)
{
    char field[96];
    str_plain(field, sizeof field, name);
    return err_input(filling->err, field, NULL, NULL, "argument '%s' %s", field, why);
}

/* A list becomes "a,b": OpenAPI's simple style. */
static int add_value(struct filling *filling, struct str name, const json_t *value)
{
    own_buf text = BUF_INIT(HTTP_URL_MAX);
    size_t i, many = json_array_size(value);
    bool fits = true;
    for (i = 0; fits && i < many; i++)
        fits = (i == 0 || buf_add_text(&text, ",") == 0) &&
               http_scalar(json_array_get(value, i), &text);
    if (!json_is_array(value))
        fits = http_scalar(value, &text);
    if (!fits)
        return refuse(filling, name, "is no short text, number or boolean: it is part of the URL");
    if (text.len == 0)
        return refuse(filling, name, "is empty: it is part of the URL's path");
    if (memchr(text.at, 0, text.len) || climbs(buf_str(&text)))
        return refuse(filling, name, "would climb out of its place in the URL's path");
    if (http_encode(filling->out, buf_str(&text)) < 0)
        return refuse(filling, name, "makes the URL longer than 8192 bytes");
    return 0;
}

static int fill_piece(void *user, enum http_piece piece, struct str name)
{
    struct filling *filling = user;
    if (piece != HTTP_TEXT) {
        own_str key = buf_strdup(name);
        const json_t *value = json_object_get(filling->arguments, key);
        if (!value || json_is_null(value))
            return refuse(filling, name, "is missing: it is part of the URL's path");
        return add_value(filling, name, value);
    }
    if (buf_add_str(filling->out, name) < 0)
        return err_set(filling->err, ERR_LIMIT, "the URL exceeds 8192 bytes");
    return 0;
}

int http_url_fill(struct str url, const json_t *arguments, struct buf *out, struct err *err)
{
    struct filling filling = { arguments, out, err };
    if (http_walk(url, fill_piece, &filling, err) < 0)
        return -1;
    /* Two arguments of one segment may make ".." together. Slashes of arguments are encoded. */
    struct str path = buf_str(out);
    const char *query = memchr(path.at, '?', path.len);
    if (climbs((struct str){ path.at, query ? (size_t)(query - path.at) : path.len }))
        return err_set(err, ERR_INPUT, "the arguments would climb in the URL's path");
    return 0;
}
