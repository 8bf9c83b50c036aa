/* What the driver in the box says: JSON lines on the control channel. All of it is
 * a claim of that box, never a fact: it is capped, checked, and can only fill the
 * places of a result that claims may fill. Pure; fuzzed. */
#ifndef ENGINE_TALK_DRIVER_H
#define ENGINE_TALK_DRIVER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "contract/result.h"

#define DRIVER_LINE_MAX (16u << 20)
#define DRIVER_TOTAL_MAX (64u << 20)
#define DRIVER_RESULTS_MAX 256
#define DRIVER_RESULTS_BYTES (16u << 20) /* of all, beside what artifacts may have */
#define DRIVER_LONG (4u << 20) /* a line of more bytes can only be a result */
#define DRIVER_TEXT_MAX (64u << 10) /* of one field of an error */
#define DRIVER_NONCE_ROOM 33        /* 128 bits as text */

struct driver {
    char nonce[DRIVER_NONCE_ROOM]; /* lines without it are no answer; "": there is none */
    struct buf line;      /* the line under way */
    uint64_t total;       /* bytes taken in */
    bool deaf;            /* over a cap: the rest is ignored */
    unsigned bad_lines;   /* that were not as the protocol says, or no answer to us */
    json_t *results;      /* array of MIME bundles */
    uint64_t results_bytes, results_most; /* of their lines */
    unsigned left_out;    /* results, over a cap */
    struct result_error error;
    bool interrupted;
    int64_t fail_line, fail_code; /* bash: the last failing command; line 0: none */
    bool ready; /* it waits for its request */
    bool renewed; /* of a session: it knows that it is another process now */
    json_t *names; /* of a session, with done: what a cell did to the names */
    json_t *answer; /* to a question about names, completion or code */
    int64_t input_number; /* of the last question to the person at the other end; 0: none */
    bool input_echo;
    bool done;
    int done_code;
};
#define DRIVER_INIT \
    ((struct driver){ .line = BUF_INIT(DRIVER_LINE_MAX), .results_most = DRIVER_TOTAL_MAX })
void driver_done(struct driver *driver);
/* Begin a new question: nothing is known, and every line of the answer must hold a number that
 * nobody could know before. Whatever an interpreter, or a process that it left behind, says to an
 * earlier question is dropped. */
void driver_expect(struct driver *driver);

/* Take in bytes as they come, in any pieces. */
void driver_feed(struct driver *driver, const void *bytes, size_t len);

#endif
