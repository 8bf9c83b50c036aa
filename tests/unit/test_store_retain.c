/* Retention: which records go, which stay, and what goes with them. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "base/buf.h"
#include "records_place.h"

#define SUM "1111111111111111111111111111111111111111111111111111111111111111"
#define DAY_S 86400

static void run(const char *name, const char *session, const char *replay_of)
{
    char text[200];
    unsigned before = kept_answers;
    snprintf(text, sizeof text,
             session ? "{\"code\":\"1\",\"session\":\"%s\"}" : "{\"code\":\"1\"}", session);
    own_request request = kept_request(text);
    const struct record_about about = { .run = name, .owner = "", .door = "cli",
                                        .replay_of = replay_of };
    struct record *record = records_begin(kept_records, &request, &about, kept_told, NULL);
    kept_await(before + 1);
    CHECK_TEXT(kept_last.text, "");
    own_result result;
    kept_fill(&result, name, name);
    kept_end(record, &result, NULL);
    CHECK_TEXT(kept_last.text, "");
}

/* Makes runs a week old: `which` is a condition. */
static void age(const char *which)
{
    char sql[300];
    struct err err = ERR_INIT;
    own_db *db = kept_look();
    snprintf(sql, sizeof sql, "UPDATE catalog SET started_ms = started_ms - 604800000 WHERE %s",
             which);
    CHECK_INT(db_run(db, sql, &err), 0);
}

/* Waits until a round has removed `count` runs. */
static void retain(int64_t age_s, int64_t bytes, int64_t count)
{
    records_set_retention(kept_records, age_s, bytes);
    for (int i = 0; i < 2000; i++) {
        own_json figures = records_describe(kept_records);
        if (json_integer_value(json_object_get(figures, "removed")) >= count)
            break;
        usleep(5000);
    }
    usleep(100000); /* a round that goes too far goes on */
}

static char *names(void)
{
    own_db *db = kept_look();
    return kept_ask(db, "SELECT group_concat(substr(run, 3), '') FROM"
                        " (SELECT run FROM catalog ORDER BY n)");
}

#define CHECK_NAMES(want)        \
    do {                         \
        own_str left_ = names(); \
        CHECK_TEXT(left_, want); \
    } while (0)

#define S(digit) "s_00000000000000000000000" digit

TEST(old_records_go_with_their_words_and_young_and_pinned_ones_stay)
{
    struct err err = ERR_INIT;
    kept_open();
    run("r_a", NULL, NULL);
    run("r_b", NULL, NULL);
    run("r_c", NULL, NULL);
    age("run <> 'r_c'");
    {
        own_db *db = kept_look();
        CHECK_INT(db_run(db, "UPDATE catalog SET pinned = 1 WHERE run = 'r_b'", &err), 0);
    }
    retain(DAY_S, 0, 1);
    CHECK_NAMES("bc");
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT count(*) FROM starts", "2");
    CHECK_ASK(db, "SELECT count(*) FROM ends", "2");
    CHECK_ASK(db, "SELECT count(*) FROM words WHERE words MATCH 'r_a'", "0");
    kept_close();
}

TEST(a_living_session_keeps_its_cells_and_an_ended_one_goes_whole)
{
    kept_open();
    run("r_a", S("1"), NULL);
    run("r_b", S("1"), NULL);
    run("r_c", NULL, NULL);
    age("1");
    run("r_d", NULL, NULL);
    retain(DAY_S, 0, 1);
    CHECK_NAMES("abd");
    records_act(kept_records, &(struct records_act){ .session = S("1"), .owner = "",
                                                     .kind = "end" });
    run("r_e", NULL, NULL);
    retain(DAY_S, 0, 3);
    CHECK_NAMES("de");
    kept_close();
}

TEST(a_young_cell_keeps_the_cells_before_it_and_those_of_the_session_it_was_forked_from)
{
    kept_open();
    run("r_a", S("1"), NULL);
    run("r_b", S("2"), NULL);
    run("r_c", S("3"), NULL);
    run("r_d", S("3"), NULL);
    run("r_e", S("4"), NULL);
    static const char *const pairs[][2] = { { S("2"), S("1") }, { S("3"), S("2") } };
    for (size_t i = 0; i < array_len(pairs); i++)
        records_act(kept_records,
                    &(struct records_act){ .session = pairs[i][0], .owner = "", .kind = "fork",
                                           .detail = json_pack("{s:s}", "from", pairs[i][1]) });
    static const char *const all[] = { S("1"), S("2"), S("3"), S("4") };
    for (size_t i = 0; i < array_len(all); i++)
        records_act(kept_records,
                    &(struct records_act){ .session = all[i], .owner = "", .kind = "end" });
    run("r_f", NULL, NULL);
    age("run NOT IN ('r_d', 'r_f')");
    retain(DAY_S, 0, 1);
    CHECK_NAMES("abcdf");
    age("run = 'r_d'");
    retain(DAY_S, 0, 5);
    CHECK_NAMES("f");
    kept_close();
    own_db *db = kept_look();
    CHECK_INT(db_run(db, "UPDATE engines SET ended_ms = 1", &kept_last), 0);
    kept_open();
    run("r_g", NULL, NULL);
    retain(DAY_S, 0, 0);
    CHECK_ASK(db, "SELECT count(*) FROM acts", "0");
    kept_close();
}

static void act(const char *session, const char *kind, const char *from)
{
    records_act(kept_records,
                &(struct records_act){ .session = session, .owner = "", .kind = kind,
                                       .detail = from ? json_pack("{s:s}", "from", from) : NULL });
}

TEST(a_living_fork_without_a_cell_keeps_what_it_came_from)
{
    kept_open();
    act(S("1"), "new", NULL);
    run("r_a", S("1"), NULL);
    act(S("2"), "fork", S("1"));
    act(S("3"), "fork", S("2"));
    act(S("1"), "end", NULL);
    act(S("2"), "end", NULL);
    act(S("4"), "new", NULL); /* without a cell, too */
    act(S("5"), "fork", S("4"));
    act(S("4"), "end", NULL);
    act(S("6"), "new", NULL);
    act(S("6"), "end", NULL);
    run("r_b", NULL, NULL);
    age("1");
    run("r_c", NULL, NULL);
    retain(DAY_S, 0, 1);
    CHECK_NAMES("ac");
    own_db *db = kept_look();
    CHECK_ASK(db,
              "SELECT group_concat(substr(session, -1), '') FROM (SELECT DISTINCT session FROM"
              " acts ORDER BY session)",
              "12345");
    act(S("3"), "end", NULL);
    act(S("5"), "end", NULL);
    run("r_d", NULL, NULL);
    retain(DAY_S, 0, 2);
    CHECK_NAMES("cd");
    CHECK_ASK(db, "SELECT count(*) FROM acts", "0");
    kept_close();
}

TEST(a_replay_and_the_cache_keep_what_they_need)
{
    const struct record_cache cache = { SUM, 3 * DAY_S };
    kept_open();
    run("r_a", NULL, NULL);
    run("r_b", NULL, "r_a");
    kept_run("r_c", "1", "", &cache);
    run("r_d", NULL, NULL);
    age("run <> 'r_b'");
    retain(DAY_S, 0, 1);
    CHECK_NAMES("abc");
    age("run = 'r_b'");
    retain(DAY_S, 0, 3);
    CHECK_NAMES("c");
    kept_close();
}

TEST(past_the_bytes_the_oldest_go_first)
{
    kept_open();
    static const char *const runs[] = { "r_a", "r_b", "r_c", "r_d", "r_e", "r_f" };
    for (size_t i = 0; i < array_len(runs); i++)
        run(runs[i], NULL, NULL);
    own_db *db = kept_look();
    own_str each = kept_ask(db, "SELECT max(bytes) + 1024 FROM catalog");
    int64_t bytes = strtoll(each, NULL, 10);
    retain(0, 3 * bytes + bytes / 2, 3);
    CHECK_NAMES("def");
    retain(0, 1, 6);
    CHECK_NAMES("");
    kept_close();
    kept_check_whole();
}

TEST(bytes_go_with_their_last_record)
{
    static char large[50000];
    memset(large, 'q', sizeof large - 1);
    kept_open();
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "r_b" : "r_a";
        own_request request = kept_request("{\"code\":\"1\"}");
        struct record *record = kept_begin(name, &request);
        own_result result;
        kept_fill(&result, name, "");
        result_add_artifact(&result, STR("big"), buf_strdup(str_of(large)), sizeof large - 1, NULL);
        kept_end(record, &result, NULL);
    }
    age("run = 'r_a'");
    retain(DAY_S, 0, 1);
    CHECK_NAMES("b");
    own_db *db = kept_look();
    own_buf bytes = BUF_INIT(1 << 20);
    struct err err = ERR_INIT;
    own_str sum = kept_ask(db, "SELECT sha256 FROM uses");
    CHECK_INT(contents_read(db, kept_state, sum, &bytes, &err), 0);
    age("1");
    retain(DAY_S, 0, 2);
    CHECK_ASK(db, "SELECT count(*) FROM contents", "0");
    char path[100];
    snprintf(path, sizeof path, "contents/%.2s/%s", sum, sum + 2);
    CHECK(faccessat(kept_state, path, F_OK, 0) < 0);
    kept_close();
}
