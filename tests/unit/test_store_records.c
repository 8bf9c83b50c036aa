/* Records by their thread: what a start and an end leave in the store, what is told when, what a
 * dead engine leaves behind. */
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

TEST(a_run_is_in_the_store_when_its_start_and_its_end_are_told)
{
    kept_open();
    own_request request = kept_request(
        "{\"code\":\"print(6 * 7)\",\"stdin\":\"in\",\"args\":[\"a\"],"
        "\"files\":[{\"path\":\"d.csv\",\"text\":\"1,2\"}]}");
    struct record *record = kept_begin("r_1", &request);
    CHECK_TEXT(kept_last.text, "");
    {
        own_db *db = kept_look();
        CHECK_ASK(db, "SELECT status FROM catalog WHERE run = 'r_1'", "started");
        CHECK_ASK(db, "SELECT code FROM starts", "print(6 * 7)");
        CHECK_ASK(db, "SELECT json_extract(request, '$.files[0].size_bytes') FROM starts", "3");
        CHECK_ASK(db, "SELECT json_extract(request, '$.stdin.size_bytes') FROM starts", "2");
        CHECK_ASK(db, "SELECT json_extract(request, '$.code') IS NULL FROM starts", "1");
        CHECK_ASK(db, "SELECT count(*) FROM uses", "2");
    }
    own_result result;
    kept_fill(&result, "r_1", "forty-two\n");
    result_add_artifact(&result, STR("out.bin"), buf_strdup(STR("ab")), 2, NULL);
    kept_end(record, &result, NULL);
    CHECK_TEXT(kept_last.text, "");
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT status FROM catalog WHERE run = 'r_1' AND owner = 'k_a'", "ok");
    CHECK_ASK(db, "SELECT json_extract(result, '$.stdout') FROM ends", "forty-two\n");
    CHECK_ASK(db, "SELECT rowid FROM words WHERE words MATCH 'forty'", "1");
    CHECK_ASK(db, "SELECT rowid FROM words WHERE words MATCH 'print'", "1");
    CHECK_ASK(db,
              "SELECT bytes FROM contents JOIN uses USING (sha256) WHERE path = x'6f75742e62696e'",
              "ab");
    CHECK_ASK(db, "SELECT artifacts || ' ' || code FROM catalog", "1 print(6 * 7)");
    kept_close();
    kept_check_whole();
}

TEST(keys_are_not_in_the_store_but_inputs_are_as_they_were)
{
    kept_open();
    own_request request = kept_request("{\"code\":\"k = '" KEPT_KEY "'\",\"env\":{\"A\":\"" KEPT_KEY
                                       "\"},"
                                       "\"files\":[{\"path\":\"k\",\"text\":\"" KEPT_KEY "\"}]}");
    struct record *record = kept_begin("r_1", &request);
    own_result result;
    kept_fill(&result, "r_1", "x\n" KEPT_KEY "\n");
    kept_end(record, &result, NULL);
    kept_close();
    own_db *db = kept_look();
    CHECK_ASK(db,
              "SELECT count(*) FROM starts WHERE instr(code, '" KEPT_KEY "') OR"
              " instr(request, '" KEPT_KEY "')",
              "0");
    CHECK_ASK(db, "SELECT count(*) FROM ends WHERE instr(result, '" KEPT_KEY "')", "0");
    CHECK_ASK(db, "SELECT count(*) FROM contents WHERE bytes = CAST('" KEPT_KEY "' AS BLOB)", "1");
    CHECK_ASK(db, "SELECT redacted >= 3 FROM catalog", "1");
}

TEST(whole_output_is_stored_redacted_and_not_as_an_artifact)
{
    static char output[40000];
    memset(output, 'y', sizeof output - 1);
    memcpy(output + 20000, "\n" KEPT_KEY "\n", sizeof KEPT_KEY + 1);
    kept_open();
    own_request request = kept_request("{\"code\":\"1\"}");
    struct record *record = kept_begin("r_1", &request);
    own_result result;
    kept_fill(&result, "r_1", output);
    result_add_artifact(&result, STR(".cupel/stdout"), buf_strdup(str_of(output)),
                        sizeof output - 1, NULL);
    kept_end(record, &result, NULL);
    kept_close();
    struct err err = ERR_INIT;
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT count(*) FROM uses", "1");
    own_str sum = kept_ask(db, "SELECT sha256 FROM uses WHERE kind = 'stdout'");
    own_buf bytes = BUF_INIT(1 << 20);
    CHECK_INT(contents_read(db, kept_state, sum, &bytes, &err), 0);
    CHECK(bytes.len > 20000 && strstr(bytes.at, "[redacted:") && !strstr(bytes.at, KEPT_KEY));
}

TEST(large_bytes_are_files_whose_sum_is_checked)
{
    static char large[100000];
    memset(large, 'z', sizeof large - 1);
    kept_open();
    own_request request = kept_request("{\"code\":\"1\"}");
    struct record *record = kept_begin("r_1", &request);
    own_result result;
    kept_fill(&result, "r_1", "");
    result_add_artifact(&result, STR("z"), buf_strdup(str_of(large)), sizeof large - 1, NULL);
    kept_end(record, &result, NULL);
    kept_close();
    struct err err = ERR_INIT;
    char path[100];
    own_db *db = kept_look();
    own_str sum = kept_ask(db, "SELECT sha256 FROM uses WHERE kind = 'artifact'");
    own_buf bytes = BUF_INIT(1 << 20);
    CHECK_INT(contents_read(db, kept_state, sum, &bytes, &err), 0);
    CHECK_TEXT(bytes.at, large);
    snprintf(path, sizeof path, "contents/%.2s/%s", sum, sum + 2);
    own_fd fd = openat(kept_state, path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && pwrite(fd, "!", 1, 500) == 1);
    CHECK_INT(contents_read(db, kept_state, sum, &bytes, &err), -1);
    CHECK(err.kind == ERR_HOST && strstr(err.text, "damaged"));
    CHECK_INT(bytes.len, sizeof large - 1);
}

TEST(a_run_that_is_refused_after_its_start_has_the_refusal)
{
    struct err why = ERR_INIT;
    kept_open();
    own_request request = kept_request("{\"code\":\"1\"}");
    struct record *record = kept_begin("r_1", &request);
    err_set(&why, ERR_BUSY, "no room");
    record_fail(record, &why);
    kept_close();
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT status || ' ' || text || ' ' || error_kind FROM catalog",
              "busy no room busy");
}

TEST(a_start_without_an_end_is_closed_as_internal_by_the_next_engine)
{
    kept_make();
    pid_t child = fork();
    if (child == 0) {
        kept_open();
        own_request request = kept_request("{\"code\":\"1\"}");
        kept_begin("r_1", &request);
        kill(getpid(), SIGKILL);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGKILL);
    {
        own_db *db = kept_look();
        CHECK_ASK(db, "SELECT status FROM catalog", "started");
    }
    kept_open();
    kept_run("r_2", "2", "", NULL);
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT status || ': ' || text FROM catalog WHERE run = 'r_1'",
              "internal: the engine ended before the run did");
    CHECK_ASK(db, "SELECT status FROM catalog WHERE run = 'r_2'", "ok");
    kept_close();
}

TEST(a_living_engines_start_stays_open)
{
    kept_open();
    own_request request = kept_request("{\"code\":\"1\"}");
    struct record *record = kept_begin("r_1", &request);
    struct records *first = kept_records;
    struct loop first_loop = kept_loop;
    kept_open();
    kept_run("r_2", "2", "", NULL);
    {
        own_db *db = kept_look();
        CHECK_ASK(db, "SELECT status FROM catalog WHERE run = 'r_1'", "started");
    }
    kept_close();
    kept_records = first;
    kept_loop = first_loop;
    struct err why = ERR_INIT;
    err_set(&why, ERR_CANCELLED, "over");
    record_fail(record, &why);
    records_close(kept_records);
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT status FROM catalog WHERE run = 'r_1'", "cancelled");
}

TEST(a_long_result_is_a_content_and_its_words_are_found)
{
    static char output[200000];
    memset(output, 'w', sizeof output - 1);
    memcpy(output, "needle ", 7);
    kept_open();
    own_request request = kept_request("{\"code\":\"1\"}");
    struct record *record = kept_begin("r_1", &request);
    own_result result;
    result_init(&result);
    snprintf(result.run, sizeof result.run, "r_1");
    result_stream_add(&result.out, sizeof output, output, sizeof output - 1);
    result.tier = "native";
    kept_end(record, &result, NULL);
    CHECK_TEXT(kept_last.text, "");
    kept_close();
    struct err err = ERR_INIT;
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT rowid FROM words WHERE words MATCH 'needle'", "1");
    CHECK_ASK(db, "SELECT result IS NULL FROM ends", "1");
    own_str sum = kept_ask(db, "SELECT result_sha256 FROM ends");
    own_buf bytes = BUF_INIT(8 << 20);
    CHECK_INT(contents_read(db, kept_state, sum, &bytes, &err), 0);
    own_json json = json_read(buf_str(&bytes), 8 << 20, &err);
    CHECK(json_get_str(json, "stdout").len == sizeof output - 1);
}
