/* Sets of pools, one for each image in use. Runs in the engine, in its loop. */
#include <string.h>

#include "base/clock.h"
#include "engine/engine_int.h"
#include "image/contents.h"

#define AGAIN_MS 60000 /* two uses within this open a set */
#define IDLE_MS 300000 /* unused for so long, a set is closed */
#define REST_MS 10000  /* used within this, it leaves its place to nobody */

struct pool_set *pools_find_set(struct pools *pools, const struct engine_image *image)
{
    for (int i = 0; i < POOL_SETS && pools->open; i++) {
        struct pool_set *set = &pools->set[i];
        if (set->image && strcmp(set->image->image.digest, image->image.digest) == 0)
            return set;
    }
    return NULL;
}

struct pool_set *pools_set(struct pools *pools, struct engine_image *image)
{
    int64_t now = clock_now_ns();
    struct pool_set *set = pools_find_set(pools, image);
    bool again = image->taken_ns && now - image->taken_ns < AGAIN_MS * CLOCK_MS;
    image->taken_ns = now;
    if (set)
        set->taken_ns = now;
    if (set || !pools->open || !again || pools->asked || image->old)
        return set;
    pools->asked = images_hold(image);
    loop_set_timer(&pools->engine->loop, &pools->tend, 0);
    return NULL;
}

static void close_set(struct pool_set *set)
{
    struct engine *engine = set->engine;
    if (!set->image)
        return;
    if (set->number == 0)
        pools_end_zygotes(&engine->pools);
    pools_drop_set(set);
    struct engine_image *image = set->image;
    set->image = NULL;
    images_drop(engine, image);
}

/* Keeps the numbers of zygotes: the next one of each kind has another than the last. */
static int open_set(struct pools *pools, struct pool_set *set, struct engine_image *image,
                    struct err *err)
{
    const char *why;
    set->engine = pools->engine;
    set->number = (unsigned)(set - pools->set);
    set->image = images_hold(image);
    set->forks = plan_can_fork(&image->image, &why);
    set->taken_ns = clock_now_ns();
    for (int i = 0; i < ZYGOTE_KINDS && set->number == 0; i++) {
        pools->zygotes[i].failures = 0;
        pools->zygotes[i].shut = !set->forks;
    }
    int failed = 0;
    for (int i = 0; i < POOL_COUNT; i++)
        failed |= pools_open_pool(&set->at[i], set, (enum pool_id)i, err);
    if (failed)
        close_set(set);
    return failed;
}

int pools_open_host(struct pools *pools, struct err *err)
{
    struct engine_image *host = images_find(pools->engine, "host", err);
    return host ? open_set(pools, &pools->set[0], host, err) : -1;
}

void pools_close_sets(struct pools *pools)
{
    for (int i = 0; i < POOL_SETS; i++)
        close_set(&pools->set[i]);
    images_drop(pools->engine, pools->asked);
    pools->asked = NULL;
}

/* A free one, or the one that was longest unused. */
static struct pool_set *find_place(struct pools *pools, int64_t now)
{
    struct pool_set *best = NULL;
    for (int i = 1; i < POOL_SETS; i++) {
        struct pool_set *set = &pools->set[i];
        if (!set->image)
            return set;
        if (now - set->taken_ns > REST_MS * CLOCK_MS && (!best || set->taken_ns < best->taken_ns))
            best = set;
    }
    return best;
}

static void open_asked(struct pools *pools, int64_t now)
{
    struct engine_image *image = pools->asked;
    struct err ignored = ERR_INIT;
    pools->asked = NULL;
    struct pool_set *set = image->old || pools_find_set(pools, image) ? NULL
                                                                      : find_place(pools, now);
    if (set) {
        close_set(set);
        open_set(pools, set, image, &ignored);
    }
    images_drop(pools->engine, image);
}

void pools_tend_sets(struct pools *pools, int64_t now)
{
    struct err ignored = ERR_INIT;
    for (int i = 0; i < POOL_SETS; i++) {
        struct pool_set *set = &pools->set[i];
        bool idle = i > 0 && now - set->taken_ns > IDLE_MS * CLOCK_MS;
        if (set->image && (set->image->old || idle))
            close_set(set);
    }
    if (!pools->set[0].image)
        pools_open_host(pools, &ignored);
    if (pools->asked)
        open_asked(pools, now);
}
