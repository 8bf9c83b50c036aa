/* Language models behind one door: Anthropic Messages, OpenAI Responses, Chat Completions of any
 * base URL, a program (exec:), recorded replies (replay:). The process of the task; it blocks.
 * Everything that a model or a server says is hostile: capped, validated, never trusted.
 *
 * Conversations are JSON, neutral of the wire:
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

/*     outcome   name             retried  what it means */
#define LLM_OUTCOMES(X)                                                                        \
    X(OK, "ok", false)                   /* a whole reply */                                   \
    X(REFUSED, "refused", false)         /* the model or its filter declined */                \
    X(CONTEXT, "context_overflow", false) /* the conversation is too long for it */            \
    X(AUTH, "auth", false)               /* key missing, wrong, or not allowed */              \
    X(QUOTA, "quota", false)             /* out of credit or over a spending limit */          \
    X(UNKNOWN_MODEL, "unknown_model", false)                                                   \
    X(BAD_REQUEST, "bad_request", false) /* the server did not take what we sent */            \
    X(RATE, "rate_limit", true)                                                                \
    X(OVERLOADED, "overloaded", true)    /* 500, 502, 503, 529 */                              \
    X(NETWORK, "network", true)          /* not reached, or lost before the first byte */      \
    X(BROKEN, "broken_stream", false)    /* lost after bytes had come: never retried here */   \
    X(TIMEOUT, "timeout", false)                                                               \
    X(GARBAGE, "garbage", false)         /* no reply that can be understood */                 \
    X(TOO_LONG, "endless_reply", false)  /* passed the cap on a reply */                       \
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

/* Tokens, normalised; -1: not told. `input` is without what came from or went to a cache;
 * `reasoning` is within `output`. */
struct llm_usage {
    int64_t input, cache_read, cache_write, output, reasoning;
};
#define LLM_USAGE_UNKNOWN ((struct llm_usage){ -1, -1, -1, -1, -1 })

struct llm_reply {
    enum llm_outcome outcome;
    enum llm_stop stop;
    json_t *content;    /* PARTs, for the next request's assistant message; never NULL on LLM_OK */
    char *text;         /* of its text parts, joined; never NULL on LLM_OK */
    struct llm_usage usage;
    double cost_usd;    /* negative: not known */
    int tries;          /* requests that were sent */
    char id[96];        /* the server's request id, "" if none */
    char detail[512];   /* on failure: what happened, without keys */
    char hint[256];     /* on failure: one sentence that a person can act on */
};
void llm_reply_done(struct llm_reply *reply);

struct llm_request {
    const char *instructions; /* the system prompt; stable over a task, for caches */
    const json_t *messages;
    const json_t *tools;    /* NULL: none */
    int64_t max_output_tokens; /* 0: the model's usual */
    int64_t deadline_ms;    /* base/clock.h; 0: none */
};

/* What the caller wants to hear meanwhile. Each may be NULL. */
struct llm_watch {
    void (*on_text)(void *user, struct str text); /* as it streams */
    void (*on_wait)(void *user, const char *why, double seconds); /* before a retry */
    int cancel_fd; /* readable: give up; -1: none. Never read. */
    void *user;
};

struct llm_model;

/* Choose and prepare a model, as the caller, before powers are given up: keys are read, exec:'s
 * helper is started, replay:'s file is opened. `spec` is exec:PROGRAM, replay:FILE,
 * PROVIDER/NAME or a known name (docs/agent.md); NULL: $CUPEL_MODEL, else by which key is
 * set. ERR_ABSENT where nothing is configured, with how to do it. */
int llm_open(const char *spec, struct llm_model **out, struct err *err);
/* Once powers are given up: what was opened is read and understood. */
int llm_ready(struct llm_model *model, struct err *err);
void llm_close(struct llm_model *model);
/* Every key leaves our environment, and the memory where others see it: what is started from here
 * on neither inherits one nor finds one. */
void llm_forget_keys(void);
/* From here on files of the configuration are read once, and remembered: the caller is about to
 * give up the power to read them. */
void llm_remember_configuration(void);
const char *llm_name(const struct llm_model *model);  /* "anthropic/claude-opus-5", "exec:./m" */
bool llm_sees(const struct llm_model *model);         /* takes images */
bool llm_calls_tools(const struct llm_model *model);  /* native tool calls are known to work */
bool llm_is_scripted(const struct llm_model *model);  /* replay: */
/* A bound on what one request could cost, for reserving; negative: not known. */
double llm_cost_bound(const struct llm_model *model, const struct llm_request *request);

/* One reply; retries by itself what may be retried, within the deadline. Always fills *out. */
void llm_ask(struct llm_model *model, const struct llm_request *request,
             const struct llm_watch *watch, struct llm_reply *out);

/* What is configured, for `cupel models`: [{"model","wire","base_url","key":"environment"|
 * "file"|"none"|"missing","reachable":true|false|null,"detail","input_usd_per_mtok"|null,
 * "output_usd_per_mtok"|null,"chosen":bool,"known":bool}]. `probe`: ask the servers. */
json_t *llm_list(bool probe, struct err *err);

#endif
