/* Wires: write a conversation for a kind of server, and read its reply, as a stream of events or as
 * one JSON. Pure, except for the watcher. Unknown events, fields and blocks are ignored; blocks
 * that must be sent back are kept raw. */
#ifndef LLM_WIRE_H
#define LLM_WIRE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"
#include "llm/llm.h"
#include "llm/reply.h"

#define LLM_USUAL_OUTPUT_TOKENS 32000

/* A model's properties that change its requests. */
struct llm_dialect {
    const char *model;
    bool new_names; /* Chat: "developer" and "max_completion_tokens", for OpenAI */
    bool seals; /* Responses: encrypted reasoning, to be sent back */
};

struct llm_piece {
    int64_t index; /* the server's index; -1: none */
    json_t *block; /* as the server began it; NULL: none */
    struct buf text; /* text, thinking, or the JSON of arguments */
    struct buf seal; /* a signature */
    struct buf id, name; /* of a call */
    bool ended;
};

struct llm_reader {
    const struct llm_wire *wire;
    const struct llm_watch *watch;
    struct llm_reply *reply; /* its outcome is not LLM_OK after a failure */
    unsigned *made_ids;
    struct llm_piece *pieces;
    size_t piece_count;
    size_t bytes; /* of content */
    size_t shown; /* bytes that were only shown */
    bool began; /* bytes of a reply have come */
    bool finished; /* the model is; counts may still come */
    bool ended; /* the server said that the reply is complete */
    bool filtered; /* declined by the model or a filter */
    bool overflowed; /* the context was too small */
};

struct llm_wire {
    const char *name;
    const char *path; /* after the base URL */
    json_t *(*encode)(const struct llm_dialect *dialect, const struct llm_request *request);
    /* One event; `data` is an object. */
    void (*event)(struct llm_reader *reader, const json_t *data);
    /* The complete reply of a server that does not stream. */
    void (*whole)(struct llm_reader *reader, const json_t *body);
    /* Appends the parts of an ended reply to `parts`; -1 if a call is malformed. */
    int (*collect)(struct llm_reader *reader, json_t *parts);
};

extern const struct llm_wire llm_wire_anthropic, llm_wire_responses, llm_wire_chat;
const struct llm_wire *llm_wire_find(struct str name);

/* ---- for the source of the bytes ---- */
void llm_reader_start(struct llm_reader *reader, const struct llm_wire *wire,
                      const struct llm_watch *watch, struct llm_reply *reply, unsigned *made_ids);
void llm_reader_event(struct llm_reader *reader, struct str data);
void llm_reader_whole(struct llm_reader *reader, struct str body);
/* No more bytes: completes or fails the reply. */
void llm_reader_end(struct llm_reader *reader);
void llm_reader_done(struct llm_reader *reader);

/* ---- for the wires ---- */
/* The piece of that index, made if missing; NULL and a failed reply past the cap. */
struct llm_piece *llm_reader_piece(struct llm_reader *reader, int64_t index);
struct llm_piece *llm_reader_new_piece(struct llm_reader *reader, int64_t index);
/* Appends content; past the cap the reply fails. */
void llm_reader_add(struct llm_reader *reader, struct buf *to, struct str text);
/* The same for text that a person may watch. */
void llm_reader_say(struct llm_reader *reader, struct buf *to, struct str text);
/* Only shown, as it comes again as content; the same cap. */
void llm_reader_show(struct llm_reader *reader, struct str text, bool is_text);

/* Classifies a server's error object, for HTTP status `status` (0: inside a stream). */
void llm_error_judge(struct llm_reply *reply, int status, const json_t *body);

/* "data:MIME;base64,..." of an image part. */
json_t *llm_data_url(const json_t *image);
json_t *llm_joined_text(const json_t *parts);

#endif
