/* The kept cells again, in a fresh box and without any cache: the same values and the same files.
 * Runs in the task's process; drivers/proof.py runs the cells in the box. Printed output is not
 * compared: the values are the answer. A rerun that could not be made proves nothing. */
#include <stdio.h>
#include <string.h>

#include "agent/verify/verify.h"
#include "base/json.h"
#include "base/own.h"

#define PROGRAM_MAX (8u << 20)
#define NEAR 1e-9 /* relative difference of floats that another order of adding explains */

json_t *agent_rerun_cells(struct agent_box *box, const json_t *cells, double timeout_s,
                          struct err *err)
{
    own_buf code = BUF_INIT(PROGRAM_MAX);
    if (agent_script_call("proof", "run", cells, &code) < 0) {
        err_set(err, ERR_INPUT, "the cells are too long to run again");
        return NULL;
    }
    return agent_box_fresh(box, code.at, timeout_s, err);
}

static json_t *kept_cells(const json_t *steps)
{
    json_t *cells = json_array(), *step;
    size_t i, from = agent_steps_from(steps);
    json_array_foreach (steps, i, step) {
        json_t *code = json_object_get(step, "code");
        bool failed = !str_is(json_get_str(step, "status"), "ok");
        if (i >= from && agent_step_is_kept(step) && json_is_string(code))
            json_array_append_new(cells,
                                  json_pack("[O, O, b]", json_object_get(step, "n"), code, failed));
    }
    return cells;
}

/* The run itself went wrong. */
static void say_failure(const json_t *result, json_t *checks)
{
    const json_t *error = json_object_get(result, "error");
    struct str status = json_get_str(result, "status"), name = json_get_str(error, "name");
    struct str message = json_get_str(error, "message"), place = json_get_str(error, "snippet");
    own_buf detail = BUF_INIT(4096), repair = BUF_INIT(8192);
    buf_printf(&detail, "in a fresh box the cells ended with %.40s: %.100s: %.600s", status.at,
               name.len ? name.at : "no error", message.at);
    buf_printf(&repair,
               "All kept cells were run again in order in a fresh box: %.2000s%s%.300s. Define "
               "every name and file that the cells use, in order.",
               buf_str(&detail).at, place.len ? ", at: " : "", place.at);
    agent_checks_add(checks, "rerun", "fail", buf_str(&detail).at, repair.at);
}

static const json_t *artifact_in(const json_t *list, struct str path)
{
    size_t i;
    json_t *each;
    json_array_foreach (list, i, each) {
        if (str_eq(json_get_str(each, "path"), path))
            return each;
    }
    return NULL;
}

/* Pictures, PDF and workbooks hold times and versions; answer() has opened them. */
static bool is_text(struct str mime)
{
    return (mime.len > 5 && memcmp(mime.at, "text/", 5) == 0) || str_is(mime, "application/json");
}

/* The files that the answer names are made again; those of text are the same. */
static void compare_files(const struct agent_claim *claim, const json_t *result, struct buf *faults)
{
    size_t i;
    json_t *file;
    json_array_foreach (json_object_get(claim->payload, "files"), i, file) {
        struct str path = json_get_str(file, "path");
        const json_t *old = artifact_in(claim->artifacts, path);
        const json_t *new = artifact_in(json_object_get(result, "artifacts"), path);
        const char *fault = !new ? "is not made again" : NULL;
        if (old && new && is_text(json_get_str(new, "mime")) &&
            !json_equal(json_object_get(old, "sha256"), json_object_get(new, "sha256")))
            fault = "has other content";
        if (fault)
            buf_printf(faults, "%sthe file %.200s %s", faults->len ? "; " : "", path.at, fault);
    }
}

static void say_faults(const struct buf *faults, json_t *checks)
{
    own_buf repair = BUF_INIT(8192);
    buf_printf(&repair,
               "All kept cells were run again in a fresh box, and gave something else: %.4000s. "
               "Make the program repeatable: set a seed where chance is used; do not depend on the "
               "time, or on an order that is not fixed.",
               faults->at);
    agent_checks_add(checks, "rerun", "fail", faults->at, repair.at);
}

/* Tools are not called again, so a call that is new has no answer. */
static void say_unknown(const struct agent_again *again, json_t *checks)
{
    own_buf detail = BUF_INIT(4096), repair = BUF_INIT(8192);
    buf_printf(&detail,
               "in a fresh box the cells call %s, which they did not call in the session%s",
               again->first, again->unknown > 1 ? ", and more" : "");
    buf_printf(&repair,
               "All kept cells were run again in order in a fresh box, without calling any tool: a "
               "call gets what the same call gave before. But %s. Let no argument of a tool depend "
               "on chance, on the time or on an order that is not fixed.",
               detail.at);
    agent_checks_add(checks, "rerun", "fail", detail.at, repair.at);
}

json_t *agent_rerun_read(const struct agent_claim *claim, const json_t *result, size_t cells,
                         json_t *checks)
{
    json_t *payload = agent_payload_of(result);
    own_buf faults = BUF_INIT(16u << 10), text = BUF_INIT(200);
    if (!str_is(json_get_str(result, "status"), "ok")) {
        say_failure(result, checks);
        return NULL;
    }
    if (!agent_payload_is(payload, "answer"))
        buf_add_text(&faults, "the cells did not call answer()");
    else
        agent_payload_differs(claim->payload, payload, NEAR, &faults);
    if (!faults.len) /* and no value that is new */
        agent_payload_differs(payload, claim->payload, NEAR, &faults);
    compare_files(claim, result, &faults);
    if (faults.len) {
        say_faults(&faults, checks);
        return NULL;
    }
    buf_printf(&text, "%zu cell%s gave the same values in a fresh box", cells,
               cells == 1 ? "" : "s");
    agent_checks_add(checks, "rerun", "pass", text.at, NULL);
    return json_incref(payload);
}

json_t *agent_check_rerun(const struct agent_claim *claim, struct agent_box *box, double timeout_s,
                          json_t *checks)
{
    struct err err = ERR_INIT;
    own_json cells = kept_cells(claim->steps);
    own_json result = agent_rerun_cells(box, cells, timeout_s, &err);
    if (result && box->again && box->again->unknown) {
        say_unknown(box->again, checks);
        return NULL;
    }
    if (result)
        return agent_rerun_read(claim, result, json_array_size(cells), checks);
    agent_checks_add(checks, "rerun", "no_verdict", err.text[0] ? err.text : "no fresh box was had",
                     NULL);
    return NULL;
}
