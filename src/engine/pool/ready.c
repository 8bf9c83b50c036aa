/* A first empty box, built before an engine reports that it is ready: an engine that cannot build
 * any must say so, and why. Runs in the engine. */
#include "box/host/box.h"
#include "engine/engine_int.h"

struct probe {
    struct house_tenant tenant;
    bool over;
    struct box_news news; /* READY, or the failure */
};

static void on_news(struct house_tenant *tenant, const struct box_news *news, int fds[BOX_NEWS_FDS])
{
    struct probe *probe = loop_owner(tenant, struct probe, tenant);
    (void)fds;
    probe->news = *news;
    probe->over = true;
}

int engine_probe(struct engine *engine, struct err *err)
{
    struct probe probe = { .tenant.news = on_news };
    struct box_call create = {
        .op = BOX_OP_CREATE,
        .create = { .memory_bytes = 64 << 20, .disk_bytes = 1 << 20, .disk_inodes = 64, .pids = 8,
                    .cpu_thousandths = 1000 },
    };
    struct house *house = &engine->house;
    create.box = house_take(house, &probe.tenant);
    if (create.box != HOUSE_NOBODY)
        house_call(house, &create, NULL, 0);
    while (!probe.over && house->broken.kind == ERR_NONE) {
        if (loop_turn(&engine->loop) < 0)
            return err_sys(err, "wait for a first box");
    }
    if (create.box != HOUSE_NOBODY)
        house_vacate(house, create.box, /* clean= */ false, /* hold= */ -1);
    if (house->broken.kind != ERR_NONE) {
        *err = house->broken;
        return -1;
    }
    return probe.news.kind == BOX_NEWS_READY ? 0 : box_failure(&probe.news, err);
}
