/* The engine's boxes: their tenants, and the broker's news of them. A tenant takes a box, may hand
 * it on, and vacates it: the house then kills, awaits and releases the box, without delaying
 * anybody. */
#ifndef ENGINE_POOL_HOUSE_H
#define ENGINE_POOL_HOUSE_H

#include "base/loop.h"
#include "box/host/box.h"

#define HOUSE_NOBODY UINT32_MAX

/* Owns a box, or started a zygote: part of a run, a pool entry, ... */
struct house_tenant {
    /* News of its box. Takes over descriptors that it sets to -1; the others are closed
     * afterwards. */
    void (*news)(struct house_tenant *tenant, const struct box_news *news, int fds[BOX_NEWS_FDS]);
};

struct house_call; /* one that waits for room in the socket */

struct house {
    struct box_broker broker;
    struct loop *loop;
    struct loop_source source; /* the broker's socket */
    struct house_call *calls, **calls_end;
    struct {
        struct house_tenant *tenant;
        bool taken;   /* by a tenant, or being vacated */
        bool created; /* the broker has it: it must be released */
        bool empty;   /* all its processes are gone */
        int hold;     /* kept open until it is killed; -1: nothing */
    } box[BOX_MAX];
    uint32_t next, taken, limit;
    uint32_t doomed[BOX_MAX]; /* vacated and clean: killed in a quiet moment */
    unsigned doomed_count;
    struct loop_timer quiet;
    struct house_tenant *zygote_tenant; /* gets the news of zygotes */
    struct err broken;                  /* of kind ERR_NONE while the broker works */
    void (*on_broken)(struct house *house);   /* nothing can run any more */
    void (*on_released)(struct house *house); /* a box is free again */
};

/* The broker is already open. 0, or -1 with errno. */
int house_open(struct house *house, struct loop *loop);
void house_close(struct house *house);

/* A free box for a tenant, or HOUSE_NOBODY if all are taken. */
uint32_t house_take(struct house *house, struct house_tenant *tenant);
/* The one box that shows folders and files of the caller. */
uint32_t house_take_attached(struct house *house, struct house_tenant *tenant);
void house_hand_over(struct house *house, uint32_t box, struct house_tenant *tenant);
/* The tenant leaves. `clean`: it hit no limit, so its box may be killed a little later, when nobody
 * waits for an answer; until then `hold` is kept open (-1: nothing), which keeps a waiting occupant
 * alive. */
void house_vacate(struct house *house, uint32_t box, bool clean, int hold);

/* Sends a call, now or as soon as the socket has room: it never waits for the broker. If the broker
 * is gone, calls on_broken and returns -1. */
int house_call(struct house *house, const struct box_call *call, const int *fds, size_t count);
/* Gives up the broker: every box dies with it. */
void house_break(struct house *house, const char *why);
/* As house_call, without arguments. */
int house_ask(struct house *house, enum box_op op, uint32_t box);

/* A channel to an occupant: our ends, non-blocking, and its ends. 0, or -1 with errno. */
int house_open_channel(int ours[BOX_CHANNEL], int theirs[BOX_CHANNEL]);

/* house_call.c: house_call without breaking down. */
int house_call_send(struct house *house, const struct box_call *call, const int *fds, size_t count);
/* Sends calls that wait; 0, or -1 if the broker is gone. */
int house_calls_send(struct house *house);
void house_calls_done(struct house *house);

#endif
