/* The tools for files of a session. Runs in the process of a door, in its loop. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "mcp/answer.h"
#include "mcp/mcp_int.h"
#include "mcp/uri.h"

#define LIST_MAX 1000

static void ask(struct mcp_call *call, json_t *frame, void (*then)(struct mcp_call *call))
{
    struct err err = ERR_INIT;
    if (mcp_call_ask(call, frame, then, &err) < 0)
        mcp_call_refuse(call, &err);
}

static bool is_failed(struct mcp_call *call)
{
    if (call->of.err.kind == ERR_NONE)
        return false;
    const struct err err = call->of.err;
    mcp_call_refuse(call, &err);
    return true;
}

static json_t *frame_of(const struct mcp_call *call, const char *what)
{
    return json_pack("{s:s, s:s, s:s}", "op", "session", "do", what, "session", call->session);
}

/* --- read --- */

static json_int_t integer_arg(const struct mcp_call *call, const char *name, json_int_t without)
{
    const json_t *value = json_object_get(call->args, name);
    return value ? json_integer_value(value) : without;
}

static json_t *link_of(const struct mcp_call *call, const char *mime, json_int_t size)
{
    struct str path = json_get_str(call->args, "path");
    own_str uri = mcp_uri_make(call->session, path);
    return mcp_part_link(uri, path.at, mime, size);
}

static void answer_text(struct mcp_call *call, struct str bytes, json_int_t offset, json_int_t size)
{
    own_buf text = BUF_INIT(2 * MCP_READ_BYTES);
    buf_add_str(&text, bytes);
    const json_int_t end = offset + (json_int_t)bytes.len;
    json_t *content = json_pack("[o]", mcp_part_text(buf_str(&text)));
    own_buf more = BUF_INIT(256);
    if (end < size) {
        buf_printf(&more, "bytes %lld to %lld of %lld; offset %lld reads on", (long long)offset,
                   (long long)end, (long long)size, (long long)end);
        json_array_append_new(content, mcp_part_text(buf_str(&more)));
    }
    mcp_call_answer(call, content, NULL, /* is_error= */ false);
}

static void answer_other(struct mcp_call *call, const char *mime, json_int_t size)
{
    own_buf text = BUF_INIT(512);
    buf_printf(&text, "not text: %.100s, %lld bytes; run_code can look into it", mime,
               (long long)size);
    mcp_call_answer(call,
                    json_pack("[o, o]", mcp_part_text(buf_str(&text)), link_of(call, mime, size)),
                    NULL, /* is_error= */ false);
}

/* The picture came whole only if it is small: else a second question asks for the rest. */
static void have_picture(struct mcp_call *call)
{
    if (is_failed(call))
        return;
    const json_t *file = json_object_get(call->of.answer, "file");
    const char *mime = json_get_str(file, "mime").at;
    const json_int_t size = json_integer_value(json_object_get(file, "size_bytes"));
    struct str bytes = call->of.artifact_count ? buf_str(&call->of.artifacts[0].content) : STR("");
    own_json base64 = base64_json(bytes);
    if ((json_int_t)bytes.len == size && mcp_picture_is_sane(json_str(base64), mime))
        mcp_call_answer(call, json_pack("[o]", mcp_part_image(mime, json_str(base64))), NULL,
                        /* is_error= */ false);
    else
        answer_other(call, mime, size);
}

static void have_part(struct mcp_call *call)
{
    if (is_failed(call))
        return;
    const json_t *file = json_object_get(call->of.answer, "file");
    struct str mime = json_get_str(file, "mime");
    const json_int_t size = json_integer_value(json_object_get(file, "size_bytes"));
    const json_int_t offset = integer_arg(call, "offset", 0);
    struct str bytes = call->of.artifact_count ? buf_str(&call->of.artifacts[0].content) : STR("");
    if (mime.len > 6 && memcmp(mime.at, "image/", 6) == 0 && !str_is(mime, "image/svg+xml") &&
        size <= (json_int_t)(MCP_PICTURE_BYTES / 4 * 3)) {
        json_t *frame = frame_of(call, "get");
        json_object_set(frame, "path", json_object_get(call->args, "path"));
        ask(call, frame, have_picture);
        return;
    }
    /* A part may begin and end inside a character. */
    while (offset > 0 && bytes.len > 0 && ((unsigned char)bytes.at[0] & 0xc0) == 0x80)
        bytes = (struct str){ bytes.at + 1, bytes.len - 1 };
    bytes.len -= str_unfinished_utf8(bytes);
    if (str_is_utf8(bytes) && (bytes.len == 0 || !memchr(bytes.at, 0, bytes.len)))
        answer_text(call, bytes, offset, size);
    else
        answer_other(call, mime.at, size);
}

static void read_part(struct mcp_call *call)
{
    json_t *frame = frame_of(call, "get");
    json_object_set(frame, "path", json_object_get(call->args, "path"));
    json_object_set_new(frame, "offset", json_integer(integer_arg(call, "offset", 0)));
    json_object_set_new(frame, "length", json_integer(integer_arg(call, "length", MCP_READ_BYTES)));
    ask(call, frame, have_part);
}

void mcp_tool_read(struct mcp_call *call)
{
    mcp_session_find(call, /* may_lack= */ false, read_part);
}

/* --- write --- */

static void written(struct mcp_call *call)
{
    if (is_failed(call))
        return;
    struct str path = json_get_str(call->args, "path");
    own_buf text = BUF_INIT(8192);
    buf_printf(&text, "%s %.*s in session %s",
               json_is_true(json_object_get(call->of.answer, "replaced")) ? "replaced" : "wrote",
               (int)path.len, path.at, call->session);
    mcp_call_text(call, /* is_error= */ false, buf_str(&text));
}

static void write_it(struct mcp_call *call)
{
    json_t *frame = frame_of(call, "put"), *file = json_object();
    static const char *const members[] = { "path", "text", "base64" };
    for (size_t i = 0; i < array_len(members); i++)
        if (json_object_get(call->args, members[i]))
            json_object_set(file, members[i], json_object_get(call->args, members[i]));
    json_object_set_new(frame, "files", json_pack("[o]", file));
    ask(call, frame, written);
}

void mcp_tool_write(struct mcp_call *call)
{
    struct err err = ERR_INIT;
    if (!json_object_get(call->args, "text") == !json_object_get(call->args, "base64")) {
        err_input(&err, "text", NULL, "one of text and base64",
                  "one of the arguments 'text' and 'base64' is needed");
        mcp_call_refuse(call, &err);
        return;
    }
    mcp_session_find(call, /* may_lack= */ false, write_it);
}

/* --- list --- */

static void listed(struct mcp_call *call)
{
    own_buf text = BUF_INIT(1 << 20);
    if (is_failed(call))
        return;
    json_t *files = json_array(), *one;
    const json_t *all = json_object_get(call->of.answer, "files");
    size_t i;
    json_array_foreach (all, i, one) {
        struct str path = json_get_str(one, "path"), type = json_get_str(one, "type");
        const json_int_t size = json_integer_value(json_object_get(one, "size_bytes"));
        if (i == LIST_MAX)
            break;
        buf_printf(&text, "%.*s (%.*s, %lld bytes)\n", (int)path.len, path.at, (int)type.len,
                   type.at, (long long)size);
        json_array_append_new(files, json_pack("{s:o, s:o, s:I}", "path", json_text(path), "type",
                                               json_text(type), "size_bytes", size));
    }
    bool is_cut = json_array_size(all) > LIST_MAX ||
                  json_is_true(json_object_get(call->of.answer, "cut"));
    buf_add_text(&text, is_cut ? "there are more\n" : text.len ? "" : "no files\n");
    mcp_call_answer(call, json_pack("[o]", mcp_part_text(buf_str(&text))),
                    json_pack("{s:o, s:b}", "files", files, "cut", is_cut), /* is_error= */ false);
}

static void list_them(struct mcp_call *call)
{
    ask(call, frame_of(call, "files"), listed);
}

void mcp_tool_files(struct mcp_call *call)
{
    mcp_session_find(call, /* may_lack= */ false, list_them);
}
