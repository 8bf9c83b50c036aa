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
#define LIVED_MS 3000  /* one that ends before failed, too: an image's Python may crash later */
#define AWAIT_MS 10000 /* a session waits for its start so long */

static const char *const names[ZYGOTE_KINDS] = { "python", "python_data" };

static void start(struct pool_set *set, enum pool_zygote_kind kind)
{
    struct engine *engine = set->engine;
    struct pool_zygotes *zygotes = &set->zygotes[kind];
    struct err err = ERR_INIT;
    struct plan plan;
    prepare_find_fonts(engine, set->image, /* make= */ false);
    const struct plan_image in = plan_image_of(set->image, /* fonts= */ true);
    int fds[BOX_PLANTS_MAX + 1];
    _Static_assert(sizeof fds <= IO_FDS_MAX * sizeof *fds, "one message carries all of them");
    if (plan_zygote(kind == ZYGOTE_DATA, &in, &plan, &err) < 0)
        return;
    size_t count = plan.create.zygote.plants.count;
    for (size_t i = 0; i < count; i++)
        fds[i] = plan.plant_fds[i];
    fds[count++] = plan.exec_block;
    zygotes->coming = (struct pool_zygote){
        .state = ZYGOTE_STARTING,
        .id = POOL_ZYGOTES * set->number + 2 * (uint32_t)kind + (zygotes->serving.id + 1) % 2,
        .generation = ++engine->pools.generations, .since_ns = clock_now_ns(),
    };
    plan.create.box = zygotes->coming.id;
    house_call(&engine->house, &plan.create, fds, count);
    plan_done(&plan);
}
_Static_assert(POOL_SETS *POOL_ZYGOTES <= BOX_ZYGOTES_MAX, "one serving and one starting");

static void retire(struct engine *engine, struct pool_zygote *zygote)
{
    if (zygote->state != ZYGOTE_NONE)
        house_ask(&engine->house, BOX_OP_RETIRE, zygote->id);
    zygote->state = ZYGOTE_NONE;
}

static void count_failure(struct pool_set *set, enum pool_zygote_kind kind)
{
    if (++set->zygotes[kind].failures == FAILURES_MAX)
        fprintf(stderr,
                "cupel: the %s zygote of image %s does not start; runs continue without it\n",
                names[kind], set->image->asked);
}

static void tend(struct pool_set *set, enum pool_zygote_kind kind, int64_t now)
{
    struct pool_zygotes *zygotes = &set->zygotes[kind];
    const struct pool_zygote *serving = &zygotes->serving;
    bool old = serving->state == ZYGOTE_NONE || serving->forks > FORKS_MAX ||
               now - serving->since_ns > LIFE_MS * CLOCK_MS;
    if (zygotes->shut)
        return;
    if (serving->state == ZYGOTE_READY && now - serving->since_ns > LIVED_MS * CLOCK_MS)
        zygotes->failures = 0;
    if (zygotes->coming.state == ZYGOTE_STARTING &&
        now - zygotes->coming.since_ns > START_MS * CLOCK_MS) {
        retire(set->engine, &zygotes->coming);
        count_failure(set, kind);
    }
    if (zygotes->coming.state != ZYGOTE_NONE || !old)
        return;
    bool too_often = zygotes->failures >= FAILURES_MAX;
    if (!too_often || now - zygotes->coming.since_ns > RETRY_MS * CLOCK_MS)
        start(set, kind);
}

static void on_zygote_news(struct house_tenant *tenant, const struct box_news *news,
                           int fds[BOX_NEWS_FDS])
{
    struct pools *pools = loop_owner(tenant, struct pools, tenant);
    (void)fds;
    if (!pools->open || news->box >= POOL_SETS * POOL_ZYGOTES)
        return;
    struct pool_set *set = &pools->set[news->box / POOL_ZYGOTES];
    enum pool_zygote_kind kind = news->box % POOL_ZYGOTES / 2;
    struct pool_zygotes *zygotes = &set->zygotes[kind];
    if (!set->image)
        return; /* of an image that is closed */
    bool coming = zygotes->coming.state == ZYGOTE_STARTING && news->box == zygotes->coming.id;
    if (news->kind == BOX_NEWS_ZYGOTE && coming) {
        retire(pools->engine, &zygotes->serving);
        zygotes->serving = zygotes->coming;
        zygotes->serving.state = ZYGOTE_READY;
        zygotes->coming.state = ZYGOTE_NONE;
        pools_drop_forked(set, kind); /* waiting occupants are forks of the old one */
        pools_refill(pools);
    } else if (news->kind == BOX_NEWS_ZYGOTE_GONE) {
        struct pool_zygote *gone = coming ? &zygotes->coming : &zygotes->serving;
        if (gone->id != news->box)
            return;
        gone->state = ZYGOTE_NONE;
        count_failure(set, kind);
        tend(set, kind, clock_now_ns());
    }
}

void pools_listen_to_zygotes(struct pools *pools)
{
    pools->tenant.news = on_zygote_news;
    pools->engine->house.zygote_tenant = &pools->tenant;
}

void pools_tend_zygotes(struct pools *pools, int64_t now)
{
    for (int i = 0; i < POOL_SETS * ZYGOTE_KINDS; i++) {
        struct pool_set *set = &pools->set[i / ZYGOTE_KINDS];
        if (set->image)
            tend(set, (enum pool_zygote_kind)(i % ZYGOTE_KINDS), now);
    }
}

void pools_end_zygotes(struct pool_set *set)
{
    for (int i = 0; i < ZYGOTE_KINDS; i++) {
        struct pool_zygotes *zygotes = &set->zygotes[i];
        if (zygotes->coming.state != ZYGOTE_NONE)
            zygotes->serving.id = zygotes->coming.id; /* the next one has another number */
        retire(set->engine, &zygotes->serving);
        retire(set->engine, &zygotes->coming);
    }
}

void pools_zygote_failed(struct pools *pools, uint32_t zygote)
{
    struct pool_set *set = &pools->set[zygote / POOL_ZYGOTES % POOL_SETS];
    struct pool_zygotes *zygotes = &set->zygotes[zygote % POOL_ZYGOTES / 2];
    if (set->image && zygotes->serving.id == zygote) {
        retire(pools->engine, &zygotes->serving);
        zygotes->failures++;
    }
    pools_tend_zygotes(pools, clock_now_ns());
}

static bool find_zygote(struct pool_set *set, enum pool_zygote_kind kind, uint32_t *out_zygote)
{
    if (set->zygotes[kind].serving.state != ZYGOTE_READY)
        kind = ZYGOTE_KINDS - 1 - kind; /* the other one can do it, too */
    struct pool_zygote *zygote = &set->zygotes[kind].serving;
    if (zygote->state != ZYGOTE_READY)
        return false;
    set->engine->pools.taken_ns = set->taken_ns = clock_now_ns();
    zygote->forks++;
    *out_zygote = zygote->id;
    return true;
}

bool pools_zygote(struct pools *pools, const struct engine_image *image,
                  const struct request *request, uint32_t *out_zygote)
{
    struct pool_set *set = pools_find_set(pools, image);
    return set && request->language == REQUEST_PYTHON && plan_may_be_late(request) &&
           find_zygote(set, pools_uses_data_packages(request) ? ZYGOTE_DATA : ZYGOTE_PLAIN,
                       out_zygote);
}

bool pools_session_zygote(struct pools *pools, const struct engine_image *image,
                          const struct request *request, uint32_t *out_zygote)
{
    struct pool_set *set = pools_find_set(pools, image);
    return set && plan_may_be_late(request) && find_zygote(set, ZYGOTE_DATA, out_zygote);
}

bool pools_zygote_is_coming(struct pools *pools, struct engine_image *image,
                            const struct request *request)
{
    struct pool_set *set = pools_find_set(pools, image);
    bool coming = !set && pools->asked == image;
    int64_t since_ns = clock_now_ns() - AWAIT_MS * CLOCK_MS;
    for (int i = 0; set && i < ZYGOTE_KINDS; i++) {
        const struct pool_zygotes *zygotes = &set->zygotes[i];
        if (zygotes->serving.state == ZYGOTE_READY)
            return false;
        coming = coming ||
                 (zygotes->coming.state == ZYGOTE_STARTING && zygotes->coming.since_ns > since_ns &&
                  zygotes->failures < FAILURES_MAX);
    }
    return coming && plan_may_be_late(request);
}

json_t *pools_describe_zygotes(const struct pools *pools)
{
    static const char *const states[] = { "none", "starting", "ready" };
    json_t *list = json_array();
    for (int i = 0; i < POOL_SETS * POOL_ZYGOTES; i++) {
        const struct pool_set *set = &pools->set[i / POOL_ZYGOTES];
        const struct pool_zygotes *zygotes = &set->zygotes[i % POOL_ZYGOTES / 2];
        const struct pool_zygote *one = i % 2 ? &zygotes->coming : &zygotes->serving;
        char name[128];
        if (!set->image || one->state == ZYGOTE_NONE)
            continue;
        snprintf(name, sizeof name, "%s%s%s", names[i % POOL_ZYGOTES / 2], set->number ? "@" : "",
                 set->number ? set->image->asked : "");
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", "name", name, "state",
                                              states[one->state], "generation",
                                              (json_int_t)one->generation, "forks",
                                              (json_int_t)one->forks));
    }
    return list;
}
