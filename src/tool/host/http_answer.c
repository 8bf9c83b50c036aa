/* Responses of HTTP tools. Runs in the tool host; pure. Every byte is the server's: parsed within
 * the bounds of base/json.h, shown without control characters, never a path or a command. */
#include "tool/host/http_answer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/define/outcome.h"

#define EXTRACT_MAX 300

/* ---- types ---- */

static struct str bare_type(struct str type)
{
    const char *end = type.len > 0 ? memchr(type.at, ';', type.len) : NULL;
    return str_trim((struct str){ type.at, end ? (size_t)(end - type.at) : type.len });
}

static bool same(struct str a, const char *b)
{
    return a.len == strlen(b) && strncasecmp(a.at, b, a.len) == 0;
}

static bool ends(struct str text, const char *end)
{
    size_t len = strlen(end);
    return text.len >= len && strncasecmp(text.at + text.len - len, end, len) == 0;
}

static bool is_json(struct str type)
{
    return same(type, "application/json") || same(type, "text/json") || ends(type, "+json");
}

static bool is_text(struct str type)
{
    static const char *const names[] = {
        "application/xml",      "application/javascript", "application/yaml",
        "application/x-yaml",   "application/x-ndjson",   "application/jsonl",
        "application/toml",     "application/sql",        "application/x-www-form-urlencoded",
    };
    for (size_t i = 0; i < array_len(names); i++)
        if (same(type, names[i]))
            return true;
    return (type.len > 5 && strncasecmp(type.at, "text/", 5) == 0) || ends(type, "+xml") ||
           ends(type, "+yaml");
}

static const char *ending_of(struct str type)
{
    static const struct {
        const char *type, *ending;
    } rows[] = {
        { "image/png", ".png" },       { "image/jpeg", ".jpg" }, { "image/gif", ".gif" },
        { "image/webp", ".webp" },     { "audio/wav", ".wav" },  { "audio/mpeg", ".mp3" },
        { "application/pdf", ".pdf" }, { "video/mp4", ".mp4" },  { "application/zip", ".zip" },
        { "application/gzip", ".gz" }, { "text/csv", ".csv" },   { "text/plain", ".txt" },
    };
    for (size_t i = 0; i < array_len(rows); i++)
        if (same(type, rows[i].type))
            return rows[i].ending;
    return ".bin";
}

void http_mime(struct str type, char *out, size_t room)
{
    struct str bare = bare_type(type);
    str_plain(out, room, bare.len > 0 ? bare : STR("application/octet-stream"));
}

json_t *http_file(const char *stem, struct str mime, struct str bytes)
{
    char name[96], type[80];
    http_mime(mime, type, sizeof type);
    snprintf(name, sizeof name, "%s%s", stem, ending_of(bare_type(mime)));
    json_t *file = json_object();
    json_object_set_new(file, "name", json_string(name));
    json_object_set_new(file, "mime", json_string(type));
    json_object_set_new(file, "base64", base64_json(bytes));
    return file;
}

/* ---- outcomes ---- */

static json_t *refusal(const struct http_answer *answer)
{
    char extract[EXTRACT_MAX + 1], where[160];
    struct str body = str_trim(answer->body);
    bool shown = body.len > 0 && str_is_utf8(body);
    int len = (int)answer->host.len;
    str_plain(extract, sizeof extract, shown ? body : STR(""));
    str_plain(where, sizeof where, answer->location);
    if (answer->status < 400 && where[0])
        return outcome_error(
            OUTCOME_ERROR, "HTTP %d from %.*s: redirects are not followed, this one leads to '%s'",
            answer->status, len, answer->host.at, where);
    return outcome_error(OUTCOME_ERROR, "HTTP %d from %.*s%s%s", answer->status, len,
                         answer->host.at, extract[0] ? ": " : "", extract);
}

static json_t *file_outcome(const struct http_answer *answer)
{
    json_t *files = json_array(), *file = http_file("response", answer->type, answer->body);
    json_t *value = json_object();
    json_object_set(value, "file", json_object_get(file, "name"));
    json_object_set(value, "mime", json_object_get(file, "mime"));
    json_object_set_new(value, "bytes", json_integer((json_int_t)answer->body.len));
    json_array_append_new(files, file);
    return outcome_value_files(value, files);
}

json_t *http_answer_outcome(const struct http_answer *answer)
{
    struct str type = bare_type(answer->type), body = answer->body;
    struct err err = ERR_INIT;
    if (answer->status < 200 || answer->status >= 300)
        return refusal(answer);
    if (str_trim(body).len == 0)
        return outcome_value(json_null());
    if (is_json(type)) {
        json_t *value = json_read(body, body.len, &err);
        return value ? outcome_value(value)
                     : outcome_error(OUTCOME_ERROR, "%.*s announced JSON, but sent %.200s",
                                     (int)answer->host.len, answer->host.at, err.text);
    }
    bool text = is_text(type) || (type.len == 0 && str_is_utf8(body));
    if (text && !memchr(body.at, 0, body.len))
        return outcome_value(json_text(body));
    return file_outcome(answer);
}
