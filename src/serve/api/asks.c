/* Lanes of questions to the store. Runs in the serve process: its loop, and a thread for each
 * lane. */
#include "serve/api/asks.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"

#define COPIED_MAX (64u << 10) /* an answer that the reply copies */
#define HELD_MAX ((size_t)512 << 20) /* bytes of answers that clients have not read */

static const struct bounds {
    size_t owner, all; /* questions that wait */
} bounds[ASKS_LANES] = { [ASKS_QUICK] = { 256, 1024 },
                         [ASKS_WHOLE] = { 256, 1024 },
                         [ASKS_SLOW] = { 16, 128 } };

static_assert(array_len(((struct api_client *)NULL)->asked) == ASKS_LANES, "of each lane");

struct asks_line {
    struct asks *asks;
    enum asks_lane lane;
    struct errands *errands;
    pthread_mutex_t lock; /* of the pointer db, whose connection is the thread's */
    struct db *db;        /* opened by the first question */
    struct ask *first, **end;
    struct ask *running;
    size_t waiting;
    uint64_t turn;
};

struct asks {
    struct api *api;
    struct asks_line lines[ASKS_LANES];
    size_t held;
    uint64_t answered, refused, slow;
    bool closing;
};

static void ask_free(struct ask *ask)
{
    ask->line->asks->held -= ask->held;
    if (ask->free_user)
        ask->free_user(ask->user);
    buf_done(&ask->out);
    free(ask);
}

/* --- in the thread --- */

static struct db *put_db(struct asks_line *line, struct db *new)
{
    pthread_mutex_lock(&line->lock);
    struct db *old = line->db;
    line->db = new;
    pthread_mutex_unlock(&line->lock);
    return old;
}

static int open_db(struct asks_line *line, struct err *err)
{
    const struct db_options options = { .state_dir = line->asks->api->options.state_dir };
    if (!line->db)
        put_db(line, db_open(&options, err));
    return line->db ? 0 : -1;
}

static void work(struct errand *errand)
{
    struct ask *ask = loop_owner(errand, struct ask, errand);
    if (open_db(ask->line, &ask->err) == 0 && ask->work(ask, ask->line->db) == 0)
        ask->err.kind = ERR_NONE;
    else if (ask->err.kind == ERR_NONE)
        err_set(&ask->err, ERR_BUG, "the store gave no answer");
    if (ask->line->db && db_is_broken(ask->line->db))
        db_close(put_db(ask->line, NULL));
}

/* --- the queue --- */

static void start_next(struct asks_line *line);

static void answer(struct ask *ask)
{
    struct asks *asks = ask->line->asks;
    if (ask->err.kind != ERR_NONE) {
        asks->slow += ask->err.kind == ERR_SLOW;
        http_reply_err(ask->x, &ask->err);
        return;
    }
    asks->answered++;
    ask->held = ask->out.room;
    asks->held += ask->held;
    if (ask->reply)
        ask->reply(ask);
    else
        asks_reply(ask, 200, "application/json");
}

/* An exchange keeps the question while it sends a long answer from it. */
static void done(struct errand *errand)
{
    struct ask *ask = loop_owner(errand, struct ask, errand);
    struct asks_line *line = ask->line;
    line->running = NULL;
    ask->runs = false;
    if (ask->x && !line->asks->closing) {
        answer(ask);
    } else {
        if (ask->told && !line->asks->closing)
            ask->told(ask);
        ask_free(ask);
    }
    start_next(line);
}

/* The question of the owner that was answered longest ago; the oldest of those. */
static struct ask *take_next(struct asks_line *line)
{
    struct ask **best = NULL;
    for (struct ask **at = &line->first; *at; at = &(*at)->next)
        if (!best || (*at)->client->asked[line->lane] < (*best)->client->asked[line->lane])
            best = at;
    if (!best)
        return NULL;
    struct ask *ask = *best;
    *best = ask->next;
    if (!ask->next)
        line->end = best;
    line->waiting--;
    ask->client->asked[line->lane] = ++line->turn;
    return ask;
}

static void start_next(struct asks_line *line)
{
    if (line->running || line->asks->closing)
        return;
    struct ask *ask = take_next(line);
    if (!ask)
        return;
    line->running = ask;
    ask->runs = true;
    ask->errand = (struct errand){ .work = work, .done = done };
    errands_add(line->errands, &ask->errand);
}

static void on_gone(struct http_exchange *x)
{
    struct ask *ask = x->state;
    struct asks_line *line = ask->line;
    ask->x = NULL;
    if (ask->runs)
        return; /* `done` frees it */
    struct ask **at = &line->first;
    while (*at && *at != ask)
        at = &(*at)->next;
    if (*at) {
        *at = ask->next;
        if (!ask->next)
            line->end = at;
        line->waiting--;
    }
    ask_free(ask);
}

static int check_room(struct asks_line *line, const struct api_client *client, struct err *err)
{
    const struct bounds *most = &bounds[line->lane];
    size_t mine = 0;
    for (const struct ask *at = line->first; at; at = at->next)
        mine += at->client == client;
    if (mine >= most->owner) {
        err_set(err, ERR_QUOTA, "%zu questions of this token wait already", mine);
        err_hint(err, "wait for their answers, then ask again");
        return -1;
    }
    if (line->waiting < most->all && line->asks->held < HELD_MAX)
        return 0;
    err_set(err, ERR_BUSY, "too many questions to the store wait already");
    err_hint(err, "ask again in a moment");
    return -1;
}

static int check_store(const struct asks *asks, struct err *err)
{
    if (asks)
        return 0;
    err_set(err, ERR_HOST, "this service has no state folder, and so no records");
    err_hint(err, "set CUPEL_STATE, or give the user a home");
    return -1;
}

/* A copy of the question at the end of its lane; NULL: refused, and it stays the caller's. */
static struct ask *queue(struct asks *asks, struct api_client *client, enum asks_lane lane,
                         const struct ask *question, struct err *err)
{
    struct asks_line *line = asks ? &asks->lines[lane] : NULL;
    if (check_store(asks, err) < 0 || check_room(line, client, err) < 0) {
        if (asks)
            asks->refused++;
        return NULL;
    }
    struct ask *ask = buf_alloc(sizeof *ask);
    *ask = *question;
    ask->line = line;
    ask->client = client;
    *line->end = ask;
    line->end = &ask->next;
    line->waiting++;
    return ask;
}

void asks_add(struct http_exchange *x, enum asks_lane lane, const struct ask *question)
{
    struct api_client *client = api_client(api_of(x), who_id(x->who));
    struct err err = ERR_INIT;
    struct ask *ask = queue(api_of(x)->asks, client, lane, question, &err);
    if (!ask) {
        if (question->free_user)
            question->free_user(question->user);
        http_reply_err(x, &err);
        return;
    }
    ask->x = x;
    x->state = ask;
    x->gone = on_gone;
    start_next(ask->line);
}

void asks_add_told(struct api *api, const char *owner, enum asks_lane lane,
                   const struct ask *question)
{
    struct ask refused = *question;
    struct ask *ask = queue(api->asks, api_client(api, owner), lane, question, &refused.err);
    if (ask) {
        start_next(ask->line);
        return;
    }
    refused.told(&refused);
    if (refused.free_user)
        refused.free_user(refused.user);
}

/* --- replies --- */

static ssize_t pull(struct http_exchange *x, char *to, size_t room)
{
    struct ask *ask = x->state;
    size_t left = ask->out.len - ask->sent, n = left < room ? left : room;
    if (n == 0)
        return HTTP_END;
    memcpy(to, ask->out.at + ask->sent, n);
    ask->sent += n;
    return (ssize_t)n;
}

void asks_reply(struct ask *ask, unsigned status, const char *mime)
{
    if (ask->out.len <= COPIED_MAX)
        http_reply_text(ask->x, status, mime, buf_str(&ask->out));
    else
        http_reply_pull(ask->x, status, mime, ask->out.len, pull);
}

/* --- open and close --- */

struct asks *asks_open(struct api *api, struct err *err)
{
    struct asks *asks = buf_alloc_zero(1, sizeof *asks);
    asks->api = api;
    for (int i = 0; i < ASKS_LANES; i++) {
        struct asks_line *line = &asks->lines[i];
        line->asks = asks;
        line->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        line->lane = (enum asks_lane)i;
        line->end = &line->first;
        line->errands = errands_open(api->loop, err);
        if (!line->errands) {
            asks_close(asks);
            return NULL;
        }
    }
    return asks;
}

void asks_close(struct asks *asks)
{
    if (!asks)
        return;
    asks->closing = true;
    for (int i = 0; i < ASKS_LANES; i++) {
        struct asks_line *line = &asks->lines[i];
        pthread_mutex_lock(&line->lock);
        if (line->db)
            db_cancel(line->db);
        pthread_mutex_unlock(&line->lock);
    }
    for (int i = 0; i < ASKS_LANES; i++) {
        errands_close(asks->lines[i].errands);
        db_close(asks->lines[i].db);
        while (asks->lines[i].first) { /* without exchanges */
            struct ask *ask = asks->lines[i].first;
            asks->lines[i].first = ask->next;
            ask_free(ask);
        }
    }
    free(asks);
}

json_t *asks_describe(const struct asks *asks)
{
    size_t waiting = 0;
    for (int i = 0; asks && i < ASKS_LANES; i++)
        waiting += asks->lines[i].waiting + (asks->lines[i].running != NULL);
    return json_pack("{s:I, s:I, s:I, s:I}", "waiting", (json_int_t)waiting, "answered",
                     (json_int_t)(asks ? asks->answered : 0), "refused",
                     (json_int_t)(asks ? asks->refused : 0), "slow",
                     (json_int_t)(asks ? asks->slow : 0));
}
