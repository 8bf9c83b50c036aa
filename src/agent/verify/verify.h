/* Is the answer proven? The model computes it by a call of answer() in a cell. Here that call is
 * read (payload.c), all kept cells run again in a fresh box (rerun.c), each value is traced back to
 * the lines and files that made it in a box that runs none of them (trace.c, drivers/trace.py), and
 * a model that did not write it may judge it (judge.c). No rule here reads prose.
 *
 * PAYLOAD, TRACE: drivers/answer.py, drivers/trace.py. CHECK, STEP: agent/agent.h. */
#ifndef AGENT_VERIFY_VERIFY_H
#define AGENT_VERIFY_VERIFY_H

#include <jansson.h>

#include "agent/agent.h"
#include "agent/box.h"

/* --- checks.c --- */
/* A step whose cell ran, whose state stands, and whose output is its own. */
bool agent_step_is_kept(const json_t *step);
/* Earlier steps are void: the session was lost after them. */
size_t agent_steps_from(const json_t *steps);
/* Appends one CHECK. `repair` may be NULL; bytes that are not UTF-8 are made visible. */
void agent_checks_add(json_t *checks, const char *name, const char *outcome, const char *detail,
                      const char *repair);
/* Does a check of that name (NULL: any) have this outcome? */
bool agent_checks_have(const json_t *checks, const char *name, const char *outcome);
/* The failed checks in words for the model; NULL: none failed. */
char *agent_checks_repair(const json_t *checks);

/* --- script.c --- */
/* All kept cells in order as one program for people. NULL: there are none. */
char *agent_script(const json_t *steps);
/* A program that calls `function` of the driver's `module` with `argument` as JSON text. -1: there
 * is no argument, or it is too long for `out`. */
int agent_script_call(const char *module, const char *function, const json_t *argument,
                      struct buf *out);

/* --- payload.c --- */
/* The last call of answer(), cannot_answer() or ask_user() in a run's result; NULL: none. The kind
 * is one of these three, and its members have their types. */
json_t *agent_payload_of(const json_t *result);
bool agent_payload_is(const json_t *payload, const char *kind);
/* Has the code opened this file of the task? */
bool agent_payload_opened(const json_t *payload, const char *path);
/* Equal, or numbers within `relative`; in containers member by member. */
bool agent_value_same(json_t *a, json_t *b, double relative);
/* The names whose values differ, with both values in words; "": none. */
void agent_payload_differs(json_t *a, json_t *b, double relative, struct buf *out);

/* --- rerun.c --- */
struct agent_claim {
    const char *question;
    const json_t *steps;     /* [STEP], all of them, in order */
    json_t *payload;         /* of the session's answer() */
    const json_t *artifacts; /* [{"path","size_bytes","sha256","mime"}] made by the task */
    json_t *schema;          /* JSON Schema of the values, or NULL */
    const struct agent_file *files;
    size_t file_count;
};
/* Runs cells ([[n, code, may_fail], ...]) in a fresh box. The result, or NULL with err. */
json_t *agent_rerun_cells(struct agent_box *box, const json_t *cells, double timeout_s,
                          struct err *err);
/* Runs the kept cells again and compares the values and the files. Adds its CHECK; the payload of
 * the rerun if it passed (caller's), else NULL. */
json_t *agent_check_rerun(const struct agent_claim *claim, struct agent_box *box, double timeout_s,
                          json_t *checks);

/* The same for the result of a rerun of so many cells. Pure. */
json_t *agent_rerun_read(const struct agent_claim *claim, const json_t *result, size_t cells,
                         json_t *checks);

/* --- trace.c --- */
/* The TRACE of the values of `payload`, validated; adds the CHECKs "values", "template",
 * "selection", "files" and, with a schema, "schema". NULL: no trace was had, and "values" has no
 * verdict. */
json_t *agent_check_trace(const struct agent_claim *claim, json_t *payload, struct agent_box *box,
                          double timeout_s, json_t *checks);

/* The CHECKs of a reply of drivers/trace.py, whatever it is. False: it was not understood. Pure. */
bool agent_trace_read(const json_t *trace, const json_t *payload, bool has_schema, json_t *checks);

/* --- judge.c --- */
/* The judge's text: the question, the beginnings of the files, and each value with its lines,
 * between marks with `tag`. Heap, caller frees. */
char *agent_judge_text(const struct agent_claim *claim, const json_t *trace, const char *opening,
                       const char *tag);
/* "PASS" or "FAIL name: reason" in the first line: 1, 0; -1: no verdict. */
int agent_verdict_read(const char *text, struct str *out_reason);
/* The CHECK of a judge's reply. */
void agent_check_verdict(const struct llm_reply *reply, json_t *checks);

#endif
