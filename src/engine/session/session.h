/* One session: a box whose interpreter stays, and the states of it that are kept. session_table.h
 * has its stages and events. Runs in the engine.
 *
 * Invariants, each with its test:
 *  1. One job at a time has the session: a cell, an ask, or the session's own work. Other jobs wait
 *     in line. test_cells_of_many_clients_wait_in_line
 *  2. Every step ends: by its event, a failure or its limit. A session that cannot go on has ended,
 *     and the engine remembers when and why. test_sessions_go_on_or_say_that_they_ended
 *  3. An interpreter's words are claims, each valid for one question only.
 *     test_forged_frames_speak_for_one_cell_at_most
 *  4. `protected` is true only while the broker holds the state, or a new interpreter is in it.
 *     test_what_is_said_of_a_resting_session_is_true
 *  5. A live interpreter is given up only after the keeper has shown that the copy can be woken.
 *     test_an_undo_without_a_keeper_leaves_the_session_as_it_was
 *  6. A ticket names one copy: an answer with another ticket belongs to a step that was given up.
 *     keep_another_state_than_the_one_asked_for_is_refused
 *  7. With a copy that died, older levels go: undo would take them for it.
 *     test_undo_after_a_copy_died_is_exact_or_refused
 *  8. No state is lost silently: undo, the next result or an event names the state that the session
 *     goes on from. test_undo_to_a_copy_that_died_just_now_says_where_it_went
 *  9. A state that a fork reads is pinned until the child has it, or one of the two ends.
 *     test_a_session_goes_on_while_it_is_forked
 * 10. An interrupt never reaches the next cell.
 *     test_an_interrupt_is_never_too_early_and_never_meant_for_the_next_cell */
#ifndef ENGINE_SESSION_SESSION_H
#define ENGINE_SESSION_SESSION_H

#include "contract/frame.h"
#include "engine/engine_int.h"
#include "engine/session/files_session.h"
#include "engine/session/session_table.h"
#include "engine/talk/driver.h"
#include "engine/talk/order.h"
#include "engine/talk/plan.h"

#define SESSION_LEVELS 3 /* undo_levels where nothing is said */
#define SESSION_TTL_S 1200
#define SESSION_LIFE_S 86400
#define SESSION_NAMED_MAX 8
#define SESSION_JOBS_MAX 64 /* in line */
#define SESSION_NOBODY UINT32_MAX

enum session_stage {
    SESSION_BUSY,
    SESSION_ENDED,
#define X(stage, ...) SESSION_##stage,
    SESSION_STAGES(X)
#undef X
    SESSION_ANY
};

/* The first have the numbers of the broker's news; the session tells itself the others. */
enum session_event {
#define X(news) SESSION_E_##news = BOX_NEWS_##news,
    X(READY) X(PORTER) X(STARTED) X(EXITED) X(STAT) X(EMPTY) X(FAILED) X(PARKED) X(PREPARED)
    X(AWAKE) X(SWEPT) X(FORKED_INTO) X(STATE_LOST)
#undef X
    SESSION_E_TURN,     /* a job waits, or has its turn */
    SESSION_E_ADMITTED, /* the engine lets the cell run */
    SESSION_E_DONE,     /* the driver is done with the cell */
    SESSION_E_FILES,    /* the porter is done with a job */
    SESSION_E_WORD,     /* the interpreter has answered */
    SESSION_E_TIME,     /* the limit of the step is over */
    SESSION_E_LOST,     /* the newest kept state is lost */
};

enum session_task {
    SESSION_T_ASK, SESSION_T_NEW, SESSION_T_FORK, SESSION_T_RETURN, SESSION_T_CELL, SESSION_T_MEND,
    SESSION_T_UNDO, SESSION_T_UNDO_AGAIN, SESSION_T_KEEP, SESSION_T_CHECKPOINT
};
enum session_end { SESSION_UP, SESSION_KEPT, SESSION_BACK };

/* A kept state: a copy of the interpreter and a snapshot of the files. The keeper and the porter
 * know them by its index in session->states.kept. */
struct session_kept {
    bool used;
    bool level;       /* one of the last states, for undo */
    bool snapped;     /* it has a snapshot; else there were no files */
    bool birth;       /* it has no copy: a new interpreter is in that state */
    unsigned lineage; /* whose streams the copy has */
    unsigned pins;    /* forks that read it */
    int64_t cell;     /* the state after this cell */
    int64_t kept_ns;  /* files with a later ctime are newer than it */
    uint64_t ticket;  /* of this copy: its index is used again */
    char name[FRAME_NAME_MAX + 1]; /* of a checkpoint, or "" */
};

/* The state that a fork is made from. */
struct session_pin {
    uint32_t at;
    uint64_t ticket;
};

/* A request about a session that is no cell, or about all sessions. */
struct engine_ask {
    struct session_job job;
    struct engine *engine;
    struct session *session; /* NULL: about all, or the session has ended */
    const struct frame_session *what;
    struct engine_ask_hooks hooks;
    struct request request; /* new: of the session; put: its files; owned */
    json_t *answer;
    struct result_artifact *file; /* get: owned */
    struct session_pin pin;       /* fork */
    bool fork_others;             /* fork: there are files outside of /workspace only */
    struct engine_ask *next_fork;
    bool silent; /* the engine closes: no hook is called */
    struct engine_ask *before, *after; /* all of the engine */
};

/* How long the session lives, and why it ended. */
struct session_life {
    int64_t ttl_ns, max_ns, created_ns, used_ns, created_at;
    struct loop_timer timer;
    bool called_off; /* it ends by its time or on request: nothing failed */
    bool expired; /* its time is over: only the door that keeps its files may ask */
    int64_t until_ns; /* the end of an expired one */
    char ended[128]; /* why */
};

/* The jobs in line, and the one that has its turn. */
struct session_queue {
    struct session_job *jobs;
    unsigned count;
    struct loop_timer turn; /* a job has come while the session was idle */
    struct engine_run *cell;
    struct engine_ask *ask;
    int64_t cells; /* so far */
};

/* The step under way. */
struct session_step {
    enum session_stage stage;
    enum session_task task;
    struct loop_timer timer; /* its limit */
    struct err err;          /* why it failed, or ERR_NONE */
    uint32_t end;            /* the keeper's answer: enum inject_end */
    int error;
    const struct box_news *news; /* while an action runs that the broker's news has called */
};

enum session_interpreter {
    SESSION_I_USED,
    SESSION_I_FRESH, /* no code of the user has run in it */
    SESSION_I_WOKEN, /* it has not answered yet */
    SESSION_I_STILLBORN, /* from here on it is dead: this one before it answered */
    SESSION_I_DEAD,
    SESSION_I_SWEPT, /* and no other process of the box lives, except copies */
};

struct session_box {
    struct house_tenant tenant;
    uint32_t id;
    struct plan plan;
    enum session_interpreter interpreter;
    bool forked;           /* from a zygote: it can be copied */
    int64_t fork_until_ns; /* later the interpreter is exec'd */
    int64_t opened_ns;     /* when the first interpreter was there */
    uint32_t walls;
    struct box_stats stats; /* as the box was when it started */
    int porter;             /* the resident porter's socket; -1: none yet */
    struct files_job files;
    struct files_seen seen;
    struct loop_timer uploads; /* the next part of a file is awaited until then */
};

/* File descriptors of the interpreter, and the question that it answers. */
struct session_streams {
    int fd[BOX_NEWS_FDS]; /* a cell borrows them */
    int aside[BOX_STATES + 1][BOX_NEWS_FDS]; /* of other lineages (session_start.c) */
    unsigned lineage;                        /* the live one */
    struct loop_source words, requests;      /* while a question is under way */
    struct driver driver;
    char *line;
    struct str to_driver;
    char secret[ORDER_SECRET + 1]; /* of the marks in its output */
    bool hush; /* an interrupt of the last cell may still be pending */
    bool tasks_wait; /* python: the event loop of its cells waits for the line `go` */
    bool tasks_run;  /* and has got it since the last cell */
};

#define SESSION_LATE_ENTRIES 18

/* Output that came after the end of its cell (session_late.c), since the last result. */
struct session_late {
    struct loop_source source[2]; /* stdout and stderr, while the session is idle */
    struct order order;           /* takes the marks out meanwhile */
    size_t gap[2];                /* bytes read since the last cell */
    struct session_late_entry {
        int64_t cell; /* 0: unknown, or of all further cells */
        bool is_err;
        uint64_t bytes;  /* all of them */
        struct buf text; /* the first of them */
    } entry[SESSION_LATE_ENTRIES];
    unsigned count;
    size_t kept; /* bytes of all texts */
    struct session_late_held {
        int64_t cell;
        char bytes[4]; /* an incomplete UTF-8 sequence that no event has told yet */
        size_t len;
    } held[2];
};

/* The kept states, and the state that the session is in. */
struct session_states {
    struct session_kept kept[BOX_STATES];
    uint32_t stack[FRAME_LEVELS_MAX + 1]; /* of kept; the last is the newest */
    unsigned levels, levels_max;
    int64_t cell;           /* the session is in the state after this cell */
    bool is_protected;      /* the newest level is that state */
    unsigned since;         /* cells since the newest level */
    char unprotected[96];   /* why it is not protected */
    char news[200]; /* of a death or loss since the last cell, for info and the next cell */
    enum result_state last; /* how the last cell or undo left the state */
    uint64_t tickets; /* given so far */
    int64_t held_bytes; /* of the box, at the last copy */
    bool maps[2]; /* did the last two copies have files in shared memory maps? */
    /* While the session keeps a state, or goes back to one: */
    uint32_t goal; /* its index */
    struct session_kept want; /* that state: the entry may be lost meanwhile */
    bool going_back, keeper_gone; /* the keeper died meanwhile */
    bool goal_files; /* there are files to restore, or to remove */
    char stayed[128]; /* why going back did not begin: the session is as it was; or "" */
    uint32_t lost; /* bits of BOX_LOST: parts that did not come back, or over to the child */
    int64_t asked_cell; /* undo: which state the client wants */
};

/* While one session is forked from another (session_fork.c). */
struct session_fork {
    struct session *parent, *child;
    struct engine_ask *waiting; /* of the parent: other forks */
    struct engine_ask *ask; /* of the child, and all of these */
    struct session_pin pin;
    struct session_job carry;
    unsigned carrying; /* porters at work */
};

struct session {
    struct engine *engine;
    struct session *before, *after;
    char id[32];
    struct request request; /* it was made from this; owned */
    struct engine_image *image; /* held: its box has it, whatever the name leads to later */
    struct session_life life;
    struct session_queue queue;
    struct session_step step;
    struct session_box box;
    struct session_streams streams;
    struct session_late late;
    struct session_states states;
    struct session_fork fork;
};

/* The engine remembers this of a session that has ended. */
struct session_past {
    char id[32];
    enum request_language language;
    int64_t cells, created_at, ended_at;
    char why[128];
};
#define SESSIONS_PAST 1000

/* Every action of session_table.h. */
#define X(stage, event, limit, action, failed, text) \
    void session_##action(struct session *session);  \
    void session_##failed(struct session *session);
SESSION_STAGES(X)
#undef X
#define X(stage, event, action) void session_##action(struct session *session);
SESSION_EXTRAS(X)
SESSION_TASKS(X)
#undef X

static inline bool session_is_dead(const struct session *session)
{
    return session->box.interpreter >= SESSION_I_STILLBORN;
}

/* --- session_step.c --- */
/* Begin a step. Its action follows once, unless the session ends before. */
void session_await(struct session *session, enum session_stage stage);
/* The step is over: well, or with session->step.err set. */
void session_step_done(struct session *session);
void session_step_failed(struct session *session, enum err_kind kind, const char *text);
bool session_awaits(const struct session *session, enum session_event event);
void session_happens(struct session *session, enum session_event event);
/* A shared part is over: the task goes on. */
void session_ends(struct session *session, enum session_end end);
void session_on_news(struct house_tenant *tenant, const struct box_news *news,
                     int fds[BOX_NEWS_FDS]);

/* --- session.c --- */
struct session *session_find(const struct engine *engine, const char *id, struct err *err);
/* One that is expired, for the door that keeps its files. */
struct session *session_find_expired(const struct engine *engine, const char *id, struct err *err);
struct session *session_new(struct engine *engine, const struct frame_session *what,
                            struct request *request, struct err *err);
int sessions_refuse_more(const struct engine *engine, struct err *err);
/* A session that has no box yet. */
struct session *session_make(struct engine *engine, const struct frame_session *what,
                             struct request *request, struct engine_image *image);
/* Refuse every job, give the box up. The engine frees the session later. */
void session_end(struct session *session, const char *why);
/* Join the line; the turn comes from the loop. */
int session_enter(struct session *session, struct session_job *job, struct err *err);
const struct session_past *session_past_find(const struct engine *engine, const char *id);

/* --- session_box.c: steps of the box --- */
/* Order something of the broker, and wait for it. */
void session_order(struct session *session, struct box_call *order, const int *fds, size_t count,
                   enum session_stage stage);
void session_order_channel(struct session *session, struct box_call *order, int fd,
                           enum session_stage stage);
void session_sweep(struct session *session, enum session_stage stage);
void session_need_porter(struct session *session, enum session_stage stage);
/* Give up a copy, or a state with its snapshot. */
void session_drop_copy(struct session *session, uint32_t at, uint64_t ticket);
void session_drop_state(struct session *session, uint32_t at);
/* Begin a job of the porter as a step. */
struct files_job *session_await_files(struct session *session, enum session_stage stage);
/* The time as files are stamped with it. */
int64_t session_files_now_ns(void);
/* Take note of the files that are there: they are no artifacts of the next cell. */
void session_note_files(struct session *session, enum session_stage stage);
/* Have there been files since the box was made? */
bool session_has_files(const struct session *session);
/* Are there files outside of /workspace, as in /tmp? */
bool session_has_others(const struct session *session);
/* Send a line and wait for the answer, in session->streams.driver. `line` is taken; NULL: the
 * interpreter speaks first. */
void session_ask_driver(struct session *session, char *line, enum session_stage stage);
/* A line that tells the interpreter that it is another process now. */
char *session_renew_line(struct session *session);
/* Send it without waiting: the interpreter reads it before anything else. 0, or -1. */
int session_renew_later(struct session *session);
/* The state is kept: tasks in the event loop of its cells may go on until the next line. */
void session_let_tasks_run(struct session *session);

/* --- session_start.c: an interpreter; the end is UP --- */
void session_open_box(struct session *session, enum session_task task);
/* Another interpreter in the same box, with its files. The stage EMPTYING sweeps the box, gives all
 * kept states up and does the same. */
void session_restart(struct session *session);
/* Take the streams of a lineage, to wake a copy of it. */
void session_go_to_lineage(struct session *session, unsigned lineage);

/* --- session_ask.c, session_ask_files.c, session_ask_state.c --- */
/* Answer the ask and free it; if it had its turn, the next job begins. */
void session_ask_reply(struct engine_ask *ask, const struct err *err);
void session_ask_info(struct engine_ask *ask); /* with the session's info */
void session_ask_refuse(struct engine_ask *ask, enum err_kind kind, const char *text,
                        const char *hint);
/* An ask has its turn: */
void session_ask_checkpoint(struct session *session, struct engine_ask *ask);
void session_ask_undo(struct session *session, struct engine_ask *ask);
/* Give up a file that was put in part. False: not now. */
bool session_ask_drop(const struct session *session, uint32_t upload);
/* The timer of session->box.uploads: give up files that were put in part. */
void session_on_uploads(struct loop_timer *timer);

/* --- session_keep.c: the kept states; keeping one; the end is KEPT --- */
void session_keep(struct session *session, enum session_task task);
/* Files were put: they belong to the newest state. Then session_next. */
void session_keep_put_files(struct session *session);
/* The newest level, or SESSION_NOBODY. */
uint32_t session_newest(const struct session *session);
uint32_t session_named(const struct session *session, const char *name);
void session_forget_states(struct session *session);
/* The keeper is gone, or one copy has died. */
void session_forget_lost(struct session *session);
void session_lost_state(struct session *session, uint32_t at, uint64_t ticket);
void session_leave_level(struct session *session, unsigned at);
/* From now on the session is in that state; levels above it are gone. */
void session_is_at(struct session *session, uint32_t at);
/* Why the keeper could not copy or wake. */
const char *session_why_not(const struct session *session);

/* --- session_back.c: going back; the end is BACK --- */
/* Go back to a state, or to an older level if its copy is dead. A live interpreter is
 * given up only once the copy can be woken: else session->states.stayed says why not. */
void session_go_back(struct session *session, uint32_t at, enum session_task task);

/* --- session_folder.c --- */
/* Does it work on a folder of the caller? Its files are neither snapped nor restored. */
bool session_has_folder(const struct session *session);
/* Builds its box then. */
void session_open_folder(struct session *session);
/* Its end: its processes die, and its box with the layer of changes stays. */
void session_leave_folder(struct session *session);
/* Refuses what a session on a folder cannot do: the files of a request, or an ask. */
int session_check_folder(const struct engine *engine, const struct request *request, int what,
                         struct err *err);

/* --- session_cell.c --- */
/* Discard words of the interpreter that nobody asked for. True: there were some. */
bool session_drain_words(struct session *session);

/* --- session_fork.c --- */
void session_fork(struct session *session, struct engine_ask *ask);
/* One of the two sessions has ended. */
void session_fork_ended(struct session *session, const char *why);

/* --- session_late.c --- */
void session_late_init(struct session *session);
/* Other streams come: nothing of a mark is left over. */
void session_late_forget(struct session *session);
/* Read the streams of an idle session. */
void session_late_watch(struct session *session);
void session_late_unwatch(struct session *session);
/* Read what is in the streams now: it belongs to no later cell. */
void session_late_drain(struct session *session);
/* Output of an earlier cell; 0: of an unknown one. */
void session_late_add(struct session *session, int64_t cell, bool is_err, struct str bytes);
/* All since the last call, for a result; NULL: none. */
json_t *session_late_take(struct session *session);
void session_late_done(struct session *session);

/* --- session_tell.c --- */
/* An event, to every listener. */
void session_tell(const struct session *session, const json_t *event);
json_t *session_info(const struct session *session);
json_t *session_past_info(const struct session_past *past);
void session_write_time(int64_t at, char out[32]);
/* The interpreter ended, and no result can say it: info, an event and the next cell do. `when`
 * completes "ended ". */
void session_tell_death(struct session *session, const char *when, enum result_state became);
/* The session has failed. */
void session_tell_end(const struct session *session, const char *why);
json_t *session_lost_json(uint32_t lost);
/* The same as the end of a sentence; nothing where nothing is lost. */
void session_lost_text(uint32_t lost, struct buf *out);

#endif
