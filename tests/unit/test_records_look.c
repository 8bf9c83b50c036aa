/* Records looked at: lists, filters, pages, searches, figures and changes, in a database of its own
 * that has what a writer would have stored. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "store/records/catalog.h"
#include "store/records/look.h"

static char place[] = "/tmp/cupel-unit-look-XXXXXX";
static struct db *db;

static void clean(void)
{
    if (fork() == 0) {
        execl("/bin/rm", "rm", "-rf", place, (char *)NULL);
        _exit(1);
    }
}

static void open_db(void)
{
    struct err err = ERR_INIT;
    CHECK(mkdtemp(place) != NULL);
    atexit(clean);
    int state = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    db = db_open(&(struct db_options){ .state_dir = state }, &err);
    CHECK_TEXT(err.text, "");
}

static void put(const char *sql, struct err *err)
{
    if (db_run(db, sql, err) < 0)
        check_failed(__FILE__, __LINE__, "%s: %s", sql, err->text);
}

struct given {
    const char *owner, *status, *language, *session, *code, *text;
    int64_t at_ms;
};

/* A run that ended, unless its status is "started". */
static void add(int n, struct given it)
{
    struct err err = ERR_INIT;
    char sql[2048], session[64] = "NULL";
    if (it.session)
        snprintf(session, sizeof session, "'%s'", it.session);
    snprintf(sql, sizeof sql,
             "INSERT INTO starts VALUES (%d, 'r_%04d', 1, %lld, '%s', 'http', NULL, NULL, NULL, %s,"
             " '%s', 'c0de%d', 0, 100, '%s', '{\"language\":\"%s\"}')",
             n, n, (long long)(it.at_ms ? it.at_ms : 1000 * n), it.owner ? it.owner : "k_a",
             session, it.language ? it.language : "python", n, it.code ? it.code : "x = 1",
             it.language ? it.language : "python");
    put(sql, &err);
    const char *status = it.status ? it.status : "ok";
    if (strcmp(status, "started") == 0)
        return;
    bool failed = strcmp(status, "ok") != 0;
    snprintf(
        sql, sizeof sql,
        "INSERT INTO ends (n, at_ms, status, exit_code, wall_ms, cpu_ms, memory_peak_bytes,"
        " artifacts, redacted, bytes, result) VALUES (%d, %lld, '%s', 0, %d, 2, 1000, 0, 1, 50,"
        " '{\"stdout\":\"%s\",\"stderr\":\"\",\"text\":\"%s\",\"error\":%s}')",
        n, (long long)(it.at_ms ? it.at_ms : 1000 * n), status, n, it.text ? it.text : "",
        it.text ? it.text : "",
        failed ? "{\"kind\":\"exception\",\"name\":\"KeyError\",\"message\":\"no a\"}" : "null");
    put(sql, &err);
}

/* The runs of a page, as "3 2 1", with a "+" where another page follows. */
static const char *list(struct look_filter filter)
{
    static char text[4096];
    struct err err = ERR_INIT;
    own_json page = look_list(db, &filter, &err);
    size_t i, at = 0;
    json_t *row;
    if (!page) {
        snprintf(text, sizeof text, "%s: %s", err_kind_name(err.kind), err.field);
        return text;
    }
    text[0] = '\0';
    json_array_foreach (json_object_get(page, "runs"), i, row) {
        const char *run = json_string_value(json_object_get(row, "run"));
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? " " : "",
                               run + 2 + strspn(run + 2, "0"));
    }
    if (json_is_string(json_object_get(page, "next")))
        snprintf(text + at, sizeof text - at, " +");
    return text;
}

static void fill(void)
{
    add(1, (struct given){ .code = "import numpy as np", .text = "alpha" });
    add(2, (struct given){ .owner = "k_b", .code = "print(np.zeros(3))", .text = "beta" });
    add(3, (struct given){ .status = "error", .session = "s_1", .code = "d[\"a\"]" });
    add(4, (struct given){ .language = "bash", .session = "s_1", .code = "echo division" });
    add(5, (struct given){ .status = "memory_limit", .language = "bash" });
    add(6, (struct given){ .status = "started", .session = "s_1" });
}

TEST(records_are_listed_newest_first_and_filtered)
{
    open_db();
    fill();
    CHECK_TEXT(list((struct look_filter){ .limit = 10 }), "6 5 4 3 2 1");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a" }), "6 5 4 3 1");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_c" }), "");
    CHECK_TEXT(list((struct look_filter){ .status = "ok" }), "4 2 1");
    CHECK_TEXT(list((struct look_filter){ .status = "started" }), "6");
    CHECK_TEXT(list((struct look_filter){ .language = "bash" }), "5 4");
    CHECK_TEXT(list((struct look_filter){ .session = "s_1" }), "6 4 3");
    CHECK_TEXT(list((struct look_filter){ .task = "t_1" }), "");
    CHECK_TEXT(list((struct look_filter){ .code_sha256 = "c0de3" }), "3");
}

TEST(filters_of_records_are_combined)
{
    open_db();
    fill();
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a", .status = "ok" }), "4 1");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_b", .status = "error" }), "");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a", .session = "s_1" }), "6 4 3");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a", .session = "s_1", .limit = 2 }), "6 4 +");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a", .status = "memory_limit" }), "5");
    CHECK_TEXT(list((struct look_filter){ .session = "s_1", .status = "started" }), "6");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a", .code_sha256 = "c0de3" }), "3");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a", .since_ms = 3000, .until_ms = 5000 }),
               "4 3");
    /* No value is read as an expression. */
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a", .status = "ok\" OR \"uerror" }), "");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a", .session = "s_1 OR s_2" }), "");
    CHECK_TEXT(list((struct look_filter){ .owner = "ka", .language = "bash" }), "");
}

TEST(a_page_goes_on_where_the_last_one_ended)
{
    struct err err = ERR_INIT;
    open_db();
    fill();
    struct look_filter filter = { .owner = "k_a", .limit = 2 };
    own_json first = look_list(db, &filter, &err);
    const char *next = json_string_value(json_object_get(first, "next"));
    CHECK(next != NULL);
    add(7, (struct given){ 0 }); /* newer ones do not move it */
    filter.page = next;
    CHECK_TEXT(list(filter), "4 3 +");
    filter.limit = 3;
    CHECK_TEXT(list(filter), "4 3 1");
    CHECK_TEXT(list((struct look_filter){ .page = next }), "input: page");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_b", .page = next }), "input: page");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a", .page = "p1" }), "input: page");
    CHECK_TEXT(list((struct look_filter){ .owner = "k_a", .page = "" }), "input: page");
    CHECK_TEXT(list((struct look_filter){ .limit = 1001 }), "input: limit");
    CHECK_TEXT(list((struct look_filter){ .limit = -1 }), "input: limit");
}

TEST(records_are_found_by_their_words)
{
    open_db();
    fill();
    CHECK_TEXT(list((struct look_filter){ .text = "numpy" }), "1");
    CHECK_TEXT(list((struct look_filter){ .text = "np" }), "2 1");
    CHECK_TEXT(list((struct look_filter){ .text = "np alpha" }), "1");
    CHECK_TEXT(list((struct look_filter){ .text = "np", .owner = "k_b" }), "2");
    CHECK_TEXT(list((struct look_filter){ .text = "np.zeros" }), "2");
    CHECK_TEXT(list((struct look_filter){ .text = "\"import numpy\"" }), "1");
    CHECK_TEXT(list((struct look_filter){ .text = "\"numpy import\"" }), "");
    CHECK_TEXT(list((struct look_filter){ .text = "divi*" }), "4");
    CHECK_TEXT(list((struct look_filter){ .text = "divi" }), "");
    CHECK_TEXT(list((struct look_filter){ .text = "keyerror" }), "5 3");
    CHECK_TEXT(list((struct look_filter){ .text = "keyerror", .status = "error" }), "3");
    /* Not by the words of other columns. */
    CHECK_TEXT(list((struct look_filter){ .text = "uok" }), "");
    CHECK_TEXT(list((struct look_filter){ .text = "tags:uok" }), "");
}

TEST(the_text_of_a_search_is_never_syntax)
{
    static const char *const texts[] = { "np AND", "np OR alpha", "NOT np", "NEAR(np alpha, 2)",
                                         "code:np", "{code}:np", "-np", "^np", "np +", "(np",
                                         "np) OR (np", "\"np", "np\" OR \"x", "'np'", "np;--",
                                         "a\"\"b", "\\\"np", "col : np" };
    open_db();
    fill();
    for (size_t i = 0; i < array_len(texts); i++) {
        const char *got = list((struct look_filter){ .text = texts[i], .owner = "k_b" });
        bool fine = strchr(got, ':') == NULL && strchr(got, '1') == NULL;
        if (!fine)
            check_failed(__FILE__, __LINE__, "'%s' gave %s", texts[i], got);
    }
    CHECK_TEXT(list((struct look_filter){ .text = "" }), "input: text");
    CHECK_TEXT(list((struct look_filter){ .text = "+++ \"\" *" }), "input: text");
    CHECK_TEXT(list((struct look_filter){ .text = "np*" }), "input: text");
    CHECK_TEXT(list((struct look_filter){ .text = "\xff" }), "input: text");
    CHECK_TEXT(list((struct look_filter){ .text = "+++ alpha" }), "1");
}

TEST(times_hold_after_the_clock_was_set_back)
{
    open_db();
    add(1, (struct given){ .at_ms = 1000 });
    add(2, (struct given){ .at_ms = 900000 });
    add(3, (struct given){ .at_ms = 2000 });
    add(4, (struct given){ .at_ms = 3000 });
    add(5, (struct given){ .at_ms = 950000 });
    add(6, (struct given){ .at_ms = 4000 });
    CHECK_TEXT(list((struct look_filter){ .until_ms = 5000 }), "6 4 3 1");
    CHECK_TEXT(list((struct look_filter){ .since_ms = 2000, .until_ms = 4000 }), "4 3");
    CHECK_TEXT(list((struct look_filter){ .since_ms = 900000 }), "5 2");
    CHECK_TEXT(list((struct look_filter){ .since_ms = 999999 }), "");
    CHECK_TEXT(list((struct look_filter){ .until_ms = 1000 }), "");
}

TEST(a_record_is_shown_by_its_name_to_its_owner)
{
    struct err err = ERR_INIT;
    open_db();
    fill();
    own_json record = look_show(db, "k_a", "r_0003", &err);
    CHECK_TEXT(json_string_value(json_object_get(record, "status")), "error");
    CHECK_TEXT(json_string_value(json_object_get(json_object_get(record, "request"), "code")),
               "d[\"a\"]");
    CHECK_TEXT(json_string_value(json_object_get(
                   json_object_get(json_object_get(record, "result"), "error"), "name")),
               "KeyError");
    own_json last = look_show(db, "k_b", "last", &err);
    CHECK_TEXT(json_string_value(json_object_get(last, "run")), "r_0002");
    own_json open = look_show(db, NULL, "r_0006", &err);
    CHECK(json_is_null(json_object_get(open, "result")));
    CHECK(look_show(db, "k_b", "r_0003", &err) == NULL);
    CHECK_INT(err.kind, ERR_ABSENT);
    CHECK(look_show(db, NULL, "r_00", &err) == NULL);
    CHECK_INT(err.kind, ERR_INPUT);
    own_json only = look_show(db, "k_b", "r_", &err); /* others' do not make it ambiguous */
    CHECK_TEXT(json_string_value(json_object_get(only, "run")), "r_0002");
    static const char *const wrong[] = { "", "r_9", "r_%", "' OR 1", "r_0003~", "../x" };
    for (size_t i = 0; i < array_len(wrong); i++) {
        CHECK(look_show(db, NULL, wrong[i], &err) == NULL);
        CHECK_INT(err.kind, ERR_ABSENT);
    }
}

TEST(records_are_removed_and_pinned_by_their_owner)
{
    struct err err = ERR_INIT;
    open_db();
    fill();
    CHECK_INT(look_remove(db, "k_b", "r_0001", &err), -1);
    CHECK_INT(err.kind, ERR_ABSENT);
    CHECK_INT(look_remove(db, "k_a", "r_0006", &err), -1);
    CHECK_INT(err.kind, ERR_CONFLICT);
    CHECK_INT(look_remove(db, "k_a", "r_0001", &err), 0);
    CHECK_TEXT(list((struct look_filter){ .text = "numpy" }), "");
    CHECK_TEXT(list((struct look_filter){ .status = "ok" }), "4 2");
    CHECK_INT(look_pin(db, "k_b", "r_0003", true, &err), -1);
    CHECK_INT(look_pin(db, "k_a", "r_0003", true, &err), 0);
    own_json record = look_show(db, "k_a", "r_0003", &err);
    CHECK(json_is_true(json_object_get(record, "pinned")));
    CHECK_INT(look_pin(db, "k_a", "r_0003", false, &err), 0);
    own_json after = look_show(db, "k_a", "r_0003", &err);
    CHECK(json_is_false(json_object_get(after, "pinned")));
}

TEST(figures_count_what_failed_and_what_was_slow)
{
    struct err err = ERR_INIT;
    open_db();
    for (int i = 1; i <= 200; i++)
        add(i, (struct given){ .status = i % 10 ? "ok" : "error", .owner = i % 4 ? "k_a" : "k_b" });
    own_json all = look_stats(db, &(struct look_filter){ .until_ms = 201000 }, &err);
    CHECK_TEXT(err.text, "");
    CHECK_INT(json_integer_value(json_object_get(all, "runs")), 200);
    CHECK_INT(json_integer_value(json_object_get(json_object_get(all, "statuses"), "error")), 20);
    const json_t *failure = json_array_get(json_object_get(all, "failures"), 0);
    CHECK_TEXT(json_string_value(json_object_get(failure, "name")), "KeyError");
    CHECK_TEXT(json_string_value(json_object_get(failure, "example")), "r_0200");
    CHECK_INT(json_integer_value(json_object_get(failure, "count")), 20);
    const json_t *wall = json_object_get(all, "wall_ms");
    double p50 = json_real_value(json_object_get(wall, "p50"));
    double p95 = json_real_value(json_object_get(wall, "p95"));
    CHECK(p50 > 98.5 && p50 < 101.5);
    CHECK(p95 > 188 && p95 < 192);
    CHECK_INT(json_real_value(json_object_get(wall, "max")), 200);
    const json_t *slow = json_array_get(json_object_get(all, "slowest"), 1);
    CHECK_TEXT(json_string_value(json_object_get(slow, "run")), "r_0199");
    CHECK_INT(json_array_size(json_object_get(all, "slowest")), 5);
    CHECK_INT(json_array_size(json_object_get(all, "tokens")), 2);
    const json_t *buckets = json_object_get(json_object_get(all, "over_time"), "runs");
    size_t i, sum = 0;
    const json_t *one;
    json_array_foreach (buckets, i, one)
        sum += (size_t)json_integer_value(one);
    CHECK_INT(sum, 200);
    own_json mine = look_stats(db, &(struct look_filter){ .owner = "k_b", .since_ms = 100000 },
                               &err);
    CHECK_INT(json_integer_value(json_object_get(mine, "runs")), 26);
    CHECK(json_object_get(mine, "tokens") == NULL);
}

TEST(a_session_is_walked_in_its_order)
{
    struct err err = ERR_INIT;
    open_db();
    put("INSERT INTO acts VALUES (1, 1, 10, 0, 's_1', 'k_a', 'new', '{\"cell\":0}', 0, NULL)",
        &err);
    fill();
    put("INSERT INTO acts VALUES (2, 1, 10, 3, 's_1', 'k_a', 'undo', '{\"cell\":1}', 0, NULL)",
        &err);
    put("INSERT INTO uses VALUES (-1, 'input', x'6162', 'aa', 3, NULL, 1)", &err);
    own_json steps = look_session(db, "k_a", "s_1", "r_0004", &err);
    CHECK_TEXT(err.text, "");
    CHECK_INT(json_array_size(steps), 4);
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(steps, 0), "act")), "new");
    const json_t *files = json_object_get(json_array_get(steps, 0), "files");
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(files, 0), "path")), "ab");
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(steps, 1), "run")), "r_0003");
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(steps, 2), "act")), "undo");
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(steps, 3), "run")), "r_0004");
    own_json none = look_session(db, "k_b", "s_1", NULL, &err);
    CHECK_INT(json_array_size(none), 0);
}
