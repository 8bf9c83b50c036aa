/* A task as its record has it: one of its questions, for taking it up or for running it again.
 * Pure. The events are those of agent.h with the ones that only a record gets:
 *   "setup"   {"mode","cross_check","verify","schema","instructions","planner","judge","sees",
 *              "calls_tools","session"} beside each "task"
 *   "reply"   {"by":"model"|"planner"|"judge"|"cross","outcome","content":[PART],"stop","usage",
 *              "cost_usd","tries","seconds","detail","hint"}
 *   "resumed" {"replies":N,"steps":N,"model","budget"}: of the replies before, N were kept
 * A stored event has a member "redacted", the number of secrets that were hidden in it. */
#ifndef AGENT_PAST_H
#define AGENT_PAST_H

#include <jansson.h>

#include "agent/agent.h"
#include "base/err.h"

struct agent_past {
    json_t *before;      /* events of earlier questions, for agent_resume; may be empty */
    json_t *task, *setup; /* data of these events; setup may be NULL: an old transcript */
    json_t *replies;     /* those that were kept */
    json_t *steps;       /* data */
    json_t *called; /* rows of calls.h by the step's number, where a step has not all of them */
    json_t *asked; /* replies of the user, or null for none */
    json_t *after; /* kinds of the lasting events behind the last kept reply */
    json_t *report; /* NULL: it did not end */
};
#define AGENT_PAST_INIT ((struct agent_past){ 0 })

/* The number of questions that stand: one that was taken back does not count. */
size_t agent_past_questions(const json_t *events);
/* Question `which`, from 0; for a replay with failed replies at its end too. */
int agent_past_read(const json_t *events, size_t which, bool replays, struct agent_past *out,
                    struct err *err);
void agent_past_done(struct agent_past *past);

/* ERR_CONFLICT: it ended in a way that nothing can be added to. */
int agent_past_may_resume(const struct agent_past *past, struct err *err);
/* ERR_CONFLICT: its cells cannot run as they did, because a secret was hidden in them. */
int agent_past_is_whole(const struct agent_past *past, struct err *err);
/* The budget that the question had; other members stay. */
void agent_past_budget(const struct agent_past *past, struct agent_budget *out);

/* Compares the report of a replay with the record: appends {"what","recorded","now"} for each
 * difference. `report` is redacted as the record is. */
void agent_past_compare(const struct agent_past *past, const json_t *report, json_t *out);

/* --- replay.c --- */
struct agent_replay {
    const char *id;
    const json_t *events;
    const struct agent_file *files; /* those of its last question, as they are now */
    size_t file_count;
    struct embed_client *engine;
    const struct agent_watch *watch; /* or NULL */
    size_t (*redact)(void *user, json_t *report); /* as the record was; or NULL */
    void *user;
};
/* Runs all questions from the record: {"task","same":bool,"differences":[{"what","recorded",
 * "now"}],"report" of the last}. NULL: err. */
json_t *agent_replay(const struct agent_replay *replay, struct err *err);

#endif
