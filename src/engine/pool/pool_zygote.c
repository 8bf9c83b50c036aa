/* Python's zygotes: started in the background, replaced on a schedule and when the image changes,
 * so that no memory layout lives for ever and no stale package is served. Without one, Python is
 * exec'd like the others. Runs in the engine. */
#include "base/clock.h"
#include "base/io.h"
#include "engine/engine_int.h"

#include <stdio.h>
#include <string.h>

#define LIFE_MS (30 * 60000) /* of one zygote */
#define FORKS_MAX 20000
#define FAILURES_MAX 3
#define RETRY_MS 60000 /* after too many failures */
#define START_MS 60000 /* to be ready; a slower one hangs */
#define AWAIT_MS 10000 /* a session waits for its start so long */

static const char *const names[ZYGOTE_KINDS] = { "python", "python_data" };

static void start(struct pools *pools, enum pool_zygote_kind kind)
{
    struct engine *engine = pools->engine;
    struct pool_zygotes *zygotes = &pools->zygotes[kind];
    struct err err = ERR_INIT;
    struct plan plan;
    const char *fonts = engine->font_fd >= 0 ? engine->font_list : NULL;
    int fds[BOX_PLANTS_MAX + 1];
    _Static_assert(sizeof fds <= IO_FDS_MAX * sizeof *fds, "one message carries all of them");
    if (plan_zygote(kind == ZYGOTE_DATA, fonts, engine->font_fd, &plan, &err) < 0)
        return;
    size_t count = plan.create.zygote.plants.count;
    for (size_t i = 0; i < count; i++)
        fds[i] = plan.plant_fds[i];
    fds[count++] = plan.exec_block;
    zygotes->coming = (struct pool_zygote){
        .state = ZYGOTE_STARTING, .id = 2 * (uint32_t)kind + (zygotes->serving.id + 1) % 2,
        .generation = ++pools->generations, .since_ns = clock_now_ns(),
    };
    plan.create.box = zygotes->coming.id;
    house_call(&engine->house, &plan.create, fds, count);
    plan_done(&plan);
}
_Static_assert(2 * ZYGOTE_KINDS <= BOX_ZYGOTES_MAX, "one serving and one starting");

static void retire(struct pools *pools, struct pool_zygote *zygote)
{
    if (zygote->state != ZYGOTE_NONE)
        house_ask(&pools->engine->house, BOX_OP_RETIRE, zygote->id);
    zygote->state = ZYGOTE_NONE;
}

static void count_failure(struct pools *pools, enum pool_zygote_kind kind)
{
    if (++pools->zygotes[kind].failures == FAILURES_MAX)
        fprintf(stderr, "cupel: the %s zygote does not start; runs continue without it\n",
                names[kind]);
}

static void tend(struct pools *pools, enum pool_zygote_kind kind, int64_t now)
{
    struct pool_zygotes *zygotes = &pools->zygotes[kind];
    const struct pool_zygote *serving = &zygotes->serving;
    bool old = serving->state == ZYGOTE_NONE || serving->forks > FORKS_MAX ||
               now - serving->since_ns > LIFE_MS * CLOCK_MS;
    if (zygotes->coming.state == ZYGOTE_STARTING &&
        now - zygotes->coming.since_ns > START_MS * CLOCK_MS) {
        retire(pools, &zygotes->coming);
        count_failure(pools, kind);
    }
    if (zygotes->coming.state != ZYGOTE_NONE || !old)
        return;
    bool too_often = zygotes->failures >= FAILURES_MAX;
    if (!too_often || now - zygotes->coming.since_ns > RETRY_MS * CLOCK_MS)
        start(pools, kind);
}

static void on_zygote_news(struct house_tenant *tenant, const struct box_news *news,
                           int fds[BOX_NEWS_FDS])
{
    struct pools *pools = loop_owner(tenant, struct pools, tenant);
    (void)fds;
    if (!pools->open || news->box >= 2 * ZYGOTE_KINDS)
        return;
    enum pool_zygote_kind kind = news->box / 2;
    struct pool_zygotes *zygotes = &pools->zygotes[kind];
    bool coming = zygotes->coming.state == ZYGOTE_STARTING && news->box == zygotes->coming.id;
    if (news->kind == BOX_NEWS_ZYGOTE && coming) {
        retire(pools, &zygotes->serving);
        zygotes->serving = zygotes->coming;
        zygotes->serving.state = ZYGOTE_READY;
        zygotes->coming.state = ZYGOTE_NONE;
        zygotes->failures = 0;
        pools_drop_forked(pools, kind); /* waiting occupants are forks of the old one */
        pools_refill(pools);
    } else if (news->kind == BOX_NEWS_ZYGOTE_GONE) {
        struct pool_zygote *gone = coming ? &zygotes->coming : &zygotes->serving;
        if (gone->id != news->box)
            return;
        gone->state = ZYGOTE_NONE;
        count_failure(pools, kind);
        tend(pools, kind, clock_now_ns());
    }
}

void pools_listen_to_zygotes(struct pools *pools)
{
    pools->tenant.news = on_zygote_news;
    pools->engine->house.zygote_tenant = &pools->tenant;
}

void pools_tend_zygotes(struct pools *pools, int64_t now)
{
    for (enum pool_zygote_kind kind = 0; kind < ZYGOTE_KINDS; kind++)
        tend(pools, kind, now);
}

void pools_image_changed(struct pools *pools)
{
    if (!pools->open)
        return;
    /* All of them have the old packages. */
    for (int i = 0; i < ZYGOTE_KINDS; i++) {
        retire(pools, &pools->zygotes[i].serving);
        retire(pools, &pools->zygotes[i].coming);
    }
    pools_drop_all(pools);
    pools_tend_zygotes(pools, clock_now_ns());
}

void pools_zygote_failed(struct pools *pools, uint32_t zygote)
{
    struct pool_zygotes *zygotes = &pools->zygotes[zygote / 2];
    if (zygotes->serving.id == zygote) {
        retire(pools, &zygotes->serving);
        zygotes->failures++;
    }
    pools_tend_zygotes(pools, clock_now_ns());
}

static bool find_zygote(struct pools *pools, enum pool_zygote_kind kind, uint32_t *out_zygote)
{
    if (pools->zygotes[kind].serving.state != ZYGOTE_READY)
        kind = ZYGOTE_KINDS - 1 - kind; /* the other one can do it, too */
    struct pool_zygote *zygote = &pools->zygotes[kind].serving;
    if (zygote->state != ZYGOTE_READY)
        return false;
    pools->taken_ns = clock_now_ns();
    zygote->forks++;
    *out_zygote = zygote->id;
    return true;
}

bool pools_zygote(struct pools *pools, const struct request *request, uint32_t *out_zygote)
{
    return pools->open && request->language == REQUEST_PYTHON && plan_may_be_late(request) &&
           find_zygote(pools, pools_uses_data_packages(request) ? ZYGOTE_DATA : ZYGOTE_PLAIN,
                       out_zygote);
}

bool pools_session_zygote(struct pools *pools, const struct request *request, uint32_t *out_zygote)
{
    return pools->open && plan_may_be_late(request) && find_zygote(pools, ZYGOTE_DATA, out_zygote);
}

bool pools_zygote_is_coming(const struct pools *pools, const struct request *request)
{
    bool coming = false;
    int64_t since_ns = clock_now_ns() - AWAIT_MS * CLOCK_MS;
    for (int i = 0; i < ZYGOTE_KINDS; i++) {
        const struct pool_zygotes *zygotes = &pools->zygotes[i];
        if (zygotes->serving.state == ZYGOTE_READY)
            return false;
        coming = coming ||
                 (zygotes->coming.state == ZYGOTE_STARTING && zygotes->coming.since_ns > since_ns &&
                  zygotes->failures < FAILURES_MAX);
    }
    return coming && pools->open && plan_may_be_late(request);
}

json_t *pools_describe_zygotes(const struct pools *pools)
{
    static const char *const states[] = { "none", "starting", "ready" };
    json_t *list = json_array();
    for (int i = 0; i < 2 * ZYGOTE_KINDS; i++) {
        const struct pool_zygotes *zygotes = &pools->zygotes[i / 2];
        const struct pool_zygote *one = i % 2 ? &zygotes->coming : &zygotes->serving;
        if (one->state != ZYGOTE_NONE)
            json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", "name", names[i / 2],
                                                  "state", states[one->state], "generation",
                                                  (json_int_t)one->generation, "forks",
                                                  (json_int_t)one->forks));
    }
    return list;
}
