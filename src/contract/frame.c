/* Framing, and the client's frames. Runs at both ends of the socket; pure. */
#include "contract/frame.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/own.h"

int frame_next(struct str bytes, size_t max, struct str *out_text, size_t *out_len, struct err *err)
{
    if (out_len)
        *out_len = 0;
    if (bytes.len < FRAME_HEAD)
        return 0;
    const unsigned char *at = (const unsigned char *)bytes.at;
    size_t len = (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
    if (len > max) {
        char value[32], bound[48];
        snprintf(value, sizeof value, "%zu", len);
        snprintf(bound, sizeof bound, "at most %zu bytes", max);
        err_input(err, "", value, bound, "a frame of %zu bytes is longer than %zu", len, max);
        err_hint(err, "a frame is four bytes of length, the lowest first, and then JSON");
        return -1;
    }
    if (out_len)
        *out_len = FRAME_HEAD + len;
    if (bytes.len - FRAME_HEAD < len)
        return 0;
    *out_text = (struct str){ bytes.at + FRAME_HEAD, len };
    return 1;
}

/* Writes the length of the frame that begins at `before`, or takes a failed one back. */
static int close_frame(struct buf *to, size_t before, int rc, size_t max)
{
    size_t len = to->len - before - FRAME_HEAD;
    if (rc < 0 || len > max) {
        to->len = before;
        to->at[before] = 0;
        return -1;
    }
    for (int i = 0; i < FRAME_HEAD; i++)
        to->at[before + (size_t)i] = (char)(len >> 8 * i & 0xff);
    return 0;
}

int frame_add(struct buf *to, const json_t *value, size_t max)
{
    size_t before = to->len;
    if (buf_add(to, "\0\0\0\0", FRAME_HEAD) < 0)
        return -1;
    return close_frame(to, before, json_add(to, value), max);
}

int frame_add_result(struct buf *to, const char *id, struct str json, size_t max)
{
    size_t before = to->len;
    own_json name = json_string(id);
    if (buf_add(to, "\0\0\0\0", FRAME_HEAD) < 0)
        return -1;
    bool fits = buf_add_text(to, "{\"id\":") == 0 && json_add(to, name) == 0 &&
                buf_add_text(to, ",\"result\":") == 0 && buf_add_str(to, json) == 0 &&
                buf_add_text(to, "}") == 0;
    return close_frame(to, before, fits ? 0 : -1, max);
}

enum member {
    M_OP, M_ID, M_REQUEST, M_STDIN, M_EVENTS, M_CONTENT, M_INPUT, M_TEXT, M_END,
    M_REPLAY_OF, M_TASK, M_STEP, M_CALL, M_VALUE, M_FILES, M_ERROR, M_NAMES, M_APPROVE, M_ALLOW,
    M_REASON, M_OUTCOMES,
    M_COUNT
};
#define ANY_MEMBER UINT32_MAX /* checked by a later reader */
#define BIT(m) (1u << (m))

static const char *const member_names[M_COUNT] = { "op",     "id",      "request",
                                                   "stdin_base64", "events", "content",
                                                   "input",  "text",    "end",
                                                   "replay_of", "task", "step",
                                                   "call",   "value",   "files",
                                                   "error",  "names",   "approve",
                                                   "allow",  "reason",  "outcomes" };

static const struct {
    const char *name;
    unsigned may, must;
    const char *members; /* for the refusal */
} ops[FRAME_OPS] = {
    [FRAME_RUN] = { "run",
                    BIT(M_OP) | BIT(M_ID) | BIT(M_REQUEST) | BIT(M_STDIN) | BIT(M_EVENTS) |
                        BIT(M_CONTENT) | BIT(M_INPUT) | BIT(M_APPROVE) | BIT(M_OUTCOMES) |
                        BIT(M_REPLAY_OF) | BIT(M_TASK) | BIT(M_STEP),
                    BIT(M_ID) | BIT(M_REQUEST),
                    "op, id, request, stdin_base64, events, content, input, approve, outcomes, "
                    "replay_of, "
                    "task, step" },
    [FRAME_CANCEL] = { "cancel", BIT(M_OP) | BIT(M_ID), BIT(M_ID), "op, id" },
    [FRAME_INTERRUPT] = { "interrupt", BIT(M_OP) | BIT(M_ID), BIT(M_ID), "op, id" },
    [FRAME_PING] = { "ping", BIT(M_OP), 0, "op" },
    [FRAME_INFO] = { "info", BIT(M_OP), 0, "op" },
    [FRAME_INPUT] = { "input", BIT(M_OP) | BIT(M_ID) | BIT(M_TEXT) | BIT(M_END), BIT(M_ID),
                      "op, id, text, end" },
    [FRAME_TOOL_RESULT] = { "tool_result",
                            BIT(M_OP) | BIT(M_ID) | BIT(M_CALL) | BIT(M_VALUE) | BIT(M_FILES) |
                                BIT(M_ERROR),
                            BIT(M_ID) | BIT(M_CALL), "op, id, call, value, files, error" },
    [FRAME_TOOLS] = { "tools", BIT(M_OP) | BIT(M_ID) | BIT(M_NAMES), 0, "op, id, names" },
    [FRAME_APPROVE] = { "approve",
                        BIT(M_OP) | BIT(M_ID) | BIT(M_CALL) | BIT(M_ALLOW) | BIT(M_REASON),
                        BIT(M_ID) | BIT(M_CALL) | BIT(M_ALLOW), "op, id, call, allow, reason" },
    [FRAME_SESSION] = { "session", ANY_MEMBER, BIT(M_ID), "op, id, do, and its fields" },
};

int frame_refuse(const char *field, const json_t *value, const char *bound, const char *why,
                 struct err *err)
{
    char brief[sizeof err->value] = "";
    if (value)
        json_brief(value, brief, sizeof brief);
    return err_input(err, field, brief, bound, "field '%.60s' of a frame is %s", field, why);
}

static int take_op(const json_t *value, struct frame_ask *out, struct err *err)
{
    for (int op = 0; op < FRAME_OPS; op++) {
        if (json_is_string(value) && str_is(json_str(value), ops[op].name)) {
            out->op = (enum frame_op)op;
            return 0;
        }
    }
    return frame_refuse("op", value,
                        "one of run, cancel, interrupt, input, tool_result, tools, ping, info, "
                        "session",
                        value ? "unknown" : "required", err);
}

static int take_id(const json_t *value, struct frame_ask *out, struct err *err)
{
    if (!value)
        return 0;
    struct str id = json_is_string(value) ? json_str(value) : STR_NONE;
    if (id.len == 0 || id.len > FRAME_ID_MAX || memchr(id.at, 0, id.len))
        return frame_refuse("id", value, "text of 1 to 64 bytes", "not an id", err);
    out->id = id;
    return 0;
}

static int take_flag(const json_t *root, enum member member, bool *out, struct err *err)
{
    const json_t *value = json_object_get(root, member_names[member]);
    if (value && !json_is_boolean(value))
        return frame_refuse(member_names[member], value, "true or false", "not a boolean", err);
    *out = json_is_true(value);
    return 0;
}

static int check_members(const json_t *root, enum frame_op op, struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)root, name, value) {
        unsigned known = 0;
        for (int m = 0; m < M_COUNT; m++)
            known |= strcmp(name, member_names[m]) == 0 ? BIT(m) : 0;
        if (ops[op].may != ANY_MEMBER && !(known & ops[op].may)) {
            own_str shown = buf_strdup((struct str){ name, strnlen(name, 60) });
            return frame_refuse(shown, value, ops[op].members, "unknown", err);
        }
    }
    for (int m = 0; m < M_COUNT; m++)
        if ((ops[op].must & BIT(m)) && !json_object_get(root, member_names[m]))
            return frame_refuse(member_names[m], NULL, ops[op].members, "required", err);
    return 0;
}

/* A line, or the end of all lines. */
static int take_input(struct frame_ask *out, struct err *err)
{
    const json_t *text = json_object_get(out->root, "text");
    if (out->op != FRAME_INPUT)
        return 0;
    if (take_flag(out->root, M_END, &out->end, err) < 0)
        return -1;
    out->text = json_is_string(text) ? json_str(text) : STR_NONE;
    if (out->end == (text != NULL) || (text && !json_is_string(text)) ||
        out->text.len > FRAME_INPUT_MAX)
        return frame_refuse("text", text, "a string of at most 65536 bytes, or \"end\": true",
                            "not a line of input", err);
    return 0;
}

static int take_call(struct frame_ask *out, struct err *err)
{
    const json_t *call = json_object_get(out->root, "call");
    out->call = json_integer_value(call);
    if (!json_is_integer(call) || out->call < 1 || out->call > INT32_MAX)
        return frame_refuse("call", call, "the number of a call", "not such a number", err);
    return 0;
}

/* A person's decision on a call. */
static int take_approval(struct frame_ask *out, struct err *err)
{
    const json_t *reason = json_object_get(out->root, "reason");
    if (out->op != FRAME_APPROVE)
        return 0;
    if (take_call(out, err) < 0 || take_flag(out->root, M_ALLOW, &out->allow, err) < 0)
        return -1;
    out->reason = json_is_string(reason) ? json_str(reason) : STR_NONE;
    if (reason && (out->allow || !json_is_string(reason) || out->reason.len > FRAME_REASON_MAX))
        return frame_refuse("reason", reason,
                            "a string of at most 1000 bytes, beside "
                            "\"allow\": false",
                            "not the reason of a refusal", err);
    return 0;
}

/* The outcome of a call: value, perhaps with files, or error. src/tool/call looks at their form. */
static int take_tool_result(struct frame_ask *out, struct err *err)
{
    if (out->op != FRAME_TOOL_RESULT)
        return 0;
    if (take_call(out, err) < 0)
        return -1;
    out->outcome = json_object();
    for (int m = M_VALUE; m <= M_ERROR; m++) {
        json_t *value = json_object_get(out->root, member_names[m]);
        if (value)
            json_object_set(out->outcome, member_names[m], value);
    }
    if (json_object_size(out->outcome) > 0)
        return 0;
    return frame_refuse("value", NULL, "value or error", "required, or 'error'", err);
}

static int take_names(struct frame_ask *out, struct err *err)
{
    const char *bound = "at most 128 names or patterns of 1 to 64 bytes";
    size_t i;
    json_t *name;
    out->names = out->op == FRAME_TOOLS ? json_object_get(out->root, "names") : NULL;
    bool fits = !out->names ||
                (json_is_array(out->names) && json_array_size(out->names) <= REQUEST_TOOLS_MAX);
    json_array_foreach (fits ? out->names : NULL, i, name) {
        const struct str text = json_is_string(name) ? json_str(name) : STR_NONE;
        fits = fits && text.len > 0 && text.len <= REQUEST_TOOL_NAME_MAX &&
               !memchr(text.at, 0, text.len);
    }
    return fits ? 0 : frame_refuse("names", out->names, bound, "not a list of names", err);
}

/* "r_" or "t_" and 24 hexadecimal digits. */
static int take_record(const json_t *root, enum member member, const char *prefix, char *out,
                       struct err *err)
{
    const json_t *value = json_object_get(root, member_names[member]);
    struct str text = json_is_string(value) ? json_str(value) : STR_NONE;
    char bound[64];
    snprintf(bound, sizeof bound, "\"%s\" and 24 hexadecimal digits", prefix);
    if (!value)
        return 0;
    if (text.len != FRAME_RECORD_LEN || memcmp(text.at, prefix, 2) != 0 ||
        strspn(text.at + 2, "0123456789abcdef") != FRAME_RECORD_LEN - 2)
        return frame_refuse(member_names[member], value, bound, "not an id", err);
    memcpy(out, text.at, FRAME_RECORD_LEN + 1);
    return 0;
}

/* The members for the record of a run. */
static int take_about(struct frame_ask *out, struct err *err)
{
    const json_t *step = json_object_get(out->root, "step");
    if (out->op != FRAME_RUN)
        return 0;
    if (take_record(out->root, M_REPLAY_OF, "r_", out->replay_of, err) < 0 ||
        take_record(out->root, M_TASK, "t_", out->task, err) < 0)
        return -1;
    out->step = json_integer_value(step);
    if (step &&
        (!out->task[0] || !json_is_integer(step) || out->step < 1 || out->step > FRAME_STEP_MAX))
        return frame_refuse("step", step, "1 to 1000000, beside task", "not a step", err);
    return 0;
}

int frame_ask_read(struct str text, struct frame_ask *out, struct err *err)
{
    out->root = json_read(text, FRAME_ASK_MAX, err);
    if (!out->root)
        return -1;
    if (!json_is_object(out->root))
        return frame_refuse("", out->root, "an object with 'op'", "not an object", err);
    if (take_op(json_object_get(out->root, "op"), out, err) < 0 ||
        take_id(json_object_get(out->root, "id"), out, err) < 0 ||
        check_members(out->root, out->op, err) < 0)
        return -1;
    out->request = json_object_get(out->root, "request");
    out->stdin_base64 = json_object_get(out->root, "stdin_base64");
    if (out->stdin_base64 && !json_is_string(out->stdin_base64))
        return frame_refuse("stdin_base64", out->stdin_base64, "a string", "not a string", err);
    if (out->stdin_base64 && json_object_get(out->request, "stdin"))
        return frame_refuse("stdin_base64", out->stdin_base64, "one of it and request.stdin",
                            "given together with request.stdin", err);
    return out->op == FRAME_SESSION ||
                   (take_flag(out->root, M_EVENTS, &out->events, err) == 0 &&
                    take_flag(out->root, M_CONTENT, &out->content, err) == 0 &&
                    take_flag(out->root, M_INPUT, &out->input, err) == 0 &&
                    take_flag(out->root, M_OUTCOMES, &out->outcomes, err) == 0 &&
                    take_flag(out->root, M_APPROVE, &out->approves, err) == 0 &&
                    take_input(out, err) == 0 && take_tool_result(out, err) == 0 &&
                    take_names(out, err) == 0 && take_approval(out, err) == 0 &&
                    take_about(out, err) == 0)
               ? 0
               : -1;
}

void frame_ask_done(struct frame_ask *ask)
{
    json_decref(ask->outcome);
    json_decref(ask->root);
    *ask = FRAME_ASK_INIT;
}
