/* Blobs in a folder of their own: owners, dedupe, leftovers, age. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "check.h"
#include "store/blobs.h"
#include "store/blobs_int.h"

static struct loop loop;
static struct errands *errands;
static struct blobs *blobs;
static int state = -1;
static char place[] = "/tmp/cupel-unit-blobs-XXXXXX";
static int64_t used[3]; /* of k_a, k_b, all others */

static void counted(void *user, const char *owner, int64_t bytes)
{
    (void)user;
    used[strcmp(owner, "k_a") == 0 ? 0 : strcmp(owner, "k_b") == 0 ? 1 : 2] += bytes;
}

static void clean(void)
{
    char command[128];
    snprintf(command, sizeof command, "%s", place);
    if (fork() == 0) {
        execl("/bin/rm", "rm", "-rf", command, (char *)NULL);
        _exit(1);
    }
}

static void open_all(int64_t age_s)
{
    struct err err = ERR_INIT;
    if (state < 0) {
        CHECK(mkdtemp(place) != NULL);
        atexit(clean);
        state = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    loop = LOOP_INIT;
    CHECK(loop_open(&loop) == 0);
    memset(used, 0, sizeof used);
    errands = errands_open(&loop, &err);
    CHECK(errands != NULL);
    blobs = blobs_open(&(struct blobs_options){ .loop = &loop, .errands = errands,
                                                .state_dir = state, .age_s = age_s,
                                                .counted = counted }, &err);
    CHECK_TEXT(err.text, "");
    CHECK(blobs != NULL);
}

static void close_all(void)
{
    blobs_close(blobs);
    errands_close(errands);
    loop_close(&loop);
}

static struct err last;
static unsigned answers;

static void told(void *user, const struct err *err)
{
    (void)user;
    last = *err;
    answers++;
}

static void await(void)
{
    for (unsigned before = answers; answers == before;)
        CHECK(loop_turn(&loop) == 0);
}

static struct blob_put *add(const char *text)
{
    struct blob_put *put = blobs_put(blobs, told, NULL);
    /* In two parts. */
    size_t half = strlen(text) / 2;
    blobs_put_add(put, buf_strdup((struct str){ text, half }), half);
    await();
    if (last.kind != ERR_NONE)
        return put;
    blobs_put_add(put, buf_strdup(str_of(text + half)), strlen(text) - half);
    await();
    return put;
}

static bool put(const char *owner, const char *text, char sum[HASH_HEX_ROOM])
{
    struct blob_put *one = add(text);
    blobs_put_end(one, owner, NULL);
    await();
    CHECK_INT(last.kind, ERR_NONE);
    CHECK_INT(blobs_put_size(one), strlen(text));
    memcpy(sum, blobs_put_sum(one), HASH_HEX_ROOM);
    bool was_owned = blobs_put_was_owned(one);
    blobs_put_free(one);
    return was_owned;
}

static bool has(const char *owner, const char *sum, const char *text)
{
    struct err err = ERR_INIT;
    char bytes[64] = "";
    uint64_t size = 0;
    own_fd fd = blobs_find(blobs, owner, sum, &size, &err);
    if (fd < 0) {
        CHECK_INT(err.kind, ERR_ABSENT);
        CHECK_TEXT(err.text, "there is no such blob");
        return false;
    }
    CHECK_INT(read(fd, bytes, sizeof bytes - 1), size);
    CHECK_TEXT(bytes, text);
    return true;
}

/* Files and folders below a folder, itself not counted. */
static unsigned entries_below(int dir, const char *name)
{
    unsigned count = 0;
    own_fd fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_dirp reader = fd < 0 ? NULL : fdopendir(dup(fd));
    for (const struct dirent *entry; reader && (entry = readdir(reader));) {
        if (entry->d_name[0] == '.')
            continue;
        count += 1 + (entry->d_type == DT_DIR ? entries_below(fd, entry->d_name) : 0);
    }
    return count;
}

TEST(blobs_are_stored_once_and_belong_to_those_who_put_them)
{
    char one[HASH_HEX_ROOM], same[HASH_HEX_ROOM], want[HASH_HEX_ROOM];
    open_all(1000);
    CHECK(!put("k_a", "hello", one));
    hash_hex(STR("hello"), want);
    CHECK_TEXT(one, want);
    CHECK(has("k_a", one, "hello") && has(NULL, one, "hello") && !has("k_b", one, ""));
    CHECK(!put("k_b", "hello", same));
    CHECK_TEXT(same, one);
    CHECK(put("k_b", "hello", same));
    CHECK(has("k_b", one, "hello"));
    CHECK_INT(blobs_bytes(blobs), 5);
    close_all();
    CHECK_INT(entries_below(state, "blobs"), 6); /* tmp, ab, cdef, data and two marks */
    open_all(1000);
    CHECK(used[0] == 5 && used[1] == 5 && used[2] == 0);
    CHECK_INT(blobs_bytes(blobs), 5);
    close_all();
}

TEST(blobs_go_with_their_last_owner)
{
    struct err err = ERR_INIT;
    char sum[HASH_HEX_ROOM];
    open_all(1000);
    put("k_a", "hello", sum);
    put("k_b", "hello", sum);
    CHECK(blobs_remove(blobs, "k_a", sum, &err) == 0);
    CHECK(blobs_remove(blobs, "k_a", sum, &err) < 0 && err.kind == ERR_ABSENT);
    CHECK(!has("k_a", sum, "") && has("k_b", sum, "hello"));
    CHECK_INT(used[0], -5);
    CHECK(blobs_remove(blobs, "k_b", sum, &err) == 0);
    CHECK(!has("k_b", sum, ""));
    close_all();
    CHECK_INT(entries_below(state, "blobs"), 2); /* tmp, and the folder of two digits */
}

TEST(blobs_with_another_sum_and_puts_that_end_early_leave_nothing)
{
    char sum[HASH_HEX_ROOM];
    open_all(1000);
    hash_hex(STR("other"), sum);
    struct blob_put *wrong = add("hello");
    blobs_put_end(wrong, "k_a", sum);
    await();
    CHECK(last.kind == ERR_INPUT && strcmp(last.field, "sha256") == 0);
    blobs_put_free(wrong);
    blobs_put_free(add("hello"));
    struct blob_put *busy = add("hello");
    blobs_put_add(busy, buf_strdup(STR("more")), 4);
    unsigned before = answers;
    blobs_put_free(busy);
    blobs_put_free(blobs_put(blobs, told, NULL));
    close_all();
    CHECK_INT(answers, before);
    CHECK_INT(entries_below(state, "blobs"), 1);
}

TEST(blobs_of_a_client_that_went_at_the_very_end_are_counted)
{
    open_all(1000);
    struct blob_put *late = add("hello");
    blobs_put_end(late, "k_a", NULL);
    blobs_put_free(late);
    close_all();
    CHECK_INT(used[0], 5);
}

TEST(blobs_left_by_a_killed_process_are_removed_at_the_next_start)
{
    char sum[HASH_HEX_ROOM], path[128];
    open_all(1000);
    put("k_a", "hello", sum);
    close_all();
    own_fd left = openat(state, "blobs/tmp/dead", O_WRONLY | O_CREAT, 0600);
    own_fd alive = openat(state, "blobs/tmp/alive", O_WRONLY | O_CREAT, 0600);
    CHECK(left >= 0 && flock(alive, LOCK_EX) == 0);
    /* Bytes without an owner, and an owner without bytes. */
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "blobs/0%d", i);
        CHECK(mkdirat(state, path, 0700) == 0);
        snprintf(path, sizeof path, "blobs/0%d/%062d", i, 0);
        CHECK(mkdirat(state, path, 0700) == 0);
        snprintf(path, sizeof path, "blobs/0%d/%062d/%s", i, 0, i ? "data" : "k_a");
        own_fd file = openat(state, path, O_WRONLY | O_CREAT, 0600);
        CHECK(file >= 0);
    }
    open_all(1000);
    CHECK(faccessat(state, "blobs/tmp/dead", F_OK, 0) < 0);
    CHECK(faccessat(state, "blobs/tmp/alive", F_OK, 0) == 0);
    CHECK_INT(used[0], 5);
    CHECK_INT(entries_below(state, "blobs/00") + entries_below(state, "blobs/01"), 0);
    CHECK(has("k_a", sum, "hello"));
    close_all();
}

TEST(blobs_that_nobody_used_for_long_go)
{
    char old[HASH_HEX_ROOM], young[HASH_HEX_ROOM], path[BLOBS_PATH_ROOM];
    struct blobs_tally lost = { 0 };
    struct stat st;
    open_all(1000);
    put("k_a", "hello", old);
    put("k_b", "hello", young);
    put("k_a", "older", old);
    own_fd dir = openat(state, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct timespec past[2] = { { .tv_sec = 5000 }, { .tv_sec = 5000 } };
    CHECK(blobs_path(path, young, "k_a") && utimensat(dir, path, past, 0) == 0);
    CHECK(blobs_path(path, old, "k_a") && utimensat(dir, path, past, 0) == 0);
    for (unsigned number = 0; number < BLOBS_DIRS; number++)
        blobs_disk_sweep(dir, number, 6000, &lost);
    CHECK_INT(lost.count, 2);
    CHECK_INT(lost.rows[0].bytes + lost.rows[1].bytes, -10);
    CHECK_INT(lost.disk_bytes, -5);
    blobs_tally_done(&lost);
    CHECK(!has("k_a", young, "") && has("k_b", young, "hello") && !has(NULL, old, ""));
    /* A use is noted. */
    CHECK(blobs_path(path, young, "k_b") && utimensat(dir, path, past, 0) == 0);
    CHECK(has("k_b", young, "hello"));
    CHECK(fstatat(dir, path, &st, 0) == 0 && st.st_mtim.tv_sec > 6000);
    close_all();
}

TEST(blobs_names_of_owners_and_sums_reach_nothing_else)
{
    static const char *const bad[] = { "", "data", "k_", "../k_a", "k_a/../x", "k_\n", "tmp",
                                       "k_0123456789012345678901234567890123" };
    static const char *const sums[] = { "", "..", "../tmp", "AB", "tmp/alive" };
    char path[BLOBS_PATH_ROOM];
    for (size_t i = 0; i < array_len(bad); i++)
        CHECK(!blobs_is_owner(bad[i]));
    for (size_t i = 0; i < array_len(sums); i++)
        CHECK(!blobs_path(path, sums[i], "data"));
    open_all(1000);
    for (size_t i = 0; i < array_len(sums); i++)
        CHECK(!has("k_a", sums[i], ""));
    close_all();
}
