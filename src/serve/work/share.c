/* Runs that need not run: a result in memory, one in the store, or an identical run under way. Runs
 * in the serve process, in its loop.
 *
 * 1. An owner gets its own results alone: the owner is part of every comparison.
 * 2. The first of identical runs leads; the others wait for its result. If it may not be reused, or
 *    is a stored one that is too old for them, each of them runs for itself. If it was cancelled,
 *    also while it ran, or refused, the next one leads. They wait in the order in which they came.
 * 3. The store has the last word: a result in memory is given if its run is still the one that is
 *    stored. The thread of records looks.
 * 4. They share its artifacts, and get copies of its text a few in a turn. A text that is long, or
 *    long for so many, is not shared: the others run for themselves. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/work/work_int.h"

#define TELL_MAX 64 /* runs that are told in one turn */
#define TELL_BYTES ((size_t)4 << 20) /* of their text, after which no other one is */
#define SHARED_TEXT ((size_t)4 << 20) /* bytes of a longer text are made again by each run */
#define SHARED_BYTES ((size_t)256 << 20) /* of the texts of all that share a run's result */

static void tell_soon(struct works *works);

/* --- hits --- */

static void tell_hit(struct work *work)
{
    work->works->hit_count++;
    if (work->hooks.on_event && !work->deaf)
        work_retell(buf_str(&work->json), work->hooks.on_event, work->hooks.user);
    work_tell(work, NULL);
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

static void flight_free(struct flight *flight)
{
    result_done(&flight->result);
    buf_done(&flight->head);
    free(flight);
}

/* To one that waited. */
static void give(struct flight *from, struct work *to)
{
    char tail[RESULT_TAIL_ROOM];
    to->result.status = from->result.status;
    to->result.recorded = from->result.recorded;
    to->result.cached_age_s = from->age_s;
    memcpy(to->result.run, from->result.run, sizeof to->result.run);
    to->result.artifacts = result_artifacts_share(from->result.artifacts,
                                                  from->result.artifact_count);
    to->result.artifact_count = from->result.artifact_count;
    buf_add_str(&to->json, buf_str(&from->head));
    buf_add_str(&to->json, result_tail(to->result.recorded, from->age_s, tail));
}

/* Bytes of text that it took. */
static size_t tell_landed(struct works *works)
{
    struct flight *flight = works->landed;
    size_t bytes = flight->head.len;
    struct work *work = flight->waiting ? take_waiting(flight, flight->waiting) : NULL;
    if (!flight->waiting) {
        works->landed = flight->next;
        if (!works->landed)
            works->last_landed = &works->landed;
    }
    bool last = !flight->waiting;
    if (work)
        give(flight, work);
    if (last)
        flight_free(flight);
    if (work)
        tell_hit(work);
    return bytes;
}

/* As many as are told without keeping others waiting; the rest in the next turn. */
static void on_soon(struct loop_timer *timer)
{
    struct works *works = loop_owner(timer, struct works, soon);
    size_t bytes = 0;
    for (int i = 0; i < TELL_MAX && bytes < TELL_BYTES && (works->hits || works->landed); i++) {
        struct work *work = works->hits;
        if (!work) {
            bytes += tell_landed(works);
            continue;
        }
        works->hits = work->next;
        if (!works->hits)
            works->last_hit = &works->hits;
        bytes += work->json.len;
        tell_hit(work);
    }
    if (works->hits || works->landed)
        tell_soon(works);
}

static void tell_soon(struct works *works)
{
    loop_due(&works->soon, on_soon);
    loop_set_timer(works->loop, &works->soon, clock_now_ns());
}

void work_hit(struct work *work)
{
    struct works *works = work->works;
    work->stage = WORK_HIT;
    work->next = NULL;
    *works->last_hit = work;
    works->last_hit = &work->next;
    tell_soon(works);
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

static void join_last(struct flight *flight, struct work *work)
{
    work->flight = flight;
    work->before_me = flight->last;
    work->next = NULL;
    *flight->last = work;
    flight->last = &work->next;
}

static bool follow(struct work *work)
{
    struct flight *flight = work->works->flights;
    while (flight && !is_same(flight->leader, work))
        flight = flight->after;
    if (!flight)
        return false;
    work->stage = WORK_WAITS;
    join_last(flight, work);
    return true;
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
    flight_free(flight);
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

static void ask_store(struct work *work, records_found *found)
{
    work->stage = WORK_WAITS;
    records_find_cached(work->works->records, work->key, work->owner, work->request->cache_ttl_s,
                        work->result.run, found, work);
}

/* A result in memory whose run another process may have removed, or run again. */
static void on_checked(void *user, struct records_hit *hit)
{
    struct work *work = user;
    bool over = work->works->stopping || work->err.kind != ERR_NONE;
    if (!over && hit && hit->known) {
        tell_hit(work);
        return;
    }
    if (!over)
        cache_forget(work->works->cache, work->result.run);
    result_done(&work->result);
    result_init(&work->result);
    buf_done(&work->json);
    work->json = BUF_INIT(WORK_JSON_MAX);
    if (!over && follow(work))
        return;
    if (!over)
        lead(work);
    on_found(work, hit);
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
    bool is_hit = cache_find(works->cache, work);
    if (is_hit && works->records) {
        ask_store(work, on_checked);
        return true;
    }
    if (is_hit) {
        work_hit(work);
        return true;
    }
    if (follow(work))
        return true;
    lead(work);
    if (!works->records)
        return false;
    ask_store(work, on_found);
    return true;
}

/* --- the end of a run --- */

/* Those whom the result does not suit run for themselves. How many get it. */
static int64_t choose(struct flight *flight, const struct work *work, size_t text_bytes)
{
    bool reusable = work->key[0] && text_bytes <= SHARED_TEXT;
    double age_s = work->result.cached_age_s < 0 ? 0 : work->result.cached_age_s;
    int64_t given = 0;
    struct flight others = { .last = &others.waiting };
    for (struct work *one = flight->waiting, *next; one; one = next) {
        next = one->next;
        bool room = (size_t)(given + 1) * text_bytes <= SHARED_BYTES;
        if (reusable && room && age_s <= (double)one->request->cache_ttl_s)
            given++;
        else
            join_last(&others, take_waiting(flight, one));
    }
    while (others.waiting)
        start_or_tell(take_waiting(&others, others.waiting));
    return given;
}

/* They get it when that run is gone. */
static void land(struct works *works, struct flight *flight, struct work *work)
{
    char tail[RESULT_TAIL_ROOM];
    struct result *result = &flight->result;
    size_t old = result_tail(work->result.recorded, work->result.cached_age_s, tail).len;
    result_init(result);
    result->status = work->result.status;
    result->recorded = work->result.recorded;
    memcpy(result->run, work->result.run, sizeof result->run);
    result->artifacts = result_artifacts_share(work->result.artifacts, work->result.artifact_count);
    result->artifact_count = work->result.artifact_count;
    flight->age_s = work->result.cached_age_s < 0 ? 0 : work->result.cached_age_s;
    flight->head = BUF_INIT(WORK_JSON_MAX);
    buf_add(&flight->head, work->json.at, work->json.len - old);
    for (struct work *one = flight->waiting; one; one = one->next)
        one->stage = WORK_HIT;
    flight->next = NULL;
    *works->last_landed = flight;
    works->last_landed = &flight->next;
    tell_soon(works);
}

void work_spread(struct work *work)
{
    struct works *works = work->works;
    struct flight *flight = take_ptr(work->flight);
    if (!flight)
        return;
    if (work->result.status == RESULT_INTERRUPTED) {
        pass_on(works, flight);
        return;
    }
    if (work->key[0] && work->result.cached_age_s < 0)
        cache_add(works->cache, work, 0, work->request->cache_ttl_s);
    close_flight(works, flight);
    int64_t given = choose(flight, work, work->json.len);
    works->shared_count += (uint64_t)given;
    if (given > 0 && works->records)
        records_note_hits(works->records, work->result.run, given);
    if (given > 0)
        land(works, flight, work);
    else
        flight_free(flight);
}

void works_end_flights(struct works *works)
{
    while (works->flights) {
        struct flight *flight = works->flights;
        close_flight(works, flight);
        flight_free(flight);
    }
    while (works->landed) {
        struct flight *flight = works->landed;
        works->landed = flight->next;
        flight_free(flight);
    }
}
