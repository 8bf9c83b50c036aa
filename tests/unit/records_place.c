/* Records in a state folder of their own, for unit tests. */
#include "records_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct loop kept_loop;
struct records *kept_records;
int kept_state = -1;
static char place[] = "/tmp/cupel-unit-records-XXXXXX";
static pid_t tester;

static void clean(void)
{
    if (getpid() == tester && fork() == 0) {
        execl("/bin/rm", "rm", "-rf", place, (char *)NULL);
        _exit(1);
    }
}

void kept_make(void)
{
    tester = getpid();
    CHECK(mkdtemp(place) != NULL);
    atexit(clean);
    kept_state = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void kept_open(void)
{
    struct err err = ERR_INIT;
    if (kept_state < 0)
        kept_make();
    kept_loop = LOOP_INIT;
    CHECK(loop_open(&kept_loop) == 0);
    kept_records = records_open(
        &(struct records_options){ .loop = &kept_loop, .state_dir = kept_state }, &err);
    CHECK_TEXT(err.text, "");
}

void kept_close(void)
{
    records_close(kept_records);
    loop_close(&kept_loop);
}

unsigned kept_answers;
struct err kept_last;

void kept_told(void *user, const struct err *err)
{
    (void)user;
    kept_last = *err;
    kept_answers++;
}

void kept_await(unsigned count)
{
    while (kept_answers < count)
        CHECK(loop_turn(&kept_loop) == 0);
}

struct request kept_request(const char *text)
{
    struct err err = ERR_INIT;
    struct request request = REQUEST_INIT;
    const struct request_ceilings ceilings = { .host_memory_bytes = (int64_t)8 << 30 };
    CHECK_INT(request_parse(str_of(text), &ceilings, &request, &err), 0);
    return request;
}

struct record *kept_begin(const char *run, const struct request *request)
{
    unsigned before = kept_answers;
    struct record *record = records_begin(
        kept_records, request, &(struct record_about){ .run = run, .owner = "k_a", .door = "http" },
        kept_told, NULL);
    kept_await(before + 1);
    return record;
}

void kept_fill(struct result *result, const char *run, const char *output)
{
    result_init(result);
    snprintf(result->run, sizeof result->run, "%s", run);
    result_stream_add(&result->out, 1000, output, strlen(output));
    result->tier = "native";
}

void kept_end(struct record *record, struct result *result, const struct record_cache *cache)
{
    unsigned before = kept_answers;
    own_json json = result_to_json(result);
    own_str text = json_write(json, JSON_COMPACT);
    record_end(record, result, str_of(text), cache, kept_told, NULL);
    kept_await(before + 1);
}

void kept_run(const char *run, const char *code, const char *output,
              const struct record_cache *cache)
{
    own_str text = NULL;
    own_json object = json_pack("{s:s}", "code", code);
    text = json_write(object, JSON_COMPACT);
    own_request request = kept_request(text);
    own_result result;
    kept_fill(&result, run, output);
    struct record *record = kept_begin(run, &request);
    CHECK_TEXT(kept_last.text, "");
    kept_end(record, &result, cache);
}

struct db *kept_look(void)
{
    struct err err = ERR_INIT;
    struct db *db = db_open(&(struct db_options){ .state_dir = kept_state, .only_if_there = true },
                            &err);
    CHECK_TEXT(err.text, "");
    records_catch_up(db, &err);
    CHECK_TEXT(err.text, "");
    return db;
}

/* The first column of the first row, as text. */
char *kept_ask(struct db *db, const char *sql)
{
    struct err err = ERR_INIT;
    struct db_query *query = db_ask(db, sql, &err);
    CHECK_TEXT(err.text, "");
    int got = db_next(query, &err);
    CHECK_TEXT(err.text, "");
    char *text = buf_strdup(got ? db_text(query, 0) : STR("(none)"));
    db_stop(query);
    return text;
}

void kept_check_whole(void)
{
    own_db *db = kept_look();
    own_str said = kept_ask(db, "PRAGMA integrity_check");
    CHECK_TEXT(said, "ok");
}
