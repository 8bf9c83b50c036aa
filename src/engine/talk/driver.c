/* Parses the driver's lines. Runs in the engine; every byte comes from the box. A line that breaks
 * PROTOCOL.md is counted and dropped; past a cap we ignore the rest of the run. Nothing here
 * decides a status. */
#include "engine/talk/driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"
#include "engine/talk/driver_advice.h"
#include "engine/talk/driver_names.h"
#include "engine/talk/driver_results.h"

void driver_done(struct driver *driver)
{
    struct result_error *error = &driver->error;
    char **texts[] = { &error->name, &error->message, &error->snippet, &error->traceback,
                       &error->hint };
    for (size_t i = 0; i < array_len(texts); i++) {
        free(*texts[i]);
        *texts[i] = NULL;
    }
    json_decref(error->frames);
    json_decref(error->values);
    error->frames = error->values = NULL;
    buf_done(&driver->line);
    buf_done(&driver->parts);
    driver_results_done(driver);
    json_decref(driver->names);
    json_decref(driver->answer);
    driver->names = driver->answer = NULL;
}

void driver_expect(struct driver *driver)
{
    void (*heard)(struct driver *, enum driver_word, size_t) = driver->heard;
    driver_done(driver);
    *driver = DRIVER_INIT;
    driver->heard = heard;
    hash_random_hex(driver->nonce, DRIVER_NONCE_ROOM - 1);
}

void driver_tell(struct driver *driver, enum driver_word word, size_t index)
{
    if (driver->heard)
        driver->heard(driver, word, index);
}

static bool is_answer(const struct driver *driver, const json_t *line)
{
    const char *nonce = json_string_value(json_object_get(line, "nonce"));
    return !driver->nonce[0] || (nonce && strcmp(nonce, driver->nonce) == 0);
}

/* A copy of a string member, cut to the cap, or NULL. */
static char *text_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return NULL;
    struct str text = json_str(value);
    text.len = str_cut_utf8(text, DRIVER_TEXT_MAX);
    if (memchr(text.at, 0, text.len))
        text.len = strlen(text.at);
    return buf_strdup(text);
}

static int64_t number_of(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 && value < INT32_MAX ? value : 0;
}

static bool on_error(struct driver *driver, json_t *line)
{
    static const struct {
        const char *name;
        enum result_error_kind kind;
    } kinds[] = { { "syntax", RESULT_E_SYNTAX },
                  { "exception", RESULT_E_EXCEPTION },
                  { "import", RESULT_E_IMPORT } };
    const char *kind = json_string_value(json_object_get(line, "kind"));
    struct result_error *error = &driver->error;
    if (!kind || error->kind != RESULT_E_NONE)
        return false; /* the first uncaught exception ends a program */
    for (size_t i = 0; i < array_len(kinds); i++) {
        if (strcmp(kind, kinds[i].name) != 0)
            continue;
        *error = (struct result_error){
            .kind = kinds[i].kind,
            .name = text_of(line, "name"),
            .message = text_of(line, "message"),
            .line = number_of(line, "line"),
            .column = number_of(line, "column"),
            .snippet = text_of(line, "snippet"),
            .traceback = text_of(line, "traceback"),
            .frames = driver_advice_frames(line),
            .values = driver_advice_values(line),
            .hint = text_of(line, "hint"),
        };
        driver->interrupted = json_is_true(json_object_get(line, "interrupted"));
        driver_tell(driver, DRIVER_ERROR, 0);
        return true;
    }
    return false;
}

static bool on_fail(struct driver *driver, json_t *line)
{
    driver->fail_line = number_of(line, "line");
    driver->fail_code = number_of(line, "code");
    return true;
}

static bool on_input(struct driver *driver, json_t *line)
{
    int64_t number = number_of(line, "number");
    if (number <= driver->input_number)
        return false;
    driver->input_number = number;
    driver->input_echo = json_is_true(json_object_get(line, "echo"));
    return true;
}

/* A part of the arguments of the next call: bash cannot write a long line in one piece. */
static bool on_part(struct driver *driver, json_t *line)
{
    json_int_t number = json_integer_value(json_object_get(line, "number"));
    const json_t *text = json_object_get(line, "text");
    if (!driver->may_call || number <= driver->call_number || number > INT32_MAX ||
        !json_is_string(text))
        return false;
    if (driver->part_number != number)
        driver->parts.len = 0;
    driver->part_number = number;
    driver->total -= driver->line.len;
    return buf_add_str(&driver->parts, json_str(text)) == 0;
}

/* The arguments of a call; bash sends them as text, or has sent them as parts. NULL with an err if
 * that is no object. */
static json_t *arguments_of(const struct driver *driver, int64_t number, const json_t *line,
                            struct err *err)
{
    const json_t *args = json_object_get(line, "args"), *text = json_object_get(line, "args_text");
    bool parts = !text && driver->part_number == number && driver->parts.len > 0;
    if (json_is_object(args))
        return json_incref((json_t *)(uintptr_t)args);
    json_t *read = NULL;
    if (parts || json_is_string(text))
        read = json_read(parts ? buf_str(&driver->parts) : json_str(text), DRIVER_LINE_MAX, err);
    if (json_is_object(read))
        return read;
    json_decref(read);
    if (err->kind == ERR_NONE)
        err_set(err, ERR_INPUT, "the arguments are not a JSON object");
    return NULL;
}

/* A call is no claim about the result: its line does not count towards the total, but must wait for
 * its turn like all words. */
static bool on_call(struct driver *driver, json_t *line)
{
    struct err err = ERR_INIT;
    json_int_t number = json_integer_value(json_object_get(line, "number"));
    const json_t *tool = json_object_get(line, "tool");
    size_t len = json_string_length(tool);
    int64_t at = number_of(line, "line");
    if (!driver->may_call || number <= driver->call_number || number > INT32_MAX || len == 0 ||
        len > DRIVER_TOOL_MAX)
        return false;
    driver->call_number = number;
    size_t bytes = driver->line.len + (driver->part_number == number ? driver->parts.len : 0);
    json_t *arguments = arguments_of(driver, number, line, &err);
    buf_done(&driver->parts);
    own_json call = json_pack("{s:I, s:O, s:o*, s:o}", "number", number, "tool", tool, "arguments",
                              arguments, "line", at > 0 ? json_integer(at) : json_null());
    if (!arguments)
        json_object_set_new(call, "fault", json_string(err.text));
    driver->total -= driver->line.len;
    driver->call = call;
    driver_tell(driver, DRIVER_CALL, bytes);
    driver->call = NULL;
    return true;
}

static bool on_cancel(struct driver *driver, json_t *line)
{
    const json_t *number_text = json_object_get(line, "number");
    int64_t number = json_integer_value(number_text);
    if (!driver->may_call || !json_is_integer(number_text) || number < 0 ||
        number > driver->call_number)
        return false;
    driver->call_over = number;
    driver_tell(driver, DRIVER_CALL_OVER, 0);
    return true;
}

static bool on_ready(struct driver *driver, json_t *line)
{
    (void)line;
    driver->ready = true;
    return true;
}

static bool on_renewed(struct driver *driver, json_t *line)
{
    driver->renewed = true;
    driver->tasks = json_is_true(json_object_get(line, "tasks"));
    return true;
}

static bool on_answer(struct driver *driver, json_t *line)
{
    if (driver->answer)
        return false;
    driver->answer = driver_names_answer(line);
    return driver->answer != NULL;
}

static bool on_check(struct driver *driver, json_t *line)
{
    json_t *problems = driver_advice_problems(line);
    if (!problems || driver->answer) {
        json_decref(problems);
        return false;
    }
    driver->answer = json_pack("{s:o}", "problems", problems);
    return true;
}

static bool on_done(struct driver *driver, json_t *line)
{
    json_t *names = json_object_get(line, "names");
    if (names && !driver->names)
        driver->names = driver_names_changes(names);
    int64_t code = number_of(line, "exit_code");
    driver->done = json_is_integer(json_object_get(line, "exit_code")) && code >= 0 && code < 256;
    driver->done_code = driver->done ? (int)code : 0;
    driver->tasks = json_is_true(json_object_get(line, "tasks"));
    return driver->done;
}

static const struct {
    const char *op;
    bool (*take)(struct driver *driver, json_t *line);
} ops[] = {
    { "result", driver_results_take },
    { "clear", driver_results_clear },
    { "error", on_error },
    { "fail", on_fail },
    { "input", on_input },
    { "part", on_part },
    { "call", on_call },
    { "cancel", on_cancel },
    { "ready", on_ready },
    { "done", on_done },
    { "renewed", on_renewed },
    { "names", on_answer },
    { "complete", on_answer },
    { "check", on_check },
};

static bool take_line(struct driver *driver)
{
    struct err ignored = ERR_INIT;
    if (driver->line.len > DRIVER_LONG && driver_results_are_full(driver)) {
        driver->left_out++;
        return false;
    }
    own_json line = json_read(buf_str(&driver->line), driver->line.max, &ignored);
    const char *op = json_string_value(json_object_get(line, "op"));
    if (!is_answer(driver, line))
        return false;
    for (size_t i = 0; op && i < array_len(ops); i++) {
        if (strcmp(op, ops[i].op) == 0)
            return ops[i].take(driver, line);
    }
    return false;
}

/* The bytes before the end of the line, or all: a newline, or the separator that bash writes in one
 * piece with its line. Each byte is looked at once, however many of either there are. */
static size_t line_part(const char *at, size_t len)
{
    size_t part = 0;
    while (part < len && at[part] != '\n' && at[part] != DRIVER_SEPARATOR)
        part++;
    return part;
}

void driver_feed(struct driver *driver, const void *bytes, size_t len)
{
    const char *at = bytes;
    driver->total += len;
    if (driver->total > DRIVER_TOTAL_MAX)
        driver->deaf = true;
    while (len > 0 && !driver->deaf) {
        size_t part = line_part(at, len);
        if (buf_add(&driver->line, at, part) < 0) {
            driver->deaf = true;
            break;
        }
        if (part < len) {
            /* A driver starts a new line, whatever other writers left unended: most are empty. */
            driver->bad_lines += driver->line.len > 0 && !take_line(driver);
            driver->line.len = 0;
            part++;
        }
        at += part;
        len -= part;
    }
    if (driver->deaf)
        buf_done(&driver->line);
}
