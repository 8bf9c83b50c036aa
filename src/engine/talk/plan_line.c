/* Lines for a driver: the JSON line that holds the request (drivers/PROTOCOL.md). Pure. Runs in the
 * engine. */
#include "engine/talk/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

static json_t *args_of(const struct request *request)
{
    json_t *args = json_array();
    for (size_t i = 0; i < request->arg_count; i++)
        json_array_append_new(args, json_text(request->args[i]));
    return args;
}

static void add_env(json_t *line, const struct request *request)
{
    json_t *env = json_object_get(line, "env");
    if (!env && request->env_count > 0) {
        env = json_object();
        json_object_set_new(line, "env", env);
    }
    for (size_t i = 0; i < request->env_count; i++) {
        struct str entry = request->env[i];
        const char *equals = memchr(entry.at, '=', entry.len);
        own_str name = buf_strdup((struct str){ entry.at, (size_t)(equals - entry.at) });
        struct str value = { equals + 1, entry.len - (size_t)(equals + 1 - entry.at) };
        json_object_set_new(env, name, json_text(value));
    }
}

char *plan_line(const json_t *line)
{
    own_str text = json_write(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    own_buf out = BUF_INIT(SIZE_MAX / 4);
    buf_add_text(&out, text);
    buf_add(&out, "\n", 1);
    return buf_take(&out);
}

struct str plan_code(const struct request *request)
{
    static const char mark[3] = "\xef\xbb\xbf"; /* U+FEFF */
    struct str code = request->code;
    if (code.len < sizeof mark || memcmp(code.at, mark, sizeof mark) != 0)
        return code;
    return (struct str){ code.at + sizeof mark, code.len - sizeof mark };
}

char *plan_driver_line(const struct request *request, const json_t *tools, const char *sign,
                       bool with_env)
{
    own_json line = json_pack("{s:s, s:s, s:o, s:o, s:O?, s:b}", "op", "run", "sign", sign, "code",
                              json_text(plan_code(request)), "args", args_of(request), "call",
                              request->call, "stdin", request->stdin_text.len > 0);
    if (request->language == REQUEST_TYPESCRIPT)
        json_object_set_new(line, "types", json_true());
    if (request->has_seed)
        json_object_set_new(line, "seed", json_integer(request->seed));
    if (tools)
        json_object_set(line, "tools", (json_t *)(uintptr_t)tools);
    if (with_env)
        add_env(line, request);
    return plan_line(line);
}

char *plan_cell_line(const struct request *request, const struct request *session,
                     const struct plan_cell *cell)
{
    own_json line = json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:O?, s:b}", "op", "cell", "nonce",
                              cell->nonce, "sign", cell->sign, "cell", (json_int_t)cell->number,
                              "code", json_text(plan_code(request)), "args", args_of(request),
                              "call", request->call, "names", request->names);
    if (request->language == REQUEST_TYPESCRIPT)
        json_object_set_new(line, "types", json_true());
    if (request->has_seed)
        json_object_set_new(line, "seed", json_integer(request->seed));
    if (cell->tools)
        json_object_set(line, "tools", (json_t *)(uintptr_t)cell->tools);
    if (cell->hush)
        json_object_set_new(line, "hush", json_true());
    if (cell->input && request->language == REQUEST_PYTHON && request->stdin_text.len == 0)
        json_object_set_new(line, "input", json_true());
    if (session)
        add_env(line, session);
    add_env(line, request);
    if (request_is_node(request->language) && request->stdin_text.len > 0)
        json_object_set_new(line, "stdin", json_text(request->stdin_text));
    else if (request->stdin_text.len > 0)
        json_object_set_new(line, "stdin_bytes", json_integer((json_int_t)request->stdin_text.len));
    return plan_line(line);
}

char *plan_input_line(int64_t number, struct str text, bool end)
{
    own_json line = json_pack("{s:s, s:I}", "op", "input", "number", (json_int_t)number);
    if (!end)
        json_object_set_new(line, "text", json_text(text));
    return plan_line(line);
}

char *plan_return_line(int64_t number, const json_t *outcome)
{
    own_json line = json_pack("{s:s, s:I}", "op", "return", "number", (json_int_t)number);
    json_object_update(line, (json_t *)(uintptr_t)outcome);
    return plan_line(line);
}
