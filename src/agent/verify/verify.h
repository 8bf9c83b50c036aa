/* Is the answer proven? Cheapest checks first, none of them trusting the model's word:
 * the checklist by code, whether any input is read, every number and name against the evidence,
 * the final program again in a fresh box, the model's own tests there, a second method, a
 * verifier's verdict. */
#ifndef AGENT_VERIFY_VERIFY_H
#define AGENT_VERIFY_VERIFY_H

#include <jansson.h>

#include "agent/agent.h"
#include "agent/box.h"

struct agent_claim {
    const char *question;
    const char *answer;
    const json_t *requirements; /* [REQUIREMENT] */
    const json_t *steps;        /* [STEP], all of them, in order */
    const json_t *artifacts;    /* [{"path","size_bytes","sha256","mime"}] that the task has made */
    struct str (*content)(void *user, const char *path); /* of an artifact */
    void *user;
    const struct agent_file *files; /* that the task was given */
    size_t file_count;
};

/* The checklist that the question itself asks for, by rules: "top 5", "as CSV", "chart",
 * "in EUR", "how many", named files. [REQUIREMENT], perhaps empty. */
json_t *agent_checklist_of(const char *question);
/* Requirements as the model wrote them, validated; what is not understood keeps its text and has
 * no check. At most 20. */
json_t *agent_checklist_read(const json_t *from_model);

/* Each adds its CHECKs. Pure. */
void agent_check_list(const struct agent_claim *claim, json_t *checks);
void agent_check_inputs(const struct agent_claim *claim, json_t *checks);
void agent_check_numbers(const struct agent_claim *claim, json_t *checks);

/* A step whose cell ran, whose state stands, and whose output is not another step's. */
bool agent_step_is_kept(const json_t *step);
/* Steps before this index are void: the session was lost after them. */
size_t agent_steps_from(const json_t *steps);

/* All kept cells in order as one script; cells that failed or changed nothing that counts
 * (rolled back, not run, repeated) are left out. NULL where there is none. */
char *agent_script(const json_t *steps);
/* Run it in a fresh box, compare what each kept cell printed, gave and made, then run the
 * requirements' own code. */
void agent_check_rerun(const struct agent_claim *claim, struct agent_box *box, double timeout_s,
                       json_t *checks);

/* The verifier's call: question, answer and evidence, not the conversation. Adds its CHECK. `out`
 * is for the account (caller: llm_reply_done). */
void agent_check_model(const struct agent_claim *claim, struct llm_model *verifier,
                       const struct llm_watch *watch, int64_t deadline_ms, struct llm_reply *out,
                       json_t *checks);
/* What the verifier is shown: question, answer, evidence and names of files between marks with
 * `tag`. Heap, caller frees. */
char *agent_verifier_text(const struct agent_claim *claim, const char *tag);
/* "PASS" or "FAIL: reason" in the first line: 1, 0; -1: no verdict. */
int agent_verdict_read(const char *text, struct str *out_reason);

/* Append one CHECK. `repair` may be NULL; bytes that are no UTF-8 are made visible. */
void agent_checks_add(json_t *checks, const char *name, const char *outcome, const char *detail,
                      const char *repair);
/* Nothing failed, and something was proven: the answer may be called verified. */
bool agent_checks_prove(const json_t *checks);
/* What the model is told of the checks that failed; NULL: none did. */
char *agent_checks_repair(const json_t *checks);

#endif
