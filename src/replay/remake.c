/* From a record to a request. Runs wherever something is replayed; pure but for the contents. */
#include "replay/remake.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/request.h"
#include "embed/client.h"

#define MARKER "[redacted:"
#define KIND_MAX 20 /* letters of a marker's kind */

/* --- redacted parts --- */

/* The length of a marker at the start of `text`, or 0; *out_hash: its digits. */
static size_t find_marker(struct str text, struct str *out_hash)
{
    size_t at = sizeof MARKER - 1, kind = 0;
    if (text.len < at || memcmp(text.at, MARKER, at) != 0)
        return 0;
    while (at < text.len && kind <= KIND_MAX &&
           ((text.at[at] >= 'a' && text.at[at] <= 'z') || text.at[at] == '-')) {
        at++;
        kind++;
    }
    if (kind < 2 || kind > KIND_MAX || text.len - at < REMAKE_HASH + 2 || text.at[at] != ':')
        return 0;
    at++;
    for (size_t i = 0; i < REMAKE_HASH; i++)
        if (!memchr("0123456789abcdef", text.at[at + i], 16))
            return 0;
    if (text.at[at + REMAKE_HASH] != ']')
        return 0;
    *out_hash = (struct str){ text.at + at, REMAKE_HASH };
    return at + REMAKE_HASH + 1;
}

static int refuse_marker(const char *part, struct str marker, struct str hash, struct err *err)
{
    err_set(err, ERR_CONFLICT, "'%s' of the run has a secret that is not stored: %.*s", part,
            (int)marker.len, marker.at);
    snprintf(err->field, sizeof err->field, "%s", part);
    err_hint(err, "supply it: --secret %.*s=VALUE or =@FILE, \"secrets\" over HTTP", REMAKE_HASH,
             hash.at);
    return -1;
}

static int refuse_length(const char *part, struct err *err)
{
    return err_set(err, ERR_LIMIT, "'%s' with its secrets has more than %u bytes", part,
                   REQUEST_JSON_MAX);
}

/* Puts the secrets in the place of markers. */
static int fill_text(const struct remake *remake, const char *part, struct str text,
                     struct buf *out, struct err *err)
{
    while (text.len > 0) {
        struct str hash;
        const char *next = remake->whole ? NULL
                                         : memmem(text.at, text.len, MARKER, sizeof MARKER - 1);
        size_t ahead = next ? (size_t)(next - text.at) : text.len;
        if (buf_add(out, text.at, ahead) < 0)
            return refuse_length(part, err);
        text = (struct str){ text.at + ahead, text.len - ahead };
        size_t len = find_marker(text, &hash);
        struct str with = { text.at, text.len > 0 };
        if (len) {
            char name[REMAKE_HASH + 1] = "";
            memcpy(name, hash.at, REMAKE_HASH);
            const json_t *secret = json_object_get(remake->secrets, name);
            if (!json_is_string(secret))
                return refuse_marker(part, (struct str){ text.at, len }, hash, err);
            with = json_str(secret);
        }
        if (buf_add_str(out, with) < 0)
            return refuse_length(part, err);
        len = len ? len : text.len > 0;
        text = (struct str){ text.at + len, text.len - len };
    }
    return 0;
}

static json_t *fill(const struct remake *remake, const char *part, const json_t *value,
                    struct err *err);

static json_t *fill_string(const struct remake *remake, const char *part, struct str text,
                           struct err *err)
{
    own_buf out = BUF_INIT(REQUEST_JSON_MAX);
    if (fill_text(remake, part, text, &out, err) < 0)
        return NULL;
    json_t *made = json_stringn(buf_str(&out).at, out.len);
    if (!made)
        err_input(err, part, NULL, "UTF-8 text", "'%s' with its secrets is not UTF-8", part);
    return made;
}

static json_t *fill_object(const struct remake *remake, const char *part, const json_t *value,
                           struct err *err)
{
    const char *name;
    json_t *member;
    own_json made = json_object();
    json_object_foreach ((json_t *)(uintptr_t)value, name, member) {
        own_json key = fill_string(remake, part, str_of(name), err);
        json_t *filled = key ? fill(remake, part, member, err) : NULL;
        if (!filled)
            return NULL;
        json_object_set_new(made, json_string_value(key), filled);
    }
    return take_ptr(made);
}

/* A copy of a value without markers; NULL with an err. */
static json_t *fill(const struct remake *remake, const char *part, const json_t *value,
                    struct err *err)
{
    size_t i;
    json_t *member;
    if (json_is_string(value))
        return fill_string(remake, part, json_str(value), err);
    if (json_is_object(value))
        return fill_object(remake, part, value, err);
    if (!json_is_array(value))
        return json_deep_copy(value);
    own_json made = json_array();
    json_array_foreach (value, i, member) {
        json_t *filled = fill(remake, part, member, err);
        if (!filled)
            return NULL;
        json_array_append_new(made, filled);
    }
    return take_ptr(made);
}

/* --- contents --- */

static bool is_sum(const char *text)
{
    return text && strlen(text) == HASH_HEX_ROOM - 1 &&
           strspn(text, "0123456789abcdef") == HASH_HEX_ROOM - 1;
}

/* The bytes of a row with a sum; `name` is for people. */
static int read_content(const struct remake *remake, const json_t *row, const char *name,
                        struct buf *out, struct err *err)
{
    const char *sum = json_string_value(json_object_get(row, "sha256"));
    if (!is_sum(sum)) {
        err_set(err, ERR_ABSENT, "the bytes of '%.200s' were not stored", name);
        err_hint(err, "inputs above limits.input_bytes are only named in the record");
        return -1;
    }
    struct err why = ERR_INIT;
    if (remake->content(remake->user, sum, out, &why) == 0)
        return 0;
    *err = why;
    if (why.kind != ERR_ABSENT)
        return err_wrap(err, "read '%.200s' of the record", name);
    err_set(err, ERR_ABSENT, "the bytes of '%.200s' (sha256 %.12s…) are not stored any more", name,
            sum);
    err_hint(err, "retention or 'cupel runs rm' removed them: the run cannot be replayed");
    return -1;
}

json_t *remake_files(const struct remake *remake, const json_t *rows, struct err *err)
{
    size_t i, total = 0;
    json_t *row;
    own_json files = json_array();
    if (json_array_size(rows) > REQUEST_FILES_MAX) {
        err_set(err, ERR_LIMIT, "the record has %zu files", json_array_size(rows));
        return NULL;
    }
    json_array_foreach (rows, i, row) {
        own_json name = fill_string(remake, "files", json_get_str(row, "path"), err);
        const char *path = name && json_string_length(name) ? json_string_value(name) : NULL;
        own_buf bytes = BUF_INIT(REMAKE_INPUT_MAX - total);
        if (!name)
            return NULL;
        if (read_content(remake, row, path ? path : "?", &bytes, err) < 0)
            return NULL;
        json_t *file = path ? embed_file(path, buf_str(&bytes),
                                         json_is_true(json_object_get(row, "readonly")))
                            : NULL;
        if (!file) {
            err_set(err, ERR_CONFLICT, "file %zu of the record has no usable path", i + 1);
            return NULL;
        }
        total += bytes.len;
        json_array_append_new(files, file);
    }
    return take_ptr(files);
}

static int add_stdin(const struct remake *remake, const json_t *row, json_t *frame, json_t *request,
                     struct err *err)
{
    own_buf stored = BUF_INIT(REMAKE_INPUT_MAX);
    own_buf bytes = BUF_INIT(REMAKE_INPUT_MAX);
    if (!json_is_object(row))
        return 0;
    if (read_content(remake, row, "stdin", &stored, err) < 0 ||
        fill_text(remake, "stdin", buf_str(&stored), &bytes, err) < 0)
        return -1;
    json_t *text = json_stringn(buf_str(&bytes).at, bytes.len);
    if (text)
        json_object_set_new(request, "stdin", text);
    else
        json_object_set_new(frame, "stdin_base64", base64_json(buf_str(&bytes)));
    return 0;
}

/* --- the request --- */

/* Copies the parts that a request may have, without markers. Others (cache, wait, session) are not
 * what is replayed. */
static int copy_parts(const struct remake *remake, const json_t *from, const char *const *parts,
                      json_t *to, struct err *err)
{
    for (; *parts; parts++) {
        const json_t *value = json_object_get(from, *parts);
        if (!value || json_is_null(value))
            continue;
        json_t *filled = fill(remake, *parts, value, err);
        if (!filled)
            return -1;
        json_object_set_new(to, *parts, filled);
    }
    return 0;
}

const char *remake_digest(const json_t *record)
{
    const json_t *from = json_object_get(json_object_get(record, "result"), "provenance");
    const char *digest = json_string_value(json_object_get(from, "image_digest"));
    return digest && strncmp(digest, "sha256:", 7) == 0 && is_sum(digest + 7) ? digest : NULL;
}

/* "host", or pinned "host@sha256:...". */
static void set_image(const struct remake *remake, const json_t *recorded, const char *digest,
                      json_t *request)
{
    const char *name = json_string_value(json_object_get(recorded, "image"));
    char image[256];
    int len = name ? (int)strcspn(name, "@") : 4;
    if (!name && (!digest || remake->any_image))
        return;
    if (digest && !remake->any_image)
        snprintf(image, sizeof image, "%.*s@%s", len > 100 ? 100 : len, name ? name : "host",
                 digest);
    else
        snprintf(image, sizeof image, "%.*s", len > 100 ? 100 : len, name);
    json_object_set_new(request, "image", json_text(str_of(image)));
}

static int add_files(const struct remake *remake, const json_t *rows, json_t *request,
                     struct err *err)
{
    if (json_array_size(rows) == 0)
        return 0;
    json_t *files = remake_files(remake, rows, err);
    return files ? json_object_set_new(request, "files", files) : -1;
}

static int refuse_record(const char *what, struct err *err)
{
    err_set(err, ERR_CONFLICT, "the record has no %s", what);
    err_hint(err, "it was damaged or edited: it cannot be replayed");
    return -1;
}

bool remake_is_whole(const json_t *row)
{
    const json_t *redacted = json_object_get(row, "redacted");
    return json_is_integer(redacted) && json_integer_value(redacted) == 0;
}

json_t *remake_run(const struct remake *given, const json_t *record, const char *session,
                   struct err *err)
{
    static const char *const parts[] = { "language", "code", "args", "env", "call", "profile",
                                         "limits", "on_output_limit", "on_error", "names", "seed",
                                         "tier", NULL };
    const json_t *recorded = json_object_get(record, "request");
    const json_t *provenance = json_object_get(json_object_get(record, "result"), "provenance");
    json_t *limits = json_object_get(provenance, "limits");
    json_t *request = json_object();
    own_json frame = json_pack("{s:o}", "request", request);
    struct remake with = *given, *remake = &with;
    with.whole = remake_is_whole(record);
    if (!json_is_object(recorded) || !json_is_string(json_object_get(recorded, "code"))) {
        refuse_record("request", err);
        return NULL;
    }
    if (copy_parts(remake, recorded, parts, request, err) < 0 ||
        add_files(remake, json_object_get(recorded, "files"), request, err) < 0 ||
        add_stdin(remake, json_object_get(recorded, "stdin"), frame, request, err) < 0)
        return NULL;
    /* Those that held: a profile's defaults may be others today. */
    if (json_is_object(limits))
        json_object_set_new(request, "limits", json_deep_copy(limits));
    if (session)
        json_object_set_new(request, "session", json_text(str_of(session)));
    else
        set_image(remake, recorded, remake_digest(record), request);
    return take_ptr(frame);
}

json_t *remake_calls(const struct remake *given, const json_t *record, const json_t *stored,
                     struct err *err)
{
    struct remake with = *given;
    with.whole = remake_is_whole(record);
    return fill(&with, "calls", stored, err);
}

json_t *remake_text(const struct remake *remake, const char *part, struct str text, struct err *err)
{
    return fill_string(remake, part, text, err);
}

json_t *remake_session(const struct remake *remake, const json_t *recorded, const json_t *files,
                       const char *digest, struct err *err)
{
    static const char *const parts[] = { "language", "profile", "limits", "env", "seed", "tier",
                                         NULL };
    own_json request = json_object();
    if (!json_is_object(recorded)) {
        refuse_record("request of its session", err);
        return NULL;
    }
    if (copy_parts(remake, recorded, parts, request, err) < 0 ||
        add_files(remake, files, request, err) < 0)
        return NULL;
    set_image(remake, recorded, digest, request);
    return take_ptr(request);
}
