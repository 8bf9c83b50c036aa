/* A running task, shared by the files of the loop. One owner, one thread. */
#ifndef AGENT_AGENT_INT_H
#define AGENT_AGENT_INT_H

#include "agent/agent.h"
#include "agent/box.h"
#include "agent/loop/budget.h"
#include "agent/read/extract.h"
#include "agent/loop/history.h"
#include "agent/loop/tape.h"
#include "agent/read/repair.h"
#include "agent/verify/verify.h"

#define AGENT_TAG_ROOM 20

struct agent_mark {
    size_t steps, asked, files_told; /* as they were before a question */
    json_t *said; /* the question in the conversation, or NULL */
    bool kept; /* the session has a checkpoint of it */
};

struct agent {
    struct agent_task task;
    struct agent_watch watch;
    char id[40], tag[AGENT_TAG_ROOM];
    struct agent_box box;
    struct agent_spent spent;
    struct agent_history history;
    struct agent_repair repair;
    struct agent_tape tape;
    char *instructions; /* the system prompt */
    json_t *tools;      /* for models with native calls, else NULL */
    json_t *tools_told; /* those that the code may call, as the engine tells of them, or NULL */
    json_t *tools_before; /* those of an earlier question, from its record, or NULL */
    json_t *asked_tool; /* a person is asked about a call of it, or NULL */
    json_t *called;     /* the calls of each step, by its number: rows of calls.h */
    json_t *plan, *steps, *checks, *artifacts;
    json_t *payload; /* of the last answer(), or NULL */
    json_t *trace;   /* of its values, or NULL */
    json_t *second;  /* payload of the second derivation, or NULL */
    struct embed_artifact *kept; /* contents of the artifacts, the latest of each path */
    size_t kept_count;
    struct buf asked; /* all questions so far; the last begins at `earlier` */
    size_t earlier;
    size_t files_told; /* that the model knows of */
    struct agent_mark *marked; /* before each question of a conversation */
    size_t mark_count;
    char *answer;
    int64_t turns;      /* replies of the model */
    int64_t changes;    /* visible changes of the session's state */
    int empty_replies, verify_repairs, typed_replies;
    bool planned, forced, ended;
    const char *forced_by;
    json_t *marks;      /* for each step: `changes` when it began */
    bool check_unknown; /* the engine is too old to check code */
    enum agent_status status;
    char reason[600], hint[300];
};

/* --- agent.c --- */
void agent_tell(struct agent *agent, const char *kind, json_t *data); /* takes `data` */
/* An event for the record alone; takes `data`. */
void agent_keep(struct agent *agent, const char *kind, json_t *data);
void agent_phase(struct agent *agent, const char *phase);
bool agent_is_cancelled(const struct agent *agent);
/* Ends the task; the first call counts. */
void agent_end(struct agent *agent, enum agent_status status, const char *hint, const char *fmt,
               ...) attr_printf(4, 5);
/* Adds the last cell's artifacts to the task's. */
void agent_keep_artifacts(struct agent *agent, const json_t *result);
/* Our content of the file is outdated. */
void agent_forget_artifact(struct agent *agent, const char *path);

/* The record that answers cells which run again; takes `rows`. */
void agent_again_of(const struct agent *agent, json_t *rows, struct agent_again *out);

/* --- call.c: one request to a model, paid and accounted for --- */
struct agent_call {
    const char *by; /* "model", "planner", "judge" or "cross" */
    struct llm_model *model;
    const char *instructions;
    const json_t *messages, *tools;
    bool heard; /* its text is shown as it streams */
    bool spare; /* the task goes on without it: a budget that cannot pay it does not end the task */
};
/* LLM_OK; else the outcome says why, and the task may have ended (agent->ended). */
void agent_call(struct agent *agent, const struct agent_call *call, struct llm_reply *out);
/* The budget that cannot pay another such call; NULL: all can. */
const char *agent_call_is_last(const struct agent *agent, const struct agent_call *call);
/* Ends the task for any outcome but LLM_OK. */
void agent_call_failed(struct agent *agent, const struct llm_reply *reply);

/* --- opening.c: the first message, the tools, the planner --- */
void agent_opening(struct agent *agent);
void agent_opening_plan(struct agent *agent, const char *text);
json_t *agent_opening_tools(enum agent_mode mode);
/* The question, the files and their first lines, as data. Caller frees. */
char *agent_opening_text(const struct agent *agent);
char *agent_opening_prompt(const struct agent *agent, int prompt);
const char *agent_opening_python(void); /* "Python 3.11" */
/* --- offer.c: the tools for the prompt, "" without. Caller frees. --- */
char *agent_offer(const struct agent *agent);

/* --- execute.c: a cell, from its check to its observation --- */
void agent_execute(struct agent *agent, const struct agent_action *action);

/* --- proof.c: is the answer proven? --- */
/* The cell has called answer(), cannot_answer() or ask_user(). Ends the task, or gives the model
 * something to act on and leaves agent->ended false. */
void agent_proof(struct agent *agent, json_t *payload);
/* The model typed its answer: it is asked once to make it a call. */
void agent_proof_typed(struct agent *agent, const struct agent_action *action);
/* Drops an answer's values, trace and checks: another answer took its place. */
void agent_proof_forget(struct agent *agent);
/* Seconds for a proof run: the rest of the budget, but never zero. */
double agent_proof_seconds(const struct agent *agent);
/* --- cross.c --- */
void agent_cross_check(struct agent *agent, const struct agent_claim *claim);

/* --- loop.c --- */
void agent_loop(struct agent *agent);

#endif
