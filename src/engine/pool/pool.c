/* Pools. An entry goes from an empty box to an occupant that waits for its request, with its
 * pages warm; it is used once. Refilling waits until requests pause, and makes one box at a time.
 * Each pool has a minimum and a maximum size: it grows when a request finds it empty, and shrinks
 * by one now and then without requests. Runs in the engine. */
#include "engine/pool/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "box/cgroup/counters.h"
#include "box/zygote/zygote.h"
#include "engine/engine_int.h"

#define PAUSE_MS 8       /* without a request, before boxes are made */
#define TEND_MS 1000     /* between two checks of image, sizes and zygotes */
#define SHRINK_MS 60000  /* without a request, before a pool shrinks */
#define CPU_COUNTER (BOX_NEWS_FDS - BOX_COUNTERS + BOX_COUNTER_CPU)
#define FAILURES_MAX 3   /* in a row, before a pool is given up until a later check */
#define RESTS_MAX 6      /* each pause is twice the last one, up to a minute */

static const struct {
    const char *name;
    enum request_language language;
    unsigned floor, ceiling;
    enum occupant { EMPTY, FORKED, STARTED, SESSION } occupant;
    enum pool_zygote_kind zygote; /* for forked occupants */
    enum zygote_rehearsal rehearsal;
} kinds[POOL_COUNT] = {
    [POOL_BOX] = { "box", REQUEST_PYTHON, 4, 16, EMPTY, 0, 0 },
    [POOL_PYTHON] = { "python", REQUEST_PYTHON, 4, 24, FORKED, ZYGOTE_PLAIN, ZYGOTE_REHEARSE },
    [POOL_PYTHON_DATA] = { "python_data", REQUEST_PYTHON, 2, 12, FORKED, ZYGOTE_DATA,
                           ZYGOTE_REHEARSE_ALL },
    [POOL_SESSION] = { "session", REQUEST_PYTHON, 1, 8, SESSION, ZYGOTE_DATA, ZYGOTE_NO_REHEARSAL },
    [POOL_JAVASCRIPT] = { "javascript", REQUEST_JAVASCRIPT, 2, 6, STARTED, 0, 0 },
    [POOL_BASH] = { "bash", REQUEST_BASH, 2, 12, STARTED, 0, 0 },
};

static struct engine *engine_of(const struct pool *pool)
{
    return pool->set->engine;
}

/* A Python that no zygote fits is started ahead, as node and bash are. */
static enum occupant occupant_of(const struct pool *pool)
{
    enum occupant usual = kinds[pool->id].occupant;
    return usual == FORKED && !pool->set->forks ? STARTED : usual;
}

static struct pool_zygote *zygote_of(const struct pool *pool)
{
    struct pools *pools = &engine_of(pool)->pools;
    return &pools->zygotes[pools_zygote_kind(pool->set, kinds[pool->id].zygote)].serving;
}

static bool is_forked(const struct pool *pool)
{
    return occupant_of(pool) == FORKED || occupant_of(pool) == SESSION;
}

static bool is_fixed(const struct pool *pool)
{
    return engine_of(pool)->options.pool_fixed && kinds[pool->id].occupant != EMPTY;
}

/* Beside `host` there may be several images: each gets less. */
static unsigned floor_of(const struct pool *pool)
{
    unsigned usual = kinds[pool->id].floor;
    return pool->set->number == 0 ? usual : (usual + 1) / 2;
}

static unsigned ceiling_of(const struct pool *pool)
{
    unsigned usual = kinds[pool->id].ceiling;
    return pool->set->number == 0 ? usual : (usual + 2) / 3;
}

static void refill_soon(struct pools *pools)
{
    int64_t quiet = pools->taken_ns + PAUSE_MS * CLOCK_MS, now = clock_now_ns();
    if (pools->open)
        loop_set_timer(&pools->engine->loop, &pools->refill, quiet > now ? quiet : now);
}

/* --- one entry --- */

static void entry_unlink(struct pool_entry *entry)
{
    struct pool_entry **link = &entry->pool->entries;
    while (*link != entry)
        link = &(*link)->after;
    *link = entry->after;
    entry->pool->ready -= entry->ready;
    entry->pool->making -= !entry->ready;
}

static void entry_free(struct pool_entry *entry)
{
    loop_remove(&engine_of(entry->pool)->loop, &entry->words);
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        own_close_fd(&entry->fd[i]);
    driver_done(&entry->driver);
    free(entry);
}

static void entry_drop(struct pool_entry *entry)
{
    entry_unlink(entry);
    house_vacate(&engine_of(entry->pool)->house, entry->box, /* clean= */ true,
                 take_fd(&entry->fd[BOX_STARTED_REQUESTS]));
    entry_free(entry);
}

static void entry_fail(struct pool_entry *entry)
{
    struct pool *pool = entry->pool;
    pool->failures++;
    entry_drop(entry);
    if (pool->failures < FAILURES_MAX) {
        refill_soon(&engine_of(pool)->pools);
        return;
    }
    pool->rest_ns = clock_now_ns() + (TEND_MS << pool->rests) * CLOCK_MS;
    pool->rests += pool->rests < RESTS_MAX;
}

static void entry_is_ready(struct pool_entry *entry)
{
    /* CPU time before the run is not the run's; a waiting occupant uses none. */
    entry->stats.cpu_us_at_start = counters_cpu_us(entry->fd[CPU_COUNTER]);
    entry->stats.cpu_us = 0;
    entry->ready = true;
    entry->pool->ready++;
    entry->pool->making--;
    entry->pool->failures = 0;
    entry->pool->rests = 0;
    refill_soon(&engine_of(entry->pool)->pools);
}

static void on_words(struct loop_source *source, uint32_t events)
{
    struct pool_entry *entry = loop_owner(source, struct pool_entry, words);
    char bytes[512];
    (void)events;
    ssize_t n = read(source->fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        entry_fail(entry);
        return;
    }
    driver_feed(&entry->driver, bytes, (size_t)n);
    if (!entry->driver.ready)
        return;
    loop_remove(&engine_of(entry->pool)->loop, source);
    entry_is_ready(entry);
}

/* The small zygote's forks have no large packages to rehearse with. */
static enum zygote_rehearsal rehearsal_of(const struct pool *pool)
{
    enum zygote_rehearsal usual = kinds[pool->id].rehearsal;
    return usual == ZYGOTE_REHEARSE_ALL && pool->set->number > 0 ? ZYGOTE_REHEARSE : usual;
}

static int entry_start(struct pool_entry *entry)
{
    struct pool *pool = entry->pool;
    struct pool_zygote *zygote = zygote_of(pool);
    struct box_call call = pool->plan.start;
    bool forked = is_forked(pool);
    int fds[1 + BOX_CHANNEL] = { pool->plan.exec_block };
    call.op = forked ? BOX_OP_FORK : BOX_OP_START;
    call.box = entry->box;
    call.start.zygote = zygote->id;
    call.start.rehearsal = rehearsal_of(pool);
    if ((forked && zygote->state != ZYGOTE_READY) ||
        house_open_channel(entry->fd + BOX_STARTED_WORDS, fds + 1) < 0)
        return -1;
    zygote->forks += forked;
    int failed = house_call(&engine_of(pool)->house, &call, fds + forked, array_len(fds) - forked);
    close(fds[1 + BOX_WORDS]);
    close(fds[1 + BOX_REQUESTS]);
    return failed;
}

static int entry_settle(struct pool_entry *entry, const struct box_news *news,
                        int fds[BOX_NEWS_FDS])
{
    for (int i = 0; i < BOX_NEWS_FDS; i++) {
        if (fds[i] >= 0)
            entry->fd[i] = take_fd(&fds[i]);
    }
    entry->walls = news->walls;
    entry->stats = news->stats;
    if (occupant_of(entry->pool) == SESSION) { /* it waits, but does not say so */
        entry_is_ready(entry);
        return 0;
    }
    entry->words = (struct loop_source){ .fd = entry->fd[BOX_STARTED_WORDS],
                                         .ready = LOOP_HANDLER(on_words) };
    return loop_add(&engine_of(entry->pool)->loop, &entry->words, EPOLLIN);
}

static void on_entry_news(struct house_tenant *tenant, const struct box_news *news,
                          int fds[BOX_NEWS_FDS])
{
    struct pool_entry *entry = loop_owner(tenant, struct pool_entry, tenant);
    bool failed = news->kind == BOX_NEWS_FAILED || news->kind == BOX_NEWS_EXITED ||
                  news->kind == BOX_NEWS_EMPTY;
    if (news->kind == BOX_NEWS_READY && occupant_of(entry->pool) == EMPTY)
        entry_is_ready(entry);
    else if (news->kind == BOX_NEWS_READY)
        failed = entry_start(entry) < 0;
    else if (news->kind == BOX_NEWS_STARTED)
        failed = entry_settle(entry, news, fds) < 0;
    if (failed)
        entry_fail(entry);
}

static bool entry_new(struct pool *pool)
{
    struct engine *engine = engine_of(pool);
    struct pool_entry *entry = buf_alloc_zero(1, sizeof *entry);
    *entry = (struct pool_entry){
        .tenant.news = on_entry_news, .pool = pool, .words.fd = -1, .driver = DRIVER_INIT
    };
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        entry->fd[i] = -1;
    entry->box = house_take(&engine->house, &entry->tenant);
    if (entry->box == HOUSE_NOBODY) {
        free(entry);
        return false;
    }
    entry->after = pool->entries;
    pool->entries = entry;
    pool->making++;
    pool->plan.create.box = entry->box;
    if (house_call(&engine->house, &pool->plan.create, pool->plan.plant_fds,
                   pool->plan.create.create.plants.count) == 0)
        return true;
    return false; /* the house is broken: its listener drops everything */
}

/* --- filling --- */

static bool can_make(const struct pools *pools, const struct pool *pool)
{
    const struct engine *engine = pools->engine;
    bool zygote = !is_forked(pool) || zygote_of(pool)->state == ZYGOTE_READY;
    bool room = engine->house.taken + engine->queue.going_max < engine->house.limit;
    return !pool->shut && !pool->set->image->old && zygote && room &&
           pool->failures < FAILURES_MAX && pool->ready + pool->making < pool->wanted;
}

static void on_refill(struct loop_timer *timer)
{
    struct pools *pools = loop_owner(timer, struct pools, refill);
    struct pool *best = NULL;
    if (clock_now_ns() < pools->taken_ns + PAUSE_MS * CLOCK_MS) {
        refill_soon(pools);
        return;
    }
    /* One at a time in each pool, the emptiest pool first. */
    for (int i = 0; i < POOL_SETS * POOL_COUNT; i++) {
        struct pool_set *set = &pools->set[i / POOL_COUNT];
        struct pool *pool = &set->at[i % POOL_COUNT];
        if (!set->image || pool->making > 0)
            continue; /* its news calls us again */
        if (!can_make(pools, pool))
            continue;
        if (!best || pool->ready * best->wanted < best->ready * pool->wanted)
            best = pool;
    }
    if (best && entry_new(best))
        refill_soon(pools);
}

/* By one, if it is idle. */
static void shrink(struct pool *pool, bool idle)
{
    if (clock_now_ns() >= pool->rest_ns)
        pool->failures = 0;
    if (!idle || pool->wanted <= floor_of(pool) || is_fixed(pool))
        return;
    pool->wanted--;
    for (struct pool_entry *entry = pool->entries; entry; entry = entry->after) {
        if (entry->ready && pool->ready > pool->wanted) {
            entry_drop(entry);
            return;
        }
    }
}

static void on_tend(struct loop_timer *timer)
{
    struct pools *pools = loop_owner(timer, struct pools, tend);
    int64_t now = clock_now_ns();
    loop_set_timer(&pools->engine->loop, timer, now + TEND_MS * CLOCK_MS);
    for (int i = 0; i < POOL_SETS; i++) {
        struct pool_set *set = &pools->set[i];
        bool idle = now - set->taken_ns > SHRINK_MS * CLOCK_MS;
        for (int j = 0; j < POOL_COUNT && set->image; j++)
            shrink(&set->at[j], idle);
    }
    engine_look_at_image(pools->engine);
    images_tidy(pools->engine);
    pools_tend_sets(pools, now);
    pools_tend_zygotes(pools, now);
    refill_soon(pools);
}

void pools_drop_set(struct pool_set *set)
{
    for (int i = 0; i < POOL_COUNT; i++) {
        struct pool *pool = &set->at[i];
        while (pool->entries)
            entry_drop(pool->entries);
        request_done(&pool->request);
        plan_done(&pool->plan);
    }
}

void pools_drop_forked(struct pools *pools, enum pool_zygote_kind kind)
{
    for (int i = 0; i < POOL_SETS * POOL_COUNT; i++) {
        struct pool_set *set = &pools->set[i / POOL_COUNT];
        struct pool *pool = &set->at[i % POOL_COUNT];
        bool of_it = set->image && is_forked(pool) &&
                     pools_zygote_kind(set, kinds[pool->id].zygote) == kind;
        while (of_it && pool->entries)
            entry_drop(pool->entries);
    }
}

void pools_refill(struct pools *pools)
{
    refill_soon(pools);
}

/* --- taking --- */

static struct pool *pool_for(struct pool_set *set, const struct request *request)
{
    static const enum pool_id ids[REQUEST_LANGUAGES] = {
        [REQUEST_PYTHON] = POOL_PYTHON, [REQUEST_JAVASCRIPT] = POOL_JAVASCRIPT,
        [REQUEST_BASH] = POOL_BASH,     [REQUEST_TYPESCRIPT] = POOL_JAVASCRIPT,
        [REQUEST_R] = POOL_COUNT,       [REQUEST_JAVA] = POOL_COUNT, /* start cold */
    };
    enum pool_id id = ids[request->language];
    if (id == POOL_PYTHON && pools_uses_data_packages(request))
        id = POOL_PYTHON_DATA;
    if (id == POOL_COUNT || (id == POOL_BASH && !plan_bash_may_wait(request)))
        return NULL;
    struct pool *pool = set ? &set->at[id] : NULL;
    return pool && !pool->shut && plan_may_be_late(request) &&
                   plan_same_box(request, &pool->request)
               ? pool
               : NULL;
}

static struct pool_entry *take(struct pool *pool, struct house_tenant *tenant)
{
    struct pools *pools = &engine_of(pool)->pools;
    struct pool_entry *entry = pool->entries;
    pools->taken_ns = pool->set->taken_ns = clock_now_ns();
    refill_soon(pools);
    while (entry && !entry->ready)
        entry = entry->after;
    if (!entry && is_fixed(pool))
        return NULL;
    if (!entry) {
        unsigned most = ceiling_of(pool);
        pool->wanted = pool->wanted * 2 < most ? pool->wanted * 2 : most;
        return NULL;
    }
    house_hand_over(&engine_of(pool)->house, entry->box, tenant);
    entry_unlink(entry);
    return entry;
}

static bool take_occupant(struct pool *pool, struct house_tenant *tenant, struct pool_taken *out)
{
    struct pool_entry *entry = pool ? take(pool, tenant) : NULL;
    if (!entry)
        return false;
    *out = (struct pool_taken){ .box = entry->box, .walls = entry->walls, .stats = entry->stats };
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        out->fd[i] = take_fd(&entry->fd[i]);
    entry_free(entry);
    return true;
}

bool pools_take(struct pools *pools, struct engine_image *image, const struct request *request,
                struct house_tenant *tenant, struct pool_taken *out)
{
    return take_occupant(pool_for(pools_set(pools, image), request), tenant, out);
}

bool pools_take_session(struct pools *pools, struct engine_image *image,
                        const struct request *request, struct house_tenant *tenant,
                        struct pool_taken *out)
{
    struct pool_set *set = pools_set(pools, image);
    struct pool *pool = set ? &set->at[POOL_SESSION] : NULL;
    return pool && !pool->shut && request->language == REQUEST_PYTHON &&
           plan_may_be_late(request) && plan_same_box(request, &pool->request) &&
           take_occupant(pool, tenant, out);
}

uint32_t pools_take_box(struct pools *pools, struct engine_image *image,
                        const struct request *request, struct house_tenant *tenant)
{
    struct pool_set *set = pools_find_set(pools, image);
    struct pool *pool = set ? &set->at[POOL_BOX] : NULL;
    if (!pool || pool->shut || request->language != REQUEST_PYTHON ||
        !plan_same_box(request, &pool->request))
        return HOUSE_NOBODY;
    struct pool_entry *entry = take(pool, tenant);
    if (!entry)
        return HOUSE_NOBODY;
    uint32_t box = entry->box;
    entry_free(entry);
    return box;
}

/* --- open, close, describe --- */

int pools_open_pool(struct pool *pool, struct pool_set *set, enum pool_id id, struct err *err)
{
    struct request_ceilings ceilings = { .host_memory_bytes = INT64_C(1) << 40 };
    const struct image *image = &set->image->image;
    struct err lacks = ERR_INIT;
    own_json object = json_pack("{s:s, s:s}", "language",
                                request_languages[kinds[id].language].name, "code", "");
    *pool = (struct pool){ .set = set, .id = id, .request = REQUEST_INIT, .plan = PLAN_INIT };
    pool->wanted = is_fixed(pool) ? set->engine->options.pool_size : floor_of(pool);
    if (request_from_json(object, &ceilings, &pool->request, err) < 0)
        return -1;
    pool->shut = (set->number > 0 && plan_check_installed(&pool->request, image, &lacks) < 0) ||
                 (kinds[id].occupant == SESSION && !set->forks);
    return pool->shut
               ? 0
               : plan_pool(&pool->request, image, kinds[id].occupant == SESSION, &pool->plan, err);
}

int pools_open(struct pools *pools, struct engine *engine, struct err *err)
{
    *pools = (struct pools){ .engine = engine, .open = true };
    loop_due(&pools->refill, on_refill);
    loop_due(&pools->tend, on_tend);
    if (pools_open_host(pools, err) < 0)
        return -1;
    pools_listen_to_zygotes(pools);
    on_tend(&pools->tend);
    return 0;
}

void pools_close(struct pools *pools)
{
    if (!pools->engine)
        return;
    pools->open = false;
    loop_set_timer(&pools->engine->loop, &pools->refill, LOOP_NEVER);
    loop_set_timer(&pools->engine->loop, &pools->tend, LOOP_NEVER);
    pools_close_sets(pools);
    pools->engine = NULL;
}

json_t *pools_describe(const struct pools *pools)
{
    json_t *list = json_array();
    for (int i = 0; i < POOL_SETS * POOL_COUNT && pools->engine; i++) {
        const struct pool_set *set = &pools->set[i / POOL_COUNT];
        const struct pool *pool = &set->at[i % POOL_COUNT];
        char name[128];
        if (!set->image || (set->number > 0 && pool->shut))
            continue;
        snprintf(name, sizeof name, "%s%s%s", kinds[pool->id].name, set->number ? "@" : "",
                 set->number ? set->image->asked : "");
        json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:i}", "name", name, "ready",
                                              (int)pool->ready, "making", (int)pool->making,
                                              "wanted", (int)pool->wanted));
    }
    return list;
}
