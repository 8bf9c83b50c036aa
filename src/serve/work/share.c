/* Runs that need not run: a result in memory, one in the store, or an identical run under way. Runs
 * in the serve process, in its loop.
 *
 * 1. An owner gets its own results alone: the owner is part of every comparison.
 * 2. The first of identical runs leads; the others wait for its result. If it may not be reused, or
 *    is a stored one that is too old for them, each of them runs for itself. If it was cancelled,
 *    also while it ran, or refused, the next one leads. They wait in the order in which they came. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/work/work_int.h"

/* --- hits --- */

static void on_soon(struct loop_timer *timer)
{
    struct works *works = loop_owner(timer, struct works, soon);
    while (works->hits) {
        struct work *work = works->hits;
        works->hits = work->next;
        if (!works->hits)
            works->last_hit = &works->hits;
        works->hit_count++;
        if (work->hooks.on_event && !work->deaf)
            work_retell(buf_str(&work->json), work->hooks.on_event, work->hooks.user);
        work_tell(work, NULL);
    }
}

void work_hit(struct work *work)
{
    struct works *works = work->works;
    work->stage = WORK_HIT;
    work->next = NULL;
    *works->last_hit = work;
    works->last_hit = &work->next;
    loop_due(&works->soon, on_soon);
    loop_set_timer(works->loop, &works->soon, clock_now_ns());
}

/* --- flights --- */

static bool is_same(const struct work *a, const struct work *b)
{
    return strcmp(a->key, b->key) == 0 && strcmp(a->owner, b->owner) == 0;
}

static void lead(struct work *work)
{
    struct works *works = work->works;
    struct flight *flight = buf_alloc_zero(1, sizeof *flight);
    flight->leader = work;
    flight->last = &flight->waiting;
    flight->after = works->flights;
    if (works->flights)
        works->flights->before = flight;
    works->flights = flight;
    work->flight = flight;
}

static bool follow(struct work *work)
{
    struct flight *flight = work->works->flights;
    while (flight && !is_same(flight->leader, work))
        flight = flight->after;
    if (!flight)
        return false;
    work->stage = WORK_WAITS;
    work->flight = flight;
    work->before_me = flight->last;
    work->next = NULL;
    *flight->last = work;
    flight->last = &work->next;
    return true;
}

static struct work *take_waiting(struct flight *flight, struct work *work)
{
    *work->before_me = work->next;
    *(work->next ? &work->next->before_me : &flight->last) = work->before_me;
    work->before_me = NULL;
    work->next = NULL;
    work->flight = NULL;
    return work;
}

/* No further run joins it. */
static void close_flight(struct works *works, struct flight *flight)
{
    *(flight->before ? &flight->before->after : &works->flights) = flight->after;
    if (flight->after)
        flight->after->before = flight->before;
    flight->leader = NULL;
}

/* The leader does not run: another one does. */
static void pass_on(struct works *works, struct flight *flight)
{
    while (flight->waiting) {
        struct err err = ERR_INIT;
        struct work *heir = take_waiting(flight, flight->waiting);
        flight->leader = heir;
        heir->flight = flight;
        if (work_start(heir, &err) == 0)
            return;
        heir->flight = NULL;
        work_tell(heir, &err);
    }
    close_flight(works, flight);
    free(flight);
}

void work_leave(struct work *work)
{
    struct flight *flight = take_ptr(work->flight);
    if (!flight)
        return;
    if (flight->leader == work)
        pass_on(work->works, flight);
    else
        take_waiting(flight, work);
}

bool work_follows(const struct work *work)
{
    return work->flight && work->flight->leader != work;
}

static void start_or_tell(struct work *work)
{
    struct err err = ERR_INIT;
    if (work_start(work, &err) == 0)
        return;
    work_leave(work);
    work_tell(work, &err);
}

/* --- the store --- */

static void fill(struct work *work, struct records_hit *hit)
{
    own_json json = json_loadb(hit->json.at, hit->json.len, JSON_ALLOW_NUL, NULL);
    struct err err = ERR_INIT;
    char tail[RESULT_TAIL_ROOM];
    struct result read;
    result_init(&read);
    if (!json || !str_ends(hit->json, result_tail(true, -1, tail)) ||
        result_from_json(json, &read, &err) < 0) {
        result_done(&read);
        return;
    }
    work->result.status = read.status;
    memcpy(work->result.run, read.run, sizeof read.run);
    result_done(&read);
    work->result.artifacts = take_ptr(hit->artifacts);
    work->result.artifact_count = hit->artifact_count;
    hit->artifact_count = 0;
    work->result.recorded = true;
    size_t old = result_tail(/* recorded= */ true, /* cached_age_s= */ -1, tail).len;
    buf_add(&work->json, hit->json.at, hit->json.len - old);
    work->result.cached_age_s = hit->age_s;
    buf_add_str(&work->json, result_tail(true, hit->age_s, tail));
    cache_add(work->works->cache, work, hit->age_s, hit->ttl_s);
}

static void on_found(void *user, struct records_hit *hit)
{
    struct work *work = user;
    if (work->works->stopping && work->err.kind == ERR_NONE)
        err_set(&work->err, ERR_CANCELLED, "the engine is stopping");
    if (work->err.kind != ERR_NONE) {
        work_leave(work);
        work_tell(work, &work->err);
        return;
    }
    if (hit)
        fill(work, hit);
    if (work->json.len == 0) {
        start_or_tell(work);
        return;
    }
    work_spread(work);
    work_hit(work);
}

bool work_share(struct work *work)
{
    struct works *works = work->works;
    struct err ignored = ERR_INIT; /* engine_begin tells it */
    if (work->request->cache_ttl_s == 0 || work->request->session)
        return false;
    const char *digest = engine_image_digest(works->engine, work->request, &ignored);
    if (!digest)
        return false;
    request_cache_key(work->request, digest, work->key);
    if (cache_find(works->cache, work)) {
        work_hit(work);
        return true;
    }
    if (follow(work))
        return true;
    lead(work);
    if (!works->records)
        return false;
    work->stage = WORK_WAITS;
    records_find_cached(works->records, work->key, work->owner, work->request->cache_ttl_s,
                        on_found, work);
    return true;
}

/* --- the end of a run --- */

static void give(const struct work *from, struct work *to, double age_s)
{
    char tail[RESULT_TAIL_ROOM];
    size_t old = result_tail(from->result.recorded, from->result.cached_age_s, tail).len;
    to->result.status = from->result.status;
    to->result.recorded = from->result.recorded;
    to->result.cached_age_s = age_s;
    memcpy(to->result.run, from->result.run, sizeof to->result.run);
    cache_copy_artifacts(&to->result, from->result.artifacts, from->result.artifact_count);
    buf_add(&to->json, from->json.at, from->json.len - old);
    buf_add_str(&to->json, result_tail(to->result.recorded, age_s, tail));
}

void work_spread(struct work *work)
{
    struct works *works = work->works;
    struct flight *flight = take_ptr(work->flight);
    bool reusable = work->key[0];
    bool fresh = work->result.cached_age_s < 0;
    double age_s = fresh ? 0 : work->result.cached_age_s;
    int64_t given = 0;
    if (!flight)
        return;
    if (work->result.status == RESULT_INTERRUPTED) {
        pass_on(works, flight);
        return;
    }
    if (reusable && fresh)
        cache_add(works->cache, work, 0, work->request->cache_ttl_s);
    close_flight(works, flight);
    while (flight->waiting) {
        struct work *one = take_waiting(flight, flight->waiting);
        if (!reusable || age_s > (double)one->request->cache_ttl_s) {
            start_or_tell(one);
            continue;
        }
        give(work, one, age_s);
        given++;
        work_hit(one);
    }
    works->shared_count += (uint64_t)given;
    if (given > 0 && works->records)
        records_note_hits(works->records, work->result.run, given);
    free(flight);
}

void works_end_flights(struct works *works)
{
    while (works->flights) {
        struct flight *flight = works->flights;
        close_flight(works, flight);
        free(flight);
    }
}
