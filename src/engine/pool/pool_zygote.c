/* Python's zygotes, of image `host`: started in the background, replaced on a schedule and when the
 * image changes, so that no memory layout lives for ever and no stale package is served. Without
 * one, Python is exec'd like the others. Runs in the engine. */
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
#define LIVED_MS 3000 /* one that ends before failed, too: an image's Python may crash later */
#define AWAIT_MS 10000 /* a session waits for its start so long */

static const char *const names[ZYGOTE_KINDS] = { "python", "python_data" };

static void start(struct pools *pools, enum pool_zygote_kind kind)
{
    struct engine *engine = pools->engine;
    struct engine_image *host = pools->set[0].image;
    struct pool_zygotes *zygotes = &pools->zygotes[kind];
    struct err err = ERR_INIT;
    struct plan plan;
    prepare_find_fonts(engine, host, /* make= */ false);
    const struct plan_image in = plan_image_of(host, /* fonts= */ true);
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
        .id = 2 * (uint32_t)kind + (zygotes->serving.id + 1) % 2,
        .generation = ++pools->generations,
        .since_ns = clock_now_ns(),
    };
    plan.create.box = zygotes->coming.id;
    house_call(&engine->house, &plan.create, fds, count);
    plan_done(&plan);
}
_Static_assert(POOL_ZYGOTES <= BOX_ZYGOTES_MAX, "one serving and one starting");

static void retire(struct engine *engine, struct pool_zygote *zygote)
{
    if (zygote->state != ZYGOTE_NONE)
        house_ask(&engine->house, BOX_OP_RETIRE, zygote->id);
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
    if (zygotes->shut || !pools->set[0].image)
        return;
    if (serving->state == ZYGOTE_READY && now - serving->since_ns > LIVED_MS * CLOCK_MS)
        zygotes->failures = 0;
    if (zygotes->coming.state == ZYGOTE_STARTING &&
        now - zygotes->coming.since_ns > START_MS * CLOCK_MS) {
        retire(pools->engine, &zygotes->coming);
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
    if (!pools->open || news->box >= POOL_ZYGOTES || !pools->set[0].image)
        return;
    enum pool_zygote_kind kind = news->box / 2;
    struct pool_zygotes *zygotes = &pools->zygotes[kind];
    bool coming = zygotes->coming.state == ZYGOTE_STARTING && news->box == zygotes->coming.id;
    if (news->kind == BOX_NEWS_ZYGOTE && coming) {
        retire(pools->engine, &zygotes->serving);
        zygotes->serving = zygotes->coming;
        zygotes->serving.state = ZYGOTE_READY;
        zygotes->coming.state = ZYGOTE_NONE;
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
    for (int i = 0; i < ZYGOTE_KINDS; i++)
        tend(pools, (enum pool_zygote_kind)i, now);
}

void pools_end_zygotes(struct pools *pools)
{
    for (int i = 0; i < ZYGOTE_KINDS; i++) {
        struct pool_zygotes *zygotes = &pools->zygotes[i];
        if (zygotes->coming.state != ZYGOTE_NONE)
            zygotes->serving.id = zygotes->coming.id; /* the next one has another number */
        retire(pools->engine, &zygotes->serving);
        retire(pools->engine, &zygotes->coming);
    }
}

void pools_zygote_failed(struct pools *pools, uint32_t zygote)
{
    struct pool_zygotes *zygotes = &pools->zygotes[zygote % POOL_ZYGOTES / 2];
    if (zygotes->serving.id == zygote) {
        retire(pools->engine, &zygotes->serving);
        zygotes->failures++;
    }
    pools_tend_zygotes(pools, clock_now_ns());
}

static bool names_data_packages(struct str text)
{
    static const char *const words[] = { "pandas", "numpy",   "matplotlib", "sympy",
                                         "scipy",  "sklearn", "seaborn",    "statsmodels" };
    for (size_t i = 0; i < array_len(words); i++) {
        if (memmem(text.at, text.len, words[i], strlen(words[i])))
            return true;
    }
    return false;
}

bool pools_uses_data_packages(const struct request *request)
{
    bool found = names_data_packages(request->code);
    for (size_t i = 0; i < request->file_count && !found; i++) {
        struct str path = str_of(request->files[i].path);
        found = path.len > 3 && memcmp(path.at + path.len - 3, ".py", 3) == 0 &&
                names_data_packages(request->files[i].data);
    }
    return found;
}

enum pool_zygote_kind pools_zygote_kind(const struct pool_set *set, enum pool_zygote_kind usual)
{
    return set->number == 0 ? usual : ZYGOTE_PLAIN;
}

static bool is_host(const struct engine_image *image)
{
    return !image->image.hex[0];
}

static bool find_zygote(struct pools *pools, struct engine_image *image, enum pool_zygote_kind kind,
                        uint32_t *out_zygote)
{
    const char *why;
    if (!pools->open || !plan_can_fork(&image->image, &why))
        return false;
    if (!is_host(image))
        kind = ZYGOTE_PLAIN;
    else if (pools->zygotes[kind].serving.state != ZYGOTE_READY)
        kind = ZYGOTE_KINDS - 1 - kind; /* the other one can do it, too */
    struct pool_zygote *zygote = &pools->zygotes[kind].serving;
    if (zygote->state != ZYGOTE_READY)
        return false;
    struct pool_set *set = pools_find_set(pools, image);
    pools->taken_ns = clock_now_ns();
    if (set)
        set->taken_ns = pools->taken_ns;
    zygote->forks++;
    *out_zygote = zygote->id;
    return true;
}

bool pools_zygote(struct pools *pools, struct engine_image *image, const struct request *request,
                  uint32_t *out_zygote)
{
    return request->language == REQUEST_PYTHON && plan_may_be_late(request) &&
           find_zygote(pools, image, pools_uses_data_packages(request) ? ZYGOTE_DATA : ZYGOTE_PLAIN,
                       out_zygote);
}

bool pools_session_zygote(struct pools *pools, struct engine_image *image,
                          const struct request *request, uint32_t *out_zygote)
{
    return plan_may_be_late(request) && find_zygote(pools, image, ZYGOTE_DATA, out_zygote);
}

bool pools_zygote_is_coming(struct pools *pools, struct engine_image *image,
                            const struct request *request)
{
    const char *why;
    bool coming = false;
    int64_t since_ns = clock_now_ns() - AWAIT_MS * CLOCK_MS;
    if (!pools->open || !plan_can_fork(&image->image, &why))
        return false;
    for (int i = 0; i < (is_host(image) ? ZYGOTE_KINDS : 1 + ZYGOTE_PLAIN); i++) {
        const struct pool_zygotes *zygotes = &pools->zygotes[i];
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
    for (int i = 0; i < POOL_ZYGOTES; i++) {
        const struct pool_zygotes *zygotes = &pools->zygotes[i / 2];
        const struct pool_zygote *one = i % 2 ? &zygotes->coming : &zygotes->serving;
        if (one->state == ZYGOTE_NONE)
            continue;
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", "name", names[i / 2], "state",
                                              states[one->state], "generation",
                                              (json_int_t)one->generation, "forks",
                                              (json_int_t)one->forks));
    }
    return list;
}
