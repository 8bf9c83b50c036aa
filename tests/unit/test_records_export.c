/* Records as notebooks, scripts and JSON: hostile texts stay where they belong. */
#include "store/records/export.h"

#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"

#define ROOM (1u << 20)

/* A record whose every text tries to leave its place. */
static json_t *hostile(const char *language, const char *text)
{
    return json_pack("{s:s, s:s, s:f, s:s, s:i, s:{s:s, s:s, s:[s], s:{s:s}, s:[{s:s, s:i}]},"
                     " s:{s:[{s:s, s:s}], s:s}}",
                     "run", text, "status", text, "started_at", 1794857497.5, "session", text,
                     "redacted", 1, "request", "language", language, "code", "CODE", "args", text,
                     "env", text, text, "files", "path", text, "size_bytes", 3, "result", "outputs",
                     "type", "stdout", "text", text, "state", text);
}

static const char *const texts[] = {
    "a\nb",       "a\rb",        "a\xe2\x80\xa8" "b", "*/ a", "`a`", "\\u000aimport",
    "\"\"\"\nx=1", "\xc2\x85" "a", "a\x0c" "b",       "",     "-->", "\x1b[2J",
};
static const char *const names[] = { "python", "javascript", "typescript", "bash", "r", "java" };

TEST(a_script_has_nothing_but_comments_and_the_code)
{
    for (size_t i = 0; i < array_len(texts) * array_len(names); i++) {
        const char *name = names[i % array_len(names)];
        own_json record = hostile(name, texts[i / array_len(names)]);
        own_buf out = BUF_INIT(ROOM);
        struct err err = ERR_INIT;
        CHECK_INT(records_export_write(RECORDS_EXPORT_SCRIPT, record, NULL, &out, &err), 0);
        size_t codes = 0;
        for (char *rest = out.at, *line; (line = strsep(&rest, "\n"));) {
            codes += strcmp(line, "CODE") == 0;
            CHECK(strcmp(line, "CODE") == 0 || line[0] == 0 || line[0] == '#' ||
                  strncmp(line, "//", 2) == 0);
            for (const char *at = line; *at; at++)
                CHECK(*at >= ' ' && *at < 0x7f);
        }
        CHECK_INT(codes, 1);
    }
}

TEST(a_notebook_is_json_and_has_the_text_that_was_recorded)
{
    for (size_t i = 0; i < array_len(texts); i++) {
        own_json record = hostile("python", texts[i]);
        own_buf out = BUF_INIT(ROOM);
        struct err err = ERR_INIT;
        CHECK_INT(records_export_write(RECORDS_EXPORT_NOTEBOOK, record, NULL, &out, &err), 0);
        own_json notebook = json_read(buf_str(&out), ROOM, &err);
        CHECK_INT(json_integer_value(json_object_get(notebook, "nbformat_minor")), 5);
        const json_t *cells = json_object_get(notebook, "cells");
        const json_t *output = json_array_get(json_object_get(json_array_get(cells, 1), "outputs"),
                                              0);
        own_buf joined = BUF_INIT(ROOM);
        size_t at;
        json_t *line;
        json_array_foreach (json_object_get(output, "text"), at, line)
            buf_add_str(&joined, json_str(line));
        CHECK(str_is(buf_str(&joined), texts[i]));
        /* A code span of Markdown ends at the line's last back quote. */
        json_array_foreach (json_object_get(json_array_get(cells, 0), "source"), at, line) {
            const char *text = json_string_value(line), *quote = strchr(text, '`');
            CHECK(at < 2 || (quote && strchr(quote + 1, '`') == text + strlen(text) - 2));
        }
    }
}

TEST(a_call_is_made_by_the_script_without_evaluating_its_arguments)
{
    own_json record = hostile("python", "x");
    own_buf out = BUF_INIT(ROOM);
    struct err err = ERR_INIT;
    json_object_set_new(json_object_get(record, "request"), "call",
                        json_pack("{s:s, s:[s]}", "function", "solve", "args", "\"]) or exit(\n'"));
    CHECK_INT(records_export_write(RECORDS_EXPORT_SCRIPT, record, NULL, &out, &err), 0);
    CHECK(strstr(out.at, "_call = _json.loads(\"{\\\"args\\\":[\\\"\\\\\\\"]) or exit(\\\\n'\\\"],"
                         "\\\"kwargs\\\":{}}\")\n"));
    CHECK(strstr(out.at, "print(repr(solve(*_call[\"args\"], **_call[\"kwargs\"])))\n"));
    json_object_set_new(json_object_get(json_object_get(record, "request"), "call"), "function",
                        json_string("f();g"));
    out.len = 0;
    CHECK_INT(records_export_write(RECORDS_EXPORT_SCRIPT, record, NULL, &out, &err), 0);
    CHECK(!strstr(out.at, "_call ="));
}

TEST(an_export_above_its_bound_is_refused)
{
    for (int form = 0; form < RECORDS_EXPORT_FORMS; form++) {
        own_json record = hostile("python", "x");
        own_buf out = BUF_INIT(20);
        struct err err = ERR_INIT;
        CHECK_INT(records_export_write((enum records_export_form)form, record, NULL, &out, &err),
                  -1);
        CHECK_INT(err.kind, ERR_LIMIT);
    }
}

TEST(forms_are_found_by_name_and_by_the_ending_of_a_file)
{
    CHECK_INT(records_export_find("notebook"), RECORDS_EXPORT_NOTEBOOK);
    CHECK_INT(records_export_find("pdf"), -1);
    CHECK_INT(records_export_of_file("a/b.ipynb"), RECORDS_EXPORT_NOTEBOOK);
    CHECK_INT(records_export_of_file("b.json"), RECORDS_EXPORT_JSON);
    CHECK_INT(records_export_of_file("b.py"), RECORDS_EXPORT_SCRIPT);
    CHECK_INT(records_export_of_file("a.b/c"), -1);
    CHECK_INT(records_export_of_file("c"), -1);
}
