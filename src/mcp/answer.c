/* A result of the contract as a tool's answer. Pure; runs in every process that serves MCP. The box
 * wrote most of what is in a result: every text is bounded here once more. */
#include "mcp/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "mcp/mcp_int.h"
#include "mcp/uri.h"

#define TEXT_MAX ((size_t)1 << 20) /* of the whole text; its parts are bounded below it */
#define STREAM_MAX 40000 /* bytes of an output that we show */
#define VALUE_MAX 8000
#define TRACE_MAX 4000
#define NAME_MAX_ 200

/* --- texts --- */

/* The head and the tail of a long text. */
static char *cut(struct str text, size_t most)
{
    struct buf out = BUF_INIT(most + 128);
    if (text.len <= most) {
        buf_add_str(&out, text);
        return buf_take(&out);
    }
    size_t head = str_cut_utf8(text, most * 3 / 4), tail = text.len - most / 4;
    while (tail < text.len && ((unsigned char)text.at[tail] & 0xc0) == 0x80)
        tail++;
    buf_add(&out, text.at, head);
    buf_printf(&out, "\n... %zu bytes left out ...\n", tail - head);
    buf_add(&out, text.at + tail, text.len - tail);
    return buf_take(&out);
}

json_t *mcp_cut_json(struct str text, size_t most)
{
    own_str short_text = cut(text, most);
    return json_text(str_of(short_text));
}

json_t *mcp_text_or_null(const json_t *object, const char *name, size_t most)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? mcp_cut_json(json_str(value), most) : json_null();
}

static json_t *integer_or_null(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? json_integer(json_integer_value(value)) : json_null();
}

void mcp_add_block(struct buf *out, const char *title, struct str text, size_t most)
{
    if (text.len == 0)
        return;
    own_str short_text = cut(text, most);
    size_t len = strlen(short_text);
    buf_printf(out, "%s:\n%s%s", title, short_text, len && short_text[len - 1] == '\n' ? "" : "\n");
}

static void add_error(struct buf *out, const json_t *error)
{
    struct str trace = json_get_str(error, "traceback"), name = json_get_str(error, "name");
    struct str message = json_get_str(error, "message"), hint = json_get_str(error, "hint");
    if (!json_is_object(error))
        return;
    if (trace.len > 0)
        mcp_add_block(out, "error", trace, TRACE_MAX);
    else
        buf_printf(out, "error: %.*s%s%.*s\n", (int)(name.len < NAME_MAX_ ? name.len : NAME_MAX_),
                   name.at, name.len && message.len ? ": " : "",
                   (int)(message.len < TRACE_MAX ? message.len : TRACE_MAX), message.at);
    if (hint.len > 0)
        buf_printf(out, "hint: %.*s\n", (int)(hint.len < 1000 ? hint.len : 1000), hint.at);
}

/* --- values and pictures --- */

struct making {
    const json_t *result;
    const char *id, *owner; /* of the files */
    struct buf text;
    json_t *pictures, *links;
    size_t picture_bytes;
};

static void leave_out(struct making *making, size_t index, const char *mime, struct str base64)
{
    char path[64];
    snprintf(path, sizeof path, "%s%zu", &MCP_SHOWN[1], index);
    own_str uri = mcp_uri_make(making->id, str_of(path));
    buf_printf(&making->text, "picture %zu (%s, %zu bytes) is too large to show: %s\n", index + 1,
               mime, base64.len / 4 * 3, uri);
    if (json_array_size(making->links) < MCP_LINKS_MAX)
        json_array_append_new(making->links,
                              mcp_part_link(uri, path, mime, (int64_t)(base64.len / 4 * 3)));
}

static void add_picture(struct making *making, size_t index, const char *mime, struct str base64)
{
    if (json_array_size(making->pictures) >= MCP_PICTURES_MAX ||
        base64.len > MCP_PICTURES_BYTES - making->picture_bytes ||
        !mcp_picture_is_sane(base64, mime)) {
        leave_out(making, index, mime, base64);
        return;
    }
    making->picture_bytes += base64.len;
    json_array_append_new(making->pictures, mcp_part_image(mime, base64));
}

/* Values that the code has shown, in their order; the main one comes last, as the value. */
static void add_values(struct making *making)
{
    const json_t *main_text = json_object_get(making->result, "text");
    size_t i;
    json_t *forms;
    size_t shown = 0;
    json_array_foreach (json_object_get(making->result, "results"), i, forms) {
        const char *mime = NULL;
        struct str picture = mcp_picture_of(forms, &mime), text = json_get_str(forms, "text/plain");
        if (mime)
            add_picture(making, i, mime, picture);
        else if (text.len > 0 && !json_equal(json_object_get(forms, "text/plain"), main_text) &&
                 ++shown <= 32)
            mcp_add_block(&making->text, "shown", text, VALUE_MAX);
    }
    mcp_add_block(&making->text, "value", json_str(main_text), VALUE_MAX);
}

/* --- files --- */

static json_t *file_of(struct making *making, const json_t *artifact)
{
    struct str path = json_get_str(artifact, "path"), mime = json_get_str(artifact, "mime");
    const json_int_t size = json_integer_value(json_object_get(artifact, "size_bytes"));
    own_str uri = mcp_uri_make(making->owner, path);
    json_t *file = json_pack("{s:o, s:I, s:o, s:s}", "path", json_text(path), "size_bytes", size,
                             "mime", json_text(mime), "uri", uri);
    if (json_array_size(making->links) < MCP_LINKS_MAX)
        json_array_append_new(making->links, mcp_part_link(uri, json_get_str(file, "path").at,
                                                           json_get_str(file, "mime").at, size));
    return file;
}

static json_t *add_files(struct making *making)
{
    json_t *files = json_array(), *artifact;
    size_t i;
    json_array_foreach (json_object_get(making->result, "artifacts"), i, artifact) {
        struct str path = json_get_str(artifact, "path");
        if (json_array_size(files) >= MCP_LINKS_MAX) {
            buf_printf(&making->text, "  and %zu more files\n",
                       json_array_size(json_object_get(making->result, "artifacts")) - i);
            break;
        }
        buf_printf(&making->text, "%s  %.*s (%lld bytes)\n", i ? "" : "files written:\n",
                   (int)(path.len < 1024 ? path.len : 1024), path.at,
                   (long long)json_integer_value(json_object_get(artifact, "size_bytes")));
        json_array_append_new(files, file_of(making, artifact));
    }
    json_array_foreach (json_object_get(making->result, "skipped"), i, artifact) {
        struct str path = json_get_str(artifact, "path"), why = json_get_str(artifact, "reason");
        if (i == 8)
            break;
        buf_printf(&making->text, "not kept: %.*s (%.*s)\n",
                   (int)(path.len < 1024 ? path.len : 1024), path.at,
                   (int)(why.len < 300 ? why.len : 300), why.at);
    }
    return files;
}

/* --- the whole --- */

static void add_head(struct making *making, const char *note)
{
    const json_t *result = making->result;
    struct str status = json_get_str(result, "status"), session = json_get_str(result, "session");
    const json_t *code = json_object_get(result, "exit_code");
    buf_printf(&making->text, "%.*s", (int)(status.len < 40 ? status.len : 40), status.at);
    if (json_is_integer(code) && json_integer_value(code) != 0)
        buf_printf(&making->text, ", exit code %lld", (long long)json_integer_value(code));
    if (session.len > 0)
        buf_printf(&making->text, " (session %.*s, cell %lld)", (int)session.len, session.at,
                   (long long)json_integer_value(json_object_get(result, "cell")));
    struct str state = json_get_str(result, "state");
    if (state.len > 0 && !str_is(state, "none") && !str_is(state, "kept"))
        buf_printf(&making->text, "; the session's state: %.*s", (int)state.len, state.at);
    buf_add_text(&making->text, "\n");
    if (*note)
        buf_printf(&making->text, "note: %s\n", note);
}

static json_t *error_of(const json_t *error)
{
    if (!json_is_object(error))
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "kind",
                     mcp_cut_json(json_get_str(error, "kind"), 40), "name",
                     mcp_text_or_null(error, "name", NAME_MAX_), "message",
                     mcp_text_or_null(error, "message", TRACE_MAX), "line",
                     integer_or_null(error, "line"), "hint", mcp_text_or_null(error, "hint", 1000));
}

static double seconds_of(const json_t *result)
{
    const json_t *metrics = json_object_get(result, "metrics");
    return (double)(int64_t)json_number_value(json_object_get(metrics, "wall_ms")) / 1000;
}

static json_t *structured_of(const struct making *making, json_t *files)
{
    const json_t *result = making->result;
    return json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:f}", "status",
        mcp_cut_json(json_get_str(result, "status"), 40), "id", making->id, "exit_code",
        integer_or_null(result, "exit_code"), "stdout",
        mcp_cut_json(json_get_str(result, "stdout"), STREAM_MAX), "stderr",
        mcp_cut_json(json_get_str(result, "stderr"), STREAM_MAX), "truncated",
        json_is_true(json_object_get(result, "truncated")), "value",
        mcp_text_or_null(result, "text", VALUE_MAX), "error",
        error_of(json_object_get(result, "error")), "files", files, "pictures",
        (json_int_t)json_array_size(making->pictures), "session",
        mcp_text_or_null(result, "session", 40), "cell", integer_or_null(result, "cell"), "state",
        mcp_cut_json(json_get_str(result, "state"), 40), "seconds", seconds_of(result));
}

void mcp_answer_make(const json_t *result, const char *id, const char *session, const char *note,
                     struct mcp_answer *out)
{
    struct making making = { .result = result, .id = id, .owner = session ? session : id,
                             .text = BUF_INIT(TEXT_MAX), .pictures = json_array(),
                             .links = json_array() };
    add_head(&making, note);
    mcp_add_block(&making.text, "stdout", json_get_str(result, "stdout"), STREAM_MAX);
    mcp_add_block(&making.text, "stderr", json_get_str(result, "stderr"), STREAM_MAX);
    add_error(&making.text, json_object_get(result, "error"));
    add_values(&making);
    json_t *files = add_files(&making);
    out->structured = structured_of(&making, files);
    out->content = json_pack("[o]", mcp_part_text(buf_str(&making.text)));
    json_array_extend(out->content, making.pictures);
    json_array_extend(out->content, making.links);
    out->is_error = !str_is(json_get_str(result, "status"), "ok");
    json_decref(making.pictures);
    json_decref(making.links);
    buf_done(&making.text);
}

void mcp_answer_running(const char *id, const char *session, double seconds, struct str out_tail,
                        struct str err_tail, struct mcp_answer *out)
{
    own_buf text = BUF_INIT(TEXT_MAX);
    buf_printf(&text,
               "still running after %.0f s, id %s\ncall the tool runs with do=show and this "
               "id to wait for the rest, or with do=stop to end it\n",
               seconds, id);
    mcp_add_block(&text, "stdout so far", out_tail, STREAM_MAX);
    mcp_add_block(&text, "stderr so far", err_tail, STREAM_MAX);
    out->structured = json_pack(
        "{s:s, s:s, s:n, s:o, s:o, s:b, s:n, s:n, s:[], s:i, s:s?, s:n, s:s, s:f}", "status",
        "running", "id", id, "exit_code", "stdout", mcp_cut_json(out_tail, STREAM_MAX), "stderr",
        mcp_cut_json(err_tail, STREAM_MAX), "truncated", false, "value", "error", "files",
        "pictures", 0, "session", session, "cell", "state", session ? "kept" : "none", "seconds",
        seconds);
    out->content = json_pack("[o]", mcp_part_text(buf_str(&text)));
    out->is_error = false;
}
