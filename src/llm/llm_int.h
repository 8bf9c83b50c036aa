/* Private to src/llm: the model, one try at a reply, and filling a reply. */
#ifndef LLM_LLM_INT_H
#define LLM_LLM_INT_H

#include "base/attr.h"
#include "base/buf.h"
#include "llm/llm.h"

struct llm_try {
    const struct llm_request *request;
    const struct llm_watch *watch; /* never NULL */
    struct llm_reply *reply;       /* outcome LLM_OK and nothing else set at the start */
    bool streamed;                 /* bytes of a reply came: no retry may hide that */
    double least_wait_s;           /* the server's minimum before a retry; negative: none */
    bool never_retry;              /* the server said so */
};

struct llm_backend {
    int (*ready)(struct llm_model *model, struct err *err); /* or NULL: always */
    /* The state of another one of the same; NULL with an err. */
    void *(*again)(struct llm_model *model, struct err *err);
    void (*ask)(struct llm_model *model, struct llm_try *try);
    void (*close)(void *state);
};

/* US dollars per million tokens; negative: unknown. */
struct llm_price {
    double input, cache_read, cache_write, output;
    double long_from; /* input above so many tokens costs more; negative: never */
};
#define LLM_PRICE_UNKNOWN ((struct llm_price){ -1, -1, -1, -1, -1 })

struct llm_model {
    char *name;
    const struct llm_backend *backend;
    void *state; /* the backend's own, heap */
    bool sees, calls_tools, scripted;
    struct llm_price price;
    unsigned made_ids; /* of tool calls without an id */
};

/* Fails the reply: the reason, and a hint for a person (or NULL). */
void llm_fail(struct llm_reply *reply, enum llm_outcome outcome, const char *hint, const char *fmt,
              ...) attr_printf(4, 5);

/* Did the caller give up? Has that clock time passed (0: none is set)? */
bool llm_is_cancelled(const struct llm_watch *watch);
bool llm_is_late(int64_t deadline_ms);
int64_t llm_now_ms(void);

/* Is this "NAME=value" a model's usual key? No other program may get it. */
bool llm_is_key_variable(const char *entry);

/* exec: and replay:, without their prefix. 0, or -1 with err. */
int llm_exec_open(const char *program, struct llm_model *model, struct err *err);
int llm_replay_open(const char *path, struct llm_model *model, struct err *err);

/* A reply from the JSON of both: {"text","tool_calls"?:[{"id"?,"name","arguments"}],"usage"?};
 * other fields are ignored. */
void llm_plain_reply(struct llm_model *model, const json_t *value, struct llm_try *try);
void llm_plain_text(struct str text, struct llm_try *try);

#endif
