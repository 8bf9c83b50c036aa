/* Stored runs for `cupel mcp`. Runs in the cli process, after the drop of rights: the database is
 * opened and read by a thread, because its texts are an attacker's and a disk may be slow. Runs of
 * tokens are left to their tokens. */
#include "cli/mcp/stored.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/own.h"
#include "cli/link/state_files.h"
#include "store/errands.h"
#include "store/records/look.h"

#define FILE_BYTES ((size_t)8 << 20) /* of one file */
#define WAITING_MAX 64
#define OWNER ""                     /* of runs that came by the engine's socket */

struct cli_mcp_stored {
    int state_dir;
    struct mcp *mcp;
    struct loop loop;
    struct errands *errands;
    size_t waiting;
    bool closing;
    pthread_mutex_t lock; /* of the pointer db, whose connection is the thread's */
    struct db *db;
};

struct search {
    struct errand errand;
    struct cli_mcp_stored *stored;
    uint64_t ticket;
    char id[40];
    char *path;     /* or NULL: the record */
    json_t *record; /* found */
    struct buf bytes;
    struct err err;
};

/* --- in the thread --- */

static void put_db(struct cli_mcp_stored *stored, struct db *db)
{
    pthread_mutex_lock(&stored->lock);
    stored->db = db;
    pthread_mutex_unlock(&stored->lock);
}

static int open_db(struct cli_mcp_stored *stored, struct err *err)
{
    const struct db_options options = { .state_dir = stored->state_dir, .only_if_there = true };
    if (!stored->db)
        put_db(stored, db_open(&options, err));
    return stored->db ? 0 : -1;
}

static void on_work(struct errand *errand)
{
    struct search *search = loop_owner(errand, struct search, errand);
    struct cli_mcp_stored *stored = search->stored;
    if (open_db(stored, &search->err) < 0)
        return;
    if (search->path)
        look_artifact(stored->db, stored->state_dir, OWNER, search->id, str_of(search->path),
                      &search->bytes, &search->err);
    else
        search->record = look_show(stored->db, OWNER, search->id, &search->err);
    if (db_is_broken(stored->db)) {
        struct db *broken = stored->db;
        put_db(stored, NULL);
        db_close(broken);
    }
}

/* --- in the loop --- */

static void search_free(struct search *search)
{
    json_decref(search->record);
    buf_done(&search->bytes);
    free(search->path);
    free(search);
}

static void tell(const struct search *search)
{
    mcp_found(search->stored->mcp, search->ticket, search->record, buf_str(&search->bytes),
              search->err.kind != ERR_NONE ? &search->err : NULL);
}

static void on_done(struct errand *errand)
{
    struct search *search = loop_owner(errand, struct search, errand);
    search->stored->waiting--;
    if (!search->stored->closing)
        tell(search);
    search_free(search);
}

void cli_mcp_stored_find(struct cli_mcp_stored *stored, uint64_t ticket, const char *run,
                         const char *path)
{
    struct search *search = buf_alloc_zero(1, sizeof *search);
    search->errand = (struct errand){ .work = on_work, .done = on_done };
    search->stored = stored;
    search->ticket = ticket;
    search->bytes = BUF_INIT(FILE_BYTES);
    search->path = path ? buf_strdup(str_of(path)) : NULL;
    snprintf(search->id, sizeof search->id, "%s", run);
    if (stored->waiting < WAITING_MAX) {
        stored->waiting++;
        errands_add(stored->errands, &search->errand);
        return;
    }
    err_set(&search->err, ERR_BUSY, "%d questions to the store wait already", WAITING_MAX);
    tell(search);
    search_free(search);
}

int cli_mcp_stored_fd(const struct cli_mcp_stored *stored)
{
    return stored ? stored->loop.epoll : -1;
}

void cli_mcp_stored_take(struct cli_mcp_stored *stored)
{
    if (loop_turn(&stored->loop) < 0)
        loop_close(&stored->loop);
}

struct cli_mcp_stored *cli_mcp_stored_open(struct err *err)
{
    own_fd state_dir = cli_state_open();
    if (state_dir < 0) {
        err_set(err, ERR_ABSENT, "there is no state folder");
        return NULL;
    }
    struct cli_mcp_stored *stored = buf_alloc_zero(1, sizeof *stored);
    stored->loop = LOOP_INIT;
    stored->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (loop_open(&stored->loop) == 0 && (stored->errands = errands_open(&stored->loop, err))) {
        stored->state_dir = take_fd(&state_dir);
        return stored;
    }
    err_sys(err, "watch a thread");
    loop_close(&stored->loop);
    free(stored);
    return NULL;
}

void cli_mcp_stored_ready(struct cli_mcp_stored *stored, struct mcp *mcp)
{
    stored->mcp = mcp;
}

void cli_mcp_stored_close(struct cli_mcp_stored *stored)
{
    if (!stored)
        return;
    stored->closing = true;
    pthread_mutex_lock(&stored->lock);
    if (stored->db)
        db_cancel(stored->db);
    pthread_mutex_unlock(&stored->lock);
    errands_close(stored->errands);
    db_close(stored->db);
    loop_close(&stored->loop);
    own_close_fd(&stored->state_dir);
    free(stored);
}
