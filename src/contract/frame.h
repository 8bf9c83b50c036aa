/* The engine's socket protocol (docs/protocol.md): frames of a u32 length (little-endian) and that
 * many bytes of JSON. Pure: both ends and the fuzzers use it. */
#ifndef CONTRACT_FRAME_H
#define CONTRACT_FRAME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "contract/request.h"

#define FRAME_PROTOCOL 1
#define FRAME_HEAD 4
/* The longest frame of a client: a request and its envelope. */
#define FRAME_ASK_MAX ((size_t)REQUEST_JSON_MAX + (64u << 10))
/* The longest frame of the engine: a result with both streams at their limits, every byte spelled
 * \u00XX, plus base64. */
#define FRAME_NEWS_MAX ((size_t)3 << 29)
#define FRAME_ID_MAX 64
#define FRAME_INPUT_MAX (64u << 10)
#define FRAME_REASON_MAX 1000 /* bytes of the reason of a refused call */
#define FRAME_RECORD_LEN 26 /* "r_" or "t_" and 24 hexadecimal digits */
#define FRAME_STEP_MAX 1000000
#define FRAME_PART_MAX (4u << 20) /* bytes of an artifact in one frame */

/* Finds one complete frame at the start of `bytes`: 1 with its text, 0 if more bytes are needed, -1
 * with an err if it is longer than max. *out_len (may be NULL) is the frame's length with its head,
 * or 0 if the head is incomplete. */
int frame_next(struct str bytes, size_t max, struct str *out_text, size_t *out_len,
               struct err *err);
/* Appends a value as a frame. -1 if it exceeds the buffer's limit or max. */
int frame_add(struct buf *to, const json_t *value, size_t max);
/* The same for {"id": id, "result": json}, whose JSON is text already. */
int frame_add_result(struct buf *to, const char *id, struct str json, size_t max);

enum frame_op { FRAME_RUN, FRAME_CANCEL, FRAME_INTERRUPT, FRAME_PING, FRAME_INFO,
                FRAME_SESSION, FRAME_INPUT, FRAME_TOOL_RESULT, FRAME_TOOLS, FRAME_APPROVE,
                FRAME_OPS };

/* A client's frame. The strings live in root. */
struct frame_ask {
    json_t *root;
    enum frame_op op;
    struct str id; /* run, cancel, interrupt, tools; 1 to FRAME_ID_MAX bytes */
    json_t *request; /* run, session: the contract's request, not yet checked */
    const json_t *stdin_base64; /* run: bytes for the code's stdin, or NULL */
    bool events, content;
    bool input; /* run: the client answers when the code asks for input */
    bool outcomes; /* run: `tool_result` events have outcomes of any length */
    bool approves; /* run: the client can ask a person whether a call may be made */
    struct str text; /* input: a line with its newline, at most FRAME_INPUT_MAX bytes */
    bool end; /* input: there is no more */
    int64_t call; /* tool_result, approve: the number of the call */
    json_t *names; /* tools: names and patterns, texts; NULL: all */
    json_t *outcome; /* tool_result: {"value"} or {"error"}, not yet checked */
    bool allow; /* approve: the call may be made */
    struct str reason; /* approve: why not; STR_NONE: not said */
    /* run, for its record: the run that it repeats; the task that it serves, and its step. */
    char replay_of[FRAME_RECORD_LEN + 1], task[FRAME_RECORD_LEN + 1]; /* "": none */
    int64_t step; /* 0: none */
};
#define FRAME_ASK_INIT ((struct frame_ask){ .op = FRAME_OPS })
void frame_ask_done(struct frame_ask *ask);
#define own_frame_ask attr_cleanup(frame_ask_done) struct frame_ask

/* Reads and checks a client's frame. On failure op and id are filled as far as known, so that the
 * answer can name the run. */
int frame_ask_read(struct str text, struct frame_ask *out, struct err *err);

/* Session actions, except cells. */
enum frame_do {
    FRAME_DO_NEW, FRAME_DO_LIST, FRAME_DO_INFO, FRAME_DO_END, FRAME_DO_PUT, FRAME_DO_GET,
    FRAME_DO_FILES, FRAME_DO_CHECKPOINT, FRAME_DO_UNDO, FRAME_DO_FORK, FRAME_DO_COMPLETE,
    FRAME_DO_CHECK, FRAME_DO_INTERRUPT, FRAME_DO_REMOVE, FRAME_DO_DROP, FRAME_DOS
};
#define FRAME_NAME_MAX 64 /* bytes of a checkpoint's name */
#define FRAME_LEVELS_MAX 8 /* undo_levels */
#define FRAME_LIFE_MAX_S (7 * 86400)
#define FRAME_GET_MAX ((int64_t)1 << 30) /* bytes of one get */
#define FRAME_OFFSET_MAX ((int64_t)1 << 62)

/* Views into the ask. */
struct frame_session {
    enum frame_do what;
    const char *session; /* all but new and list */
    json_t *request; /* new, or NULL */
    json_t *files; /* put: an array */
    int64_t upload; /* put: the upload that this part continues; 0: none; drop: its number */
    bool more; /* put: another part of the file follows */
    int64_t ttl_s, life_s, undo_levels; /* new; -1: the default */
    bool names; /* info */
    const char *path, *name, *to; /* get, remove; checkpoint; undo (NULL: the last cell) */
    int64_t offset, length; /* get: of the part that is wanted; length 0: all the rest */
    bool is_part; /* get: one of the two was given */
    bool is_heir; /* set by the door that keeps an expired session's files, never by a frame */
    struct str code; /* complete, check */
    int64_t cursor;
};
/* Reads the rest of a frame whose op is FRAME_SESSION. */
int frame_session_read(const struct frame_ask *ask, struct frame_session *out, struct err *err);
/* Refuses a member of a frame: -1. */
int frame_refuse(const char *field, const json_t *value, const char *bound, const char *why,
                 struct err *err);
extern const char *const frame_do_names[FRAME_DOS];

enum frame_kind {
    FRAME_OTHER, /* an event or op unknown to this version: ignored */
    FRAME_HELLO,
    FRAME_START,
    FRAME_STDOUT,
    FRAME_STDERR,
    FRAME_VALUE, /* a value that the code shows */
    FRAME_CLEAR, /* the values so far are gone */
    FRAME_LOST,
    FRAME_ASKS, /* the code waits for a line of input */
    FRAME_CALL, /* the code calls a tool: the client answers */
    FRAME_APPROVAL, /* a call waits until the client allows or refuses it */
    FRAME_CALLED, /* a call has its outcome */
    FRAME_ARTIFACT,
    FRAME_SESSION_NEWS, /* of no run: a session's event between its cells */
    FRAME_RESULT,
    FRAME_ERROR,
    FRAME_ANSWER, /* to a session action */
};

/* A frame of the engine. The strings live in root or in owned. */
struct frame_news {
    json_t *root;
    enum frame_kind kind;
    struct str id; /* empty: about the connection, not a run */
    char *owned;
    struct str bytes; /* stdout, stderr, artifact */
    uint64_t index; /* value: its place in the results */
    bool updates; /* value: it replaces the one at that place */
    json_t *data; /* value: its forms */
    struct str path; /* artifact, raw bytes */
    char *path_owned;
    uint64_t offset, size_bytes; /* artifact: where `bytes` begin, and the file's size */
    const char *sha256;
    int64_t protocol; /* hello */
    bool echo; /* asks: typed characters may be shown */
    json_t *body; /* result: the result; error: the error object; answer: the whole frame */
};
#define FRAME_NEWS_INIT ((struct frame_news){ .kind = FRAME_OTHER })
void frame_news_done(struct frame_news *news);
#define own_frame_news attr_cleanup(frame_news_done) struct frame_news

int frame_news_read(struct str text, struct frame_news *out, struct err *err);

#endif
