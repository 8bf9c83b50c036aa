/* A task: from a question and files to an answer with evidence, or an honest failure.
 * Blocking; it talks to the engine through its socket. A process may run several tasks, each in a
 * thread of its own, with its own connection and models: no state is shared, and callbacks come in
 * the task's thread. The loop is in loop/rounds.c; most functions that it calls are pure.
 *
 * STEP, as kept in evidence and record:
 *   {"n":1,"code":"...","purpose":"...","run":"r_...","status":"ok","state":"kept",
 *    "repeated":false,"observation":"as the model saw it","result":{the run's result JSON}}
 *   A cell that a check stopped has "run":null,"status":"not_run".
 * CHECK, an outcome of verification:
 *   {"check":"values","outcome":"pass"|"fail"|"skip"|"no_verdict","detail":"...",
 *    "repair":"words for the model if it failed, else null"}
 *   checks: rerun values template selection files schema cross_check judge
 * TRACED, a value of the answer with its proof:
 *   {"name":"mean","origin":"data"|"computed"|"typed"|"invented"|"unknown","why","files":[...],
 *    "slice":[{"cell":2,"line":3,"end":3,"code":"..."}],"warnings":["..."]} */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "embed/client.h"
#include "llm/llm.h"

/*     state        name                exit  meaning */
#define AGENT_STATUSES(X)                                                                       \
    X(VERIFIED, "verified", 0)     /* computed, and a judge or a second derivation agrees */    \
    X(COMPUTED, "computed", 0)     /* every value is traced and gave the same again */          \
    X(UNANSWERABLE, "unanswerable", 7) /* the data does not hold the answer, the model says */  \
    X(UNVERIFIED, "unverified", 3) /* typed, or not proven */                                   \
    X(STUCK, "stuck", 4)           /* repairs did not help: a report for a person */            \
    X(BUDGET, "budget_exhausted", 5)                                                            \
    X(DENIED, "denied", 6)         /* the model or a policy declined */                         \
    X(FAILED, "failed", 1)         /* no model, no engine, cancelled */

enum agent_status {
#define X(id, name, exit_code) AGENT_##id,
    AGENT_STATUSES(X)
#undef X
    AGENT_STATUS_COUNT
};
const char *agent_status_name(enum agent_status status);
int agent_status_exit(enum agent_status status);

enum agent_mode { AGENT_CODE, AGENT_TOOLS };

/* Negative: no limit; steps always has one. */
struct agent_budget {
    int64_t steps;          /* cells that run; default 12 */
    double wall_s;          /* without the time of the model's replies; default 600 */
    double model_s;         /* waiting for replies; default 3600 */
    double execution_s;     /* of cells; default 300 */
    int64_t tokens;         /* in and out; default -1 */
    double money_usd;       /* default -1; a limit excludes models of unknown price */
    int64_t artifact_bytes; /* default 64 MiB */
};
#define AGENT_BUDGET_DEFAULT \
    ((struct agent_budget){ 12, 600, 3600, 300, -1, -1, (int64_t)64 << 20 })

/* The keys of a budget, as every door names them. */
enum agent_amount { AGENT_WHOLE, AGENT_NUMBER, AGENT_BYTES };
struct agent_budget_row {
    const char *key;
    enum agent_amount amount;
    double least, most;
    const char *bound;
    size_t offset; /* in struct agent_budget */
    bool endless; /* it may have no limit */
};
#define AGENT_BUDGET_KEYS "steps, wall_s, model_s, execution_s, tokens, usd, artifact_bytes"
#define AGENT_BUDGET_ROWS 7
extern const struct agent_budget_row agent_budget_rows[AGENT_BUDGET_ROWS];
void agent_budget_set(const struct agent_budget_row *row, double value, struct agent_budget *out);
/* Numbers by key; null is no limit. Others stay. */
int agent_budget_read(const json_t *value, struct agent_budget *out, struct err *err);

struct agent_file {
    const char *path; /* in /workspace, read-only there */
    struct str content;
    const char *source; /* where it is on the host, for --continue; NULL: not known */
};

/* Events for a person. `data` by kind:
 *   "task"   {"task","question","model","scripted":bool,"budget":{...},
 *             "files":[{"path","size_bytes","sha256","source":"..."|null}]}
 *   "plan"   {"steps":["..."]}
 *   "text"   {"text"} as the model streams     "wait" {"why","seconds"}
 *   "code"   {"n","code","purpose"}            "output" {"stream","text"} of the running cell
 *   "step"   STEP                              "check" CHECK
 *   "repair" {"why","attempt","of"}            "budget" {"steps_left","wall_s_left",...}
 *   "phase"  {"phase":"plan"|"generate"|"execute"|"verify"|"answer"}
 *   "approval" {"tool","arguments","effect","line","code"} waits; "decided" {"tool","allow"}
 *   "asked"  {"question","reply":"..."|null}   "undone" {"steps":N} that are left
 *   "calls"   {"n","rows"}: calls of tools that the step's result has not in full, see calls.h
 *   "history" {"messages","briefs","tag","asked"} for agent_resume
 *   "end"    the report
 * The record gets more kinds: past.h. */
enum agent_decision { AGENT_REFUSES, AGENT_APPROVES, AGENT_NOT_YET };
struct agent_watch {
    void (*on)(void *user, const char *kind, const json_t *data);
    void *user;
    /* The user's reply to a question of the model, heap; NULL: nobody is there. May be NULL. */
    char *(*ask)(void *user, const char *question);
    /* May the code make this call? `call` is the event `approval` of docs/protocol.md; the box is
     * frozen meanwhile. It may wait for a person; AGENT_NOT_YET when cancel_fd or the engine's
     * connection has something to read: it is called again if the call still waits, and with NULL
     * if not. A NULL function: policies of `ask` deny. */
    enum agent_decision (*approve)(void *user, json_t *call);
    int cancel_fd; /* readable: stop; -1: none. Never read. */
};

/* Each event, also those that no person needs, as it happens. */
struct agent_record {
    void (*add)(void *user, const char *kind, const json_t *data); /* NULL: no record */
    void *user;
};

struct agent_past;
struct agent_task {
    const char *id; /* "t_..."; NULL: a new one */
    const char *question;
    const struct agent_file *files;
    size_t file_count;
    struct agent_budget budget;
    enum agent_mode mode;
    struct llm_model *model;
    struct llm_model *planner; /* NULL: no separate call */
    struct llm_model *judge; /* NULL: off */
    bool cross_check; /* a second derivation */
    json_t *schema; /* JSON Schema of the values, or NULL */
    const char *instructions; /* house rules of the user, or NULL */
    bool verify; /* false: for comparisons; the status is unverified */
    bool conversation; /* agent_follow and agent_undo may come */
    struct embed_client *engine; /* connected */
    const json_t *session; /* "request" of do:new (profile, limits), or NULL: analysis */
    struct agent_record record;
    /* This question from its record (past.h), or NULL: recorded replies are served first. Only what
     * the record does not have yet is added to it. */
    const struct agent_past *past;
    bool replays; /* no model is asked: the question ends with its record */
};

/* Runs the task to its end. The report, never NULL:
 *   {"task":"t_...","status","answer":"..."|null,"values":{"mean":18.2,...}|null,"trace":[TRACED],
 *    "evidence":[STEP],"checks":[CHECK],
 *    "artifacts":[{"path","size_bytes","sha256","mime"}],"steps":N,
 *    "cost":{"usd":x|null,"input_tokens","cached_tokens","output_tokens","requests","model_s",
 *            "execution_s","wall_s"},
 *    "reason":"why it ended so"|null,"hint":...|null,"plan":{...},"script":"final program"|null}
 * agent_artifact has the artifacts' contents, until agent_done. */
struct agent;
struct agent *agent_new(const struct agent_task *task);
/* "t_..."; that of the record after agent_resume. */
const char *agent_id(const struct agent *agent);
json_t *agent_run(struct agent *agent, const struct agent_watch *watch, enum agent_status *out);
/* A further question on the same session and conversation, with a fresh budget; then agent_run
 * again. `files` are all files of the task so far, the new ones last, and stay the caller's. */
int agent_follow(struct agent *agent, const char *question, const struct agent_file *files,
                 size_t file_count, struct err *err);
/* Takes back the last question with its cells, state, files and messages. -1: there is none. */
int agent_undo(struct agent *agent, struct err *err);
/* Takes up a task from its record, before agent_run: the kept cells run again in this session,
 * and the conversation goes on after its last event. `events` is an array of them. */
int agent_resume(struct agent *agent, const json_t *events, struct err *err);
/* The question goes on from its record, as by agent_task.past; before agent_run. */
void agent_take_up(struct agent *agent, const struct agent_past *past);
/* Keeps the session of a conversation alive: to be called now and then while nothing is asked. */
void agent_rest(struct agent *agent);
struct str agent_artifact(const struct agent *agent, const char *path);
void agent_done(struct agent *agent);

#endif
