/* `outputs`: stdout, stderr, values and the error of a run in one order. Runs in any process that
 * holds a result; pure. A portion of a stream is only its place in it: the text is cut out of the
 * stream's head and tail when the JSON is made, so the same caps hold and nothing is kept twice. */
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/result_int.h"

static struct result_output *append(struct result_outputs *outputs, enum result_output_kind kind,
                                    uint64_t from)
{
    outputs->at = buf_list_room(outputs->at, outputs->count, sizeof *outputs->at);
    struct result_output *one = &outputs->at[outputs->count++];
    *one = (struct result_output){ .kind = kind, .from = from, .to = from };
    return one;
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The rest of a character belongs to the portion that began it. */
static void finish_character(struct result_outputs *outputs, int which, struct str *bytes)
{
    struct result_outputs_last *last = &outputs->last[which];
    while (last->missing > 0 && bytes->len > 0) {
        if (!continues(bytes->at[0])) {
            last->missing = 0;
            return;
        }
        outputs->at[last->index].to++;
        last->missing--;
        *bytes = (struct str){ bytes->at + 1, bytes->len - 1 };
    }
}

/* The portion that grows: the last one of all if it is of this stream; past the maximum, the one
 * that holds the rest of the stream. */
static size_t portion(struct result_outputs *outputs, int which, uint64_t from)
{
    struct result_outputs_last *last = &outputs->last[which];
    enum result_output_kind kind = which ? RESULT_OUT_STDERR : RESULT_OUT_STDOUT;
    if (last->rest || (outputs->count > 0 && outputs->at[outputs->count - 1].kind == kind))
        return last->index;
    last->rest = outputs->portions >= RESULT_OUTPUTS_MAX;
    outputs->portions++;
    append(outputs, kind, from)->unordered = last->rest;
    return outputs->count - 1;
}

void result_outputs_add(struct result *result, bool is_err, struct str bytes)
{
    struct result_outputs *outputs = &result->outputs;
    struct result_outputs_last *last = &outputs->last[is_err];
    uint64_t from = is_err ? result->err_stream.total_bytes : result->out.total_bytes;
    size_t given = bytes.len;
    finish_character(outputs, is_err, &bytes);
    if (bytes.len == 0)
        return;
    last->index = portion(outputs, is_err, from + given - bytes.len);
    outputs->at[last->index].to += bytes.len;
    size_t begun = str_unfinished_utf8(bytes);
    last->missing = begun ? (unsigned)(str_utf8_len(bytes.at[bytes.len - begun]) - begun) : 0;
}

void result_outputs_result(struct result *result, size_t index)
{
    append(&result->outputs, RESULT_OUT_RESULT, index);
}

void result_outputs_error(struct result *result)
{
    append(&result->outputs, RESULT_OUT_ERROR, 0);
}

/* Portions keep their places: what a stream wrote stays written. */
void result_outputs_clear(struct result *result)
{
    struct result_outputs *outputs = &result->outputs;
    size_t kept = 0;
    for (size_t i = 0; i < outputs->count; i++) {
        if (outputs->at[i].kind == RESULT_OUT_RESULT)
            continue;
        for (int which = 0; which < 2; which++)
            if (outputs->last[which].index == i)
                outputs->last[which].index = kept;
        outputs->at[kept++] = outputs->at[i];
    }
    outputs->count = kept;
}

/* --- as JSON --- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The kept bytes of one portion, with a line where some are left out. Returns how many are. */
static uint64_t cut_out(const struct result_stream *stream, const struct result_output *one,
                        struct buf *out)
{
    struct str head, tail;
    result_stream_parts(stream, &head, &tail);
    uint64_t tail_at = stream->total_bytes - tail.len;
    uint64_t head_end = least(one->to, head.len);
    uint64_t first = head_end > one->from ? head_end - one->from : 0;
    uint64_t from = one->from > tail_at ? one->from : tail_at;
    uint64_t second = one->to > from ? one->to - from : 0;
    uint64_t dropped = one->to - one->from - first - second;
    out->max = first + second + 64;
    if (first > 0)
        buf_add(out, head.at + one->from, first);
    if (dropped > 0 && first + second > 0)
        buf_printf(out, "\n... %llu bytes left out ...\n", (unsigned long long)dropped);
    if (second > 0)
        buf_add(out, tail.at + (from - tail_at), second);
    return dropped;
}

static json_t *stream_entry(const struct result *result, const struct result_output *one)
{
    bool is_err = one->kind == RESULT_OUT_STDERR;
    own_buf text = BUF_INIT(0);
    uint64_t dropped = cut_out(is_err ? &result->err_stream : &result->out, one, &text);
    json_t *entry = json_pack("{s:s, s:o}", "type", is_err ? "stderr" : "stdout", "text",
                              json_text(buf_str(&text)));
    if (!str_is_utf8(buf_str(&text)))
        json_object_set_new(entry, "base64", base64_json(buf_str(&text)));
    if (dropped > 0)
        json_object_set_new(entry, "dropped_bytes", json_integer((json_int_t)dropped));
    if (one->unordered)
        json_object_set_new(entry, "unordered", json_true());
    return entry;
}

static json_t *result_entry(const struct result *result, size_t index)
{
    json_t *entry = json_pack("{s:s, s:I}", "type", "result", "index", (json_int_t)index);
    json_t *about = json_array_get(result->about, index);
    if (about)
        json_object_update(entry, about);
    return entry;
}

static json_t *error_entry(const struct result_error *error)
{
    return json_pack("{s:s, s:s, s:o, s:o}", "type", "error", "kind",
                     result_error_name(error->kind), "name", json_text_or_null(error->name),
                     "message", json_text(str_of(error->message)));
}

/* The error of a run that the code did not end itself comes last. */
json_t *result_outputs_json(const struct result *result)
{
    const struct result_outputs *outputs = &result->outputs;
    bool told = result->error.kind == RESULT_E_NONE;
    json_t *out = json_array();
    for (size_t i = 0; i < outputs->count; i++) {
        const struct result_output *one = &outputs->at[i];
        if (one->kind == RESULT_OUT_RESULT) {
            json_array_append_new(out, result_entry(result, (size_t)one->from));
        } else if (one->kind != RESULT_OUT_ERROR) {
            json_array_append_new(out, stream_entry(result, one));
        } else if (!told) {
            json_array_append_new(out, error_entry(&result->error));
            told = true;
        }
    }
    if (!told)
        json_array_append_new(out, error_entry(&result->error));
    return out;
}
