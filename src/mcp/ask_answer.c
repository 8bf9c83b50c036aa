/* A report of the agent as a tool's answer. Pure; runs in every process that serves MCP. Models and
 * boxes wrote most of what is in a report: every text is bounded here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "mcp/mcp_int.h"
#include "mcp/uri.h"

#define TEXT_MAX ((size_t)256 << 10) /* of the whole text; its parts are bounded below it */
#define ANSWER_MAX 40000
#define VALUES_MAX ((size_t)256 << 10) /* of the values as JSON text */
#define QUESTION_MAX 8000
#define LINE_MAX_ 600 /* of one line of evidence, a reason or a hint */
#define EVIDENCE_MAX 16
#define CHECKS_MAX 32

/* The words of a verdict with their meaning, and whether a model should do something else then. */
static const struct {
    const char *status, *meaning;
    bool is_error;
} verdicts[] = {
    { "verified", "every value is computed from the data, and a second look agrees", false },
    { "computed", "every value is computed, and the code gave the same again; nobody judged "
                  "whether it is what was asked", false },
    { "unanswerable", "the data does not hold the answer", false },
    { "unverified", "not proven: check it before you rely on it", false },
    { "stuck", "repairs did not help", true },
    { "budget_exhausted", "the budget ended before the task", true },
    { "denied", "the model or a rule declined", true },
    { "failed", "it could not be carried out", true },
};

struct making {
    const char *id;
    const json_t *report;
    struct buf text;
    json_t *files, *links;
};

static size_t verdict_of(struct str status)
{
    size_t i = 0;
    while (i + 1 < array_len(verdicts) && !str_is(status, verdicts[i].status))
        i++;
    return i;
}

/* All members, of a task that has said nothing yet. */
static json_t *members(const char *id, const char *status, int64_t steps, double seconds)
{
    return json_pack("{s:s, s:s, s:n, s:n, s:n, s:[], s:[], s:n, s:n, s:n, s:[], s:I, s:f}",
                     "status", status, "id", id, "verdict", "answer", "values", "evidence",
                     "checks", "question", "reason", "hint", "files", "steps", (json_int_t)steps,
                     "seconds", seconds);
}

/* --- evidence: one line for each value --- */

static void add_places(struct buf *line, const json_t *slice)
{
    size_t i;
    json_t *place;
    json_int_t last = -1;
    json_array_foreach (slice, i, place) {
        const json_int_t cell = json_integer_value(json_object_get(place, "cell"));
        const json_int_t from = json_integer_value(json_object_get(place, "line"));
        const json_int_t to = json_integer_value(json_object_get(place, "end"));
        buf_add_text(line, i ? ", " : "; by ");
        if (cell != last)
            buf_printf(line, "cell %lld line ", (long long)cell);
        last = cell;
        buf_printf(line, "%lld", (long long)from);
        if (to > from)
            buf_printf(line, "-%lld", (long long)to);
        if (i == 7) {
            buf_add_text(line, ", ...");
            return;
        }
    }
}

static json_t *line_of(const json_t *value)
{
    own_buf line = BUF_INIT(1 << 16);
    size_t i;
    json_t *file;
    struct str name = json_get_str(value, "name"), origin = json_get_str(value, "origin");
    buf_printf(&line, "%.*s: %.*s", (int)(name.len < 80 ? name.len : 80), name.at,
               (int)(origin.len < 40 ? origin.len : 40), origin.at);
    json_array_foreach (json_object_get(value, "files"), i, file) {
        struct str path = json_str(file);
        buf_printf(&line, "%s%.*s", i ? ", " : " from ", (int)(path.len < 120 ? path.len : 120),
                   path.at);
        if (i == 3)
            break;
    }
    add_places(&line, json_object_get(value, "slice"));
    return mcp_cut_json(buf_str(&line), LINE_MAX_);
}

static json_t *evidence_of(struct making *making)
{
    json_t *lines = json_array(), *value;
    size_t i;
    json_array_foreach (json_object_get(making->report, "trace"), i, value) {
        if (i == EVIDENCE_MAX)
            break;
        json_t *line = line_of(value);
        buf_printf(&making->text, "%s  %s\n", i ? "" : "evidence:\n", json_string_value(line));
        json_array_append_new(lines, line);
    }
    return lines;
}

static json_t *checks_of(struct making *making)
{
    json_t *list = json_array(), *check;
    size_t i;
    json_array_foreach (json_object_get(making->report, "checks"), i, check) {
        struct str name = json_get_str(check, "check"), outcome = json_get_str(check, "outcome");
        if (i == CHECKS_MAX)
            break;
        buf_printf(&making->text, "%s%.40s %.40s", i ? ", " : "checks: ", name.at, outcome.at);
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "check", mcp_cut_json(name, 40),
                                              "outcome", mcp_cut_json(outcome, 40), "detail",
                                              mcp_text_or_null(check, "detail", LINE_MAX_)));
    }
    buf_add_text(&making->text, json_array_size(list) ? "\n" : "");
    return list;
}

/* --- files --- */

static void add_files(struct making *making)
{
    const json_t *artifacts = json_object_get(making->report, "artifacts");
    json_t *artifact;
    size_t i;
    json_array_foreach (artifacts, i, artifact) {
        struct str path = json_get_str(artifact, "path");
        json_t *mime = json_text(json_get_str(artifact, "mime"));
        const json_int_t size = json_integer_value(json_object_get(artifact, "size_bytes"));
        own_str uri = mcp_uri_make(making->id, path);
        if (i == MCP_LINKS_MAX) {
            buf_printf(&making->text, "  and %zu more files\n", json_array_size(artifacts) - i);
            json_decref(mime);
            break;
        }
        buf_printf(&making->text, "%s  %.*s (%lld bytes)\n", i ? "" : "files written:\n",
                   (int)(path.len < 1024 ? path.len : 1024), path.at, (long long)size);
        json_t *file = json_pack("{s:o, s:I, s:o, s:s}", "path", json_text(path), "size_bytes",
                                 size, "mime", mime, "uri", uri);
        json_array_append_new(making->files, file);
        json_array_append_new(making->links, mcp_part_link(uri, json_get_str(file, "path").at,
                                                           json_get_str(file, "mime").at, size));
    }
}

/* --- the whole --- */

static json_t *values_of(struct making *making)
{
    json_t *values = json_object_get(making->report, "values");
    if (!json_is_object(values))
        return json_null();
    if (json_dumpb(values, NULL, 0, JSON_COMPACT) <= VALUES_MAX)
        return json_incref(values);
    buf_add_text(&making->text, "the values are too many to give here\n");
    return json_null();
}

static void add_member(struct making *making, json_t *all, const char *name)
{
    json_t *text = mcp_text_or_null(making->report, name, LINE_MAX_);
    if (json_is_string(text))
        buf_printf(&making->text, "%s: %s\n", name, json_string_value(text));
    json_object_set_new(all, name, text);
}

static double wall_s(const json_t *report)
{
    const double seconds = json_number_value(
        json_object_get(json_object_get(report, "cost"), "wall_s"));
    return (double)(int64_t)(seconds * 1000) / 1000;
}

void mcp_ask_answer_over(const char *id, const json_t *report, struct mcp_answer *out)
{
    const size_t verdict = verdict_of(json_get_str(report, "status"));
    struct making making = { .id = id, .report = report, .text = BUF_INIT(TEXT_MAX),
                             .files = json_array(), .links = json_array() };
    const json_int_t steps = json_integer_value(json_object_get(report, "steps"));
    json_t *all = members(id, verdicts[verdict].status, steps, wall_s(report));
    buf_printf(&making.text, "%s: %s (task %s)\n", verdicts[verdict].status,
               verdicts[verdict].meaning, id);
    mcp_add_block(&making.text, "answer", json_get_str(report, "answer"), ANSWER_MAX);
    json_object_set_new(all, "verdict", json_string(verdicts[verdict].meaning));
    json_object_set_new(all, "answer", mcp_text_or_null(report, "answer", ANSWER_MAX));
    json_object_set_new(all, "values", values_of(&making));
    json_object_set_new(all, "evidence", evidence_of(&making));
    json_object_set_new(all, "checks", checks_of(&making));
    add_member(&making, all, "reason");
    add_member(&making, all, "hint");
    add_files(&making);
    json_object_set_new(all, "files", making.files);
    out->content = json_pack("[o]", mcp_part_text(buf_str(&making.text)));
    out->structured = all;
    out->is_error = verdicts[verdict].is_error;
    json_array_extend(out->content, making.links);
    json_decref(making.links);
    buf_done(&making.text);
}

void mcp_ask_answer_running(const char *id, const char *phase, int64_t steps, double seconds,
                            struct mcp_answer *out)
{
    own_buf text = BUF_INIT(4096);
    buf_printf(&text,
               "still running after %.0f s (task %s, %lld steps%s%s)\ncall ask with task '%s' to "
               "wait for the answer; the tool runs with do=stop and this id ends it\n",
               seconds, id, (long long)steps, *phase ? ", now " : "", phase, id);
    out->content = json_pack("[o]", mcp_part_text(buf_str(&text)));
    out->structured = members(id, "running", steps, seconds);
    out->is_error = false;
}

void mcp_ask_answer_asks(const char *id, const char *question, int64_t steps, double seconds,
                         struct mcp_answer *out)
{
    own_buf text = BUF_INIT(TEXT_MAX);
    buf_printf(&text, "asking (task %s)\n", id);
    mcp_add_block(&text, "question for the user", str_of(question), QUESTION_MAX);
    buf_printf(&text, "call ask with task '%s' and answer\n", id);
    out->content = json_pack("[o]", mcp_part_text(buf_str(&text)));
    out->structured = members(id, "asking", steps, seconds);
    json_object_set_new(out->structured, "question", mcp_cut_json(str_of(question), QUESTION_MAX));
    out->is_error = false;
}
