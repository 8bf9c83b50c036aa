/* Asks drivers/trace.py, in a fresh box that runs none of the cells, for each value's lines and
 * origin, and turns its findings into checks. Runs in the task's process. The box reads hostile
 * text: its reply is validated, and one that is not understood is no proof. */
#include <stdio.h>
#include <string.h>

#include "agent/verify/verify.h"
#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"

#define FORM "application/vnd.cupel.trace+json"
#define LOOK_S 60 /* seconds: large inputs are looked through */
#define PROGRAM_MAX (16u << 20)
#define OUTPUT_MAX (20u << 10) /* bytes of a cell's output that are looked at for copied numbers */
#define CALLS_MAX (4u << 20) /* bytes of the arguments and values of tools that are looked at */
#define FAULTS_MAX (8u << 10)

/* The kinds of problems, and the check that each belongs to. */
static const struct {
    const char *kind, *check;
} kinds[] = {
    { "typed", "values" },         { "invented", "values" }, { "untraced", "values" },
    { "empty", "values" },         { "template", "template" }, { "selection", "selection" },
    { "file", "files" },           { "schema", "schema" },
};

static const struct {
    const char *check, *passed;
} checks_made[] = {
    { "values", "every value is traced to its origin" },
    { "template", "the text around the values types none" },
    { "selection", "the values that the question names are used" },
    { "files", "the files that the question names were made" },
    { "schema", "the values satisfy the schema" },
};

/* The calls of tools, `failed` where no value came. Where arguments or values are long, the place
 * alone counts. */
static json_t *calls_of(const json_t *result, size_t *room)
{
    json_t *calls = json_array(), *call;
    size_t i;
    json_array_foreach (json_object_get(result, "calls"), i, call) {
        const json_t *outcome = json_object_get(call, "outcome");
        bool gave = json_object_get(outcome, "value") || json_object_get(call, "outcome_bytes");
        json_t *row = json_pack(
            "{s:O, s:O?, s:O?, s:O?, s:b}", "tool", json_object_get(call, "tool"), "line",
            json_object_get(call, "line"), "arguments", json_object_get(call, "arguments"), "value",
            json_object_get(outcome, "value"), "failed", !gave);
        own_str text = json_write(row, JSON_COMPACT);
        size_t bytes = text ? strlen(text) : SIZE_MAX;
        if (bytes > *room) {
            json_object_del(row, "arguments");
            json_object_del(row, "value");
        } else {
            *room -= bytes;
        }
        json_array_append_new(calls, row);
    }
    return calls;
}

static json_t *cells_of(const json_t *steps)
{
    size_t room = CALLS_MAX;
    json_t *cells = json_array(), *step;
    size_t i, from = agent_steps_from(steps);
    json_array_foreach (steps, i, step) {
        struct str output = json_get_str(json_object_get(step, "result"), "stdout");
        if (i < from || !agent_step_is_kept(step))
            continue;
        output.len = str_cut_utf8(output, OUTPUT_MAX);
        json_t *calls = calls_of(json_object_get(step, "result"), &room);
        json_array_append_new(cells,
                              json_pack("{s:O, s:O, s:o, s:o}", "n", json_object_get(step, "n"),
                                        "code", json_object_get(step, "code"), "output",
                                        json_text(output), "calls", calls));
    }
    return cells;
}

static json_t *paths_of(const json_t *artifacts)
{
    json_t *paths = json_array(), *each;
    size_t i;
    json_array_foreach (artifacts, i, each)
        json_array_append(paths, json_object_get(each, "path"));
    return paths;
}

static json_t *inputs_of(const struct agent_claim *claim)
{
    json_t *inputs = json_array();
    for (size_t i = 0; i < claim->file_count; i++)
        json_array_append_new(inputs, json_text(str_of(claim->files[i].path)));
    return inputs;
}

static json_t *ask(const struct agent_claim *claim, json_t *payload, struct agent_box *box,
                   double timeout_s, struct err *err)
{
    own_json request = json_pack("{s:o, s:o, s:o, s:O, s:o, s:O?}", "question",
                                 json_text(str_of(claim->question)), "inputs", inputs_of(claim),
                                 "cells", cells_of(claim->steps), "answer", payload, "made",
                                 paths_of(claim->artifacts), "schema", claim->schema);
    own_buf code = BUF_INIT(PROGRAM_MAX);
    if (agent_script_call("trace", "main", request, &code) < 0) {
        err_set(err, ERR_INPUT, "the cells are too long to be traced");
        return NULL;
    }
    own_json result = agent_box_look(box, code.at, LOOK_S < timeout_s ? LOOK_S : timeout_s, err);
    const json_t *results = json_object_get(result, "results");
    for (size_t i = json_array_size(results); i-- > 0;) {
        json_t *trace = json_object_get(json_array_get(results, i), FORM);
        if (trace)
            return json_incref(trace);
    }
    struct str said = json_get_str(json_object_get(result, "error"), "message");
    if (result)
        err_set(err, ERR_BUG, "the trace gave no result: %.200s", said.at);
    return NULL;
}

/* Every value of the answer once, with an origin and its lines. */
static bool is_whole(const json_t *trace, const json_t *payload)
{
    const json_t *rows = json_object_get(trace, "values");
    own_json seen = json_object();
    size_t i;
    json_t *row;
    if (!json_is_string(json_object_get(trace, "text")) ||
        !json_is_array(json_object_get(trace, "problems")) ||
        json_array_size(rows) != json_object_size(json_object_get(payload, "values")))
        return false;
    json_array_foreach (rows, i, row) {
        const char *name = json_string_value(json_object_get(row, "name"));
        if (!name || !json_object_get(json_object_get(payload, "values"), name) ||
            !json_is_string(json_object_get(row, "origin")) ||
            !json_is_array(json_object_get(row, "slice")) || json_object_get(seen, name))
            return false;
        json_object_set_new(seen, name, json_true());
    }
    return true;
}

static const char *check_of(const json_t *problem)
{
    for (size_t i = 0; i < array_len(kinds); i++) {
        if (str_is(json_get_str(problem, "kind"), kinds[i].kind))
            return kinds[i].check;
    }
    return "values"; /* a kind that is not known proves nothing */
}

static void add_check(const json_t *problems, const char *check, const char *passed, json_t *checks)
{
    own_buf detail = BUF_INIT(FAULTS_MAX), repair = BUF_INIT(FAULTS_MAX);
    size_t i;
    json_t *problem;
    json_array_foreach (problems, i, problem) {
        struct str message = json_get_str(problem, "message");
        struct str mend = json_get_str(problem, "repair");
        if (strcmp(check_of(problem), check) != 0)
            continue;
        if (!message.len)
            message = STR("a problem that is not named");
        buf_printf(&detail, "%s%.*s", detail.len ? "; " : "", (int)str_cut_utf8(message, 600),
                   message.at);
        buf_printf(&repair, "%s%.*s%s%.*s", repair.len ? "\n- " : "",
                   (int)str_cut_utf8(message, 600), message.at, mend.len ? ". Mend: " : "",
                   (int)str_cut_utf8(mend, 600), mend.at);
    }
    agent_checks_add(checks, check, detail.len ? "fail" : "pass", detail.len ? detail.at : passed,
                     repair.len ? repair.at : NULL);
}

/* `values` proves only origins that it knows to be good; drivers/trace.py names all others. */
static bool has_good_origins(const json_t *trace)
{
    size_t i;
    json_t *row;
    json_array_foreach (json_object_get(trace, "values"), i, row) {
        struct str origin = json_get_str(row, "origin");
        if (!str_is(origin, "data") && !str_is(origin, "computed"))
            return false;
    }
    return true;
}

bool agent_trace_read(const json_t *trace, const json_t *payload, bool has_schema, json_t *checks)
{
    if (!is_whole(trace, payload)) {
        agent_checks_add(checks, "values", "no_verdict", "the trace was not understood", NULL);
        return false;
    }
    const json_t *problems = json_object_get(trace, "problems");
    for (size_t i = 0; i < array_len(checks_made); i++) {
        if (has_schema || strcmp(checks_made[i].check, "schema") != 0)
            add_check(problems, checks_made[i].check, checks_made[i].passed, checks);
    }
    if (!has_good_origins(trace) && !agent_checks_have(checks, "values", "fail"))
        agent_checks_add(checks, "values", "no_verdict", "a value has no origin", NULL);
    return true;
}

json_t *agent_check_trace(const struct agent_claim *claim, json_t *payload, struct agent_box *box,
                          double timeout_s, json_t *checks)
{
    struct err err = ERR_INIT;
    own_json trace = ask(claim, payload, box, timeout_s, &err);
    if (trace && agent_trace_read(trace, payload, claim->schema != NULL, checks))
        return take_ptr(trace);
    if (!trace)
        agent_checks_add(checks, "values", "no_verdict",
                         err.text[0] ? err.text : "no trace was had", NULL);
    return NULL;
}
