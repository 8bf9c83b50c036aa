/* The state machine of a session. Its states are called stages here: a state, elsewhere, is the
 * content of an interpreter and its files after a cell. docs/sessions-internals.md shows the same
 * tables; a test compares them.
 *
 * A session is in one stage, and waits for one event there. If that step fails or exceeds its
 * limit, session->step.err is set: the step of an ask ends in session_ask_failed, that of a fork's
 * child in session_fork_failed, all others in the same action. While an action runs the stage is
 * BUSY; the action begins the next step or calls session_next. ENDED is the last stage: the engine
 * frees the session soon.
 *
 * The steps of starting an interpreter, keeping a state and going back to one are shared. Their
 * end is an event for the task that the session works on. */
#ifndef ENGINE_SESSION_SESSION_TABLE_H
#define ENGINE_SESSION_SESSION_TABLE_H

#define SESSION_STEP_MS 15000 /* for one step */
#define SESSION_LOOK_MS 10    /* until the next look for a zygote */
#define SESSION_NO_MS 0

/* stage, event, limit, action, what the session waits for */
#define SESSION_OWN_STAGES(X)                                                                      \
    X(IDLE, TURN, NO_MS, session_next, "a job")                                                    \
    /* Starting an interpreter: */                                                                 \
    X(BUILDING, READY, STEP_MS, session_start_on_built, "the broker to build the box")             \
    X(LOOKING, TIME, LOOK_MS, session_start_again, "a zygote that gets ready")                     \
    X(STARTING, STARTED, STEP_MS, session_start_on_started, "the broker to start the interpreter") \
    X(GREETING, WORD, STEP_MS, session_start_on_ready, "the first word of the interpreter")        \
    X(EMPTYING, SWEPT, STEP_MS, session_start_on_swept, "the broker to kill what is in the box")   \
    /* Keeping a state: */                                                                         \
    X(PARKING, PARKED, STEP_MS, session_keep_on_parked, "the keeper to copy the interpreter")      \
    X(KEEP_PORTER, PORTER, STEP_MS, session_keep_on_porter, "a porter")                            \
    X(SNAPPING, FILES, STEP_MS, session_keep_on_snapped, "a snapshot of the files")                \
    X(RESNAPPING, FILES, STEP_MS, session_keep_on_resnapped, "a snapshot with the files put")      \
    /* Going back to a state: */                                                                   \
    X(PREPARING, PREPARED, STEP_MS, session_back_on_prepared, "the keeper to try a copy")          \
    X(SWEEPING, SWEPT, STEP_MS, session_back_on_swept, "the broker to kill what is in the box")    \
    X(WAKING, AWAKE, STEP_MS, session_back_on_awake, "the keeper to wake a copy")                  \
    X(BACK_PORTER, PORTER, STEP_MS, session_back_on_porter, "a porter")                            \
    X(RESTORING, FILES, STEP_MS, session_back_on_restored, "the files of the snapshot")            \
    X(BACK_NOTING, FILES, STEP_MS, session_back_on_noted, "a list of the files")                   \
    /* A cell: */                                                                                  \
    X(QUEUED, ADMITTED, NO_MS, session_cell_on_admitted, "the engine to admit the cell")           \
    X(IN_PORTER, PORTER, STEP_MS, session_cell_on_in_porter, "a porter")                           \
    X(IN_FILES, FILES, STEP_MS, session_cell_go, "the files of the cell to be put")                \
    X(RUNNING, DONE, NO_MS, session_cell_on_done, "the code of the cell")                          \
    X(OUT_PORTER, PORTER, STEP_MS, session_cell_on_out_porter, "a porter")                         \
    X(OUT_FILES, FILES, STEP_MS, session_cell_on_collected, "the artifacts of the cell")           \
    /* The parent of a fork: */                                                                    \
    X(SENDING, FILES, STEP_MS, session_fork_on_sent, "the porter to send a snapshot to the child")

/* Of an ask: */
#define SESSION_ASK_STAGES(X)                                                                      \
    X(ANSWERING, WORD, STEP_MS, session_ask_on_answer, "the answer of the interpreter")            \
    X(PUT_PORTER, PORTER, STEP_MS, session_ask_on_put_porter, "a porter")                          \
    X(PUTTING, FILES, STEP_MS, session_ask_on_put, "files to be put")                              \
    X(PUTTING_PART, FILES, STEP_MS, session_ask_on_part, "a part of a file to be put")             \
    X(PUT_NOTING, FILES, STEP_MS, session_ask_on_noted, "a list of the files")                     \
    X(GET_PORTER, PORTER, STEP_MS, session_ask_on_get_porter, "a porter")                          \
    X(GETTING, FILES, STEP_MS, session_ask_on_got, "the content of a file")                        \
    X(LISTING, FILES, STEP_MS, session_ask_on_listed, "a list of the files")

/* Of a fork's child: */
#define SESSION_FORK_STAGES(X)                                                                     \
    X(FORK_PORTER, PORTER, STEP_MS, session_fork_on_porter, "a porter")                            \
    X(FORK_LINE, TURN, NO_MS, session_fork_on_turn, "a turn in the parent's line")                 \
    X(RECEIVING, FILES, STEP_MS, session_fork_on_received, "the snapshot of the parent's porter")  \
    X(FORK_RESTORING, FILES, STEP_MS, session_fork_on_restored, "the files of the snapshot")       \
    X(FORK_NOTING, FILES, STEP_MS, session_fork_on_noted, "a list of the files")                   \
    X(FORKING, FORKED_INTO, STEP_MS, session_fork_on_memory, "the keeper to carry the memory over")\
    X(RENEWING, WORD, STEP_MS, session_fork_on_renewed, "the child's interpreter to answer")

#define SESSION_STAGES(X) SESSION_OWN_STAGES(X) SESSION_ASK_STAGES(X) SESSION_FORK_STAGES(X)

/* stage, event, action: events that a stage does not wait for, but acts on. All others are only
 * noted (session_step.c). A row of a stage goes before a row of ANY. */
#define SESSION_EXTRAS(X)                                                                          \
    X(IDLE, EXITED, session_mend)                                                                  \
    X(IDLE, LOST, session_protect)                                                                 \
    X(RUNNING, EXITED, session_cell_on_news)                                                       \
    X(RUNNING, STAT, session_cell_on_news)                                                         \
    X(RUNNING, SWEPT, session_cell_on_news)                                                        \
    X(STARTING, FAILED, session_start_on_failed)                                                   \
    X(GREETING, EXITED, session_fail_exited)                                                       \
    X(ANSWERING, EXITED, session_fail_exited)                                                      \
    X(RENEWING, EXITED, session_fail_exited)                                                       \
    X(ANY, FAILED, session_fail_refused)                                                           \
    X(ANY, TIME, session_fail_late)                                                                \
    X(ANY, EMPTY, session_on_empty)

/* task, end, action: an interpreter waits (UP), the state is kept or cannot be (KEPT), the session
 * is back in an earlier state or cannot go back (BACK). */
#define SESSION_TASKS(X)                                                                           \
    X(NEW, UP, session_on_opened)                                                                  \
    X(FORK, UP, session_fork_on_opened)                                                            \
    X(RETURN, UP, session_back_on_up)                                                              \
    X(CELL, UP, session_cell_on_anew)                                                              \
    X(CELL, BACK, session_cell_on_back)                                                            \
    X(MEND, UP, session_mend_on_anew)                                                              \
    X(MEND, BACK, session_mend_on_back)                                                            \
    X(UNDO, BACK, session_ask_on_undone)                                                           \
    X(UNDO_AGAIN, BACK, session_ask_on_not_undone)                                                 \
    X(KEEP, KEPT, session_next)                                                                    \
    X(CHECKPOINT, KEPT, session_ask_on_kept)

#endif
