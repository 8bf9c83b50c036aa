/* Records whose processes are killed at any moment: what was told is in the store, whole. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "records_place.h"

#define LARGE 40000 /* bytes of an artifact: a file */

/* What a writer was told: its number, the run's, and whether the end is stored. */
struct told {
    int writer, run, ended;
};

static void name_run(int writer, int run, int round, char out[32])
{
    snprintf(out, 32, "r_%d_%d_%d", round, writer, run);
}

static void one_run(int writer, int run, int round, int tell)
{
    char name[32], code[64];
    static char large[LARGE];
    name_run(writer, run, round, name);
    snprintf(code, sizeof code, "{\"code\":\"print('%s')\"}", name);
    own_request request = kept_request(code);
    struct record *record = kept_begin(name, &request);
    CHECK_TEXT(kept_last.text, "");
    CHECK_INT(io_write_all(tell, &(struct told){ writer, run, 0 }, sizeof(struct told)), 0);
    own_result result;
    kept_fill(&result, name, name);
    if (run % 3 == 0) {
        memset(large, 'a' + run % 26, sizeof large);
        memcpy(large, name, strlen(name));
        result_add_artifact(&result, STR("large"), buf_strdup((struct str){ large, sizeof large }),
                            sizeof large, NULL);
    }
    kept_end(record, &result, NULL);
    CHECK_TEXT(kept_last.text, "");
    CHECK_INT(io_write_all(tell, &(struct told){ writer, run, 1 }, sizeof(struct told)), 0);
}

static pid_t start_writer(int writer, int round, int tell)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    kept_open();
    for (int run = 0;; run++)
        one_run(writer, run, round, tell);
}

static void check_told(struct db *db, const struct told *told, int round)
{
    char name[32], sql[200];
    name_run(told->writer, told->run, round, name);
    snprintf(sql, sizeof sql, "SELECT code FROM starts WHERE run = '%s'", name);
    own_str code = kept_ask(db, sql);
    CHECK(strstr(code, name) != NULL);
    if (!told->ended)
        return;
    snprintf(sql, sizeof sql,
             "SELECT json_extract(e.result, '$.stdout') FROM ends e JOIN starts USING (n)"
             " WHERE run = '%s'",
             name);
    own_str output = kept_ask(db, sql);
    CHECK_TEXT(output, name);
    if (told->run % 3 != 0)
        return;
    struct err err = ERR_INIT;
    own_buf bytes = BUF_INIT(1 << 20);
    snprintf(sql, sizeof sql, "SELECT sha256 FROM uses JOIN starts USING (n) WHERE run = '%s'",
             name);
    own_str sum = kept_ask(db, sql);
    CHECK_INT(contents_read(db, kept_state, sum, &bytes, &err), 0);
    CHECK(bytes.len == LARGE && memcmp(bytes.at, name, strlen(name)) == 0);
}

/* Two writers at once; both are killed after a while. */
static void one_round(int round)
{
    int pipes[2], status;
    struct told told;
    unsigned count = 0;
    CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
    pid_t writers[2];
    for (int i = 0; i < 2; i++)
        writers[i] = start_writer(i, round, pipes[1]);
    close(pipes[1]);
    /* The first word says that they write; then any moment will do. */
    CHECK_INT(io_read_all(pipes[0], &told, sizeof told), 0);
    usleep((unsigned)(rand() % 20000));
    for (int i = 0; i < 2; i++)
        CHECK_INT(kill(writers[i], SIGKILL), 0);
    for (int i = 0; i < 2; i++)
        CHECK(waitpid(writers[i], &status, 0) == writers[i] && WIFSIGNALED(status));
    own_db *db = kept_look();
    do {
        check_told(db, &told, round);
        count++;
    } while (io_read_all(pipes[0], &told, sizeof told) == 0);
    close(pipes[0]);
    CHECK(count > 0);
    kept_check_whole();
}

/* The next engine closes all that has no end, and sweeps all that has no row. */
static void check_after(void)
{
    kept_open();
    kept_run("r_last", "1", "", NULL);
    for (int i = 0; i < 2000; i++) { /* until the first round is over */
        own_db *db = kept_look();
        own_str open = kept_ask(db, "SELECT count(*) FROM catalog WHERE status = 'started'");
        if (strcmp(open, "0") == 0)
            break;
        usleep(5000);
    }
    kept_close();
    own_db *db = kept_look();
    CHECK_ASK(db, "SELECT count(*) FROM catalog WHERE status = 'started'", "0");
    CHECK_ASK(db, "SELECT count(*) FROM catalog WHERE status NOT IN ('ok', 'internal')", "0");
    CHECK_ASK(db, "SELECT (SELECT count(*) FROM starts) - (SELECT count(*) FROM ends)", "0");
    struct err err = ERR_INIT;
    CHECK_INT(db_run(db, "INSERT INTO words (words, rank) VALUES ('integrity-check', 1)", &err), 0);
    kept_check_whole();
}

TEST(what_was_told_survives_a_kill_of_both_writers)
{
    kept_make();
    srand((unsigned)getpid());
    for (int round = 0; round < 4; round++)
        one_round(round);
    check_after();
}

/* --- retention --- */

#define BYTES 400000 /* some ten runs */

static pid_t start_keeper(int writer, int round, int tell)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    kept_open();
    for (int run = 0;; run++) {
        one_run(writer, run, round, tell);
        if (run % 4 == 0)
            records_set_retention(kept_records, 0, BYTES);
    }
}

/* Rows and files fit, after a crash in the middle of a removal, too. */
static void check_fit(struct db *db)
{
    struct err err = ERR_INIT;
    CHECK_INT(db_run(db,
                     "CREATE TEMP VIEW IF NOT EXISTS unused AS SELECT * FROM main.contents WHERE"
                     " sha256 NOT IN (SELECT sha256 FROM main.uses UNION"
                     " SELECT sha256 FROM main.loose)",
                     &err),
              0);
    static const char *const none[] = {
        "SELECT count(*) FROM uses WHERE n > 0 AND n NOT IN (SELECT n FROM starts)",
        "SELECT count(*) FROM uses WHERE sha256 NOT IN (SELECT sha256 FROM contents)",
        "SELECT count(*) FROM ends WHERE n NOT IN (SELECT n FROM starts)",
        "SELECT count(*) FROM unused",
        "SELECT 3 - count(*) FROM catalog WHERE pinned",
    };
    for (size_t i = 0; i < array_len(none); i++)
        CHECK_ASK(db, none[i], "0");
}

static void kill_keepers(int round)
{
    int pipes[2], status;
    struct told told;
    pid_t writers[2];
    CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
    CHECK(fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20) > 0);
    for (int i = 0; i < 2; i++)
        writers[i] = start_keeper(i, round, pipes[1]);
    CHECK_INT(io_read_all(pipes[0], &told, sizeof told), 0);
    usleep(20000 + (unsigned)(rand() % 60000));
    for (int i = 0; i < 2; i++)
        CHECK_INT(kill(writers[i], SIGKILL), 0);
    for (int i = 0; i < 2; i++)
        CHECK(waitpid(writers[i], &status, 0) == writers[i] && WIFSIGNALED(status));
    close(pipes[0]);
    close(pipes[1]);
}

/* Files of contents and their rows: as many, and each row has its bytes. */
static void check_files(struct db *db)
{
    struct err err = ERR_INIT;
    struct db_query *query = db_ask(db, "SELECT sha256 FROM contents", &err);
    own_buf sums = BUF_INIT(1 << 20), bytes = BUF_INIT(1 << 26);
    int rows = 0, files = 0;
    while (db_next(query, &err) > 0) {
        buf_add_str(&sums, db_text(query, 0));
        buf_add(&sums, "", 1);
        rows++;
    }
    for (int i = 0; i < rows; i++)
        CHECK_INT(contents_read(db, kept_state, sums.at + (size_t)i * 65, &bytes, &err), 0);
    own_str large = kept_ask(db, "SELECT count(*) FROM contents WHERE bytes IS NULL");
    for (unsigned i = 0; i < CONTENTS_DIRS; i++) {
        char path[32];
        snprintf(path, sizeof path, "contents/%02x", i);
        own_fd dir = openat(kept_state, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        own_dirp reader = dir < 0 ? NULL : fdopendir(take_fd(&dir));
        for (const struct dirent *entry; reader && (entry = readdir(reader));)
            files += entry->d_name[0] != '.';
    }
    CHECK_INT(files, strtol(large, NULL, 10));
}

static void kill_rounds(int rounds)
{
    struct err err = ERR_INIT;
    kept_open();
    for (int i = 0; i < 3; i++)
        kept_run(i == 0 ? "r_p" : i == 1 ? "r_q" : "r_r", "pinned", "", NULL);
    kept_close();
    own_db *db = kept_look();
    CHECK_INT(db_run(db, "UPDATE catalog SET pinned = 1", &err), 0);
    for (int round = 0; round < rounds; round++) {
        kill_keepers(round);
        CHECK_INT(records_catch_up(db, &err), 0);
        check_fit(db);
    }
    kept_check_whole();
    kept_open();
    kept_run("r_last", "1", "", NULL);
    records_set_retention(kept_records, 0, BYTES);
    for (int i = 0; i < 2000; i++) {
        own_str left = kept_ask(db, "SELECT (SELECT count(*) FROM loose) + (SELECT sum(bytes) >"
                                    " 400000 FROM catalog)");
        if (strcmp(left, "0") == 0)
            break;
        usleep(5000);
    }
    usleep(300000); /* all folders of contents */
    kept_close();
    check_fit(db);
    check_files(db);
    CHECK_ASK(db, "SELECT count(*) FROM loose", "0");
    CHECK_ASK(db, "SELECT sum(bytes) <= 400000 FROM catalog", "1");
    CHECK_INT(db_run(db, "INSERT INTO words (words, rank) VALUES ('integrity-check', 1)", &err), 0);
}

TEST(retention_that_is_killed_removes_nothing_needed_and_leaves_nothing_else)
{
    srand((unsigned)getpid());
    kill_rounds(4);
}

TEST(retention_that_is_killed_in_50_rounds_removes_nothing_needed)
{
    srand((unsigned)getpid());
    kill_rounds(50);
}

TEST(what_was_told_survives_200_rounds_of_kills)
{
    kept_make();
    srand((unsigned)getpid());
    for (int round = 0; round < 200; round++)
        one_round(round);
    check_after();
}
