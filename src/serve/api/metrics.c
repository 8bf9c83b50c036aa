/* GET /metrics: counters and gauges in Prometheus' text format. Runs in the serve process, in its
 * loop. Those of the whole service tell what other tokens do: they are for operators. Any other
 * token has its own figures. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "engine/ledger.h"
#include "serve/api/api.h"
#include "serve/work/work.h"

#define METRICS_MAX (4u << 20)
#define METRICS_MIME "text/plain; version=0.0.4; charset=utf-8"

static void add_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_one(struct buf *out, const char *name, const char *type, const char *help,
                    double value)
{
    add_head(out, name, type, help);
    buf_printf(out, "%s %.15g\n", name, value);
}

/* A label's value: names of tokens come from people. */
static void add_label(struct buf *out, const char *name, struct str value)
{
    buf_printf(out, "%s=\"", name);
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        if (c == '\n')
            buf_add_text(out, "\\n");
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else
            buf_add(out, &c, 1);
    }
    buf_add_text(out, "\"");
}

/* --- runs --- */

static void add_ended(struct buf *out, const struct ledger *ledger)
{
    add_head(out, "cupel_runs_total", "counter", "Runs that ended with a result.");
    for (int language = 0; language < REQUEST_LANGUAGES; language++)
        for (int status = 0; status < LEDGER_STATUSES; status++)
            buf_printf(out, "cupel_runs_total{language=\"%s\",status=\"%s\"} %llu\n",
                       request_languages[language].name,
                       result_status_name((enum result_status)status),
                       (unsigned long long)ledger->ended[language][status]);
    add_head(out, "cupel_runs_without_result_total", "counter",
             "Runs that ended before their code began, by kind of error.");
    for (int kind = ERR_NONE + 1; kind < LEDGER_KINDS; kind++)
        buf_printf(out, "cupel_runs_without_result_total{kind=\"%s\"} %llu\n",
                   err_kind_name((enum err_kind)kind), (unsigned long long)ledger->refused[kind]);
}

static void add_times(struct buf *out, const struct ledger *ledger)
{
    static const char name[] = "cupel_run_seconds";
    add_head(out, name, "histogram", "What runs took: waiting, until the code began, the code.");
    for (int which = 0; which < LEDGER_TIMES; which++) {
        const char *phase = ledger_time_names[which];
        uint64_t sum = 0;
        for (int i = 0; i < LEDGER_BUCKETS; i++) {
            sum += ledger->bucket[which][i];
            buf_printf(out, "%s_bucket{phase=\"%s\",le=\"%g\"} %llu\n", name, phase,
                       ledger_ends_ms[i] / 1000, (unsigned long long)sum);
        }
        buf_printf(out, "%s_bucket{phase=\"%s\",le=\"+Inf\"} %llu\n", name, phase,
                   (unsigned long long)ledger->count);
        buf_printf(out, "%s_sum{phase=\"%s\"} %.9g\n", name, phase, ledger->sum_ms[which] / 1000);
        buf_printf(out, "%s_count{phase=\"%s\"} %llu\n", name, phase,
                   (unsigned long long)ledger->count);
    }
}

static void add_runs(struct buf *out, const struct ledger *ledger)
{
    add_ended(out, ledger);
    add_times(out, ledger);
    add_one(out, "cupel_warm_runs_total", "counter", "Runs whose interpreter was ready.",
            (double)ledger->warm);
    add_one(out, "cupel_run_cpu_seconds_total", "counter", "Processor time of runs.",
            ledger->cpu_ms / 1000);
    add_one(out, "cupel_output_bytes_total", "counter", "Bytes of stdout and stderr.",
            (double)ledger->output_bytes);
    add_one(out, "cupel_artifact_bytes_total", "counter", "Bytes of artifacts.",
            (double)ledger->artifact_bytes);
}

/* --- gauges, each a member of a description --- */

struct row {
    const char *member, *name, *type, *help;
    double scale;
};

static const struct row engine_rows[] = {
    { "runs", "cupel_runs", "gauge", "Runs under way.", 1 },
    { "queued", "cupel_queued", "gauge", "Requests that wait for their turn.", 1 },
    { "sessions", "cupel_sessions", "gauge", "Sessions that live.", 1 },
    { "boxes", "cupel_boxes", "gauge", "Boxes, those of the pools included.", 1 },
    { "stalls", "cupel_stalls_total", "counter", "Turns of the loop of a second and more.", 1 },
    { "longest_turn_ms", "cupel_longest_turn_seconds", "gauge", "The longest turn of the loop.",
      0.001 },
};

static const struct row http_rows[] = {
    { "connections", "cupel_http_connections", "gauge", "Open connections.", 1 },
    { "exchanges", "cupel_http_exchanges", "gauge", "Requests under way.", 1 },
    { "streams", "cupel_http_streams", "gauge", "Event streams that are followed.", 1 },
    { "bodies_bytes", "cupel_http_bodies_bytes", "gauge", "Bytes of bodies in memory.", 1 },
    { "received_bytes", "cupel_http_received_bytes_total", "counter", "Bytes of bodies taken.", 1 },
    { "sent_bytes", "cupel_http_sent_bytes_total", "counter", "Bytes of bodies sent.", 1 },
};

static const struct row record_rows[] = {
    { "recorded", "cupel_records_total", "counter", "Runs whose record is stored.", 1 },
    { "failed", "cupel_records_failed_total", "counter", "Writes of records that failed.", 1 },
    { "waiting", "cupel_records_open", "gauge", "Records of runs that have no end yet.", 1 },
    { "waiting_bytes", "cupel_records_waiting_bytes", "gauge",
      "Ends in memory that the disk did not take.", 1 },
    { "redacted", "cupel_redacted_total", "counter", "Secrets that were not stored.", 1 },
    { "removed", "cupel_records_removed_total", "counter", "Records past their time.", 1 },
};

static const struct row cache_rows[] = {
    { "hits", "cupel_cache_hits_total", "counter", "Runs that a stored result answered.", 1 },
    { "shared", "cupel_cache_shared_total", "counter", "Those that waited for the same run.", 1 },
    { "entries", "cupel_cache_entries", "gauge", "Results in memory.", 1 },
    { "bytes", "cupel_cache_bytes", "gauge", "Their bytes.", 1 },
};

static void add_rows(struct buf *out, const struct row *rows, size_t count, const json_t *from)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(from, rows[i].member);
        if (json_is_number(value))
            add_one(out, rows[i].name, rows[i].type, rows[i].help,
                    json_number_value(value) * rows[i].scale);
    }
}

/* {"kind": count} as a counter with one label. */
static void add_counts(struct buf *out, const char *name, const char *label, const char *help,
                       json_t *counts)
{
    const char *key;
    json_t *value;
    if (!json_is_object(counts))
        return;
    add_head(out, name, "counter", help);
    json_object_foreach (counts, key, value) {
        buf_printf(out, "%s{", name);
        add_label(out, label, str_of(key));
        buf_printf(out, "} %.15g\n", json_number_value(value));
    }
}

static void add_pools(struct buf *out, const json_t *engine)
{
    static const char *const members[] = { "ready", "making", "wanted" };
    json_t *pools = json_object_get(engine, "pools"), *zygotes, *one;
    size_t i;
    add_head(out, "cupel_pool_boxes", "gauge", "Boxes of the pools by state.");
    json_array_foreach (pools, i, one)
        for (size_t m = 0; m < array_len(members); m++)
            buf_printf(out, "cupel_pool_boxes{pool=\"%s\",state=\"%s\"} %lld\n",
                       json_get_str(one, "name").at, members[m],
                       (long long)json_integer_value(json_object_get(one, members[m])));
    zygotes = json_object_get(engine, "zygotes");
    add_head(out, "cupel_zygote_forks_total", "counter", "Interpreters that a zygote has forked.");
    json_array_foreach (zygotes, i, one)
        buf_printf(out,
                   "cupel_zygote_forks_total{zygote=\"%s\",generation=\"%lld\",state=\"%s\"} "
                   "%lld\n",
                   json_get_str(one, "name").at,
                   (long long)json_integer_value(json_object_get(one, "generation")),
                   json_get_str(one, "state").at,
                   (long long)json_integer_value(json_object_get(one, "forks")));
}

/* --- this process --- */

static void add_process(struct buf *out)
{
    char text[128] = "";
    unsigned long long pages = 0;
    unsigned fds = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm && fgets(text, sizeof text, statm) && sscanf(text, "%*u %llu", &pages) == 1)
        add_one(out, "process_resident_memory_bytes", "gauge", "Resident memory of the server.",
                (double)pages * (double)sysconf(_SC_PAGESIZE));
    if (statm)
        fclose(statm);
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return;
    while (readdir(folder))
        fds++;
    closedir(folder);
    /* Without "." and "..", and the folder's own. */
    add_one(out, "process_open_fds", "gauge", "Open descriptors of the server.",
            fds > 3 ? fds - 3 : 0);
}

/* --- tokens --- */

static void add_token_samples(struct buf *out, const json_t *tokens, const char *group,
                              const char *name, const char *help)
{
    size_t i;
    json_t *token, *value;
    const char *what;
    add_head(out, name, "gauge", help);
    json_array_foreach (tokens, i, token) {
        json_object_foreach (json_object_get(token, group), what, value) {
            if (!json_is_number(value))
                continue;
            buf_printf(out, "%s{", name);
            add_label(out, "token", json_get_str(token, "name"));
            buf_add_text(out, ",");
            add_label(out, "id", json_get_str(token, "id"));
            buf_add_text(out, ",");
            add_label(out, "what", str_of(what));
            buf_printf(out, "} %.15g\n", json_number_value(value));
        }
    }
}

/* Of all tokens, or of the one that asks. */
static void add_tokens(struct buf *out, const struct http_exchange *x)
{
    own_json all = who_describe(api_of(x)->who);
    own_json seen = json_array();
    size_t i;
    json_t *token;
    json_array_foreach (all, i, token)
        if (who_may_see(x->who, json_get_str(token, "id").at))
            json_array_append(seen, token);
    add_token_samples(out, seen, "used", "cupel_token_used", "What a token has used.");
    add_token_samples(out, seen, "quota", "cupel_token_quota", "What a token may use.");
}

static void add_service(struct buf *out, const struct http_exchange *x)
{
    struct api *api = api_of(x);
    own_json engine = engine_describe(api->engine);
    own_json http = http_describe(x->http);
    const struct records *stored = works_records(serve_works(api->serve));
    own_json cache = works_describe(serve_works(api->serve));
    own_json records = stored ? records_describe(stored) : NULL;
    add_runs(out, engine_ledger(api->engine));
    add_rows(out, engine_rows, array_len(engine_rows), engine);
    add_pools(out, engine);
    add_rows(out, record_rows, array_len(record_rows), records);
    add_rows(out, cache_rows, array_len(cache_rows), cache);
    add_rows(out, http_rows, array_len(http_rows), http);
    add_counts(out, "cupel_http_replies_total", "status", "Replies by HTTP status.",
               json_object_get(http, "replies"));
    add_counts(out, "cupel_http_refused_total", "kind", "Refusals by kind of error.",
               json_object_get(http, "refused"));
    add_process(out);
}

void api_metrics(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    struct err err = ERR_INIT;
    if (http_query_only(x, none, &err) < 0) {
        http_reply_err(x, &err);
        return;
    }
    own_buf out = BUF_INIT(METRICS_MAX);
    add_head(&out, "cupel_info", "gauge", "The version that runs.");
    buf_printf(&out, "cupel_info{version=\"%s\"} 1\n", CUPEL_VERSION);
    if (who_is_operator(x->who))
        add_service(&out, x);
    add_tokens(&out, x);
    http_reply_text(x, 200, METRICS_MIME, buf_str(&out));
}
