/* Rows are written, inside the batch's transaction, and reusable results are read. The thread of
 * records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "store/records/contents.h"
#include "store/records/records_int.h"

#define HIT_ARTIFACTS_MAX 4096
#define HIT_BYTES_MAX ((size_t)256 << 20)

static void put_or_null(struct db_query *query, int place, const char *text)
{
    if (text && text[0])
        db_put_text(query, place, str_of(text));
    else
        db_put_null(query, place);
}

static void put_buf_or_null(struct db_query *query, int place, const struct buf *text)
{
    if (text->len > 0)
        db_put_text(query, place, buf_str(text));
    else
        db_put_null(query, place);
}

static int write_uses(struct db *db, int64_t n, const struct records_uses *uses, struct err *err)
{
    for (size_t i = 0; i < uses->count; i++) {
        const struct records_use *use = &uses->at[i];
        if (contents_add(db, use->sha256, use->bytes, err) < 0)
            return -1;
        struct db_query *query = db_ask(
            db,
            "INSERT OR REPLACE INTO uses (n, kind, path, sha256, size_bytes, mime, readonly)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            err);
        if (!query)
            return -1;
        db_put_int(query, 1, n);
        db_put_text(query, 2, str_of(use->kind));
        db_put_bytes(query, 3, (struct str){ use->path ? use->path : "", use->path_len });
        db_put_text(query, 4, str_of(use->sha256));
        db_put_int(query, 5, (int64_t)use->bytes.len);
        put_or_null(query, 6, use->mime);
        db_put_int(query, 7, use->readonly);
        if (db_next(query, err) < 0)
            return -1;
    }
    return 0;
}

static int write_start(struct records *records, struct records_job *job, struct err *err)
{
    const struct record *record = job->record;
    const struct records_row *row = &job->row;
    struct db_query *query = db_ask(
        records->db,
        "INSERT INTO starts (run, engine, at_ms, owner, door, task, step, replay_of,"
        " session, language, code_sha256, redacted, bytes, code, request)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(record->run));
    db_put_int(query, 2, records->engine);
    db_put_int(query, 3, row->at_ms);
    db_put_text(query, 4, str_of(record->owner));
    db_put_text(query, 5, str_of(record->door));
    put_or_null(query, 6, record->task);
    if (record->step > 0)
        db_put_int(query, 7, record->step);
    put_or_null(query, 8, record->replay_of);
    put_or_null(query, 9, job->request->session);
    db_put_text(query, 10, str_of(request_languages[job->request->language].name));
    db_put_text(query, 11, str_of(row->code_sha256));
    db_put_int(query, 12, (int64_t)row->redacted);
    db_put_int(query, 13, row->bytes);
    db_put_text(query, 14, buf_str(&row->code));
    db_put_text(query, 15, buf_str(&row->json));
    if (db_next(query, err) < 0)
        return -1;
    job->record->n = db_last_row(records->db);
    job->record->store = records->store;
    return write_uses(records->db, job->record->n, &row->uses, err);
}

static int write_cache(struct db *db, int64_t n, const struct records_row *row, struct err *err)
{
    struct db_query *query = db_ask(
        db, "INSERT OR REPLACE INTO cache (key, owner, n, until_ms) VALUES (?, ?, ?, ?)", err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(row->cache_key));
    db_put_text(query, 2, str_of(row->owner));
    db_put_int(query, 3, n);
    db_put_int(query, 4, row->at_ms + row->ttl_s * 1000);
    return db_next(query, err);
}

static void put_figures(struct db_query *query, const struct records_figures *figures)
{
    if (figures->refused)
        return;
    if (figures->exit_code >= 0)
        db_put_int(query, 4, figures->exit_code);
    db_put_real(query, 5, figures->wall_ms);
    db_put_real(query, 6, figures->cpu_ms);
    if (figures->memory_peak_bytes >= 0)
        db_put_int(query, 7, figures->memory_peak_bytes);
    if (figures->cell > 0)
        db_put_int(query, 8, figures->cell);
}

int records_write_end(struct records *records, int64_t store, int64_t n, struct records_row *row,
                      struct err *err)
{
    if (store != records->store)
        return err_set(err, ERR_ABSENT, "the start of the run is in another '" DB_FILE "'");
    struct db_query *query = db_ask(
        records->db,
        "INSERT INTO ends (n, at_ms, status, exit_code, wall_ms, cpu_ms,"
        " memory_peak_bytes, cell, artifacts, redacted, bytes, result, result_sha256,"
        " brief, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        err);
    if (!query)
        return -1;
    db_put_int(query, 1, n);
    db_put_int(query, 2, row->at_ms);
    db_put_text(query, 3, str_of(row->status));
    put_figures(query, &row->figures);
    db_put_int(query, 9, (int64_t)row->figures.artifacts);
    db_put_int(query, 10, (int64_t)row->redacted);
    db_put_int(query, 11, row->bytes);
    put_buf_or_null(query, row->figures.refused ? 15 : 12, &row->json);
    put_or_null(query, 13, row->result_sha256);
    put_buf_or_null(query, 14, &row->brief);
    if (db_next(query, err) < 0 || write_uses(records->db, n, &row->uses, err) < 0)
        return -1;
    return row->cache_key[0] ? write_cache(records->db, n, row, err) : 0;
}

static int write_act(struct records *records, struct records_job *job, struct err *err)
{
    struct db_query *query = db_ask(
        records->db,
        "INSERT INTO acts (engine, at_ms, after_n, session, owner, kind, detail,"
        " redacted, from_session)"
        " VALUES (?, ?, (SELECT coalesce(max(n), 0) FROM starts), ?, ?, ?, ?, ?, ?)",
        err);
    if (!query)
        return -1;
    db_put_int(query, 1, records->engine);
    db_put_int(query, 2, job->row.at_ms);
    db_put_text(query, 3, str_of(job->session));
    db_put_text(query, 4, str_of(job->row.owner));
    db_put_text(query, 5, str_of(job->act));
    put_buf_or_null(query, 6, &job->row.json);
    db_put_int(query, 7, (int64_t)job->row.redacted);
    put_or_null(query, 8, json_string_value(json_object_get(job->detail, "from")));
    if (db_next(query, err) < 0)
        return -1;
    return write_uses(records->db, -db_last_row(records->db), &job->row.uses, err);
}

int records_write(struct records *records, struct records_job *job, struct err *err)
{
    if (job->kind == RECORDS_START)
        return write_start(records, job, err);
    if (job->kind == RECORDS_ACT)
        return write_act(records, job, err);
    if (job->record->n == 0)
        return err_set(err, ERR_BUG, "a run ended whose start is not stored");
    return records_write_end(records, job->record->store, job->record->n, &job->row, err);
}

/* --- the cache --- */

/* Whole output was kept apart from the artifacts, under another name. */
static struct str path_of_use(struct str kind, struct str path)
{
    return str_is(kind, "stdout")   ? STR(".cupel/stdout")
           : str_is(kind, "stderr") ? STR(".cupel/stderr")
                                    : path;
}

static int add_artifact(struct records_job *job, struct db_query *query)
{
    struct records_hit *hit = &job->hit;
    if (hit->artifact_count >= HIT_ARTIFACTS_MAX)
        return -1;
    hit->artifacts = buf_list_room(hit->artifacts, hit->artifact_count, sizeof *hit->artifacts);
    struct result_artifact *artifact = &hit->artifacts[hit->artifact_count++];
    struct str path = path_of_use(db_text(query, 0), db_bytes(query, 1)), sum = db_text(query, 2);
    artifact->path = buf_strdup(path);
    artifact->path_len = path.len;
    artifact->mime = result_mime(path);
    memcpy(artifact->sha256, sum.at, sum.len < HASH_HEX_ROOM ? sum.len : HASH_HEX_ROOM - 1);
    return 0;
}

static int find_artifacts(struct records *records, struct records_job *job, int64_t n,
                          struct err *err)
{
    int got, failed = 0;
    struct db_query *query = db_ask(records->db,
                                    "SELECT kind, path, sha256 FROM uses WHERE n = ? AND"
                                    " kind IN ('artifact', 'stdout', 'stderr') ORDER BY kind, path",
                                    err);
    if (!query)
        return -1;
    db_put_int(query, 1, n);
    while ((got = db_next(query, err)) > 0 && !failed)
        failed = add_artifact(job, query);
    if (got > 0)
        db_stop(query);
    for (size_t i = 0; got == 0 && i < job->hit.artifact_count; i++) {
        struct result_artifact *artifact = &job->hit.artifacts[i];
        struct buf bytes = BUF_INIT(HIT_BYTES_MAX);
        got = contents_read(records->db, records->options.state_dir, artifact->sha256, &bytes, err);
        artifact->size_bytes = bytes.len;
        artifact->content = buf_take(&bytes);
    }
    return got < 0 || failed ? -1 : 0;
}

/* The run's number, or 0; -1: an err. */
static int64_t find_result(struct records *records, struct records_job *job, struct err *err)
{
    char sum[HASH_HEX_ROOM] = "";
    struct db_query *query = db_ask(
        records->db,
        "SELECT c.n, e.at_ms, c.until_ms, e.result, e.result_sha256, e.artifacts, s.run"
        " FROM cache c JOIN ends e ON e.n = c.n JOIN starts s ON s.n = c.n"
        " WHERE c.key = ? AND c.owner = ? AND e.bytes <= ?",
        err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(job->key));
    db_put_text(query, 2, str_of(job->row.owner));
    db_put_int(query, 3, 2 * RECORDS_REUSE_MAX); /* a long result is counted twice */
    int got = db_next(query, err);
    if (got <= 0)
        return got;
    int64_t n = db_int(query, 0), at = db_int(query, 1), until = db_int(query, 2);
    int64_t age_ms = records_now_ms() - at;
    struct str long_sum = db_text(query, 4), run = db_text(query, 6);
    snprintf(job->run, sizeof job->run, "%.*s", (int)run.len, run.at);
    job->hit.known = strcmp(job->run, job->known) == 0;
    if (job->hit.known) {
        db_stop(query);
        return n;
    }
    job->hit.age_s = (double)age_ms / 1e3;
    job->hit.ttl_s = (until - at) / 1000;
    memcpy(sum, long_sum.at, long_sum.len < sizeof sum ? long_sum.len : sizeof sum - 1);
    buf_add_str(&job->hit_json, db_text(query, 3));
    bool artifacts = db_int(query, 5) > 0;
    db_stop(query);
    /* The clock may have jumped: a result of the future is none. */
    if (age_ms < 0 || at + age_ms >= until || age_ms > job->max_age_s * 1000)
        return 0;
    if (sum[0] && contents_read(records->db, records->options.state_dir, sum, &job->hit_json, err))
        return -1;
    return artifacts && find_artifacts(records, job, n, err) < 0 ? -1 : n;
}

void records_add_hits(struct records *records, const char *run, int64_t times)
{
    size_t i = 0;
    while (i < records->reused_count && strcmp(records->reused[i].run, run) != 0)
        i++;
    if (i == array_len(records->reused))
        return;
    if (i == records->reused_count) {
        records->reused[records->reused_count++] = (struct records_reused){ 0 };
        snprintf(records->reused[i].run, sizeof records->reused[i].run, "%s", run);
    }
    records->reused[i].times += times;
}

void records_find(struct records *records, struct records_job *job)
{
    struct err err = ERR_INIT;
    job->hit_json = BUF_INIT(RECORDS_TEXT_MAX);
    int64_t n = find_result(records, job, &err);
    job->is_hit = n > 0;
    job->hit.json = buf_str(&job->hit_json);
    if (job->hit.known)
        return;
    atomic_fetch_add(n > 0 ? &records->cache_hits : &records->cache_misses, 1);
    if (n > 0)
        records_add_hits(records, job->run, 1);
}

int records_count_hits(struct records *records, struct err *err)
{
    int failed = db_begin(records->db, err);
    while (!failed && records->reused_count > 0) {
        const struct records_reused *reused = &records->reused[--records->reused_count];
        struct db_query *query = db_ask(
            records->db, "UPDATE catalog SET cached_hits = cached_hits + ? WHERE run = ?", err);
        if (query) {
            db_put_int(query, 1, reused->times);
            db_put_text(query, 2, str_of(reused->run));
        }
        failed = query ? db_next(query, err) : -1;
    }
    if (!failed)
        failed = db_commit(records->db, err);
    if (failed)
        db_undo(records->db);
    return failed;
}
