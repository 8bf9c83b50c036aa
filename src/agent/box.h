/* The engine for the agent: a session for the cells, and fresh boxes for the proof. Frames of
 * docs/protocol.md over one connection; waits end at a deadline or on a cancel. */
#ifndef AGENT_BOX_H
#define AGENT_BOX_H

#include <jansson.h>

#include "agent/agent.h"
#include "agent/calls.h"
#include "base/buf.h"

struct agent_box {
    struct embed_client *engine;
    char session[64];   /* "" before agent_box_open */
    const json_t *limits; /* "request" of the task's session, or NULL */
    const struct agent_file *files;
    size_t file_count;
    int cancel_fd;
    const char *task; /* whose runs they are, for their records; NULL: nobody's */
    int64_t step;     /* of the task, from 1; 0: none */
    int64_t artifact_bytes; /* maximum of a cell's artifacts; 0: the session's limit */
    double timeout_s;     /* of a cell, from the engine; 0 before agent_box_open */
    int64_t memory_bytes; /* likewise */
    int64_t artifact_most, input_most; /* limits of the session, likewise */
    struct agent_again
        *again; /* it answers the calls of tools, and nothing is called; NULL: they are
                                  made, and noted in `heard` */
    struct agent_heard heard; /* of the last cell */
    /* As agent_watch.approve; NULL: nobody is there. */
    enum agent_decision (*approve)(void *user, json_t *call);
    void *approve_user;
    json_t *asking; /* calls that wait for a decision; the first is asked about */
    bool asked;     /* approve was called for it */
    double asked_s; /* waited for decisions on the last cell's calls */
    struct embed_artifact *artifacts; /* of the last cell or run, with content */
    size_t artifact_count;
};

bool agent_box_has_tools(const struct agent_box *box);
/* The tools of the task, as the engine tells of them (docs/protocol.md); NULL and err. */
json_t *agent_box_tools(struct agent_box *box, struct err *err);
/* Makes the session with the task's files, read-only. */
int agent_box_open(struct agent_box *box, struct err *err);
/* Runs one cell; `on_output` (may be NULL) gets the streams. Returns the complete result JSON
 * (caller's), with names_added, names_changed, names_removed; NULL and err on failure. */
json_t *agent_box_cell(struct agent_box *box, const char *code, double timeout_s,
                       void (*on_output)(void *user, const char *stream, struct str text),
                       void *user, struct err *err);
/* Checks code against the live session without running it: {"problems":[{"kind","line","column",
 * "name","message","hint"}]}; NULL and err on failure. */
json_t *agent_box_check(struct agent_box *box, const char *code, struct err *err);
/* Puts the task's files from number `from` on into the session, read-only. */
int agent_box_put(struct agent_box *box, size_t from, struct err *err);
/* A named state of the session, and the way back to it. */
int agent_box_checkpoint(struct agent_box *box, const char *name, struct err *err);
int agent_box_undo(struct agent_box *box, const char *name, struct err *err);
/* INFO of the session with names. */
json_t *agent_box_names(struct agent_box *box, struct err *err);
/* Runs `code` (python) once in a fresh box with the task's files, without a cache. Its calls of
 * tools are answered by box->again; without it there are no tools. The artifacts'
 * contents are in `box` afterwards. */
json_t *agent_box_fresh(struct agent_box *box, const char *code, double timeout_s, struct err *err);
/* The same for code of our own, in a box of the default profile: the engine has one ready. */
json_t *agent_box_look(struct agent_box *box, const char *code, double timeout_s, struct err *err);
void agent_box_close(struct agent_box *box);

#endif
