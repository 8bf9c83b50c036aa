/* Records with long texts and bytes: what waits for them, and what does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "records_place.h"

#define LONG ((size_t)8 << 20)

static char *many(const char *word, size_t size)
{
    char *text = buf_alloc(size + 1);
    for (size_t at = 0, len = strlen(word); at < size; at++)
        text[at] = word[at % len];
    text[size] = 0;
    return text;
}

static void told_flag(void *user, const struct err *err)
{
    CHECK_TEXT(err->text, "");
    *(bool *)user = true;
}

struct long_end {
    struct result result;
    char *text;
    bool told;
};

/* Its end is on its way; it must be kept until it is told. */
static void end_long(struct long_end *end, struct record *record, const char *run)
{
    own_str output = many("token: tokentoken ", LONG);
    result_init(&end->result);
    snprintf(end->result.run, sizeof end->result.run, "%s", run);
    result_stream_add(&end->result.out, LONG, output, LONG);
    end->result.tier = "native";
    own_json json = result_to_json(&end->result);
    end->text = json_write(json, JSON_COMPACT);
    end->told = false;
    record_end(record, &end->result, str_of(end->text), NULL, told_flag, &end->told);
}

static void end_done(struct long_end *end)
{
    result_done(&end->result);
    free(end->text);
}

TEST(short_records_do_not_wait_for_a_long_one)
{
    struct long_end end;
    kept_open();
    kept_run("r_first", "1", "x", NULL); /* the store is open */
    own_request request = kept_request("{\"code\":\"1\"}");
    end_long(&end, kept_begin("r_long", &request), "r_long");
    for (int i = 0; i < 3; i++) {
        char run[16];
        snprintf(run, sizeof run, "r_%d", i);
        kept_run(run, "2", "x", NULL);
        CHECK(!end.told);
    }
    while (!end.told)
        CHECK_INT(loop_turn(&kept_loop), 0);
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT status FROM catalog WHERE run = 'r_long'", "ok");
    CHECK_ASK(db, "SELECT count(*) FROM ends", "5");
    kept_close();
    kept_check_whole();
    end_done(&end);
}

TEST(long_records_are_written_and_told_by_the_close)
{
    struct long_end ends[2];
    kept_open();
    own_request request = kept_request("{\"code\":\"1\"}");
    end_long(&ends[0], kept_begin("r_0", &request), "r_0");
    end_long(&ends[1], kept_begin("r_1", &request), "r_1");
    kept_close();
    CHECK(ends[0].told && ends[1].told);
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT count(*) FROM ends WHERE result_sha256 IS NOT NULL", "2");
    end_done(&ends[0]);
    end_done(&ends[1]);
}

TEST(a_run_keeps_its_place_after_a_long_upload_of_its_session)
{
    struct long_end end;
    own_str data = many("0123456789", LONG);
    kept_open();
    own_request first = kept_request("{\"code\":\"1\"}");
    end_long(&end, kept_begin("r_long", &first), "r_long"); /* keeps the thread of long ones busy */
    own_request request = kept_request("{\"code\":\"1\"}");
    request.session = "s_1";
    own_request upload = kept_request(
        "{\"code\":\"1\",\"files\":[{\"path\":\"f\",\"text\":\"\"}]}");
    upload.files[0].data = (struct str){ data, LONG };
    const struct records_act put = {
        .session = "s_1", .owner = "k_a", .kind = "put", .request = &upload
    };
    records_act(kept_records, &put);
    struct record *record = kept_begin("r_cell", &request);
    const struct records_act undo = { .session = "s_1", .owner = "k_a", .kind = "undo" };
    records_act(kept_records, &undo);
    own_result result;
    kept_fill(&result, "r_cell", "x");
    kept_end(record, &result, NULL);
    kept_close();
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT group_concat(kind || after_n) FROM (SELECT * FROM acts ORDER BY a)",
              "put1,undo2");
    CHECK_ASK(db, "SELECT n FROM starts WHERE run = 'r_cell'", "2");
    end_done(&end);
}

TEST(an_end_comes_after_its_long_start)
{
    struct err why = ERR_INIT;
    const struct record_about about = { .run = "r_x", .owner = "", .door = "cli" };
    own_str stdin_text = many("token: tokentoken ", LONG);
    kept_open();
    own_request request = kept_request("{\"code\":\"1\"}");
    request.stdin_text = (struct str){ stdin_text, LONG };
    err_set(&why, ERR_CANCELLED, "over");
    record_fail(records_begin(kept_records, &request, &about, kept_told, NULL), &why);
    kept_await(1);
    CHECK_TEXT(kept_last.text, "");
    kept_close();
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT status FROM catalog WHERE run = 'r_x'", "cancelled");
}
