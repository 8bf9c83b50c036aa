/* Redacts JSON: every string with its context, and streams that were cut into portions. Pure; any
 * thread. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"
#include "store/redact/redact_int.h"

#define BINARY_MIN 64 /* bytes of the least picture or sound */
#define DEPTH_MAX 256 /* above what json_read accepts */

static size_t walk(const struct redact *redact, json_t *value, struct str name, int depth);

/* Markers replace at least a few bytes each. */
static struct buf room_for(struct str text)
{
    return BUF_INIT(text.len * 8 + 4 * REDACT_MARKER_MAX);
}

static void set_string(const struct redact *redact, json_t *value, struct str text)
{
    if (json_string_setn(value, text.at, text.len) == 0)
        return;
    own_buf mark = BUF_INIT(REDACT_MARKER_MAX);
    redact_mark(redact, "limit", text, &mark);
    json_string_setn(value, mark.at, mark.len);
}

/* The name says that the whole value is a secret, or a known part of it. */
static bool named_secret(const struct redact *redact, struct str text, struct str name,
                         struct buf *out)
{
    enum name_class class = name.len ? redact_name(name) : NAME_PLAIN;
    struct span part = { 0, text.len, NULL };
    if (class == NAME_PLAIN || !redact_value(class, text, /* bare= */ false))
        return false;
    if (class == NAME_AUTHORIZATION)
        part = redact_credential(text);
    buf_add(out, text.at, part.from);
    redact_mark(redact, redact_name_kind(class),
                (struct str){ text.at + part.from, part.until - part.from }, out);
    buf_add(out, text.at + part.until, text.len - part.until);
    return true;
}

static size_t walk_string(const struct redact *redact, json_t *value, struct str name)
{
    struct str text = json_str(value);
    own_buf out = room_for(text);
    size_t count = named_secret(redact, text, name, &out) ? 1 : 0;
    if (!count && redact_may(redact, text))
        count = redact_text(redact, text, &out);
    if (count)
        set_string(redact, value, buf_str(&out));
    return count;
}

static size_t walk_base64(const struct redact *redact, json_t *value)
{
    size_t len, count;
    own_str bytes = base64_decode(json_str(value), &len);
    if (!bytes)
        return walk_string(redact, value, STR(""));
    struct str text = { bytes, len };
    own_buf out = room_for(text);
    count = redact_may(redact, text) ? redact_text(redact, text, &out) : 0;
    if (count) {
        own_json coded = base64_json(buf_str(&out));
        set_string(redact, value, json_str(coded));
    }
    return count;
}

static bool ends(const char *text, const char *ending)
{
    size_t len = strlen(text), part = strlen(ending);
    return len >= part && strcmp(text + len - part, ending) == 0;
}

/* Forms of a result that are base64 of something else than text. Code may write anything there:
 * what is no base64, or too short for such a file, is a text. */
static bool is_binary_form(const char *key, struct str text)
{
    static const char *const forms[] = {
        "image/png",  "image/jpeg", "image/gif",  "image/webp", "image/bmp",       "image/tiff",
        "image/avif", "image/apng", "audio/mpeg", "audio/mp4",  "audio/wav",       "audio/x-wav",
        "audio/ogg",  "audio/flac", "audio/webm", "audio/aac",  "video/mp4",       "video/webm",
        "video/ogg",  "video/mpeg", "video/avi",  "image/x-icon", "video/quicktime",
        "image/vnd.microsoft.icon", "application/pdf",
    };
    size_t len = 0;
    for (size_t i = 0; i < array_len(forms); i++) {
        if (strcmp(key, forms[i]) != 0)
            continue;
        own_str bytes = base64_decode(text, &len);
        return bytes && len >= BINARY_MIN;
    }
    return false;
}

/* {"name": "password", "text": "'abc123'"}: a variable, as a session or an error shows it. */
static size_t walk_shown(const struct redact *redact, json_t *value, struct str name)
{
    struct str text = json_str(value);
    enum name_class class = redact_name(name);
    struct span part = redact_shown(class, text);
    own_buf out = room_for(text);
    if (part.from == part.until)
        return walk_string(redact, value, STR(""));
    buf_add(&out, text.at, part.from);
    redact_mark(redact, redact_name_kind(class),
                (struct str){ text.at + part.from, part.until - part.from }, &out);
    buf_add(&out, text.at + part.until, text.len - part.until);
    own_json rest = json_text(buf_str(&out));
    size_t more = walk_string(redact, rest, STR(""));
    set_string(redact, value, json_str(rest));
    return 1 + more;
}

static size_t walk_member(const struct redact *redact, json_t *object, const char *key,
                          json_t *value, int depth)
{
    if (json_is_string(value) && is_binary_form(key, json_str(value)))
        return 0;
    if (json_is_string(value) && ends(key, "_base64"))
        return walk_base64(redact, value);
    if (json_is_string(value) && strcmp(key, "base64") == 0) /* else bytes of a file */
        return json_object_get(object, "text") ? walk_base64(redact, value) : 0;
    if (json_is_string(value) && strcmp(key, "text") == 0 &&
        json_is_string(json_object_get(object, "name")))
        return walk_shown(redact, value, json_get_str(object, "name"));
    return walk(redact, value, str_of(key), depth + 1);
}

/* All members again, in their order, under redacted names. */
static size_t rename_keys(const struct redact *redact, json_t *object)
{
    own_json copy = json_object();
    const char *key;
    json_t *value;
    size_t count = 0;
    json_object_foreach (object, key, value) {
        own_buf name = room_for(str_of(key));
        count += redact_text(redact, str_of(key), &name);
        json_object_set(copy, buf_str(&name).at, value);
    }
    if (count) {
        json_object_clear(object);
        json_object_update(object, copy);
    }
    return count;
}

static size_t walk_object(const struct redact *redact, json_t *object, int depth)
{
    const char *key;
    json_t *value;
    size_t count = 0;
    bool rename = false;
    json_object_foreach (object, key, value) {
        count += walk_member(redact, object, key, value, depth);
        rename = rename || redact_may(redact, str_of(key));
    }
    return count + (rename ? rename_keys(redact, object) : 0);
}

static const char *const streams[] = { "stdout", "stderr" };

static bool is_portion(const json_t *entry, const char *stream)
{
    return str_is(json_get_str(entry, "type"), stream) &&
           json_is_string(json_object_get(entry, "text"));
}

/* Replaces one portion's text, and its exact bytes where it has them. */
static void set_portion(const struct redact *redact, json_t *entry, struct str bytes)
{
    own_json shown = json_text(bytes);
    set_string(redact, json_object_get(entry, "text"), json_str(shown));
    if (json_object_get(entry, "base64"))
        json_object_set_new(entry, "base64", base64_json(bytes));
}

static void add_portion(const json_t *entry, struct buf *out)
{
    size_t len;
    const json_t *coded = json_object_get(entry, "base64");
    own_str bytes = json_is_string(coded) ? base64_decode(json_str(coded), &len) : NULL;
    buf_add_str(out, bytes ? (struct str){ bytes, len } : json_get_str(entry, "text"));
}

/* A secret may be cut by the end of a portion: each stream is searched as a whole. */
static size_t walk_stream(const struct redact *redact, json_t *list, const char *stream)
{
    own_buf whole = BUF_INIT(SIZE_MAX / 2);
    own_spans spans = { NULL, 0 };
    size_t i, from = 0;
    json_t *entry;
    json_array_foreach (list, i, entry)
        if (is_portion(entry, stream))
            add_portion(entry, &whole);
    struct str text = buf_str(&whole);
    bool limit = redact_find(redact, text, &spans) < 0;
    if (!limit && !spans.count)
        return 0;
    json_array_foreach (list, i, entry) {
        if (!is_portion(entry, stream))
            continue;
        own_buf bytes = BUF_INIT(0), out;
        bytes.max = SIZE_MAX / 2;
        add_portion(entry, &bytes);
        out = room_for(text);
        if (limit)
            redact_mark(redact, "limit", buf_str(&bytes), &out);
        else
            redact_render(redact, text, &spans, from, from + bytes.len, &out);
        set_portion(redact, entry, buf_str(&out));
        from += bytes.len;
        buf_done(&out);
    }
    return limit ? 1 : spans.count;
}

static bool has_streams(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t k = 0; k < array_len(streams); k++)
            if (is_portion(json_array_get(list, i), streams[k]))
                return true;
    return false;
}

static size_t walk_array(const struct redact *redact, json_t *list, struct str name, int depth)
{
    size_t i, count = 0;
    json_t *entry;
    struct str context = name;
    bool joined = has_streams(list);
    for (size_t k = 0; joined && k < array_len(streams); k++)
        count += walk_stream(redact, list, streams[k]);
    json_array_foreach (list, i, entry) {
        if (!(joined && (is_portion(entry, "stdout") || is_portion(entry, "stderr"))))
            count += walk(redact, entry, context, depth + 1);
        /* "--token", "..." */
        struct str text = json_is_string(entry) ? json_str(entry) : STR("");
        context = text.len > 1 && text.at[0] == '-' && !memchr(text.at, '=', text.len) ? text
                                                                                       : name;
    }
    return count;
}

static size_t walk(const struct redact *redact, json_t *value, struct str name, int depth)
{
    if (json_is_string(value))
        return walk_string(redact, value, name);
    if (depth > DEPTH_MAX && (json_is_object(value) || json_is_array(value))) {
        json_object_clear(value);
        json_array_clear(value);
        return 1;
    }
    if (json_is_object(value))
        return walk_object(redact, value, depth);
    return json_is_array(value) ? walk_array(redact, value, name, depth) : 0;
}

size_t redact_json(const struct redact *redact, json_t *value)
{
    return walk(redact, value, STR(""), 0);
}

static void key_sums(const struct redact *redact, json_t *provenance)
{
    static const char *const sums[] = { "code_sha256", "inputs_sha256" };
    char hex[HASH_HEX_ROOM];
    for (size_t i = 0; i < array_len(sums); i++) {
        struct str sum = json_get_str(provenance, sums[i]);
        if (sum.len != sizeof hex - 1)
            continue;
        memcpy(hex, sum.at, sizeof hex);
        redact_sum(redact, hex);
        json_object_set_new(provenance, sums[i], json_string(hex));
    }
}

void redact_sums(const struct redact *redact, json_t *value)
{
    const char *name;
    json_t *member;
    size_t i;
    json_object_foreach (value, name, member) {
        if (strcmp(name, "provenance") == 0)
            key_sums(redact, member);
        redact_sums(redact, member);
    }
    json_array_foreach (value, i, member)
        redact_sums(redact, member);
}

static bool twice(struct str text, const char *what)
{
    size_t len = strlen(what);
    const char *first = memmem(text.at, text.len, what, len);
    return first && memmem(first + len, text.len - (size_t)(first - text.at) - len, what, len);
}

/* Forms in which a literal is not seen: escapes, base64, and streams in portions. */
static bool hides(struct str text)
{
    return memmem(text.at, text.len, "base64\"", 7) || memmem(text.at, text.len, "\\u00", 4) ||
           twice(text, "\"stdout\"") || twice(text, "\"stderr\"");
}

bool redact_json_may(const struct redact *redact, struct str text)
{
    return redact_may(redact, text) || hides(text);
}

size_t redact_json_text(const struct redact *redact, struct str text, struct buf *out)
{
    struct err err = ERR_INIT;
    if (!redact_json_may(redact, text)) {
        if (buf_add_str(out, text) == 0)
            return 0;
        redact_mark(redact, "limit", text, out);
        return 1;
    }
    own_json value = json_read(text, text.len, &err);
    if (!value)
        return redact_text(redact, text, out);
    size_t count = redact_json(redact, value);
    if (count ? json_add(out, value) < 0 : buf_add_str(out, text) < 0) {
        redact_mark(redact, "limit", text, out);
        return count ? count : 1;
    }
    return count;
}
