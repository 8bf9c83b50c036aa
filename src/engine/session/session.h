/* One session: a box whose interpreter stays, and the states of it that are kept. Shared
 * by session.c (life), session_box.c (the box and its steps), session_cell.c (cells),
 * session_keep.c (states), session_ask.c (all else that is asked of it).
 *
 * What others rely on:
 * 1. One thing at a time: a cell, a question, or a step of our own. What comes meanwhile
 *    waits in line.
 * 2. Every step ends: by news, by an answer, or by its time. A session that cannot go on
 *    has ended, and when and why is remembered.
 * 3. Whatever the interpreter says is a claim of its box. What is kept, and what became of
 *    it, is known from the broker alone. */
#ifndef ENGINE_SESSION_SESSION_H
#define ENGINE_SESSION_SESSION_H

#include "contract/frame.h"
#include "engine/talk/driver.h"
#include "engine/engine_int.h"
#include "engine/session/files_session.h"
#include "engine/talk/plan.h"

#define SESSION_LEVELS 3      /* undo_levels where nothing is said */
#define SESSION_TTL_S 1200
#define SESSION_LIFE_S 86400
#define SESSION_NAMED_MAX 8
#define SESSION_JOBS_MAX 64   /* that wait */
#define SESSION_STEP_MS 15000 /* for one step of our own */
#define SESSION_NOBODY UINT32_MAX

/* What waits for its turn: a member of a cell's run, or of an ask. */
struct session_job {
    struct session_job *after;
    struct session *session; /* NULL: not in line */
    bool first; /* goes before the state is kept: the answer to who made the session */
    void (*begin)(struct session_job *job);
    /* The session has ended: nothing was done. */
    void (*refuse)(struct session_job *job, const struct err *err);
};

/* A state that is kept: a copy of the interpreter in the broker's place of the same
 * number, and of its files in the porter's slot of that number. */
struct session_place {
    bool used;
    bool level;   /* one of the last ones, for undo */
    bool snapped; /* has a slot; else there were no files */
    bool birth;   /* has no copy: a new interpreter is that state */
    unsigned lineage; /* whose streams it has */
    unsigned pins; /* forks that are made from it */
    int64_t cell; /* after which it was made */
    int64_t kept_ns; /* when: files with a later ctime are not of it */
    uint64_t ticket; /* its own, in this session: places are used again */
    char name[FRAME_NAME_MAX + 1]; /* of a checkpoint, or "" */
};

/* What is asked of a session beside cells, or of all of them. */
struct engine_ask {
    struct session_job job;
    struct engine *engine;
    struct session *session; /* NULL: of none, or that one is gone */
    const struct frame_session *what;
    struct engine_ask_hooks hooks;
    struct request request; /* new: of the session; put: its files; owned */
    json_t *answer;
    struct result_artifact *file; /* get: owned */
    uint32_t fork_place;          /* fork: from which state; pinned */
    uint64_t fork_ticket;
    bool fork_others; /* it has files only outside of /workspace */
    struct engine_ask *next_fork;
    bool silent; /* the engine ends: no hook is called */
    struct engine_ask *before, *after; /* all of the engine */
};

enum session_stage {
    SESSION_OPENING, /* until the interpreter waits */
    SESSION_IDLE,
    SESSION_CELL,    /* s->cell runs */
    SESSION_WORKING, /* a step of our own */
    SESSION_ENDED,   /* to be let go of */
};

enum session_wait {
    SESSION_NO_WAIT, SESSION_BUILT, SESSION_STARTED, SESSION_PORTER, SESSION_SWEPT, SESSION_AWAKE,
    SESSION_PARKED, SESSION_PREPARED, SESSION_FORKED_INTO, SESSION_FILES, SESSION_DRIVER
};

struct session {
    struct engine *engine;
    struct session *before, *after;
    char id[32];
    struct request request; /* what it was made from; owned */
    int64_t ttl_ns, life_ns, created_ns, used_ns, created_at;
    unsigned levels_most;
    struct loop_timer timer; /* of its life */
    struct loop_timer turn;  /* somebody has come into line */
    struct loop_timer uploads; /* the next part of a file is awaited until then */
    bool unkept;             /* its first state is still to be kept */
    enum session_stage stage;

    struct house_tenant tenant;
    uint32_t box;
    struct plan plan;
    bool forked;       /* from a zygote: it can be copied */
    int64_t fork_until_ns; /* later its interpreter is exec'd */
    bool fresh;        /* no code of the user's has run in it */
    bool gone;         /* the interpreter has ended */
    bool swept;        /* and nothing else of the box lives, but what is kept */
    int fd[BOX_NEWS_FDS]; /* between cells */
    /* Each interpreter that was started has streams of its own, and so have its copies: those of
     * lineages that are not the live one, where a copy of them is kept. */
    int streams[BOX_STATES + 1][BOX_NEWS_FDS];
    unsigned lineage; /* the live one */
    uint32_t walls;
    struct box_stats stats; /* as the box was when it started */
    int porter;        /* the resident one's socket; -1: none yet */
    struct files_job files;
    struct files_seen seen;

    /* The step under way. */
    enum session_wait wait;
    void (*then)(struct session *session);
    struct err failed; /* of the step; ERR_NONE */
    struct loop_timer patience;
    struct loop_source words, requests; /* while a question is under way */
    struct driver driver;
    bool (*answered)(const struct driver *driver);
    char *line;
    struct str to_driver;
    struct { uint32_t end; int error; } kept; /* of PARKED, PREPARED, AWAKE */
    uint64_t ticket;    /* PARKED, PREPARED, AWAKE: which is awaited */
    uint64_t tickets;   /* given so far */
    int64_t held_bytes; /* of the box, when it was parked last */
    bool maps[2]; /* has it, and had it the time before, files in shared memory maps? */
    int64_t kept_ns;   /* when it began to be kept */
    int64_t opened_ns; /* when its interpreter was there first */

    /* While one is forked from the other (session_fork.c): */
    struct session *parent, *coming;
    struct engine_ask *forks;    /* of the parent: that wait */
    struct engine_ask *fork_ask; /* of the coming one, and all of these */
    uint32_t fork_place;
    uint64_t fork_ticket;
    struct session_job carry;
    unsigned carrying; /* ends of the socket between their porters that are at work */
    struct err carry_failed;

    void (*idle_then)(struct session *session); /* once a death between cells is mended */
    bool called_off; /* it ends because its time is over, or on request: nobody failed */
    char ended[128]; /* why */
    bool hush; /* an interrupt of the last cell may still wait */

    struct engine_run *cell;
    struct engine_ask *ask; /* under way */
    struct session_job *jobs;
    unsigned job_count;
    int64_t cells;

    struct session_place place[BOX_STATES];
    uint32_t stack[FRAME_LEVELS_MAX + 1]; /* the last is the newest */
    unsigned levels;
    int64_t state;      /* the cell after which the state is what it is */
    bool is_protected;  /* the newest level is the state */
    unsigned since;     /* cells since the newest level */
    char unprotected[96];
    char news[200];     /* what happened since the last cell, for info and the next cell */
    enum result_state last; /* what became of the state the last time */
    uint32_t goal;      /* the place that is being gone back to, or kept in */
    struct session_place goal_state; /* what was there: the place may be lost on the way */
    bool going_back;
    char stayed[128]; /* why the last going back did not begin: the session is as it was; or "" */
    uint32_t lost; /* bits of BOX_LOST: what did not come back, or was not carried */
    int64_t asked_state; /* by undo */
    bool keeper_gone;   /* meanwhile */
    bool unproven;      /* what was woken has not done anything yet */
    bool goal_files;    /* there are files to be brought back, or taken away */
    void (*goal_then)(struct session *session); /* once an interpreter is started */
    void (*back_then)(struct session *session); /* once it is back there */
    void (*kept_then)(struct session *session); /* once its state is kept, or cannot be */
};

/* What is remembered of one that has ended. */
struct session_past {
    char id[32];
    enum request_language language;
    int64_t cells, created_at, ended_at;
    char why[128];
};
#define SESSIONS_PAST 1000

/* --- session.c --- */
struct session *session_find(const struct engine *engine, const char *id, struct err *err);
struct session *session_new(struct engine *engine, const struct frame_session *what,
                            struct request *request, struct err *err);
int sessions_refuse_more(const struct engine *engine, struct err *err);
/* The same, without a box yet. */
struct session *session_make(struct engine *engine, const struct frame_session *what,
                             struct request *request);
/* It is over: whoever waits is told; its box goes. Freed later. */
void session_end(struct session *session, const char *why);
/* Wait in line; its turn comes from the loop. */
int session_enter(struct session *session, struct session_job *job, struct err *err);
void session_leave(struct session_job *job);
/* Nothing goes on any more: the next in line, or idle. */
void session_next(struct session *session);
json_t *session_info(const struct session *session);
const struct session_past *session_past_find(const struct engine *engine, const char *id);
json_t *session_past_info(const struct session_past *past);
void sessions_close(struct engine *engine);

/* --- session_box.c: steps; each calls `then` once, with session->failed if it failed --- */
void session_open_box(struct session *session, void (*then)(struct session *session));
/* Its streams are there: they must not hold us up. */
void session_open_streams(struct session *session);
/* The start of its interpreter failed: once more, without a zygote when its time is up. */
void session_start_again(struct session *session);
/* Another interpreter in the same box, with its files. */
void session_restart(struct session *session, void (*then)(struct session *session));
void session_sweep(struct session *session, void (*then)(struct session *session));
void session_need_porter(struct session *session, void (*then)(struct session *session));
/* Park the interpreter in a place, under session->ticket; wake what is gone back to. */
void session_park(struct session *session, uint32_t place,
                  void (*then)(struct session *session));
void session_wake(struct session *session, void (*then)(struct session *session));
/* Show that what is gone back to can be woken, before the live interpreter is given up. */
void session_prepare(struct session *session, void (*then)(struct session *session));
/* What is in a place of the parent becomes the state of the other's interpreter: a step of
 * the other one. */
void session_fork_into(struct session *parent, uint32_t place, struct session *coming,
                       void (*then)(struct session *session));
void session_drop_place(struct session *session, uint32_t place);
void session_drop_copy(struct session *session, uint32_t place, uint64_t ticket);
/* Begin a new question: the nonce that its line must have (drivers/PROTOCOL.md). */
const char *session_expect(struct session *session);
/* A line for the interpreter, whose answer session->driver has then. `line` is taken; NULL: it
 * speaks first. */
void session_ask_driver(struct session *session, char *line,
                        bool (*answered)(const struct driver *),
                        void (*then)(struct session *session));
/* Another process has its memory now: let it know. */
void session_renew(struct session *session, void (*then)(struct session *session));
/* The same, but its answer is not awaited: it will hear of it before anything else. 0, or -1. */
int session_renew_later(struct session *session);
/* Wait for a files job that was begun. */
void session_await_files(struct session *session, void (*then)(struct session *session));
void session_files_done(struct files_job *job);
/* The end of a step, from wherever. */
void session_step_done(struct session *session);
void session_step_failed(struct session *session, enum err_kind kind, const char *text);
/* What is there now is no artifact of the next cell. */
int64_t session_files_now_ns(void);
void session_note_files(struct session *session, void (*then)(struct session *session));
/* Were there files since the box was made? */
bool session_has_files(const struct session *session);
/* Are there files anywhere else, as in /tmp? */
bool session_has_others(const struct session *session);

/* --- session_ask_files.c --- */
/* Files that were put in part, and that nobody goes on with, go. */
void session_on_uploads(struct loop_timer *timer);

/* --- session_news.c: what the broker tells --- */
void session_on_news(struct house_tenant *tenant, const struct box_news *news,
                     int fds[BOX_NEWS_FDS]);

/* --- session_lineage.c --- */
/* The streams of the live interpreter are put aside, or closed where no copy that is kept has
 * them; those of `lineage` are live. */
void session_go_to_lineage(struct session *session, unsigned lineage);
/* An interpreter will be started: what streams it gets are a lineage of their own. */
void session_begin_lineage(struct session *session);

/* --- session_keep.c --- */
/* After a good cell: keep its state, then session_next. */
void session_protect(struct session *session);
void session_protect_then(struct session *session, void (*then)(struct session *session));
/* The same for a state that is kept already, by a name which stays with that copy. */
void session_keep_again(struct session *session, void (*then)(struct session *session));
/* Back to what is in a place, or to an older level where that is dead; `then` with
 * session->failed. A live interpreter is given up only once a copy of that state is there:
 * else session->stayed, and it is as it was. */
void session_go_back(struct session *session, uint32_t place,
                     void (*then)(struct session *session));
/* The newest level, or SESSION_NOBODY. */
uint32_t session_newest(const struct session *session);
uint32_t session_named(const struct session *session, const char *name);
void session_forget_places(struct session *session);
/* Files were put: they belong to the state that is kept. Then session_next. */
void session_lost_place(struct session *session, uint32_t at, uint64_t ticket);
/* The newest state is no good. */
void session_leave_newest(struct session *session);
void session_renew_newest(struct session *session);
/* From now on `place` is the state; levels above it are gone. */
void session_is_at(struct session *session, uint32_t place);

/* --- session_fork.c: of the ask under way --- */
void session_fork(struct session *session);
/* One of the two has ended. */
void session_fork_ended(struct session *session, const char *why);

/* --- session_tell.c --- */
/* The interpreter ended, and no result can say it: info, an event and the next cell do. `when`
 * completes "ended ". */
void session_tell_death(struct session *session, const char *when, enum result_state became);
/* The session has ended, by nobody's wish. */
void session_tell_end(const struct session *session, const char *why);
/* What has become of the state, for info. */
void session_tell_state(const struct session *session, json_t *info);
/* Bits of BOX_LOST: */
json_t *session_lost_json(uint32_t lost);
/* The same as the end of a sentence; nothing where nothing is lost. */
void session_lost_text(uint32_t lost, struct buf *out);

/* --- session_cell.c --- */
void session_cell_start(struct engine_run *run);
void session_cell_done(struct engine_run *run);
void session_cell_swept(struct engine_run *run);
/* A cell that never began is over; its session goes on. */
void session_cell_ended(struct engine_run *run);
/* The interpreter ended while no cell ran. Then `then`. */
void session_died_idle(struct session *session, void (*then)(struct session *session));
/* What the result of a cell says of the session, beside its own hint. */
void session_explain(struct engine_run *run);

#endif
