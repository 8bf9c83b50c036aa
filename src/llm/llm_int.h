/* What the files of this folder share: the model behind the door, one try at a reply, and
 * how a reply is filled. */
#ifndef LLM_LLM_INT_H
#define LLM_LLM_INT_H

#include "base/attr.h"
#include "base/buf.h"
#include "llm/llm.h"

/* One request to one model, and what became of it. */
struct llm_try {
    const struct llm_request *request;
    const struct llm_watch *watch; /* never NULL */
    struct llm_reply *reply;       /* outcome LLM_OK and nothing else set at the start */
    bool streamed;                 /* bytes of a reply have come: no retry may hide that */
    double least_wait_s;           /* what the server asked for before a retry; negative: nothing */
    bool never_retry;              /* the server said so */
};

/* How a kind of model is asked. */
struct llm_backend {
    int (*ready)(struct llm_model *model, struct err *err); /* or NULL: always */
    void (*ask)(struct llm_model *model, struct llm_try *try);
    void (*close)(void *state);
};

/* US dollars for a million tokens; negative: not known. */
struct llm_price {
    double input, cache_read, cache_write, output;
    double long_from; /* more tokens of input than this cost more; negative: never */
};
#define LLM_PRICE_UNKNOWN ((struct llm_price){ -1, -1, -1, -1, -1 })

struct llm_model {
    char *name;
    const struct llm_backend *backend;
    void *state; /* the backend's own, heap */
    bool sees, calls_tools, scripted;
    struct llm_price price;
    unsigned made_ids; /* of tool calls that came without one */
};

/* The reply failed: what happened, and what a person can do about it (or NULL). */
void llm_fail(struct llm_reply *reply, enum llm_outcome outcome, const char *hint,
              const char *fmt, ...) attr_printf(4, 5);

/* Copy text from outside into a fixed place, cut at a whole character, as UTF-8 and without
 * control characters. */
void llm_copy(char *to, size_t room, struct str text);

/* Whether the caller gave up; whether that time of the clock has passed (0: none is set). */
bool llm_is_cancelled(const struct llm_watch *watch);
bool llm_is_late(int64_t deadline_ms);
int64_t llm_now_ms(void);

/* The usual keys of models, which no other program is given: "NAME=value" of an environment. */
bool llm_is_key_variable(const char *entry);

/* exec: and replay:, after their prefix. 0, or -1 with err. */
int llm_exec_open(const char *program, struct llm_model *model, struct err *err);
int llm_replay_open(const char *path, struct llm_model *model, struct err *err);

/* A reply from the one JSON that both of them speak:
 * {"text","tool_calls"?:[{"id"?,"name","arguments"}],"usage"?}; other fields are ignored. */
void llm_plain_reply(struct llm_model *model, const json_t *value, struct llm_try *try);
/* The same with only a text. */
void llm_plain_text(struct str text, struct llm_try *try);

#endif
