/* The engine's state: shared by its files, opaque to doors. */
#ifndef ENGINE_ENGINE_INT_H
#define ENGINE_ENGINE_INT_H

#include "box/host/box.h"
#include "engine/engine.h"
#include "engine/images.h"
#include "engine/pool/house.h"
#include "engine/pool/pool.h"
#include "engine/pool/queue.h"
#include "engine/ledger.h"
#include "image/image.h"

struct engine {
    struct loop loop;
    struct house house;
    struct queue queue;
    struct pools pools;
    struct ledger ledger;
    struct prepare_probe {
        struct request request;
        struct engine_run *run; /* NULL: none is under way */
        struct engine_image *image; /* that it looks at, held */
        void (*told)(void *user, const struct err *err);
        void *user;
    } probe;
    struct images images;
    int state;              /* the state directory, -1: none */
    bool trace;             /* CUPEL_TRACE is set: figures for tests on stderr */
    struct engine_options options;
    struct engine_attached attached; /* of the options; its descriptors are the caller's */
    char *places; /* heap, of `attached` */
    struct {
        struct house_tenant tenant;
        struct limits limits; /* of the session that had it */
        bool left; /* the session has ended, and its box waits for engine_collect_folder */
    } folder;
    bool preparing; /* making a font list: that run must not need one */
    struct loop_timer admit, breakdown, tidy;
    struct engine_run *runs; /* all of them */
    struct session *sessions; /* live ones, and ended ones that are not freed yet */
    unsigned session_count;   /* live ones */
    struct session_past *past; /* records of ended sessions, oldest first */
    size_t past_count;
    struct engine_ask *asks;
    void (*on_session)(void *user, const char *session, const json_t *event); /* or NULL */
    void *on_session_user;
    bool (*on_expiry)(void *user, const char *session); /* or NULL */
    void *on_expiry_user;
    void (*on_session_end)(void *user, const char *session); /* or NULL */
    void *on_session_end_user;
};

struct session;
struct session_past;
/* A job that waits for its turn in a session: part of a cell's run, or of an ask. */
struct session_job {
    struct session_job *after;
    struct session *session; /* NULL: not in line */
    void (*begin)(struct session_job *job);
    /* The session has ended: nothing was done. */
    void (*refuse)(struct session_job *job, const struct err *err);
};
/* Leave the line; also where it is in none. */
void session_leave(struct session_job *job);
/* As engine_begin, for a cell. */
struct engine_run *session_begin_cell(struct engine *engine, const struct request *request,
                                      const void *client, const struct engine_hooks *hooks,
                                      struct err *err);
void sessions_tidy(struct engine *engine);
void sessions_end_all(struct engine *engine, const char *why);
void sessions_close(struct engine *engine);
void engine_asks_silence(struct engine *engine);
/* Frees ended runs and sessions in the next turn of the loop. */
void engine_tidy_soon(struct engine *engine);

/* Can a box be built here at all? 0, or -1 with the host's fault and its fix. */
int engine_probe(struct engine *engine, struct err *err);

/* As engine_begin, for a known image and without the queue. */
struct engine_run *run_new(struct engine *engine, const struct request *request,
                           struct engine_image *image, const struct engine_hooks *hooks);
/* Begins the run; on_end follows, from the loop. */
void run_start(struct engine_run *run);
void runs_tidy(struct engine *engine);
/* Frees the run without calling a hook. */
void run_drop(struct engine_run *run);
/* Ends a run that has not begun, or when nothing can run any more. */
void run_refuse(struct engine_run *run, const struct err *err);
/* The broker is gone: ends the run with what it has. */
void run_abandon(struct engine_run *run, const struct err *err);

/* prepare.c: made once for each image and kept in the state directory. */
/* Ends a probe in the background; its run is gone. */
void prepare_done(struct engine *engine);
/* Does this request look as if it will draw? */
bool prepare_wants_fonts(const struct request *request);
/* Finds matplotlib's font list for this image, once. With `make` a missing one is built, by a run;
 * else a probe of the image makes it some time. */
void prepare_find_fonts(struct engine *engine, struct engine_image *image, bool make);

/* state_folder.c: opens or makes the state directory, before rights are dropped. *out_fd is -1 if
 * there is none; an err only if a named one is unusable. */
int state_open(int *out_fd, struct err *err);
/* The trees of its images, for the broker: made if need be. -1: none. */
int engine_state_trees(int state);

struct plan;
/* attached.c: sends the call that builds the box which shows the caller's folder and files; the
 * list of places follows the plants. -1 with errno. */
int engine_attach(struct engine *engine, struct plan *plan);

/* hint.c: one sentence that helps where code failed for a reason that the engine knows. */
void hint_add(struct engine *engine, const struct image *image, const struct request *request,
              struct result *result);
/* The same for problems found by a check of `code`: modules and notebook syntax. */
void hint_problems(struct engine *engine, const struct image *image, json_t *problems);
/* hint_table.c: the row that fits a failure adds its sentence to *out. */
void hint_from_table(const struct request *request, const struct result *result, struct buf *out);
/* hint_install.c: of code that tries to install packages. */
void hint_install(struct engine *engine, const struct request *request, const struct result *result,
                  struct buf *out);
/* Did the code fail because a program that it started failed? */
bool hint_is_command(const struct result_error *error);
/* The end of stderr, at most 4 KiB. */
struct str hint_stderr_end(const struct result *result);

#endif
