/* Retention of tasks: by age and by bytes, and which of them stay. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "records_place.h"
#include "store/tasks/tasklog.h"

#define DAY_S 86400

static struct tasklog *open_log(void)
{
    struct err err = ERR_INIT;
    struct tasklog *log = tasklog_open(&(struct tasklog_options){ .state_dir = kept_state }, &err);
    CHECK_TEXT(err.text, "");
    return log;
}

/* t_NNN... with an event of `bytes`; "end" makes it ended. */
static void write_task(struct tasklog *log, unsigned number, size_t bytes, const char *last)
{
    char id[TASKLOG_ID_LEN + 1];
    struct err err = ERR_INIT;
    snprintf(id, sizeof id, "t_%024x", number);
    own_str text = buf_alloc_zero(bytes + 1, 1);
    memset(text, 'q', bytes);
    own_json data = json_pack("{s:s}", "question", text);
    CHECK_INT(
        tasklog_begin(log, &(struct tasklog_about){ .id = id, .owner = "", .door = "cli" }, &err),
        0);
    CHECK_INT(tasklog_add(log, "task", data, &err), 0);
    CHECK_INT(tasklog_add_file(log, "made", "f", "text/plain", STR("made"), &err), 0);
    if (last)
        CHECK_INT(tasklog_add(log, last, data, &err), 0);
    CHECK_TEXT(err.text, "");
}

static void age(const char *which)
{
    char sql[300];
    struct err err = ERR_INIT;
    own_db *db = kept_look();
    snprintf(
        sql, sizeof sql,
        "UPDATE tasks SET began_ms = began_ms - 604800000, created_ms = created_ms - 604800000,"
        " ended_ms = ended_ms - 604800000 WHERE %s",
        which);
    CHECK_INT(db_run(db, sql, &err), 0);
}

static void retain(int64_t age_s, int64_t bytes, const char *left)
{
    records_set_retention(kept_records, age_s, bytes);
    own_db *db = kept_look();
    for (int i = 0; i < 2000; i++) {
        own_str now = kept_ask(db, "SELECT count(*) FROM tasks");
        if (strcmp(now, left) == 0)
            break;
        usleep(5000);
    }
    usleep(100000); /* a round that goes too far goes on */
    CHECK_ASK(db, "SELECT count(*) FROM tasks", left);
}

TEST(old_tasks_go_with_their_events_and_files_and_one_that_runs_stays)
{
    kept_open();
    own_tasklog log = open_log();
    own_tasklog running = open_log();
    for (unsigned i = 1; i <= 3; i++) {
        write_task(log, i, 10, i == 2 ? "end" : NULL); /* the others were left */
        tasklog_finish(log);
    }
    write_task(running, 4, 10, NULL);
    age("n <> 3");
    retain(DAY_S, 0, "2");
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT group_concat(n) FROM (SELECT n FROM tasks ORDER BY n)", "3,4");
    CHECK_ASK(db,
              "SELECT group_concat(task) FROM (SELECT DISTINCT task FROM task_events ORDER BY 1)",
              "3,4");
    CHECK_ASK(db, "SELECT group_concat(task) FROM (SELECT task FROM task_files ORDER BY 1)", "3,4");
    tasklog_finish(running);
    retain(DAY_S, 0, "1");
    kept_close();
    kept_check_whole();
}

TEST(past_the_bytes_the_oldest_tasks_go_first)
{
    kept_open();
    own_tasklog log = open_log();
    for (unsigned i = 1; i <= 40; i++) {
        write_task(log, i, 100000, NULL);
        tasklog_finish(log);
    }
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT min(bytes) >= 100000 AND max(bytes) < 101000 FROM tasks", "1");
    retain(0, 250000, "2");
    CHECK_ASK(db, "SELECT group_concat(n) FROM (SELECT n FROM tasks ORDER BY n)", "39,40");
    kept_close();
}
