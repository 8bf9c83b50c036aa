/* The state machine of a session. Its states are called stages here: a state, elsewhere, is the
 * content of an interpreter and its files after a cell. docs/sessions-internals.md shows the same
 * tables; a test compares them.
 *
 * A session is in one stage, and waits for one event there. If that step fails or exceeds its
 * limit, session->step.err is set. While an action runs the stage is BUSY; the action begins the
 * next step or calls session_next. ENDED is the last stage: the engine frees the session soon.
 *
 * The steps of starting an interpreter, keeping a state and going back to one are shared. Their
 * end is an event for the task that the session works on. */
#ifndef ENGINE_SESSION_SESSION_TABLE_H
#define ENGINE_SESSION_SESSION_TABLE_H

#define SESSION_STEP_MS 15000 /* for one step */
#define SESSION_LOOK_MS 10    /* until the next look for a zygote */
#define SESSION_NO_MS 0

/* stage, event, limit, action, action after a failure, what the session waits for. The actions are
 * functions with the prefix session_. */
#define SESSION_STAGES(X)                                                                          \
    X(IDLE, TURN, NO_MS, next, next, "a job")                                                      \
    /* Starting an interpreter: */                                                                 \
    X(BUILDING, READY, STEP_MS, start_begin, start_done, "the broker to build the box")            \
    X(LOOKING, TIME, LOOK_MS, start_again, start_done, "a zygote that gets ready")                 \
    X(STARTING, STARTED, STEP_MS, start_on_started, start_done, "the broker to start it")          \
    X(GREETING, WORD, STEP_MS, start_done, start_done, "the first word of the interpreter")        \
    X(EMPTYING, SWEPT, STEP_MS, start_on_swept, start_done, "the broker to kill its processes")    \
    /* Keeping a state: */                                                                         \
    X(PARKING, PARKED, STEP_MS, keep_on_parked, keep_failed, "the keeper to copy the interpreter") \
    X(KEEP_PORTER, PORTER, STEP_MS, keep_on_porter, keep_files_failed, "a porter")                 \
    X(SNAPPING, FILES, STEP_MS, keep_on_snapped, keep_files_failed, "a snapshot of the files")     \
    X(RESNAPPING, FILES, STEP_MS, keep_on_resnapped, keep_put_failed, "a snapshot with files put") \
    /* Going back to a state: */                                                                   \
    X(PREPARING, PREPARED, STEP_MS, back_on_prepared, back_refused, "the keeper to try a copy")    \
    X(SWEEPING, SWEPT, STEP_MS, back_on_swept, back_failed, "the broker to kill its processes")    \
    X(WAKING, AWAKE, STEP_MS, back_on_awake, back_failed, "the keeper to wake a copy")             \
    X(BACK_PORTER, PORTER, STEP_MS, back_on_porter, back_failed, "a porter")                       \
    X(RESTORING, FILES, STEP_MS, back_on_restored, back_failed, "the files of the snapshot")       \
    X(BACK_NOTING, FILES, STEP_MS, back_on_noted, back_failed, "a list of the files")              \
    /* A cell: */                                                                                  \
    X(QUEUED, ADMITTED, NO_MS, cell_on_admitted, cell_go, "the engine to admit the cell")          \
    X(IN_PORTER, PORTER, STEP_MS, cell_on_in_porter, cell_go, "a porter")                          \
    X(IN_FILES, FILES, STEP_MS, cell_go, cell_go, "the files of the cell to be put")               \
    X(RUNNING, DONE, NO_MS, cell_on_done, cell_on_done, "the code of the cell")                    \
    X(OUT_PORTER, PORTER, STEP_MS, cell_on_out_porter, cell_on_collected, "a porter")              \
    X(OUT_FILES, FILES, STEP_MS, cell_on_collected, cell_on_collected, "the artifacts")            \
    /* An ask: */                                                                                  \
    X(ANSWERING, WORD, STEP_MS, ask_on_answer, ask_failed, "the answer of the interpreter")        \
    X(PUT_PORTER, PORTER, STEP_MS, ask_on_put_porter, ask_failed, "a porter")                      \
    X(PUTTING, FILES, STEP_MS, ask_on_put, ask_failed, "files to be put")                          \
    X(PUTTING_PART, FILES, STEP_MS, ask_on_part, ask_failed, "a part of a file to be put")         \
    X(PUT_NOTING, FILES, STEP_MS, ask_on_noted, ask_failed, "a list of the files")                 \
    X(REMOVING, FILES, STEP_MS, ask_on_put, ask_failed, "a file to be removed")                    \
    X(GET_PORTER, PORTER, STEP_MS, ask_on_get_porter, ask_failed, "a porter")                      \
    X(GETTING, FILES, STEP_MS, ask_on_got, ask_failed, "the content of a file")                    \
    X(LISTING, FILES, STEP_MS, ask_on_listed, ask_failed, "a list of the files")                   \
    /* A fork; SENDING is of the parent, the others are of the child: */                           \
    X(SENDING, FILES, STEP_MS, fork_on_sent, fork_on_sent, "the porter to send a snapshot")        \
    X(FORK_PORTER, PORTER, STEP_MS, fork_on_porter, fork_failed, "a porter")                       \
    X(FORK_LINE, TURN, NO_MS, fork_on_turn, fork_failed, "a turn in the parent's line")            \
    X(RECEIVING, FILES, STEP_MS, fork_on_received, fork_failed, "the snapshot that is sent")       \
    X(FORK_RESTORING, FILES, STEP_MS, fork_on_restored, fork_failed, "the files of the snapshot")  \
    X(FORK_NOTING, FILES, STEP_MS, fork_on_noted, fork_failed, "a list of the files")              \
    X(FORKING, FORKED_INTO, STEP_MS, fork_on_memory, fork_failed, "the keeper to copy the memory") \
    X(RENEWING, WORD, STEP_MS, fork_on_renewed, fork_failed, "the child's interpreter to answer")

/* stage, event, action: events that a stage does not wait for, but acts on. All others are only
 * noted (session_step.c). A row of a stage goes before a row of ANY. */
#define SESSION_EXTRAS(X)                                                                          \
    X(IDLE, EXITED, mend)                                                                          \
    X(IDLE, LOST, protect)                                                                         \
    X(RUNNING, EXITED, cell_on_news)                                                               \
    X(RUNNING, STAT, cell_on_news)                                                                 \
    X(RUNNING, SWEPT, cell_on_news)                                                                \
    X(STARTING, FAILED, start_on_failed)                                                           \
    X(GREETING, EXITED, fail_exited)                                                               \
    X(ANSWERING, EXITED, fail_exited)                                                              \
    X(RENEWING, EXITED, fail_exited)                                                               \
    X(ANY, FAILED, fail_refused)                                                                   \
    X(ANY, TIME, fail_late)                                                                        \
    X(ANY, EMPTY, on_empty)

/* task, end, action: an interpreter waits (UP), the state is kept or cannot be (KEPT), the session
 * is back in an earlier state or cannot go back (BACK). */
#define SESSION_TASKS(X)                                                                           \
    X(NEW, UP, on_opened)                                                                          \
    X(FORK, UP, fork_on_opened)                                                                    \
    X(RETURN, UP, back_on_up)                                                                      \
    X(CELL, UP, cell_on_anew)                                                                      \
    X(CELL, BACK, cell_on_back)                                                                    \
    X(MEND, UP, mend_on_anew)                                                                      \
    X(MEND, BACK, mend_on_back)                                                                    \
    X(UNDO, BACK, ask_on_undone)                                                                   \
    X(UNDO_AGAIN, BACK, ask_on_not_undone)                                                         \
    X(KEEP, KEPT, next)                                                                            \
    X(CHECKPOINT, KEPT, ask_on_kept)

#endif
