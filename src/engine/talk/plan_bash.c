/* Messages for bash, which has no JSON: the request, its tools, and the answers of their calls
 * (drivers/PROTOCOL.md). Pure. Runs in the engine. */
#include "engine/talk/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

static bool is_name(struct str entry)
{
    size_t len = 0;
    for (; len < entry.len && entry.at[len] != '='; len++) {
        char c = entry.at[len];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(len > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return len > 0;
}

bool plan_bash_may_wait(const struct request *request)
{
    static const char *const its_own[] = { "BASH", "SHELLOPTS=", "UID=", "EUID=", "PPID=" };
    bool plain = !memchr(request->code.at, 0, request->code.len);
    for (size_t i = 0; i < request->env_count && plain; i++) {
        plain = is_name(request->env[i]);
        for (size_t j = 0; j < array_len(its_own) && plain; j++)
            plain = request->env[i].len < strlen(its_own[j]) ||
                    memcmp(request->env[i].at, its_own[j], strlen(its_own[j])) != 0;
    }
    return plain;
}

static void add_length(struct buf *out, size_t len)
{
    char text[24];
    snprintf(text, sizeof text, " %zu", len);
    buf_add_text(out, text);
}

/* 15 digits and a newline, the head, and then the fields. */
static char *message_of(struct buf *head, const struct request *request, struct str stdin_text)
{
    own_buf out = BUF_INIT(SIZE_MAX / 4);
    char text[32];
    add_length(head, request->arg_count);
    add_length(head, plan_code(request).len);
    add_length(head, stdin_text.len);
    for (size_t i = 0; i < request->arg_count; i++)
        add_length(head, request->args[i].len);
    for (size_t i = 0; i < request->env_count; i++)
        add_length(head, request->env[i].len);
    buf_add_text(head, "\n");
    buf_add_str(head, plan_code(request));
    buf_add_str(head, stdin_text);
    for (size_t i = 0; i < request->arg_count; i++)
        buf_add_str(head, request->args[i]);
    for (size_t i = 0; i < request->env_count; i++)
        buf_add_str(head, request->env[i]);
    snprintf(text, sizeof text, "%015zu\n", head->len);
    buf_add_text(&out, text);
    buf_add_str(&out, buf_str(head));
    buf_add(&out, "", 1);
    return buf_take(&out);
}

/* --- tools --- */

#define ENTRIES_MAX (16u << 20)

/* Without bytes that separate the fields, or that bash cannot hold. */
static void add_words(struct buf *out, struct str text, bool one_line)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (one_line && c == '\n')
            return;
        if ((unsigned char)c >= 0x20 || c == '\n' || c == '\t')
            buf_add(out, &c, 1);
    }
}

static bool is_required(const json_t *schema, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(schema, "required"), i, one)
        if (str_is(json_str(one), name))
            return true;
    return false;
}

/* `NAME(word, limit?)` */
static void add_signature(struct buf *out, const json_t *tool)
{
    const json_t *schema = json_object_get(tool, "input_schema");
    const char *name, *comma = "";
    json_t *property;
    add_words(out, json_get_str(tool, "name"), /* one_line= */ true);
    buf_add_text(out, "(");
    json_object_foreach (json_object_get(schema, "properties"), name, property) {
        buf_add_text(out, comma);
        add_words(out, str_of(name), /* one_line= */ true);
        buf_add_text(out, is_required(schema, name) ? "" : "?");
        comma = ", ";
    }
    buf_add_text(out, ")");
}

static void add_property(struct buf *out, const char *name, const json_t *property, bool required)
{
    const json_t *type = json_object_get(property, "type");
    struct str about = json_get_str(property, "description");
    own_str kind = type ? json_write(type, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    buf_add_text(out, "\n  ");
    add_words(out, str_of(name), /* one_line= */ true);
    buf_add_text(out, required ? ": " : "?: ");
    add_words(out, json_is_string(type) ? json_str(type) : str_of(kind ? kind : "any"), true);
    buf_add_text(out, about.len > 0 ? " - " : "");
    add_words(out, about, /* one_line= */ true);
}

/* NAME US LINE US HELP RS */
static void add_tool(struct buf *out, const json_t *tool)
{
    const json_t *schema = json_object_get(tool, "input_schema");
    struct str about = json_get_str(tool, "description");
    const char *name;
    json_t *property;
    add_words(out, json_get_str(tool, "name"), /* one_line= */ true);
    buf_add_text(out, "\x1f");
    add_signature(out, tool);
    buf_add_text(out, ": ");
    add_words(out, about, /* one_line= */ true);
    buf_add_text(out, "\x1f");
    add_signature(out, tool);
    buf_add_text(out, "\n");
    add_words(out, about, /* one_line= */ false);
    json_object_foreach (json_object_get(schema, "properties"), name, property)
        add_property(out, name, property, is_required(schema, name));
    buf_add_text(out, "\neffect: ");
    add_words(out, json_get_str(tool, "effect"), /* one_line= */ true);
    buf_add_text(out, "\x1e");
}

/* The message before one whose code may call tools, or nothing. */
static void add_tools(struct buf *out, const json_t *tools)
{
    own_buf text = BUF_INIT(ENTRIES_MAX);
    size_t i;
    json_t *tool;
    if (!tools)
        return;
    json_array_foreach ((json_t *)(uintptr_t)tools, i, tool)
        add_tool(&text, tool);
    own_str message = plan_bash_question("tools", "-", buf_str(&text));
    buf_add_text(out, message);
}

/* A line with a file of an answer: `RS NUMBER file NAME MIME BASE64`, the last without quotes. */
static void add_file(struct buf *out, int64_t number, const json_t *file)
{
    static const char *const members[] = { "name", "mime" };
    buf_printf(out, "\x1e%lld file", (long long)number);
    for (size_t i = 0; i < array_len(members); i++) {
        own_str text = json_write(json_object_get(file, members[i]),
                                  JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
        buf_add_text(out, " ");
        buf_add_text(out, text ? text : "\"\"");
    }
    buf_add_text(out, " ");
    add_words(out, json_get_str(file, "base64"), /* one_line= */ true);
    buf_add_text(out, "\n");
}

char *plan_bash_return(int64_t number, const json_t *outcome)
{
    const json_t *error = json_object_get(outcome, "error");
    const json_t *files = json_object_get(outcome, "files");
    const json_t *value = json_object_get(outcome, "value");
    own_buf out = BUF_INIT(SIZE_MAX / 4);
    size_t i;
    json_t *file;
    json_array_foreach ((json_t *)(uintptr_t)files, i, file)
        add_file(&out, number, file);
    if (error)
        value = json_object_get(error, "message");
    own_str text = json_write(value, JSON_COMPACT | JSON_ENCODE_ANY);
    buf_printf(&out, "\x1e%lld %s ", (long long)number,
               error ? json_get_str(error, "kind").at : "value");
    buf_add_text(&out, text ? text : "null");
    buf_add(&out, "\n", 2);
    return buf_take(&out);
}

/* --- requests --- */

static char *together(const json_t *tools, const char *message)
{
    own_buf out = BUF_INIT(SIZE_MAX / 4);
    add_tools(&out, tools);
    buf_add_text(&out, message);
    buf_add(&out, "", 1);
    return buf_take(&out);
}

char *plan_bash_message(const struct request *request, const json_t *tools, bool waits)
{
    own_buf head = BUF_INIT(SIZE_MAX / 4);
    buf_add_text(&head, "run - 0 0");
    own_str message = waits ? message_of(&head, request, STR("")) : NULL; /* stdin has its own fd */
    return tools || waits ? together(tools, message ? message : "") : NULL;
}

char *plan_bash_cell(const struct request *request, const json_t *tools, int64_t cell,
                     const char *nonce)
{
    own_buf head = BUF_INIT(SIZE_MAX / 4);
    char text[96];
    snprintf(text, sizeof text, "cell %s %lld %d", nonce, (long long)cell, request->names);
    buf_add_text(&head, text);
    own_str message = message_of(&head, request, request->stdin_text);
    return together(tools, message);
}

char *plan_bash_question(const char *word, const char *nonce, struct str text)
{
    const struct request request = { .code = text };
    own_buf head = BUF_INIT(SIZE_MAX / 4);
    buf_add_text(&head, word);
    buf_add_text(&head, " ");
    buf_add_text(&head, nonce);
    buf_add_text(&head, " 0 0");
    return message_of(&head, &request, STR(""));
}
