/* A record as a script that runs by itself. Any process; pure. The facts stand in comments, in
 * ASCII and without line ends, so that no recorded text gets out of its comment. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "store/records/export_int.h"

struct script {
    const struct records_export_language *language;
    struct buf *out;
    int failed;
};

static void line(struct script *script, const char *text)
{
    script->failed |= buf_printf(script->out, "%s%s%s\n", script->language->comment,
                                 text[0] ? " " : "", text);
}

static void add_fact(void *user, const char *name, const char *value)
{
    struct script *script = user;
    script->failed |= buf_printf(script->out, "%s   %s: %s\n", script->language->comment, name,
                                 value);
}

static void add_code(struct script *script, const json_t *record)
{
    struct str code = json_get_str(json_object_get(record, "request"), "code");
    script->failed |= buf_add_str(script->out, code);
    if (code.len == 0 || code.at[code.len - 1] != '\n')
        script->failed |= buf_add_text(script->out, "\n");
}

static void add_rule(struct script *script, const json_t *record)
{
    char text[120];
    struct str run = json_get_str(record, "run");
    snprintf(text, sizeof text, "--- cell %lld",
             (long long)json_integer_value(json_object_get(record, "cell")));
    script->failed |= buf_printf(script->out, "\n%s %s", script->language->comment, text);
    /* Ids are plain words; anything else is left out. */
    if (run.len < 64 && strspn(run.at, "abcdefghijklmnopqrstuvwxyz_0123456789") == run.len)
        script->failed |= buf_printf(script->out, ", %.*s", (int)run.len, run.at);
    script->failed |= buf_add_text(script->out, " ---\n");
}

static void add_before(struct script *script, const json_t *record, const json_t *before)
{
    struct str run = json_get_str(record, "run");
    size_t i;
    json_t *entry;
    json_array_foreach (before, i, entry) {
        if (records_export_is_act(entry)) {
            own_buf text = BUF_INIT(8192);
            records_export_act(entry, &text);
            if (text.len > 0)
                script->failed |= buf_printf(script->out, "\n%s --- %s\n",
                                             script->language->comment, text.at);
        } else if (!str_eq(json_get_str(entry, "run"), run)) {
            add_rule(script, entry);
            add_code(script, entry);
        }
    }
}

/* A name of Python and JavaScript, which the contract demands of a call's function. */
static bool is_name(struct str name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.$"
                                  "0123456789";
    return name.len > 0 && name.len < 256 && strspn(name.at, letters) == name.len;
}

/* The value of a call is printed, as JSON text cannot be mistaken for code: a JSON string is a
 * string of both languages. */
static void add_call(struct script *script, const json_t *call)
{
    bool python = strcmp(script->language->name, "python") == 0;
    struct str name = json_get_str(call, "function");
    const json_t *args = json_object_get(call, "args"), *named = json_object_get(call, "kwargs");
    bool node = strstr(script->language->name, "script") != NULL;
    if (!json_is_object(call) || !is_name(name) || !(python || node))
        return;
    own_json values = json_pack("{s:o, s:o}", "args",
                                json_is_array(args) ? json_deep_copy(args) : json_array(), "kwargs",
                                json_is_object(named) ? json_deep_copy(named) : json_object());
    own_str inner = json_write(values, JSON_COMPACT);
    own_json wrapped = inner ? json_string(inner) : NULL;
    own_str quoted = wrapped ? json_write(wrapped, JSON_ENCODE_ANY) : NULL;
    if (!quoted)
        return;
    if (python)
        script->failed |= buf_printf(script->out,
                                     "\nimport json as _json\n_call = _json.loads(%s)\n"
                                     "print(repr(%.*s(*_call[\"args\"], **_call[\"kwargs\"])))\n",
                                     quoted, (int)name.len, name.at);
    else
        script->failed |= buf_printf(script->out, "\nconsole.log(%.*s(...JSON.parse(%s).args))\n",
                                     (int)name.len, name.at, quoted);
}

/* Lines that only a notebook's kernel understands. */
static bool has_magics(const json_t *record)
{
    struct str code = json_get_str(json_object_get(record, "request"), "code");
    for (size_t at = 0; at < code.len;) {
        if (code.at[at] == '%' || code.at[at] == '!')
            return true;
        const char *end = memchr(code.at + at, '\n', code.len - at);
        at = end ? (size_t)(end - code.at) + 1 : code.len;
    }
    return false;
}

static bool any_magics(const json_t *record, const json_t *before)
{
    size_t i;
    json_t *entry;
    json_array_foreach (before, i, entry)
        if (has_magics(entry))
            return true;
    return has_magics(record);
}

static void add_tools(struct script *script, const json_t *record, const json_t *before)
{
    bool stands_in = records_export_stands_in(record, before);
    if (!records_export_has_tools(record, before))
        return;
    line(script, stands_in ? RECORDS_EXPORT_TOOLS : RECORDS_EXPORT_NO_TOOLS);
    if (!stands_in)
        return;
    script->failed |= buf_add_text(script->out, "\n");
    script->failed |= records_export_tools(record, before, script->out);
}

int records_export_script(const json_t *record, const json_t *before, struct buf *out)
{
    struct script script = { records_export_language_of(record), out, 0 };
    const json_t *request = json_object_get(record, "request");
    bool has_cells = json_array_size(before) > 0;
    if (script.language->shebang)
        script.failed |= buf_printf(out, "%s\n", script.language->shebang);
    line(&script, "A run recorded by cupel.");
    records_export_facts(record, add_fact, &script);
    if (json_array_size(json_object_get(request, "files")) > 0)
        line(&script, "Its files belong beside this script: cupel runs artifacts RUN PATH... -o .");
    if (strcmp(script.language->name, "python") == 0 && any_magics(record, before))
        line(&script, "Lines that begin with % or ! need IPython: export it as a notebook.");
    add_tools(&script, record, before);
    add_before(&script, record, before);
    if (has_cells)
        add_rule(&script, record);
    else
        script.failed |= buf_add_text(out, "\n");
    add_code(&script, record);
    add_call(&script, json_object_get(request, "call"));
    return script.failed ? -1 : 0;
}
