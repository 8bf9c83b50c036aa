/* Boxes prepared ahead, with an interpreter that waits in each, and the zygotes
 * that Python's are forked from. */
#ifndef ENGINE_POOL_POOL_H
#define ENGINE_POOL_POOL_H

#include <jansson.h>

#include "contract/request.h"
#include "engine/talk/driver.h"
#include "engine/pool/house.h"
#include "engine/talk/plan.h"

struct engine;

/* POOL_BOX: boxes for Python in which nobody waits yet. POOL_SESSION: interpreters of sessions,
 * which can be copied; others cannot become one. */
enum pool_id {
    POOL_BOX, POOL_PYTHON, POOL_PYTHON_DATA, POOL_SESSION, POOL_JAVASCRIPT, POOL_BASH, POOL_COUNT
};

/* An occupant that waits, or its box while it is made ready. */
struct pool_entry {
    struct house_tenant tenant;
    struct pool *pool;
    uint32_t box;
    int fd[BOX_NEWS_FDS];
    uint32_t walls;
    struct box_stats stats;
    struct loop_source words; /* until it says that it waits */
    struct driver driver;
    bool ready;
    struct pool_entry *after;
};

struct pool {
    struct engine *engine;
    enum pool_id id;
    struct pool_entry *entries;
    unsigned ready, making, wanted;
    unsigned failures; /* in a row */
    struct request request; /* what a box of this pool is made for */
    struct plan plan;
};

/* Python's zygotes: with the standard library, and with the large packages too, whose
 * many libraries cost each fork and its end more than a small program does. */
enum pool_zygote_kind { ZYGOTE_PLAIN, ZYGOTE_DATA, ZYGOTE_KINDS };
struct pool_zygote {
    enum { ZYGOTE_NONE, ZYGOTE_STARTING, ZYGOTE_READY } state;
    uint32_t id;
    uint64_t generation, forks;
    int64_t since_ns;
};
/* Of one kind: one serves, another may be on its way to replace it. */
struct pool_zygotes {
    struct pool_zygote serving, coming;
    unsigned failures; /* in a row; too many: no zygote */
};

struct pools {
    struct engine *engine;
    struct house_tenant tenant; /* hears of zygotes */
    struct pool at[POOL_COUNT];
    struct pool_zygotes zygotes[ZYGOTE_KINDS];
    uint64_t generations;
    struct loop_timer refill, tend;
    int64_t taken_ns; /* the last time that one was asked for */
    bool open;
};

/* Make everything ready in the background. */
int pools_open(struct pools *pools, struct engine *engine, struct err *err);
void pools_close(struct pools *pools);

/* An occupant that waits and may run this request, handed to the new tenant; its
 * descriptors move to out_fd. False: there is none. */
struct pool_taken {
    uint32_t box, walls;
    int fd[BOX_NEWS_FDS];
    struct box_stats stats;
};
bool pools_take(struct pools *pools, const struct request *request, struct house_tenant *tenant,
                struct pool_taken *out);
/* The same for a session, at its begin. */
bool pools_take_session(struct pools *pools, const struct request *request,
                        struct house_tenant *tenant, struct pool_taken *out);
/* An empty box that is what this request needs; HOUSE_NOBODY: there is none. */
uint32_t pools_take_box(struct pools *pools, const struct request *request,
                        struct house_tenant *tenant);
/* May this request be forked from a zygote, and from which? False: exec. */
bool pools_zygote(struct pools *pools, const struct request *request, uint32_t *out_zygote);
/* The same for a session: with the large packages, where there is one. */
bool pools_session_zygote(struct pools *pools, const struct request *request,
                          uint32_t *out_zygote);
/* There is none, but it will not be long: what is exec'd instead could not be copied. False of
 * one that takes too long, or has failed too often. */
bool pools_zygote_is_coming(const struct pools *pools, const struct request *request);
/* The image is another one now: everything is made anew. */
void pools_image_changed(struct pools *pools);
/* It did not work: the zygote is replaced. */
void pools_zygote_failed(struct pools *pools, uint32_t zygote);

/* pool_zygote.c, and what it needs of pool.c. */
/* Does the code look as if it used the large packages? A wrong guess costs time. */
bool pools_uses_data_packages(const struct request *request);
void pools_listen_to_zygotes(struct pools *pools);
void pools_tend_zygotes(struct pools *pools, int64_t now);
void pools_drop_forked(struct pools *pools, enum pool_zygote_kind kind);
void pools_drop_all(struct pools *pools);
void pools_refill(struct pools *pools);

/* What is there, for describe. */
json_t *pools_describe(const struct pools *pools);
json_t *pools_describe_zygotes(const struct pools *pools);

#endif
