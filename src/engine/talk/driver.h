/* The driver's JSON lines on the control channel. All are claims of the box, never facts: capped,
 * checked, and only able to fill those fields of a result that claims may fill. Pure; fuzzed. */
#ifndef ENGINE_TALK_DRIVER_H
#define ENGINE_TALK_DRIVER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "contract/result.h"

#define DRIVER_LINE_MAX (16u << 20)
#define DRIVER_SEPARATOR '\x1e' /* ends a line, like a newline; no JSON has it */
#define DRIVER_TOTAL_MAX (64u << 20)
#define DRIVER_RESULTS_MAX 256
#define DRIVER_DISPLAY_ID_MAX 200
#define DRIVER_RESULTS_BYTES (16u << 20) /* of all, beyond those of artifacts */
#define DRIVER_LONG (4u << 20) /* a longer line can only be a result */
#define DRIVER_TEXT_MAX (64u << 10) /* of one field of an error */
#define DRIVER_TOOL_MAX 64 /* bytes of a tool's name */
#define DRIVER_PARTS_MAX (2u << 20) /* of one call's arguments, far above what it may have */
#define DRIVER_NONCE_ROOM 33        /* 128 bits as text */

/* Lines with a place in the order of the output. */
enum driver_word {
    DRIVER_RESULT,  /* a new one, the last of the results */
    DRIVER_UPDATED, /* that result has other data now */
    DRIVER_CLEARED, /* there are no results any more */
    DRIVER_ERROR,
    /* The code calls a tool (the index is the bytes of the line), or waits for it no longer. */
    DRIVER_CALL,
    DRIVER_CALL_OVER,
};

struct driver {
    void (*heard)(struct driver *driver, enum driver_word word, size_t index); /* or NULL */
    char nonce[DRIVER_NONCE_ROOM]; /* lines without it are not answers; "": none */
    struct buf line;      /* the incomplete line */
    uint64_t total;       /* bytes received */
    bool deaf;            /* over a cap: the rest is ignored */
    unsigned bad_lines;   /* that break the protocol, or do not answer us */
    json_t *results;      /* array of MIME bundles */
    json_t *about;        /* for each of them: {"display_id","metadata","main"}, none required */
    json_t *text;         /* the plain text of the main one, or NULL */
    bool clear_next;      /* the next result replaces all earlier ones */
    uint32_t result_bytes[DRIVER_RESULTS_MAX];
    uint64_t results_bytes, results_most; /* of their lines */
    unsigned left_out;    /* results over a cap */
    struct result_error error;
    bool interrupted;
    int64_t fail_line, fail_code; /* bash: the last failing command; line 0: none */
    bool ready; /* waits for its request */
    bool renewed; /* of a session: knows that it is a copy now */
    bool tasks; /* of a session: its event loop waits for the line `go` */
    json_t *names; /* of a session, with done: a cell's changes to the names */
    json_t *answer; /* to a question about names, completion or code */
    int64_t input_number; /* of the last question to the person at the client; 0: none */
    bool input_echo;
    bool may_call;       /* the code has tools */
    int64_t call_number; /* of the last call */
    int64_t part_number; /* of the call that `parts` belong to */
    struct buf parts;    /* bash: the arguments of a call whose line would be too long */
    json_t *call; /* while DRIVER_CALL is told: {"number","tool","arguments","line"}, or "fault" */
    int64_t call_over; /* while DRIVER_CALL_OVER is told: its number; 0: all */
    bool done;
    int done_code;
};
#define DRIVER_INIT \
    ((struct driver){ .line = BUF_INIT(DRIVER_LINE_MAX), .parts = BUF_INIT(DRIVER_PARTS_MAX), \
                      .results_most = DRIVER_TOTAL_MAX })
void driver_done(struct driver *driver);
/* Begins a new question: forgets everything, and requires an unpredictable number in every line of
 * the answer. Late answers of the interpreter, or of a process it left behind, are dropped. */
void driver_expect(struct driver *driver);

void driver_feed(struct driver *driver, const void *bytes, size_t len);

#endif
