/* Boxes prepared ahead, each with a waiting interpreter, and the zygotes that fork Python's. */
#ifndef ENGINE_POOL_POOL_H
#define ENGINE_POOL_POOL_H

#include <jansson.h>

#include "contract/request.h"
#include "engine/talk/driver.h"
#include "engine/pool/house.h"
#include "engine/talk/plan.h"

struct engine;

/* POOL_BOX: empty boxes for Python. POOL_SESSION: interpreters of sessions, which can be copied;
 * other ones cannot become one. */
enum pool_id {
    POOL_BOX,
    POOL_PYTHON,
    POOL_PYTHON_DATA,
    POOL_SESSION,
    POOL_JAVASCRIPT,
    POOL_BASH,
    POOL_COUNT
};

/* A waiting occupant, or its box during preparation. */
struct pool_entry {
    struct house_tenant tenant;
    struct pool *pool;
    uint32_t box;
    int fd[BOX_NEWS_FDS];
    uint32_t walls;
    struct box_stats stats;
    struct loop_source words; /* until it reports that it waits */
    struct driver driver;
    bool ready;
    struct pool_entry *after;
};

struct pool_set;
struct pool {
    struct pool_set *set;
    enum pool_id id;
    struct pool_entry *entries;
    unsigned ready, making, wanted;
    unsigned failures; /* in a row */
    unsigned rests;    /* that many times in a row it was given up for a while, */
    int64_t rest_ns;   /* and until then */
    bool shut;         /* the image lacks the language */
    struct request request; /* the request that its boxes are made for */
    struct plan plan;
};

/* Python's zygotes: with the standard library, or with the large packages too, whose many libraries
 * make each fork and exit slower. */
enum pool_zygote_kind { ZYGOTE_PLAIN, ZYGOTE_DATA, ZYGOTE_KINDS };
struct pool_zygote {
    enum { ZYGOTE_NONE, ZYGOTE_STARTING, ZYGOTE_READY } state;
    uint32_t id;
    uint64_t generation, forks;
    int64_t since_ns;
};
/* Of one kind: one serves, another may be starting to replace it. */
struct pool_zygotes {
    struct pool_zygote serving, coming;
    unsigned failures; /* in a row; too many: no zygote */
    bool shut; /* the image has no use for this kind */
};
#define POOL_ZYGOTES (2 * ZYGOTE_KINDS) /* numbers of zygotes */

/* The pools of one image. A box of a set never serves another image: the set is found by the
 * image's digest. Zygotes are the host's, since a zygote has a power over boxes and files of a
 * stored image are anybody's. Images that only add packages beside the host's (image.beside) fork
 * from the small one; it has imported none that they could replace. */
struct pool_set {
    struct engine *engine;
    unsigned number; /* its place in pools->set; 0: image `host` */
    struct engine_image *image; /* held; NULL: the set is free */
    bool forks; /* from the host's zygotes */
    struct pool at[POOL_COUNT];
    int64_t taken_ns; /* time of the last request */
};
#define POOL_SETS 4

struct pools {
    struct engine *engine;
    struct house_tenant tenant; /* gets the news of zygotes */
    struct pool_set set[POOL_SETS];
    struct pool_zygotes zygotes[ZYGOTE_KINDS];
    struct engine_image *asked; /* held: a set is opened for it soon, or NULL */
    uint64_t generations;
    struct loop_timer refill, tend;
    int64_t taken_ns; /* time of the last request */
    bool open;
};

int pools_open(struct pools *pools, struct engine *engine, struct err *err);
void pools_close(struct pools *pools);

/* A waiting occupant that may run this request, handed to the new tenant; its descriptors move to
 * out_fd. False: there is none. */
struct pool_taken {
    uint32_t box, walls;
    int fd[BOX_NEWS_FDS];
    struct box_stats stats;
};
bool pools_take(struct pools *pools, struct engine_image *image, const struct request *request,
                struct house_tenant *tenant, struct pool_taken *out);
/* The same for a session, at its start. */
bool pools_take_session(struct pools *pools, struct engine_image *image,
                        const struct request *request, struct house_tenant *tenant,
                        struct pool_taken *out);
/* An empty box that fits this request; HOUSE_NOBODY: there is none. */
uint32_t pools_take_box(struct pools *pools, struct engine_image *image,
                        const struct request *request, struct house_tenant *tenant);
/* The zygote that may fork this request's occupant. False: exec. */
bool pools_zygote(struct pools *pools, struct engine_image *image, const struct request *request,
                  uint32_t *out_zygote);
/* The same for a session: of `host` with the large packages if available. */
bool pools_session_zygote(struct pools *pools, struct engine_image *image,
                          const struct request *request, uint32_t *out_zygote);
/* No zygote yet, but soon; an exec'd interpreter could not be copied. False if it takes too long,
 * or failed too often. */
bool pools_zygote_is_coming(struct pools *pools, struct engine_image *image,
                            const struct request *request);
/* A fork failed: replaces the zygote. */
void pools_zygote_failed(struct pools *pools, uint32_t zygote);

/* pool_set.c: `host` has a set always, others while they are used: opened in the background when an
 * image is used twice within a minute, closed when it was not used for some minutes, or when
 * another image takes its place. */
/* The set of an image; NULL: it has none (yet). Notes that the image is used. */
struct pool_set *pools_set(struct pools *pools, struct engine_image *image);
/* The same without a note. */
struct pool_set *pools_find_set(struct pools *pools, const struct engine_image *image);
int pools_open_host(struct pools *pools, struct err *err);
void pools_close_sets(struct pools *pools);
/* Opens the set that is asked for; closes those that are unused, or whose image is old. */
void pools_tend_sets(struct pools *pools, int64_t now);

/* pool_zygote.c, and its needs from pool.c. */
/* Does the code seem to use the large packages? A wrong guess costs time. */
bool pools_uses_data_packages(const struct request *request);
void pools_listen_to_zygotes(struct pools *pools);
void pools_tend_zygotes(struct pools *pools, int64_t now);
void pools_end_zygotes(struct pools *pools);
/* Drops the waiting forks of one kind. */
void pools_drop_forked(struct pools *pools, enum pool_zygote_kind kind);
/* The kind that serves a set's occupants. */
enum pool_zygote_kind pools_zygote_kind(const struct pool_set *set, enum pool_zygote_kind usual);
void pools_drop_set(struct pool_set *set);
int pools_open_pool(struct pool *pool, struct pool_set *set, enum pool_id id, struct err *err);
void pools_refill(struct pools *pools);

json_t *pools_describe(const struct pools *pools);
json_t *pools_describe_zygotes(const struct pools *pools);

#endif
