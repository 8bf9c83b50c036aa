/* Reads a model's reply. Runs in the task's process; pure. A native call comes first, then code
 * blocks in the text, then JSON, then bare code; anything else is the answer. Of several blocks the
 * first runs. A block that follows at once, or after a mere announcement, is joined to it. Other
 * text between blocks ends the cell: in 57 of 66 recorded replies it was output that the model had
 * invented. Thoughts are never searched for code. */
#include "agent/read/extract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/read/extract_int.h"
#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"

#define TEXT_MAX (1u << 20)
#define PURPOSE_MAX 300
#define BETWEEN_MAX 200 /* bytes that announce a further block */

static const char *const python_names[] = { "python", "execute", "execute_python", "run_python",
                                            "python_interpreter", "code_interpreter", "ipython",
                                            "run_code", "execute_code", "code_execution",
                                            "execute_ipython_cell" };
static const char *const answer_names[] = { "answer", "final_answer", "finish" };
static const char *const code_keys[] = { "code", "source", "script", "python", "input" };
static const char *const answer_keys[] = { "text", "answer", "final_answer", "output" };

void agent_action_done(struct agent_action *action)
{
    free(action->code);
    free(action->purpose);
    free(action->text);
    free(action->tool);
    free(action->tool_id);
    free(action->plan);
    *action = AGENT_ACTION_INIT;
}

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; name && i < count; i++)
        if (strcasecmp(name, list[i]) == 0)
            return true;
    return false;
}

static const char *first_of(const json_t *object, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = json_string_value(json_object_get(object, keys[i]));
        if (value)
            return value;
    }
    return NULL;
}

static char *copy_brief(const char *text, size_t max)
{
    struct str all = str_trim(str_of(text));
    return all.len ? buf_strdup((struct str){ all.at, str_cut_utf8(all, max) }) : NULL;
}

/* --- calls, native or as JSON in the text --- */

static void set_code(struct agent_action *out, struct str code, const char *purpose)
{
    out->code = agent_extract_clean(code);
    if (purpose && !out->purpose)
        out->purpose = copy_brief(purpose, PURPOSE_MAX);
    if (out->code)
        out->act = AGENT_ACT_CODE;
}

/* A path is a JSON string, which Python reads as the same text. */
static void set_file_call(struct agent_action *out, const json_t *arguments, bool list)
{
    const json_t *path = json_object_get(arguments, "path");
    json_int_t start = json_integer_value(json_object_get(arguments, "start_line"));
    json_int_t lines = json_integer_value(json_object_get(arguments, "lines"));
    own_buf code = BUF_INIT(TEXT_MAX);
    own_str literal = json_is_string(path) ? json_dumps(path, JSON_ENCODE_ANY) : NULL;
    start = start < 1 ? 1 : start > 1000000000 ? 1000000000 : start;
    lines = lines < 1 ? 200 : lines > 2000 ? 2000 : lines;
    if (list) {
        buf_add_text(&code, "import os\nfor _folder, _, _files in os.walk('.'):\n"
                            "    for _file in sorted(_files):\n"
                            "        _path = os.path.relpath(os.path.join(_folder, _file))\n"
                            "        print(_path, os.path.getsize(_path))");
    } else if (literal) {
        buf_printf(&code,
                   "import itertools\nwith open(%s, errors='replace') as _file:\n"
                   "    for _number, _line in itertools.islice(enumerate(_file, 1), %lld, %lld):\n"
                   "        print(_number, _line.rstrip('\\n'), sep='\\t')",
                   literal, (long long)start - 1, (long long)(start - 1 + lines));
    } else {
        out->act = AGENT_ACT_GARBLED;
        snprintf(out->note, sizeof out->note, "read_file needs a 'path'");
        return;
    }
    out->act = AGENT_ACT_CODE;
    out->code = buf_take(&code);
}

/* A member of the values as Python: an expression in a string, else a literal, which the trace will
 * call typed. */
static void add_expression(struct buf *code, const char *name, const json_t *value)
{
    own_str literal = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    own_json quoted = literal ? json_string(literal) : NULL;
    own_str text = quoted ? json_dumps(quoted, JSON_ENCODE_ANY) : NULL;
    if (text)
        buf_printf(code, ",\n       %s=__import__('json').loads(%s)", name, text);
    else
        buf_printf(code, ",\n       %s=(%s)", name, json_string_value(value));
}

/* {"template", "values": {name: expression}, "files"}: a cell that calls answer(). */
static void set_answer_call(struct agent_action *out, const json_t *arguments)
{
    own_buf code = BUF_INIT(TEXT_MAX);
    own_str template = json_dumps(json_object_get(arguments, "template"), JSON_ENCODE_ANY);
    json_t *files = json_object_get(arguments, "files");
    own_str paths = json_is_array(files) ? json_dumps(files, 0) : NULL;
    const char *name;
    json_t *value;
    buf_printf(&code, "answer(%s", template);
    json_object_foreach (json_object_get(arguments, "values"), name, value) {
        if (agent_extract_is_name(name)) {
            add_expression(&code, name, value);
            continue;
        }
        out->act = AGENT_ACT_GARBLED;
        snprintf(out->note, sizeof out->note, "'%.60s' is no name for a value", name);
        return;
    }
    buf_printf(&code, "%s%s)", paths ? ",\n       files=" : "", paths ? paths : "");
    out->act = AGENT_ACT_CODE;
    out->code = buf_take(&code);
}

static void set_call(struct agent_action *out, const char *name, const json_t *arguments)
{
    const char *code = json_string_value(arguments);
    if (!code)
        code = first_of(arguments, code_keys, array_len(code_keys));
    const char *text = first_of(arguments, answer_keys, array_len(answer_keys));
    if (is_one_of(name, python_names, array_len(python_names))) {
        if (code)
            set_code(out, str_of(code), json_string_value(json_object_get(arguments, "purpose")));
        if (out->act == AGENT_ACT_CODE)
            return;
        snprintf(out->note, sizeof out->note, "'python' had no code: give {\"code\": ...}");
    } else if (is_one_of(name, answer_names, array_len(answer_names)) &&
               json_is_string(json_object_get(arguments, "template"))) {
        set_answer_call(out, arguments);
        return;
    } else if (is_one_of(name, answer_names, array_len(answer_names))) {
        out->text = text ? copy_brief(text, TEXT_MAX) : NULL;
        out->act = out->text ? AGENT_ACT_ANSWER : AGENT_ACT_GARBLED;
        if (!out->text)
            snprintf(out->note, sizeof out->note,
                     "the answer was empty: give {\"template\": ..., \"values\": {...}}");
        return;
    } else if (strcasecmp(name, "read_file") == 0 || strcasecmp(name, "list_files") == 0) {
        set_file_call(out, arguments, strcasecmp(name, "list_files") == 0);
        return;
    } else {
        snprintf(out->note, sizeof out->note,
                 "there is no tool '%.60s'; what Python can do, do with 'python'", name);
    }
    out->act = AGENT_ACT_GARBLED;
}

/* The first native call; the others get the answer that only one runs. */
static bool take_native(const json_t *content, struct agent_action *out)
{
    size_t i;
    json_t *part;
    json_array_foreach (content, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));
        const char *name = json_string_value(json_object_get(part, "name"));
        const char *id = json_string_value(json_object_get(part, "id"));
        if (!type || strcmp(type, "tool_call") != 0)
            continue;
        out->tool = buf_strdup(str_of(name ? name : ""));
        out->tool_id = buf_strdup(str_of(id ? id : ""));
        set_call(out, out->tool, json_object_get(part, "arguments"));
        return true;
    }
    return false;
}

/* {"thought","code"}, {"name","arguments"}, {"tool","args"}, {"answer"}. */
static bool take_object(const json_t *object, struct agent_action *out)
{
    const char *const names[] = { "name", "tool", "action", "function" };
    const char *const inputs[] = { "arguments", "args", "parameters", "action_input" };
    const char *code = first_of(object, code_keys, array_len(code_keys));
    const char *name = first_of(object, names, array_len(names));
    for (size_t i = 0; name && i < array_len(inputs); i++) {
        const json_t *input = json_object_get(object, inputs[i]);
        if (!input)
            continue;
        set_call(out, name, input);
        return true;
    }
    if (code) {
        set_code(out, str_of(code), json_string_value(json_object_get(object, "thought")));
        return out->act == AGENT_ACT_CODE;
    }
    const char *answer = json_string_value(json_object_get(object, "final_answer"));
    if (!answer && json_object_get(object, "thought"))
        answer = json_string_value(json_object_get(object, "answer"));
    if (!answer)
        return false;
    out->text = copy_brief(answer, TEXT_MAX);
    out->act = out->text ? AGENT_ACT_ANSWER : AGENT_ACT_EMPTY;
    return out->text != NULL;
}

/* Line ends inside JSON strings are invalid, but many models write them. */
static json_t *read_relaxed(struct str text)
{
    struct err unheard = ERR_INIT;
    own_buf out = BUF_INIT(TEXT_MAX * 2);
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (quoted && c == '\\' && i + 1 < text.len)
            buf_add(&out, text.at + i++, 1);
        else if (c == '"')
            quoted = !quoted;
        if (quoted && (c == '\n' || c == '\t'))
            buf_add_text(&out, c == '\n' ? "\\n" : "\\t");
        else
            buf_add(&out, text.at + i, 1);
    }
    return json_read(buf_str(&out), TEXT_MAX * 2, &unheard);
}

/* "Action: python / Action Input: code", "Final Answer: text". */
static bool take_react(struct str text, struct agent_action *out)
{
    for (size_t at = 0; at < text.len; at = agent_extract_line_end(text, at) + 1) {
        struct str rest = { text.at + at, text.len - at };
        if (rest.len > 13 && strncasecmp(rest.at, "action input:", 13) == 0) {
            struct str code = str_trim((struct str){ rest.at + 13, rest.len - 13 });
            const char *end = memmem(code.at, code.len, "\nObservation:", 13);
            code.len = end ? (size_t)(end - code.at) : code.len;
            out->kept = (size_t)(code.at - text.at) + code.len;
            own_json object = code.len && code.at[0] == '{' ? read_relaxed(code) : NULL;
            const char *inner = first_of(object, code_keys, array_len(code_keys));
            set_code(out, inner ? str_of(inner) : code, NULL);
            return out->act == AGENT_ACT_CODE;
        }
        if (rest.len > 13 && strncasecmp(rest.at, "final answer:", 13) == 0) {
            struct str answer = str_trim((struct str){ rest.at + 13, rest.len - 13 });
            out->text = answer.len ? buf_strdup(answer) : NULL;
            out->act = out->text ? AGENT_ACT_ANSWER : AGENT_ACT_EMPTY;
            return out->text != NULL;
        }
    }
    return false;
}

static bool take_json(struct str text, struct agent_action *out)
{
    struct agent_extract_block block;
    struct str inside = str_trim(text);
    if (agent_extract_tag(text, "tool_call", &block))
        inside = str_trim((struct str){ text.at + block.from, block.to - block.from });
    else if (agent_extract_named(text, "json", &block) && block.begin == 0)
        inside = str_trim((struct str){ text.at + block.from, block.to - block.from });
    if (!inside.len || inside.at[0] != '{')
        return false;
    own_json object = read_relaxed(inside);
    return object && take_object(object, out);
}

/* --- the text --- */

/* Replaces thoughts by spaces: offsets stay, and nothing in them is run or answered. */
static void hide(char *text, const struct agent_extract_block *block)
{
    memset(text + block->begin, ' ', block->end - block->begin);
}

static void hide_thoughts(char *text)
{
    enum { HIDDEN, VISIBLE }; /* the first is a model's own, and may be cut anywhere */
    static const char *const names[] = { [HIDDEN] = "think", [VISIBLE] = "thought", "thinking" };
    struct agent_extract_block block;
    struct str all = str_of(text);
    for (size_t i = 0; i < array_len(names); i++) {
        char close[16];
        snprintf(close, sizeof close, "</%s>", names[i]);
        for (int n = 0; n < 100 && agent_extract_tag(all, names[i], &block); n++) {
            bool unclosed = block.to == block.end;
            if (unclosed && i == VISIBLE) /* a forgotten mark: code follows it */
                block.end = block.from;
            hide(text, &block);
        }
        const char *end = strstr(text, close);
        if (end && i == HIDDEN) /* the template had opened it */
            memset(text, ' ', (size_t)(end - text) + strlen(close));
    }
}

static void take_plan(char *text, struct agent_action *out)
{
    struct agent_extract_block block;
    if (!agent_extract_named(str_of(text), "plan", &block))
        return;
    struct str inside = str_trim((struct str){ text + block.from, block.to - block.from });
    out->plan = inside.len ? buf_strdup(inside) : NULL;
    hide(text, &block);
}

/* May the block after these words be joined to the one before? */
static bool merely_announces(struct str between)
{
    static const char *const inventions[] = { "observ", "output", "result", "print", "return",
                                              "show", "gives", "pass", "assistant", "success" };
    between = str_trim(between);
    if (!between.len)
        return true;
    if (between.len > BETWEEN_MAX || between.at[between.len - 1] != ':' ||
        memmem(between.at, between.len, "\n\n", 2))
        return false;
    own_str words = buf_strdup(between);
    for (size_t i = 0; i < array_len(inventions); i++)
        if (strcasestr(words, inventions[i]))
            return false;
    return true;
}

static struct str without_role(struct str text)
{
    text = str_trim(text);
    if (text.len >= 10 && strncasecmp(text.at, "assistant:", 10) == 0)
        text = str_trim((struct str){ text.at + 10, text.len - 10 });
    return text;
}

/* "Now I sum by customer:" is the cell's purpose. */
static char *last_line(struct str text)
{
    const char *line = text.len ? memrchr(text.at, '\n', text.len) : NULL;
    if (line)
        text = str_trim((struct str){ line + 1, text.len - (size_t)(line + 1 - text.at) });
    while (text.len && text.at[text.len - 1] == ':')
        text.len--;
    return text.len ? buf_strdup((struct str){ text.at, str_cut_utf8(text, PURPOSE_MAX) }) : NULL;
}

/* `text` has no thoughts; `whole`, of the same length, has them: a thought between two blocks
 * separates them like any text. */
static bool take_blocks(struct str text, struct str whole, struct agent_action *out)
{
    struct agent_extract_block block, next;
    own_buf code = BUF_INIT(TEXT_MAX * 2);
    size_t at = 0;
    for (;;) { /* skips empty blocks */
        if (!agent_extract_find(text, at, &block))
            return false;
        own_str cleaned = agent_extract_clean((struct str){ text.at + block.from,
                                                            block.to - block.from });
        at = block.end > at ? block.end : at + 1;
        if (cleaned) {
            buf_add_text(&code, cleaned);
            break;
        }
    }
    struct str before = without_role((struct str){ text.at, block.begin });
    out->kept = block.end;
    bool more = agent_extract_find(text, block.end, &next);
    while (more && merely_announces((struct str){ whole.at + out->kept, next.begin - out->kept })) {
        struct str inside = { text.at + next.from, next.to - next.from };
        own_str cleaned = agent_extract_clean(inside);
        if (cleaned)
            buf_printf(&code, "\n\n%s", cleaned);
        out->kept = next.end;
        more = agent_extract_find(text, next.end, &next);
    }
    if (more)
        snprintf(out->note, sizeof out->note,
                 "only the first block of your reply was run; what "
                 "came after it was dropped, because it was written before the output was known");
    out->code = buf_take(&code);
    out->text = before.len ? buf_strdup(before) : NULL;
    out->purpose = last_line(before);
    out->act = AGENT_ACT_CODE;
    return true;
}

/* <answer>...</answer>, <solution>...</solution> before any code is the answer, even if it holds
 * code. */
static bool take_answer_tag(struct str text, struct agent_action *out)
{
    static const char *const names[] = { "answer", "solution", "final_answer" };
    struct agent_extract_block tag, code;
    for (size_t i = 0; i < array_len(names); i++) {
        if (!agent_extract_tag(text, names[i], &tag))
            continue;
        if (agent_extract_find(text, 0, &code) && code.begin < tag.begin)
            return false;
        struct str inside = str_trim((struct str){ text.at + tag.from, tag.to - tag.from });
        if (!inside.len)
            continue;
        out->text = buf_strdup(inside);
        out->act = AGENT_ACT_ANSWER;
        return true;
    }
    return false;
}

static void take_rest(struct str text, struct agent_action *out)
{
    struct str rest = without_role(text);
    if (!rest.len)
        return;
    if (agent_extract_is_bare(rest)) {
        set_code(out, rest, NULL);
        return;
    }
    if (agent_extract_is_foreign(rest)) {
        out->act = AGENT_ACT_GARBLED;
        snprintf(out->note, sizeof out->note,
                 "only Python is run here, as a ```python block; what "
                 "a shell would do, do in Python");
        return;
    }
    out->text = buf_strdup(rest);
    out->act = AGENT_ACT_ANSWER;
}

void agent_extract(const json_t *content, const char *text, struct agent_action *out)
{
    *out = AGENT_ACTION_INIT;
    struct str all = str_of(text ? text : "");
    all.len = str_cut_utf8(all, TEXT_MAX);
    out->kept = all.len;
    own_str masked = buf_strdup(all);
    hide_thoughts(masked);
    take_plan(masked, out);
    struct str seen = str_of(masked);
    if (take_native(content, out)) {
        struct str said = str_trim(seen);
        if (out->act == AGENT_ACT_CODE && said.len)
            out->text = buf_strdup(said);
        return;
    }
    struct str whole = { all.at, seen.len };
    if (take_answer_tag(seen, out) || take_json(seen, out) || take_blocks(seen, whole, out) ||
        take_react(seen, out))
        return;
    take_rest(seen, out);
}
