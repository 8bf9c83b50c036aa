/* The result of a run, as one struct and as the contract's JSON. Pure. Kernel facts and box claims
 * stay apart until they meet here. */
#ifndef CONTRACT_RESULT_H
#define CONTRACT_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "contract/limits.h"

/*    id             name             exit  error kind  in limits_hit as */
#define RESULT_STATUSES(X)                          \
    X(OK, "ok", -1)                                 \
    X(ERROR, "error", -1)                           \
    X(TIMEOUT, "timeout", 124)                      \
    X(CPU_LIMIT, "cpu_limit", 152)                  \
    X(MEMORY_LIMIT, "memory_limit", 137)            \
    X(OUTPUT_LIMIT, "output_limit", 126)            \
    X(PIDS_LIMIT, "pids_limit", 126)                \
    X(DISK_LIMIT, "disk_limit", 126)                \
    X(DENIED, "denied", 126)                        \
    X(KILLED, "killed", -2)                         \
    X(INTERRUPTED, "interrupted", 130)              \
    X(INTERNAL, "internal", 125)
/* exit -1: the code's own; -2: 128 + signal */

enum result_status {
#define X(id, name, exit_code) RESULT_##id,
    RESULT_STATUSES(X)
#undef X
};

/* error.kind */
#define RESULT_ERRORS(X) \
    X(SYNTAX, "syntax") X(EXCEPTION, "exception") X(IMPORT, "import") X(TIMEOUT, "timeout") \
    X(CPU, "cpu") X(MEMORY, "memory") X(DISK, "disk") X(PIDS, "pids") X(OUTPUT, "output") \
    X(DENIED, "denied") X(SIGNAL, "signal") X(EXIT, "exit") X(INTERNAL, "internal")

enum result_error_kind {
    RESULT_E_NONE,
#define X(id, name) RESULT_E_##id,
    RESULT_ERRORS(X)
#undef X
};

struct result_error {
    enum result_error_kind kind; /* RESULT_E_NONE: no error, all else empty */
    char *name;      /* "ZeroDivisionError"; each of these heap or NULL */
    char *message;
    int64_t line;    /* 0: unknown */
    int64_t column;  /* 0: unknown */
    char *snippet;
    char *traceback;
    json_t *frames;  /* of the code, innermost last: [{"function","line","text"}]; or NULL */
    json_t *values;  /* of names on the failing line: [{"name","text","type"}]; or NULL */
    char *hint;
};

struct result_stream {
    struct buf head;      /* first bytes, within the cap */
    struct buf tail;      /* the bytes after head: its last tail_cap bytes count */
    size_t tail_cap;
    uint64_t total_bytes; /* every byte counted */
    bool truncated;
};

/* Portions of the streams in `outputs`; the rest of each stream is one more. */
#define RESULT_OUTPUTS_MAX 1000

enum result_output_kind {
    RESULT_OUT_STDOUT,
    RESULT_OUT_STDERR,
    RESULT_OUT_RESULT,
    RESULT_OUT_ERROR,
};

struct result_outputs {
    struct result_output {
        enum result_output_kind kind;
        bool unordered;    /* the rest of a stream past the maximum */
        uint64_t from, to; /* of a stream: bytes; of a result: `from` is its index */
    } *at;
    size_t count, portions;
    struct result_outputs_last {
        size_t index;     /* of the stream's last portion */
        unsigned missing; /* bytes of the character that it ends in */
        bool rest;        /* it holds all that follows */
    } last[2]; /* stdout, stderr */
};

#define RESULT_INLINE_MAX (8u << 20)

struct result_artifact {
    char *path; /* bytes */
    size_t path_len;
    uint64_t size_bytes;
    char sha256[65];
    const char *mime;
    char *content; /* heap, size_bytes long, for -o; in the JSON if the request asked for it */
    unsigned *shares; /* how many artifacts share the content; NULL: it is this one's alone */
};

struct result_skipped {
    char *path; /* bytes; "" in the row that counts the rest */
    size_t path_len;
    char *reason;
};

/* Of a run on a folder of the caller: what its layer holds. For the command line alone, in no
 * JSON. */
enum result_layer_kind {
    RESULT_LAYER_FILE, RESULT_LAYER_LINK,
    RESULT_LAYER_DIR,   /* shows the folder's one below it, if there is one */
    RESULT_LAYER_FRESH, /* hides the folder's one */
    RESULT_LAYER_GONE,  /* the folder's entry is removed */
};
struct result_layer {
    char *path; /* bytes */
    size_t path_len;
    enum result_layer_kind kind;
    unsigned mode;
    char *content; /* heap: a file's bytes, a link's target */
    uint64_t size_bytes;
    char sha256[65]; /* of a file */
};

#define RESULT_SKIPPED_MAX 256 /* rows; one more row counts the rest */

struct result_denied {
    const char *call;
    uint64_t count;
};

struct result_facts {
    bool started;         /* the occupant was exec'd */
    uint64_t oom_kills;
    /* RESULT_OK, or the reason of our kill: TIMEOUT CPU_LIMIT OUTPUT_LIMIT; also INTERRUPTED
     * (second stop request) and INTERNAL (we failed and gave up the run). */
    enum result_status killed_for;
    bool interrupt_sent;  /* we sent SIGINT */
    bool timed_out;       /* its time was over, even if it then ended by our interrupt */
    bool exited;          /* by exit, else by signal */
    int exit_code;
    int signal;
    bool driver_exception; /* box claim: an uncaught exception */
    bool driver_no_memory; /* box claim: an allocation failed at an rlimit */
    bool driver_interrupted; /* box claim: the exception was the interrupt */
    uint64_t pids_hits;
    bool disk_full;       /* no block or no inode was free at the end */
    bool stdout_hit;      /* more bytes than stdout_bytes */
    bool stderr_hit;
    bool artifact_bytes_hit; /* a file was skipped at artifact_bytes */
    bool artifact_files_hit;
};

/* The session's state after the run. */
#define RESULT_STATES(X) \
    X(NONE, "none") X(KEPT, "kept") X(ROLLED_BACK, "rolled_back") X(RESTORED, "restored") \
    X(LOST, "lost")

enum result_state {
#define X(id, name) RESULT_STATE_##id,
    RESULT_STATES(X)
#undef X
};

struct result {
    char run[32]; /* "r_..." */
    enum result_status status;
    int exit_code;        /* -1: null */
    int signal;           /* 0: null */
    json_t *limits_hit;   /* array of names */
    struct result_stream out, err_stream;
    json_t *results;      /* array of MIME bundles: validated box claims */
    json_t *about;        /* for each of them: {"display_id","metadata","main"}; or NULL */
    json_t *text;         /* the main one's plain text; or NULL */
    struct result_outputs outputs; /* streams, results and the error in their order */
    struct result_error error;
    struct result_denied *denied;
    size_t denied_count;
    struct result_artifact *artifacts;
    size_t artifact_count;
    bool inline_artifacts; /* the JSON holds their bytes, RESULT_INLINE_MAX of all */
    struct result_skipped *skipped;
    size_t skipped_count;
    struct result_layer *layer; /* sorted by path */
    size_t layer_count;
    bool layer_cut; /* not all of it was looked at */
    uint64_t skipped_more; /* how many files the last row counts */
    double queue_ms, start_ms, wall_ms, collect_ms, cpu_ms;
    int64_t memory_peak_bytes; /* -1: unknown, null */
    bool warm;
    const char *tier;
    char *image;
    json_t *walls, *missing; /* arrays of names */
    char code_sha256[65], inputs_sha256[65];
    char *image_digest;
    bool has_seed; /* else null */
    uint32_t seed;
    struct limits limits;
    char session[32]; /* "s_...", or empty */
    int64_t cell;     /* 0: null */
    int64_t base_cell; /* the cell that it began from the state of; in no JSON */
    enum result_state state;
    int64_t state_cell; /* rolled back: that state's cell; 0: the start */
    json_t *lost;       /* rolled back: names of what is lost; or NULL */
    json_t *late;       /* of a cell: output of earlier cells since their ends; or NULL */
    json_t *calls;      /* of tools, in the order of their ends; NULL: it had no tools */
    uint64_t calls_more, calls_refused; /* that are not listed; that were refused */
    struct buf calls_whole; /* JSON for the record (store/records/look.h); empty: none */
    bool recorded;      /* it is in the store */
    double cached_age_s; /* since it ran; negative: it ran for this request */
    json_t *names; /* {"added","changed","removed","more"}: a validated box claim; or NULL */
};

/* "the state after cell 3", "the state at the start". */
#define RESULT_STATE_TEXT 48
const char *result_state_text(int64_t cell, char out[RESULT_STATE_TEXT]);

void result_init(struct result *result);
void result_done(struct result *result);
#define own_result attr_cleanup(result_done) struct result

/* Fills status, exit_code, signal and limits_hit from the facts, in the contract's order. */
void result_decide(struct result *result, const struct result_facts *facts);
/* After result_decide: makes the error agree with the status (a timeout's kind is "timeout", ...);
 * keeps a driver's exception if the status comes from it. */
void result_explain(struct result *result, const struct result_facts *facts);

/* Sorted by the bytes of the path. Takes over content (heap or NULL); computes sha256 from it if
 * that is NULL. */
void result_add_artifact(struct result *result, struct str path, char *content, uint64_t size,
                         const char *sha256);
/* For a list of one's own. Those that share a content belong to one thread. */
void result_artifact_done(struct result_artifact *artifact);
void result_artifacts_free(struct result_artifact *artifacts, size_t count);
/* A list with the same artifacts; their contents are shared. NULL for none. */
struct result_artifact *result_artifacts_share(struct result_artifact *from, size_t count);
void result_add_skipped(struct result *result, struct str path, const char *reason);
/* At the end of the list; content and sum stay empty. */
struct result_layer *result_add_layer(struct result *result, struct str path,
                                      enum result_layer_kind kind, unsigned mode);
/* call: a name that outlives the result; counts of the same name are added. */
void result_add_denied(struct result *result, const char *call, uint64_t count);

/* Adds bytes of stdout or stderr within the cap: head three quarters, tail the rest. */
void result_stream_add(struct result_stream *stream, size_t cap, const void *bytes, size_t len);
/* The text for a person or model: head, a line with the number of bytes left out, tail. Appended to
 * *out, which has room for result_stream_room() bytes. Cuts never split a UTF-8 sequence. */
/* The bytes that are kept. */
void result_stream_parts(const struct result_stream *stream, struct str *out_head,
                         struct str *out_tail);
size_t result_stream_room(const struct result_stream *stream);
void result_stream_text(const struct result_stream *stream, struct buf *out);

/* Adds to the end of `outputs`. Bytes of a stream: before result_stream_add takes them. */
void result_outputs_add(struct result *result, bool is_err, struct str bytes);
void result_outputs_result(struct result *result, size_t index);
void result_outputs_error(struct result *result);
void result_outputs_clear(struct result *result);

const char *result_status_name(enum result_status status);
const char *result_state_name(enum result_state state);
const char *result_error_name(enum result_error_kind kind);
int result_exit_code(const struct result *result);
/* MIME type by file name ending; "application/octet-stream" for others. */
const char *result_mime(struct str path);

/* Every member is always present, in the contract's order. Text that is not UTF-8 comes with its
 * exact bytes: "stdout_base64", "stderr_base64", "path_base64". */
json_t *result_to_json(const struct result *result);
/* The same as text, appended. It ends in result_tail's bytes, so that the text of a stored result
 * can be told as another one: cut off the tail, append a new one. -1: longer than the buffer may
 * be. */
int result_to_text(const struct result *result, struct buf *out);
#define RESULT_TAIL_ROOM 96
struct str result_tail(bool recorded, double cached_age_s, char out[RESULT_TAIL_ROOM]);
/* {"error":{"kind","field","value","bound","message","hint"}}: every door's refusal. */
json_t *result_refusal(const struct err *err);
/* Reads the object inside "error" back; missing members stay empty. */
void result_refusal_read(const json_t *error, struct err *out);

/* The opposite of result_to_json, for a client: the members for people and for the exit code.
 * Artifacts have no content. The result has views into `json`, which must outlive it. -1: not a
 * result. */
int result_from_json(json_t *json, struct result *out, struct err *err);

#endif
