/* Is the answer proven? Cheapest checks first, and none trusts the model: the checklist by code,
 * whether any input is read, every number and name against the evidence, the final program again in
 * a fresh box, the model's own tests there, a second method, a verifier's verdict. */
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
    const json_t *artifacts;    /* [{"path","size_bytes","sha256","mime"}] made by the task */
    struct str (*content)(void *user, const char *path); /* of an artifact */
    void *user;
    const struct agent_file *files; /* given to the task */
    size_t file_count;
};

/* The question's own checklist, by rules: "top 5", "as CSV", "chart", "in EUR", "how many", named
 * files. [REQUIREMENT], perhaps empty. */
json_t *agent_checklist_of(const char *question);
/* The model's requirements, validated; unknown ones keep their text without a check. At most 20. */
json_t *agent_checklist_read(const json_t *from_model);

/* Each adds its CHECKs. Pure. */
void agent_check_list(const struct agent_claim *claim, json_t *checks);
void agent_check_inputs(const struct agent_claim *claim, json_t *checks);
void agent_check_numbers(const struct agent_claim *claim, json_t *checks);

/* A step whose cell ran, whose state stands, and whose output is its own. */
bool agent_step_is_kept(const json_t *step);
/* Earlier steps are void: the session was lost after them. */
size_t agent_steps_from(const json_t *steps);

/* All kept cells in order as one script, without those that failed or changed nothing (rolled back,
 * not run, repeated). NULL if there are none. */
char *agent_script(const json_t *steps);
/* Runs it in a fresh box, compares each kept cell's output, values and files, then runs the
 * requirements' own code. */
void agent_check_rerun(const struct agent_claim *claim, struct agent_box *box, double timeout_s,
                       json_t *checks);

/* The verifier's call: question, answer and evidence, not the conversation. Adds its CHECK. `out`
 * is for the account (caller: llm_reply_done). */
void agent_check_model(const struct agent_claim *claim, struct llm_model *verifier,
                       const struct llm_watch *watch, int64_t deadline_ms, struct llm_reply *out,
                       json_t *checks);
/* The verifier's text: question, answer, evidence and file names between marks with `tag`. Heap,
 * caller frees. */
char *agent_verifier_text(const struct agent_claim *claim, const char *tag);
/* "PASS" or "FAIL: reason" in the first line: 1, 0; -1: no verdict. */
int agent_verdict_read(const char *text, struct str *out_reason);

/* Appends one CHECK. `repair` may be NULL; bytes that are not UTF-8 are made visible. */
void agent_checks_add(json_t *checks, const char *name, const char *outcome, const char *detail,
                      const char *repair);
/* Nothing failed, and something was proven: the answer may be called verified. */
bool agent_checks_prove(const json_t *checks);
/* The failed checks in words for the model; NULL: none failed. */
char *agent_checks_repair(const json_t *checks);

#endif
