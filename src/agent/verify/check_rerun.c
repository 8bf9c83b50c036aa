/* The final program again, in a fresh box and without any cache: the same outputs cell by cell,
 * the same files, and the tests that the model wrote. Process: the task's.
 * Outputs that were cut are compared by their beginning, their end and their length. What could
 * not be compared (no box, a part of which nothing is left) is skipped, never passed. */
#include <stdlib.h>
#include <sys/random.h>

#include "agent/verify/checklist.h"
#include "agent/verify/script.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"

struct proof {
    const struct agent_claim *claim;
    const struct agent_box *box;
    const json_t *result;
    char tag[40], today[16];
    struct buf faults; /* what differs */
    struct buf cannot; /* what could not be compared */
    size_t cells;
    struct agent_cut all;  /* what the run printed */
    bool all_known;
    bool cut, exact;       /* a cell was compared in parts; all are the same byte for byte */
    uint64_t printed;      /* by the cells before */
};

static void make_tag(char *out, size_t room)
{
    uint64_t random[2] = { 0 };
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        random[0] = (uint64_t)(uintptr_t)out; /* it need not be secret, only unlike any output */
    snprintf(out, room, "%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
}

static void make_today(char *out, size_t room)
{
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(out, room, "%Y-%m-%d", &parts);
}

static void add_fault(struct proof *proof, const json_t *step, const char *what, struct str why)
{
    buf_printf(&proof->faults, "%scell %lld %s: %.*s", proof->faults.len ? "; " : "",
               (long long)json_integer_value(json_object_get(step, "n")), what, (int)why.len,
               why.at ? why.at : "");
}

/* Values that the cell showed, in their plain form. */
static void compare_results(struct proof *proof, const json_t *step,
                            const struct agent_script_part *part)
{
    const json_t *before = json_object_get(json_object_get(step, "result"), "results");
    const json_t *after = json_object_get(proof->result, "results");
    size_t count = part->to - part->from;
    if (json_array_size(before) != count) {
        char text[80];
        snprintf(text, sizeof text, "%zu before, %zu now", json_array_size(before), count);
        add_fault(proof, step, "shows another number of values", str_of(text));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        own_buf why = BUF_INIT(1024);
        struct str old = json_str(json_object_get(json_array_get(before, i), "text/plain"));
        struct str new =
            json_str(json_object_get(json_array_get(after, part->from + i), "text/plain"));
        if (!agent_fold_same(old, new, proof->today, &why)) {
            add_fault(proof, step, "shows another value", buf_str(&why));
            return;
        }
    }
}

static uint64_t bytes_of(const json_t *result)
{
    const json_t *bytes = json_object_get(result, "stdout_bytes");
    return json_is_integer(bytes) ? (uint64_t)json_integer_value(bytes)
                                  : json_str(json_object_get(result, "stdout")).len;
}

static void cannot_compare(struct proof *proof, const json_t *step, bool cut)
{
    buf_printf(&proof->cannot, "%scell %lld%s", proof->cannot.len ? ", " : "",
               (long long)json_integer_value(json_object_get(step, "n")),
               cut ? " (output was cut)" : "");
}

/* Of outputs that were cut, what is left: the lengths are compared at the end, of all together. */
static void compare_cell(struct proof *proof, const json_t *step, size_t number)
{
    const json_t *old = json_object_get(step, "result");
    struct agent_script_part part;
    struct agent_cut before, now;
    own_buf why = BUF_INIT(1024);
    agent_script_part(proof->result, proof->tag, number, &part);
    bool known = agent_cut_find(json_str(json_object_get(old, "stdout")), bytes_of(old), &before);
    proof->printed += bytes_of(old);
    if (!known || !proof->all_known ||
        !agent_script_cut(&proof->all, proof->tag, number, &now)) {
        cannot_compare(proof, step, !known || !proof->all_known || proof->all.cut);
        return;
    }
    proof->cut = proof->cut || before.cut || now.cut;
    if (!agent_cut_is_same(&before, &now, proof->today, &proof->exact, &why))
        add_fault(proof, step, "prints something else", buf_str(&why));
    else
        compare_results(proof, step, &part);
}

static void compare_length(struct proof *proof)
{
    uint64_t is = 0, should = 0;
    bool seen = agent_script_length(&proof->all, proof->tag, proof->cells, bytes_of(proof->result),
                                    proof->printed, &is, &should);
    if (!proof->cut || proof->faults.len || (seen && is == should))
        return;
    if (seen && proof->exact)
        buf_printf(&proof->faults, "the cells print %lld bytes %s than before",
                   (long long)(is > should ? is - should : should - is),
                   is > should ? "more" : "less");
    else
        buf_printf(&proof->cannot, "%show much was printed", proof->cannot.len ? ", " : "");
}

static struct str made_again(const struct agent_box *box, const char *path)
{
    for (size_t i = 0; i < box->artifact_count; i++) {
        if (box->artifacts[i].path && !strcmp(box->artifacts[i].path, path))
            return buf_str(&box->artifacts[i].content);
    }
    return STR_NONE;
}

static const json_t *artifact_in(const json_t *list, const char *path)
{
    size_t i;
    json_t *each;
    json_array_foreach (list, i, each) {
        const char *name = json_string_value(json_object_get(each, "path"));
        if (name && !strcmp(name, path))
            return each;
    }
    return NULL;
}

/* Pictures, PDF and workbooks hold times and versions: there the kind must be the same. */
static bool is_text_format(const char *format)
{
    static const char *const texts[] = { "csv", "tsv", "json", "md", "txt", "html" };
    for (size_t i = 0; format && i < sizeof texts / sizeof *texts; i++) {
        if (!strcmp(format, texts[i]))
            return true;
    }
    return false;
}

static void compare_artifact(struct proof *proof, const json_t *old)
{
    const char *path = json_string_value(json_object_get(old, "path"));
    if (!path || !strncmp(path, ".cupel/", 7))
        return;
    const json_t *new = artifact_in(json_object_get(proof->result, "artifacts"), path);
    const char *format = agent_format_of_path(path);
    const char *sha_old = json_string_value(json_object_get(old, "sha256"));
    const char *sha_new = json_string_value(json_object_get(new, "sha256"));
    const char *between = proof->faults.len ? "; " : "";
    own_buf why = BUF_INIT(1024);
    if (!new) {
        buf_printf(&proof->faults, "%sthe file '%.200s' is not made again", between, path);
        return;
    }
    if (sha_old && sha_new && !strcmp(sha_old, sha_new))
        return;
    struct str content = made_again(proof->box, path);
    struct str before = proof->claim->content ? proof->claim->content(proof->claim->user, path)
                                              : STR_NONE;
    if (is_text_format(format)) {
        if (!content.at || !before.at)
            buf_printf(&proof->cannot, "%s'%.200s'", proof->cannot.len ? ", " : "", path);
        else if (!agent_fold_same(before, content, proof->today, &why))
            buf_printf(&proof->faults, "%sthe file '%.200s' is not the same: %s", between, path,
                       buf_str(&why).at);
    } else if (!format) {
        buf_printf(&proof->faults, "%sthe file '%.200s' is not the same", between, path);
    } else if (content.at && !agent_format_check(format, content, &why)) {
        buf_printf(&proof->faults, "%sthe file '%.200s' made again is no %s: %s", between, path,
                   format, buf_str(&why).at);
    }
}

static void compare(struct proof *proof)
{
    size_t i, from = agent_steps_from(proof->claim->steps);
    json_t *step, *made;
    proof->all_known = agent_cut_find(json_str(json_object_get(proof->result, "stdout")),
                                      bytes_of(proof->result), &proof->all);
    json_array_foreach (proof->claim->steps, i, step) {
        if (i >= from && agent_step_is_kept(step) && json_is_string(json_object_get(step, "code")))
            compare_cell(proof, step, proof->cells++);
    }
    compare_length(proof);
    json_array_foreach (proof->claim->artifacts, i, made)
        compare_artifact(proof, made);
}

/* The run itself went wrong: which cell, and how. */
static bool say_failure(struct proof *proof, json_t *checks)
{
    const char *status = json_string_value(json_object_get(proof->result, "status"));
    const json_t *error = json_object_get(proof->result, "error");
    const char *name = json_string_value(json_object_get(error, "name"));
    const char *message = json_string_value(json_object_get(error, "message"));
    const json_t *frames = json_object_get(error, "frames");
    const json_t *frame =
        json_array_size(frames) ? json_array_get(frames, json_array_size(frames) - 1) : NULL;
    const char *snippet = json_string_value(json_object_get(frame, "text"));
    if (status && !strcmp(status, "ok"))
        return false;
    size_t cell = 0, i, from = agent_steps_from(proof->claim->steps);
    json_t *step;
    long long number = 0;
    json_array_foreach (proof->claim->steps, i, step) {
        struct agent_script_part part;
        if (i < from || !agent_step_is_kept(step))
            continue;
        agent_script_part(proof->result, proof->tag, cell++, &part);
        if (part.begun)
            number = (long long)json_integer_value(json_object_get(step, "n"));
    }
    own_buf detail = BUF_INIT(4096), repair = BUF_INIT(8192);
    buf_printf(&detail, "cell %lld ended with '%s' when run again in a fresh box: %.200s: %.600s",
               number, status ? status : "nothing", name ? name : "no error",
               message ? message : "");
    buf_printf(&repair,
               "All kept cells were run again in order in a fresh box, and %s. %s%.300s%s"
               "The cells must work from the start: define every name and file they use, in "
               "order.",
               buf_str(&detail).at, snippet ? "At: " : "", snippet ? snippet : "",
               snippet ? ". " : "");
    agent_checks_add(checks, "rerun", "fail", buf_str(&detail).at, buf_str(&repair).at);
    return true;
}

static void say_rerun(struct proof *proof, json_t *checks)
{
    own_buf text = BUF_INIT(4096);
    if (proof->faults.len) {
        own_buf repair = BUF_INIT(16u << 10);
        buf_printf(&repair,
                   "All kept cells were run again in order in a fresh box, and did not give "
                   "the same: %.6000s. Make the program repeatable: set a seed where chance is "
                   "used, "
                   "do not depend on a cell that was run twice or undone, on the time, or on an "
                   "order "
                   "that is not fixed.",
                   proof->faults.at);
        agent_checks_add(checks, "rerun", "fail", proof->faults.at, buf_str(&repair).at);
        return;
    }
    if (proof->cannot.len)
        buf_printf(&text, "not all could be compared: %.2000s", proof->cannot.at);
    else
        buf_printf(&text, "%zu cell%s gave the same in a fresh box", proof->cells,
                   proof->cells == 1 ? "" : "s");
    agent_checks_add(checks, "rerun", proof->cannot.len ? "skip" : "pass", buf_str(&text).at, NULL);
}

static void say_tests(struct proof *proof, json_t *checks)
{
    own_buf faults = BUF_INIT(8192), repair = BUF_INIT(16u << 10);
    size_t i, test = 0, unheard = 0;
    json_t *each;
    json_array_foreach (proof->claim->requirements, i, each) {
        const char *code =
            json_string_value(json_object_get(json_object_get(each, "check"), "code"));
        const char *text = json_string_value(json_object_get(each, "text"));
        if (!code)
            continue;
        struct str said = agent_script_test(proof->result, proof->tag, test++);
        unheard += !said.at;
        if (said.at && !str_is(said, "ok"))
            buf_printf(&faults, "%s\"%.200s\" (%.300s) failed: %.*s", faults.len ? "; " : "",
                       text ? text : "", code, (int)(said.len > 300 ? 300 : said.len), said.at);
    }
    if (!test)
        return;
    if (faults.len) {
        buf_printf(&repair,
                   "Tests of the checklist failed after the final program: %.6000s. Find out "
                   "which is wrong, the result or the test, and mend that.",
                   faults.at);
        agent_checks_add(checks, "tests", "fail", faults.at, buf_str(&repair).at);
        return;
    }
    buf_printf(&repair, "%zu test%s passed", test, test == 1 ? "" : "s");
    agent_checks_add(checks, "tests", unheard ? "skip" : "pass",
                     unheard ? "the tests were not reached" : buf_str(&repair).at, NULL);
}

void agent_check_rerun(const struct agent_claim *claim, struct agent_box *box, double timeout_s,
                       json_t *checks)
{
    struct proof proof = { .claim = claim, .box = box, .exact = true, .faults = BUF_INIT(16u << 10),
                           .cannot = BUF_INIT(4096) };
    struct err err = ERR_INIT;
    make_tag(proof.tag, sizeof proof.tag);
    make_today(proof.today, sizeof proof.today);
    own_str code = agent_script_proof(claim->steps, claim->requirements, proof.tag);
    if (!code) {
        agent_checks_add(checks, "rerun", "skip", "there is no program to run again", NULL);
        return;
    }
    own_json result = agent_box_fresh(box, code, timeout_s, &err);
    proof.result = result;
    if (!result) {
        agent_checks_add(checks, "rerun", "skip", err.text[0] ? err.text : "no fresh box was had",
                         NULL);
    } else if (!say_failure(&proof, checks)) {
        compare(&proof);
        say_rerun(&proof, checks);
        say_tests(&proof, checks);
    }
    buf_done(&proof.faults);
    buf_done(&proof.cannot);
}
