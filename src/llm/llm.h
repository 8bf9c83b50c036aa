/* Language models behind one door: Anthropic Messages, OpenAI Responses, Chat Completions of any
 * base URL, a program (exec:), recorded replies (replay:). Runs in the task's process; blocks.
 * Every byte of a model or server is hostile: capped, validated, never trusted.
 *
 * Conversations are JSON, the same for all wires:
 *   messages  [{"role":"user"|"assistant","content":[PART,...]}, ...]
 *   PART      {"type":"text","text"}
 *             {"type":"image","mime","base64"}
 *             {"type":"tool_call","id","name","arguments":{...}}           assistant only
 *             {"type":"tool_result","id","content":[text, image PARTs],"is_error":false}  user only
 *             {"type":"raw","wire","block":{...}}  e.g. thinking: echoed unchanged, same wire
 *   tools     [{"name","description","schema":{JSON Schema}}, ...] */
#ifndef LLM_LLM_H
#define LLM_LLM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/*     outcome   name             retried  meaning */
#define LLM_OUTCOMES(X)                                                                        \
    X(OK, "ok", false)                   /* a complete reply */                                   \
    X(REFUSED, "refused", false)         /* the model or its filter declined */                \
    X(CONTEXT, "context_overflow", false) /* the conversation is too long for it */            \
    X(AUTH, "auth", false)               /* key missing, wrong, or not allowed */              \
    X(QUOTA, "quota", false)             /* out of credit or over a spending limit */          \
    X(UNKNOWN_MODEL, "unknown_model", false)                                                   \
    X(BAD_REQUEST, "bad_request", false) /* the server rejects our request */            \
    X(RATE, "rate_limit", true)                                                                \
    X(OVERLOADED, "overloaded", true)    /* 500, 502, 503, 529 */                              \
    X(NETWORK, "network", true)          /* not reached, or lost before the first byte */      \
    X(BROKEN, "broken_stream", false)    /* lost after bytes had come: never retried here */   \
    X(TIMEOUT, "timeout", false)                                                               \
    X(GARBAGE, "garbage", false)         /* an unreadable reply */                 \
    X(TOO_LONG, "endless_reply", false)  /* exceeded the cap on a reply */                       \
    X(EXHAUSTED, "replay_exhausted", false) /* replay: has no further reply */                 \
    X(CANCELLED, "cancelled", false)

enum llm_outcome {
#define X(id, name, retried) LLM_##id,
    LLM_OUTCOMES(X)
#undef X
    LLM_OUTCOME_COUNT
};
const char *llm_outcome_name(enum llm_outcome outcome);

enum llm_stop { LLM_STOP_END, LLM_STOP_TOOLS, LLM_STOP_LENGTH, LLM_STOP_OTHER };

/* Normalised tokens; -1: unknown. `input` excludes tokens from or for a cache; `output` includes
 * `reasoning`. */
struct llm_usage {
    int64_t input, cache_read, cache_write, output, reasoning;
};
#define LLM_USAGE_UNKNOWN ((struct llm_usage){ -1, -1, -1, -1, -1 })

struct llm_reply {
    enum llm_outcome outcome;
    enum llm_stop stop;
    json_t *content; /* PARTs, for the next request's assistant message; never NULL on LLM_OK */
    char *text; /* of its text parts, joined; never NULL on LLM_OK */
    struct llm_usage usage;
    double cost_usd; /* negative: unknown */
    int tries; /* requests that were sent */
    char id[96]; /* the server's request id, "" if none */
    char detail[512]; /* on failure: the reason, without keys */
    char hint[256]; /* on failure: one sentence of advice */
};
void llm_reply_done(struct llm_reply *reply);

struct llm_request {
    const char *instructions; /* the system prompt; stable over a task, for caches */
    const json_t *messages;
    const json_t *tools; /* NULL: none */
    int64_t max_output_tokens; /* 0: the model's usual */
    int64_t deadline_ms; /* base/clock.h; 0: none */
};

/* Events for the caller. Each may be NULL. */
struct llm_watch {
    void (*on_text)(void *user, struct str text); /* as it streams */
    void (*on_wait)(void *user, const char *why, double seconds); /* before a retry */
    int cancel_fd; /* readable: give up; -1: none. Never read. */
    void *user;
};

struct llm_model;

/* Chooses and prepares a model as the caller, before rights are dropped: reads keys, starts the
 * helper of exec:, opens the file of replay:. `spec` is exec:PROGRAM, replay:FILE, PROVIDER/NAME or
 * a known name (docs/agent.md); NULL: $CUPEL_MODEL, else by the key that is set. ERR_ABSENT with a
 * hint if nothing is configured. */
int llm_open(const char *spec, struct llm_model **out, struct err *err);
/* A model that nobody can ask: of a task that is replayed from its record. */
struct llm_model *llm_remembered(const char *name, bool sees, bool calls_tools);
/* After rights are dropped: parses what llm_open opened. */
int llm_ready(struct llm_model *model, struct err *err);
/* Another one of the same, for another thread: a model answers one caller at a time. It needs no
 * rights, and begins as the first did. `model` must be ready, stays open for longer, and answers
 * nobody itself from then on. */
int llm_again(struct llm_model *model, struct llm_model **out, struct err *err);
void llm_close(struct llm_model *model);
/* Removes every key from our environment and from its memory: programs started later neither
 * inherit nor find one. */
void llm_forget_keys(void);
/* From here on configuration files are read once and remembered: the caller is about to drop the
 * right to read them. */
void llm_remember_configuration(void);
const char *llm_name(const struct llm_model *model); /* "anthropic/claude-opus-5", "exec:./m" */
bool llm_sees(const struct llm_model *model); /* takes images */
bool llm_calls_tools(const struct llm_model *model); /* native tool calls are known to work */
bool llm_is_scripted(const struct llm_model *model); /* replay: */
/* An upper bound of one request's cost, for reserving; negative: unknown. */
double llm_cost_bound(const struct llm_model *model, const struct llm_request *request);

/* Gets one reply; retries within the deadline. Always fills *out. */
void llm_ask(struct llm_model *model, const struct llm_request *request,
             const struct llm_watch *watch, struct llm_reply *out);

/* The configured models, for `cupel models`: [{"model","wire","base_url","key":"environment"|
 * "file"|"none"|"missing","reachable":true|false|null,"detail","input_usd_per_mtok"|null,
 * "output_usd_per_mtok"|null,"chosen":bool,"known":bool}]. `probe`: ask the servers. */
json_t *llm_list(bool probe, struct err *err);

#endif
