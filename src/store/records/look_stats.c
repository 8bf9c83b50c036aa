/* Figures over the runs of a window: what fails, what is slow, what it costs. Any process with a
 * connection. The catalog's rows are read once; memory does not grow with their number. */
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "base/own.h"
#include "store/records/catalog.h"
#include "store/records/look_int.h"
#include "store/records/look_tally.h"

#define BUCKETS_MAX 60
#define FAILURES_MAX 20
#define SLOWEST_MAX 5
#define TOKENS_MAX 100

/* Names of columns stand for their places in the question below. */
enum place { N, RUN, OWNER, STATUS, LANGUAGE, STARTED, WALL, CPU, MEMORY, KIND, NAME, REDACTED,
             HITS, ARTIFACTS, BYTES };
static const char rows_sql[] =
    "SELECT n, run, owner, status, language, started_ms, wall_ms, cpu_ms, memory_peak_bytes,"
    " error_kind, error_name, redacted, cached_hits, artifacts, bytes FROM catalog NOT INDEXED"
    " WHERE n > ?1 AND n < ?2 AND started_ms >= ?3 AND started_ms < ?4"
    " AND (?5 IS NULL OR owner = ?5) AND (?6 IS NULL OR status = ?6)"
    " AND (?7 IS NULL OR language = ?7) AND (?8 IS NULL OR session = ?8)"
    " AND (?9 IS NULL OR task = ?9) AND (?10 IS NULL OR code_sha256 = ?10) ORDER BY n DESC";

struct failure {
    struct look_tally_entry entry; /* named by status, kind and name, with a NUL between */
    int64_t newest;
};

struct language {
    struct look_tally_entry entry;
    double cpu_ms;
    struct look_spread wall;
};

struct token {
    struct look_tally_entry entry;
    uint64_t failed;
    double cpu_ms;
    int64_t bytes;
};

struct bucket {
    uint64_t runs, failed;
    struct look_spread wall;
};

struct stats {
    struct look_tally statuses, languages, failures, tokens;
    struct look_spread wall, memory;
    struct slow {
        int64_t n;
        double wall_ms;
    } slowest[SLOWEST_MAX];
    size_t slow_count;
    uint64_t runs;
    double cpu_ms, wall_ms;
    int64_t bytes, artifacts, redacted, hits;
    int64_t from_ms, until_ms, bucket_ms;
    size_t bucket_count;
    struct bucket buckets[BUCKETS_MAX];
};

/* --- the window --- */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int find_first(struct db *db, const char *owner, int64_t *out, struct err *err)
{
    struct db_query *query = db_ask(
        db,
        owner ? "SELECT started_ms FROM catalog INDEXED BY catalog_owner WHERE owner = ?1"
                " ORDER BY n LIMIT 1"
              : "SELECT min(started_ms) FROM catalog WHERE ?1 IS NULL",
        err);
    if (!query)
        return -1;
    look_put_text_or_null(query, 1, owner);
    int got = db_next(query, err);
    *out = got > 0 && !db_is_null(query, 0) ? db_int(query, 0) : now_ms();
    if (got > 0)
        db_stop(query);
    return got < 0 ? -1 : 0;
}

static int choose_window(struct db *db, const struct look_filter *filter, struct stats *stats,
                         struct err *err)
{
    static const int64_t widths_s[] = { 1, 2, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400, 604800,
                                        2419200, 31536000 };
    stats->from_ms = filter->since_ms;
    stats->until_ms = filter->until_ms ? filter->until_ms : now_ms() + 1;
    if (!filter->since_ms && find_first(db, filter->owner, &stats->from_ms, err) < 0)
        return -1;
    if (stats->until_ms <= stats->from_ms)
        stats->until_ms = stats->from_ms + 1;
    for (size_t i = 0; i < array_len(widths_s); i++) {
        stats->bucket_ms = widths_s[i] * 1000;
        int64_t from = stats->from_ms - stats->from_ms % stats->bucket_ms;
        int64_t count = (stats->until_ms - from + stats->bucket_ms - 1) / stats->bucket_ms;
        stats->bucket_count = (size_t)(count < BUCKETS_MAX ? count : BUCKETS_MAX);
        if (count <= BUCKETS_MAX)
            break;
    }
    return 0;
}

/* --- one run --- */

static void note_slow(struct stats *stats, int64_t n, double wall_ms)
{
    size_t at = stats->slow_count < SLOWEST_MAX ? stats->slow_count++ : SLOWEST_MAX - 1;
    if (at == SLOWEST_MAX - 1 && stats->slowest[at].n && stats->slowest[at].wall_ms >= wall_ms)
        return;
    for (; at > 0 && stats->slowest[at - 1].wall_ms < wall_ms; at--)
        stats->slowest[at] = stats->slowest[at - 1];
    stats->slowest[at] = (struct slow){ n, wall_ms };
}

static void note_failure(struct stats *stats, struct db_query *row)
{
    own_buf name = BUF_INIT(1024);
    static const enum place parts[] = { STATUS, KIND, NAME };
    for (size_t i = 0; i < array_len(parts); i++) {
        struct str part = db_text(row, parts[i]);
        part.len = str_cut_utf8(part, 200);
        buf_add_str(&name, part);
        buf_add(&name, "", 1);
    }
    struct failure *failure = (struct failure *)look_tally_find(&stats->failures, buf_str(&name));
    failure->entry.runs++;
    if (!failure->newest)
        failure->newest = db_int(row, N); /* the newest runs come first */
}

static struct bucket *bucket_of(struct stats *stats, int64_t started_ms)
{
    int64_t from = stats->from_ms - stats->from_ms % stats->bucket_ms;
    int64_t at = (started_ms - from) / stats->bucket_ms;
    int64_t last = (int64_t)stats->bucket_count - 1;
    return &stats->buckets[started_ms < from ? 0 : at < last ? at : last];
}

static void note(struct stats *stats, struct db_query *row)
{
    struct str status = db_text(row, STATUS);
    bool ended = !str_is(status, "started"), failed = ended && !str_is(status, "ok");
    double cpu_ms = db_real(row, CPU), wall_ms = db_real(row, WALL);
    struct language *language = (struct language *)look_tally_find(&stats->languages,
                                                                   db_text(row, LANGUAGE));
    struct token *token = (struct token *)look_tally_find(&stats->tokens, db_text(row, OWNER));
    struct bucket *bucket = bucket_of(stats, db_int(row, STARTED));
    look_tally_find(&stats->statuses, status)->runs++;
    language->entry.runs++;
    token->entry.runs++;
    bucket->runs++;
    stats->runs++;
    token->failed += failed;
    bucket->failed += failed;
    token->cpu_ms += cpu_ms;
    language->cpu_ms += cpu_ms;
    stats->cpu_ms += cpu_ms;
    stats->wall_ms += wall_ms;
    token->bytes += db_int(row, BYTES);
    stats->bytes += db_int(row, BYTES);
    stats->artifacts += db_int(row, ARTIFACTS);
    stats->redacted += db_int(row, REDACTED);
    stats->hits += db_int(row, HITS);
    if (failed)
        note_failure(stats, row);
    if (!db_is_null(row, WALL)) {
        look_spread_add(&stats->wall, wall_ms);
        look_spread_add(&language->wall, wall_ms);
        look_spread_add(&bucket->wall, wall_ms);
        note_slow(stats, db_int(row, N), wall_ms);
    }
    if (!db_is_null(row, MEMORY))
        look_spread_add(&stats->memory, db_real(row, MEMORY));
}

static int read_rows(struct db *db, const struct look_filter *filter, struct stats *stats,
                     struct err *err)
{
    struct look_bounds bounds;
    int got;
    if (choose_window(db, filter, stats, err) < 0 || look_bounds(db, filter, &bounds, err) < 0)
        return -1;
    struct db_query *query = db_ask(db, rows_sql, err);
    if (!query)
        return -1;
    db_put_int(query, 1, bounds.low);
    db_put_int(query, 2, bounds.high);
    db_put_int(query, 3, filter->since_ms ? filter->since_ms : INT64_MIN);
    db_put_int(query, 4, filter->until_ms ? filter->until_ms : INT64_MAX);
    const char *const values[] = { filter->owner,   filter->status, filter->language,
                                   filter->session, filter->task,   filter->code_sha256 };
    for (size_t i = 0; i < array_len(values); i++)
        look_put_text_or_null(query, 5 + (int)i, values[i]);
    while ((got = db_next(query, err)) > 0)
        note(stats, query);
    return got;
}

/* --- the answer --- */

/* Figures to three decimals: they were measured no finer. */
static json_t *figure(double value)
{
    return json_real(value < 1e15 ? (double)(int64_t)(value * 1000 + 0.5) / 1000 : value);
}

static json_t *spread_json(const struct look_spread *spread)
{
    if (spread->count == 0)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o}", "p50", figure(look_spread_part(spread, 0.5)), "p95",
                     figure(look_spread_part(spread, 0.95)), "p99",
                     figure(look_spread_part(spread, 0.99)), "max", figure(spread->max));
}

static json_t *counts_json(struct look_tally *tally)
{
    json_t *counts = json_object();
    look_tally_sort(tally);
    for (size_t i = 0; i < tally->count; i++)
        json_object_set_new(counts, tally->list[i]->name,
                            json_integer((json_int_t)tally->list[i]->runs));
    return counts;
}

static json_t *languages_json(const struct look_tally *tally)
{
    json_t *languages = json_object();
    for (size_t i = 0; i < tally->count; i++) {
        const struct language *one = (const struct language *)tally->list[i];
        json_object_set_new(languages, one->entry.name,
                            json_pack("{s:I, s:o, s:o}", "runs", (json_int_t)one->entry.runs,
                                      "wall_ms", spread_json(&one->wall), "cpu_s",
                                      figure(one->cpu_ms / 1000)));
    }
    return languages;
}

static json_t *tokens_json(struct look_tally *tally)
{
    json_t *tokens = json_array();
    look_tally_sort(tally);
    for (size_t i = 0; i < tally->count && i < TOKENS_MAX; i++) {
        const struct token *one = (const struct token *)tally->list[i];
        json_array_append_new(
            tokens,
            json_pack("{s:s, s:I, s:I, s:o, s:I}", "owner", one->entry.name, "runs",
                      (json_int_t)one->entry.runs, "failed", (json_int_t)one->failed, "cpu_s",
                      figure(one->cpu_ms / 1000), "stored_bytes", (json_int_t)one->bytes));
    }
    return tokens;
}

/* The wide columns of one run, which the pass over all does not read. */
static int add_details(struct db *db, int64_t n, const struct look_member *members, size_t count,
                       json_t *into, struct err *err)
{
    struct db_query *query = db_ask(
        db, "SELECT run, started_ms, text, language, status, code FROM catalog WHERE n = ?1", err);
    if (!query)
        return -1;
    db_put_int(query, 1, n);
    int got = db_next(query, err);
    if (got > 0) {
        own_json row = look_row(query, members, count, 0);
        json_object_update(into, row);
        db_stop(query);
    }
    return got < 0 ? -1 : 0;
}

static json_t *failures_json(struct db *db, struct look_tally *tally, struct err *err)
{
    static const struct look_member members[] = { { "example", look_text },
                                                  { "last_at", look_seconds },
                                                  { "text", look_text } };
    own_json failures = json_array();
    look_tally_sort(tally);
    for (size_t i = 0; i < tally->count && i < FAILURES_MAX; i++) {
        const struct failure *one = (const struct failure *)tally->list[i];
        const char *status = one->entry.rest ? "" : one->entry.name;
        const char *kind = one->entry.rest ? "" : status + strlen(status) + 1;
        const char *name = one->entry.rest ? "" : kind + strlen(kind) + 1;
        json_t *failure = json_pack("{s:o, s:o, s:o, s:I, s:n, s:n, s:n}", "status",
                                    json_text_or_null(status), "kind", json_text_or_null(kind),
                                    "name", json_text_or_null(name), "count",
                                    (json_int_t)one->entry.runs, "example", "last_at", "text");
        json_array_append_new(failures, failure);
        if (add_details(db, one->newest, members, array_len(members), failure, err) < 0)
            return NULL;
    }
    return take_ptr(failures);
}

static json_t *slowest_json(struct db *db, const struct stats *stats, struct err *err)
{
    static const struct look_member members[] = {
        { "run", look_text },      { "started_at", look_seconds }, { "text", look_text },
        { "language", look_text }, { "status", look_text },        { "code", look_text },
    };
    own_json slowest = json_array();
    for (size_t i = 0; i < stats->slow_count; i++) {
        json_t *one = json_pack("{s:o}", "wall_ms", figure(stats->slowest[i].wall_ms));
        json_array_append_new(slowest, one);
        if (add_details(db, stats->slowest[i].n, members, array_len(members), one, err) < 0)
            return NULL;
    }
    return take_ptr(slowest);
}

static json_t *over_time_json(const struct stats *stats)
{
    json_t *runs = json_array(), *failed = json_array(), *p95 = json_array();
    for (size_t i = 0; i < stats->bucket_count; i++) {
        const struct bucket *one = &stats->buckets[i];
        json_array_append_new(runs, json_integer((json_int_t)one->runs));
        json_array_append_new(failed, json_integer((json_int_t)one->failed));
        json_array_append_new(p95, one->wall.count ? figure(look_spread_part(&one->wall, 0.95))
                                                   : json_null());
    }
    int64_t from = stats->from_ms - stats->from_ms % stats->bucket_ms;
    return json_pack("{s:o, s:I, s:o, s:o, s:o}", "from", figure((double)from / 1000), "bucket_s",
                     (json_int_t)(stats->bucket_ms / 1000), "runs", runs, "failed", failed,
                     "p95_ms", p95);
}

static json_t *cost_json(const struct stats *stats)
{
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "cpu_s",
                     figure(stats->cpu_ms / 1000), "wall_s", figure(stats->wall_ms / 1000),
                     "memory_peak_bytes_p50", (json_int_t)look_spread_part(&stats->memory, 0.5),
                     "memory_peak_bytes_max", (json_int_t)stats->memory.max, "stored_bytes",
                     (json_int_t)stats->bytes, "artifacts", (json_int_t)stats->artifacts,
                     "redacted", (json_int_t)stats->redacted, "cached_hits",
                     (json_int_t)stats->hits);
}

static json_t *answer(struct db *db, const struct look_filter *filter, struct stats *stats,
                      struct err *err)
{
    own_json failures = failures_json(db, &stats->failures, err);
    own_json slowest = failures ? slowest_json(db, stats, err) : NULL;
    if (!slowest)
        return NULL;
    json_t *all = json_pack(
        "{s:o, s:o, s:I, s:o, s:o, s:O, s:o, s:o, s:O, s:o, s:o}", "since",
        figure((double)stats->from_ms / 1000), "until", figure((double)stats->until_ms / 1000),
        "runs", (json_int_t)stats->runs, "statuses", counts_json(&stats->statuses), "languages",
        counts_json(&stats->languages), "failures", failures, "wall_ms", spread_json(&stats->wall),
        "by_language", languages_json(&stats->languages), "slowest", slowest, "cost",
        cost_json(stats), "over_time", over_time_json(stats));
    if (!filter->owner)
        json_object_set_new(all, "tokens", tokens_json(&stats->tokens));
    return all;
}

json_t *look_stats(struct db *db, const struct look_filter *filter, struct err *err)
{
    if (records_catch_up(db, err) < 0)
        return NULL;
    struct stats *stats = buf_alloc_zero(1, sizeof *stats);
    look_tally_init(&stats->statuses, sizeof(struct look_tally_entry));
    look_tally_init(&stats->languages, sizeof(struct language));
    look_tally_init(&stats->failures, sizeof(struct failure));
    look_tally_init(&stats->tokens, sizeof(struct token));
    db_bound_ms(db, LOOK_STATS_MS);
    json_t *all = read_rows(db, filter, stats, err) < 0 ? NULL : answer(db, filter, stats, err);
    db_bound_ms(db, 0);
    look_tally_done(&stats->statuses);
    look_tally_done(&stats->languages);
    look_tally_done(&stats->failures);
    look_tally_done(&stats->tokens);
    free(stats);
    if (!all)
        look_slow(err);
    return all;
}
