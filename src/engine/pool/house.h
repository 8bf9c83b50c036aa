/* The engine's boxes: who has which, and what the broker says of them. A box is
 * taken by a tenant, may be handed on, and is vacated: then it is killed, waited
 * for and released here, off everybody's path. */
#ifndef ENGINE_POOL_HOUSE_H
#define ENGINE_POOL_HOUSE_H

#include "base/loop.h"
#include "box/host/box.h"

#define HOUSE_NOBODY UINT32_MAX

/* What has a box, or started a zygote: a member of a run, a pool entry, ... */
struct house_tenant {
    /* News of its box. Descriptors that are set to -1 are taken over, the rest are
     * closed afterwards. */
    void (*news)(struct house_tenant *tenant, const struct box_news *news,
                 int fds[BOX_NEWS_FDS]);
};

struct house {
    struct box_broker broker;
    struct loop *loop;
    struct loop_source source; /* the broker's socket */
    struct {
        struct house_tenant *tenant;
        bool taken;   /* by a tenant, or being vacated */
        bool created; /* the broker has it: it must be released */
        bool empty;   /* and every process of it is gone */
        int hold;     /* kept open until it is killed; -1: nothing */
    } box[BOX_MAX];
    uint32_t next, taken, limit;
    uint32_t doomed[BOX_MAX]; /* vacated and clean: killed in a quiet moment */
    unsigned doomed_count;
    struct loop_timer quiet;
    struct house_tenant *zygote_tenant; /* who hears of zygotes */
    struct err broken;                  /* of kind ERR_NONE while all is well */
    void (*on_broken)(struct house *house);   /* nothing can run any more */
    void (*on_released)(struct house *house); /* there is room for one more */
    int64_t last_kill_to_empty_us;
};

/* The broker is open already. 0, or -1 with errno. */
int house_open(struct house *house, struct loop *loop);
void house_close(struct house *house);

/* A free box for a tenant, or HOUSE_NOBODY where all are taken. */
uint32_t house_take(struct house *house, struct house_tenant *tenant);
void house_hand_over(struct house *house, uint32_t box, struct house_tenant *tenant);
/* The tenant leaves. `clean`: it hit no limit, so that its box dies as it is, and a
 * moment later, when nobody waits for an answer; until then `hold` is kept open (-1:
 * nothing), which keeps an occupant that waits for its end from dying by itself. */
void house_vacate(struct house *house, uint32_t box, bool clean, int hold);

/* Send a call. Where the broker is gone, on_broken is called, and -1 is returned. */
int house_call(struct house *house, const struct box_call *call, const int *fds, size_t count);
/* Give the broker up: its death takes every box with it. */
void house_break(struct house *house, const char *why);
/* As house_call, without arguments. */
int house_ask(struct house *house, enum box_op op, uint32_t box);

/* A channel with an occupant: our ends, which do not block, and the occupant's. 0, or -1 with
 * errno. */
int house_open_channel(int ours[BOX_CHANNEL], int theirs[BOX_CHANNEL]);

#endif
