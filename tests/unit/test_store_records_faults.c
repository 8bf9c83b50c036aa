/* Records that are reused, that meet faults, and that are removed. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "records_place.h"

#define OTHER "2222222222222222222222222222222222222222222222222222222222222222"
#define SUM "1111111111111111111111111111111111111111111111111111111111111111"

/* --- the cache --- */

static struct records_hit got;
static char got_json[4096];

static void found(void *user, struct records_hit *hit)
{
    (void)user;
    got = hit ? *hit : (struct records_hit){ .age_s = -1 };
    snprintf(got_json, sizeof got_json, "%.*s", hit ? (int)hit->json.len : 0,
             hit ? hit->json.at : "");
    if (hit && hit->artifact_count > 0)
        CHECK(memcmp(hit->artifacts[0].content, "ab", 2) == 0);
    kept_answers++;
}

static bool find(const char *key, const char *owner, int64_t max_age_s)
{
    unsigned before = kept_answers;
    records_find_cached(kept_records, key, owner, max_age_s, /* known= */ NULL, found, NULL);
    kept_await(before + 1);
    return got.age_s >= 0;
}

TEST(a_stored_result_is_found_by_its_key_and_owner_in_its_time)
{
    const struct record_cache cache = { SUM, 60 }, over = { OTHER, 60 };
    kept_open();
    own_request request = kept_request("{\"code\":\"1\"}");
    struct record *record = kept_begin("r_1", &request);
    own_result result;
    kept_fill(&result, "r_1", "hello");
    result_add_artifact(&result, STR("a"), buf_strdup(STR("ab")), 2, NULL);
    kept_end(record, &result, &cache);
    CHECK(find(SUM, "k_a", 60) && strstr(got_json, "hello"));
    CHECK_INT(got.artifact_count, 1);
    CHECK_INT(got.ttl_s, 60);
    CHECK(!find(SUM, "k_b", 60));
    CHECK(!find(over.key, "k_a", 60));
    {
        own_db *db = kept_look();
        struct err err = ERR_INIT;
        CHECK_INT(db_run(db, "UPDATE ends SET at_ms = at_ms - 30000", &err), 0);
    }
    CHECK(!find(SUM, "k_a", 20));
    CHECK(find(SUM, "k_a", 40));
    {
        own_db *db = kept_look();
        struct err err = ERR_INIT;
        CHECK_INT(db_run(db, "UPDATE ends SET at_ms = at_ms + 90000", &err), 0);
    }
    CHECK(!find(SUM, "k_a", 100)); /* of the future */
    kept_close();
}

TEST(limits_and_redacted_results_are_not_reused)
{
    const struct record_cache cache = { SUM, 60 };
    kept_open();
    kept_run("r_1", "k", KEPT_KEY, &cache);
    CHECK(!find(SUM, "k_a", 60));
    kept_run("r_2", "k = '" KEPT_KEY "'", "", &cache);
    CHECK(!find(SUM, "k_a", 60));
    own_request request = kept_request("{\"code\":\"1\"}");
    struct record *record = kept_begin("r_3", &request);
    own_result result;
    kept_fill(&result, "r_3", "");
    result.status = RESULT_TIMEOUT;
    kept_end(record, &result, &cache);
    CHECK(!find(SUM, "k_a", 60));
    kept_run("r_4", "4", "", &cache);
    CHECK(find(SUM, "k_a", 60));
    kept_close();
}

/* --- faults --- */

TEST(a_full_disk_refuses_starts_and_ends_are_written_later)
{
    static char code[400000];
    struct rlimit all, few;
    kept_open();
    signal(SIGXFSZ, SIG_IGN);
    own_request small = kept_request("{\"code\":\"1\"}");
    struct record *record = kept_begin("r_1", &small);
    CHECK_TEXT(kept_last.text, "");
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = (struct rlimit){ 4096, all.rlim_max };
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &few), 0);
    own_result result;
    kept_fill(&result, "r_1", "late");
    kept_end(record, &result, NULL);
    CHECK_INT(kept_last.kind, ERR_BUSY);
    memset(code, '1', sizeof code - 1);
    own_json object = json_pack("{s:s}", "code", code);
    own_str text = json_write(object, 0);
    own_request large = kept_request(text);
    kept_begin("r_2", &large);
    CHECK_INT(kept_last.kind, ERR_BUSY);
    CHECK(strstr(kept_last.hint, "full"));
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &all), 0);
    kept_run("r_3", "3", "", NULL);
    CHECK_TEXT(kept_last.text, "");
    kept_close();
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT group_concat(run || ' ' || status, ', ') FROM catalog ORDER BY n",
              "r_1 ok, r_3 ok");
    CHECK_ASK(db, "SELECT json_extract(result, '$.stdout') FROM ends WHERE n = 1", "late");
    kept_check_whole();
}

TEST(a_damaged_store_is_the_err_of_each_start)
{
    char bytes[8192];
    memset(bytes, 'x', sizeof bytes);
    kept_make();
    own_fd fd = openat(kept_state, DB_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, bytes, sizeof bytes) == sizeof bytes);
    kept_open();
    own_request request = kept_request("{\"code\":\"1\"}");
    for (int i = 0; i < 2; i++) {
        kept_begin("r_1", &request);
        CHECK_INT(kept_last.kind, ERR_HOST);
        CHECK(strstr(kept_last.text, "not a database"));
    }
    CHECK_INT(renameat(kept_state, DB_FILE, kept_state, "away"), 0);
    kept_run("r_2", "1", "", NULL);
    CHECK_TEXT(kept_last.text, "");
    kept_close();
}

/* Its numbers begin anew: an end of the one before must not become the end of another run. */
TEST(a_store_that_takes_the_place_of_another_gets_no_end_of_its_runs)
{
    static const char *const files[] = { DB_FILE, DB_FILE "-wal", DB_FILE "-shm" };
    struct rlimit all, few;
    kept_open();
    signal(SIGXFSZ, SIG_IGN);
    own_request request = kept_request("{\"code\":\"1\"}");
    struct record *fails = kept_begin("r_fails", &request);
    struct record *late = kept_begin("r_late", &request);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = (struct rlimit){ 4096, all.rlim_max };
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &few), 0);
    own_result result;
    kept_fill(&result, "r_fails", "of the old store");
    kept_end(fails, &result, NULL);
    CHECK_INT(kept_last.kind, ERR_BUSY); /* it is kept, and tried again */
    for (size_t i = 0; i < array_len(files); i++)
        renameat(kept_state, files[i], kept_state, i == 0 ? "away" : i == 1 ? "away-wal" : "shm");
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &all), 0);
    kept_run("r_new", "1", "of the new store", NULL);
    CHECK_TEXT(kept_last.text, "");
    own_result other;
    kept_fill(&other, "r_late", "of the old store, too");
    kept_end(late, &other, NULL);
    CHECK_INT(kept_last.kind, ERR_ABSENT);
    kept_run("r_next", "1", "", NULL);
    kept_close(); /* tries what it kept once more */
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT group_concat(run || ' ' || status, ', ') FROM catalog ORDER BY n",
              "r_new ok, r_next ok");
    CHECK_ASK(db, "SELECT json_extract(result, '$.stdout') FROM ends WHERE n = 1",
              "of the new store");
    CHECK_ASK(db, "SELECT count(*) FROM ends WHERE n NOT IN (SELECT n FROM starts)", "0");
    CHECK_ASK(db, "SELECT count(*) FROM starts JOIN engines USING (engine)", "2");
    kept_check_whole();
}

/* --- acts, removal --- */

TEST(acts_of_a_session_keep_their_files_and_their_place)
{
    kept_open();
    kept_run("r_1", "1", "", NULL);
    own_request request = kept_request(
        "{\"code\":\"1\",\"files\":[{\"path\":\"f\",\"text\":\"x\"}]}");
    const struct records_act act = { .session = "s_1", .owner = "k_a", .kind = "put",
                                     .detail = json_pack("{s:i}", "cell", 3),
                                     .request = &request };
    records_act(kept_records, &act);
    kept_run("r_2", "1", "", NULL);
    kept_close();
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT kind || after_n || json_extract(detail, '$.cell') FROM acts", "put13");
    CHECK_ASK(db, "SELECT n || bytes FROM uses JOIN contents USING (sha256)", "-1x");
}

TEST(a_removed_run_takes_its_words_and_its_bytes_along)
{
    static char large[50000];
    struct err err = ERR_INIT;
    memset(large, 'v', sizeof large - 1);
    kept_open();
    for (int i = 0; i < 2; i++) {
        char run[8];
        own_request request = kept_request("{\"code\":\"alpha\"}");
        snprintf(run, sizeof run, "r_%d", i);
        struct record *record = kept_begin(run, &request);
        own_result result;
        kept_fill(&result, run, i ? "beta" : "gamma");
        result_add_artifact(&result, STR("big"), buf_strdup(str_of(large)), sizeof large - 1, NULL);
        if (i == 1)
            result_add_artifact(&result, STR("own"), buf_strdup(STR("only")), 4, NULL);
        kept_end(record, &result, NULL);
    }
    kept_close();
    own_db *db = kept_look();
    own_fd dir = contents_open(kept_state, &err);
    CHECK_INT(db_begin(db, &err), 0);
    CHECK_INT(records_remove(db, 2, &err), 0);
    CHECK_INT(db_commit(db, &err), 0);
    CHECK_INT(contents_sweep(db, dir, 10, &err), 2);
    CHECK_INT(contents_sweep(db, dir, 10, &err), 0);
    CHECK_ASK(db, "SELECT count(*) FROM words WHERE words MATCH 'beta'", "0");
    CHECK_ASK(db, "SELECT count(*) FROM words WHERE words MATCH 'alpha'", "1");
    CHECK_INT(db_run(db, "INSERT INTO words (words, rank) VALUES ('integrity-check', 1)", &err), 0);
    CHECK_ASK(db, "SELECT count(*) FROM contents", "1");
    own_str sum = kept_ask(db, "SELECT sha256 FROM contents");
    own_buf bytes = BUF_INIT(1 << 20);
    CHECK_INT(contents_read(db, kept_state, sum, &bytes, &err), 0);
    CHECK_INT(db_begin(db, &err), 0);
    CHECK_INT(records_remove(db, 1, &err), 0);
    CHECK_INT(db_commit(db, &err), 0);
    CHECK_INT(contents_sweep(db, dir, 10, &err), 1);
    char path[100];
    snprintf(path, sizeof path, "contents/%.2s/%s", sum, sum + 2);
    CHECK(faccessat(kept_state, path, F_OK, 0) < 0);
}

TEST(a_file_without_a_row_is_swept_and_one_with_a_row_stays)
{
    static char large[50000];
    struct err err = ERR_INIT;
    char sum[HASH_HEX_ROOM], other[HASH_HEX_ROOM];
    memset(large, 'u', sizeof large - 1);
    kept_make();
    own_db *db = db_open(&(struct db_options){ .state_dir = kept_state }, &err);
    own_fd dir = contents_open(kept_state, &err);
    hash_hex((struct str){ large, 40000 }, sum);
    hash_hex((struct str){ large, 41000 }, other);
    CHECK_INT(contents_write(dir, sum, (struct str){ large, 40000 }, false, &err), 0);
    CHECK_INT(contents_write(dir, other, (struct str){ large, 41000 }, false, &err), 0);
    CHECK_INT(contents_add(db, sum, (struct str){ large, 40000 }, &err), 0);
    own_fd sweeper = contents_open(kept_state, &err);
    for (unsigned i = 0; i < CONTENTS_DIRS; i++)
        CHECK_INT(contents_sweep_files(db, sweeper, i, &err), 0);
    char path[100];
    snprintf(path, sizeof path, "contents/%.2s/%s", other, other + 2);
    CHECK_INT(faccessat(kept_state, path, F_OK, 0), 0); /* its writer still has the lock */
    contents_unlock(dir);
    for (unsigned i = 0; i < CONTENTS_DIRS; i++)
        CHECK_INT(contents_sweep_files(db, sweeper, i, &err), 0);
    CHECK(faccessat(kept_state, path, F_OK, 0) < 0);
    own_buf bytes = BUF_INIT(1 << 20);
    CHECK_INT(contents_read(db, kept_state, sum, &bytes, &err), 0);
    CHECK_INT(contents_read(db, kept_state, other, &bytes, &err), -1);
    CHECK_INT(err.kind, ERR_ABSENT);
}

TEST(what_waits_at_the_close_is_written_and_told)
{
    struct err why = ERR_INIT;
    const struct record_about about = { .run = "r_x", .owner = "", .door = "cli" };
    kept_open();
    own_request request = kept_request("{\"code\":\"1\"}");
    err_set(&why, ERR_CANCELLED, "over");
    for (int i = 0; i < 100; i++)
        record_fail(records_begin(kept_records, &request, &about, kept_told, NULL), &why);
    kept_close();
    CHECK_INT(kept_answers, 100);
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT count(*) FROM catalog WHERE status = 'cancelled'", "100");
}
