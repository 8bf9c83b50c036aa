/* Python's zygotes: started in the background, replaced on a schedule and when the
 * image changes, so that no memory layout lives for ever and no stale package is
 * served. While there is none, Python is exec'd as everything else. Runs in the
 * engine. */
#include "base/clock.h"
#include "engine/engine_int.h"

#include <stdio.h>
#include <string.h>

#define MS INT64_C(1000000)
#define LIFE_MS (30 * 60000) /* of one zygote */
#define FORKS_MAX 20000
#define FAILURES_MAX 3
#define RETRY_MS 60000 /* after too many failures */

static void start(struct pools *pools)
{
    struct engine *engine = pools->engine;
    struct err err = ERR_INIT;
    struct plan plan;
    const char *fonts = engine->font_fd >= 0 ? engine->font_list : NULL;
    int fds[BOX_PLANTS_MAX + 1];
    if (plan_zygote(fonts, engine->font_fd, &plan, &err) < 0)
        return;
    size_t count = plan.create.zygote.plants.count;
    for (size_t i = 0; i < count; i++)
        fds[i] = plan.plant_fds[i];
    fds[count++] = plan.exec_block;
    pools->coming = (struct pool_zygote){
        .state = ZYGOTE_STARTING, .id = (pools->serving.id + 1) % BOX_ZYGOTES_MAX,
        .generation = ++pools->generations, .since_ns = clock_now_ns(),
    };
    plan.create.box = pools->coming.id;
    house_call(&engine->house, &plan.create, fds, count);
    plan_done(&plan);
}

static void retire(struct pools *pools, struct pool_zygote *zygote)
{
    if (zygote->state != ZYGOTE_NONE)
        house_ask(&pools->engine->house, BOX_OP_RETIRE, zygote->id);
    zygote->state = ZYGOTE_NONE;
}

static void on_zygote_news(struct house_tenant *tenant, const struct box_news *news,
                           int fds[BOX_NEWS_FDS])
{
    struct pools *pools = loop_owner(tenant, struct pools, tenant);
    (void)fds;
    if (!pools->open)
        return;
    bool coming = pools->coming.state == ZYGOTE_STARTING && news->box == pools->coming.id;
    if (news->kind == BOX_NEWS_ZYGOTE && coming) {
        retire(pools, &pools->serving);
        pools->serving = pools->coming;
        pools->serving.state = ZYGOTE_READY;
        pools->coming.state = ZYGOTE_NONE;
        pools->zygote_failures = 0;
        pools_drop_forked(pools); /* what waits is of the old one */
        pools_refill(pools);
    } else if (news->kind == BOX_NEWS_ZYGOTE_GONE) {
        struct pool_zygote *gone = coming ? &pools->coming : &pools->serving;
        if (gone->id != news->box)
            return;
        gone->state = ZYGOTE_NONE;
        if (++pools->zygote_failures == FAILURES_MAX)
            fprintf(stderr, "cupel: the Python zygote does not start; runs go on without it\n");
        pools_tend_zygotes(pools, clock_now_ns());
    }
}

void pools_listen_to_zygotes(struct pools *pools)
{
    pools->tenant.news = on_zygote_news;
    pools->engine->house.zygote_tenant = &pools->tenant;
}

void pools_tend_zygotes(struct pools *pools, int64_t now)
{
    const struct pool_zygote *serving = &pools->serving;
    bool old = serving->state == ZYGOTE_NONE || serving->forks > FORKS_MAX ||
               now - serving->since_ns > LIFE_MS * MS;
    if (pools->coming.state != ZYGOTE_NONE || !old)
        return;
    bool too_often = pools->zygote_failures >= FAILURES_MAX;
    if (!too_often || now - pools->coming.since_ns > RETRY_MS * MS)
        start(pools);
}

void pools_image_changed(struct pools *pools)
{
    if (!pools->open)
        return;
    /* All of it has yesterday's packages. */
    retire(pools, &pools->serving);
    retire(pools, &pools->coming);
    pools_drop_all(pools);
    pools_tend_zygotes(pools, clock_now_ns());
}

void pools_zygote_failed(struct pools *pools)
{
    retire(pools, &pools->serving);
    pools->zygote_failures++;
    pools_tend_zygotes(pools, clock_now_ns());
}

json_t *pools_describe_zygotes(const struct pools *pools)
{
    static const char *const states[] = { "none", "starting", "ready" };
    const struct pool_zygote *const both[] = { &pools->serving, &pools->coming };
    json_t *list = json_array();
    for (size_t i = 0; i < array_len(both); i++) {
        if (both[i]->state != ZYGOTE_NONE)
            json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", "name", "python", "state",
                                                  states[both[i]->state], "generation",
                                                  (json_int_t)both[i]->generation, "forks",
                                                  (json_int_t)both[i]->forks));
    }
    return list;
}
