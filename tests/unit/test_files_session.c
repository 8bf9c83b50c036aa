/* The files of a session through all of it: engine's jobs, a real box, its resident
 * porter and store. No user code; what that can do is in test_curator*.c. */
#include "engine/session/files_session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "box/host/box.h"
#include "check.h"

#define BOX 0
#define MIB (INT64_C(1) << 20)
#define WAIT_MS 20000
#define NONE BOX_STATES

static struct box_broker house = BOX_BROKER_INIT;
static struct loop loop = LOOP_INIT;
static struct files_job job;
static bool is_done;
static int sock = -1;

static struct box_news any_news(int fds[BOX_NEWS_FDS])
{
    struct err err = ERR_INIT;
    struct box_news word;
    struct pollfd ready = { .fd = house.sock, .events = POLLIN };
    CHECK_INT(poll(&ready, 1, WAIT_MS), 1);
    CHECK_INT(box_receive(&house, &word, fds, &err), 0);
    return word;
}

static int news(uint32_t kind)
{
    int fds[BOX_NEWS_FDS];
    struct box_news word = any_news(fds);
    if (word.kind != kind)
        check_failed(__FILE__, __LINE__, "news %u in place of %u: step %u, %s", word.kind, kind,
                     word.step, strerror(word.error));
    return fds[0];
}

static void order(const struct box_call *call)
{
    struct err err = ERR_INIT;
    CHECK_INT(box_send(&house, call, NULL, 0, &err), 0);
}

static const struct box_call ask_porter = { .op = BOX_OP_PORTER, .box = BOX,
                                            .porter.resident = 1 };

static void on_done(struct files_job *done);

static struct files_job *new_job(void)
{
    return files_session_begin(&job, &loop, sock, on_done);
}

static bool begin(void)
{
    struct err err = ERR_INIT;
    int fds[BOX_NEWS_FDS];
    struct box_call create = { .op = BOX_OP_CREATE, .box = BOX,
                               .create = { .memory_bytes = 128 * MIB, .disk_bytes = 32 * MIB,
                                           .disk_inodes = 4096, .pids = 32,
                                           .cpu_thousandths = 1000 } };
    if (box_broker_open(&house, NULL, 0, &err) < 0) {
        printf("# skipped: %s\n", err.text);
        return false;
    }
    CHECK_INT(loop_open(&loop), 0);
    order(&create);
    news(BOX_NEWS_READY);
    order(&ask_porter);
    sock = news(BOX_NEWS_PORTER);
    order(&ask_porter); /* it stays: another is refused */
    CHECK_INT(any_news(fds).error, EBUSY);
    return true;
}

static void end(void)
{
    close(sock);
    loop_close(&loop);
    box_broker_close(&house);
}

static void on_done(struct files_job *done)
{
    CHECK(done == &job);
    is_done = true;
}

/* Wait for the job's end; what it left is there until `over`. */
static enum err_kind outcome(void)
{
    CHECK(!is_done);
    while (!is_done)
        CHECK_INT(loop_turn(&loop), 0);
    is_done = false;
    return job.err.kind;
}

static enum err_kind over(void)
{
    enum err_kind kind = outcome();
    files_drop(&job);
    return kind;
}

static enum err_kind put(const char *path, const char *text, size_t len)
{
    char name[64];
    snprintf(name, sizeof name, "%s", path);
    const struct request_file file = { .path = name, .data = { text, len } };
    files_session_put(new_job(), &file, 1);
    return over();
}

static bool holds(const char *path, const char *text)
{
    files_session_get(new_job(), str_of(path), 0, 1000);
    bool same = outcome() == ERR_NONE && job.content_len == strlen(text) &&
                strcmp(job.content, text) == 0;
    files_drop(&job);
    return same;
}

static enum err_kind get(const char *path, uint64_t most)
{
    files_session_get(new_job(), str_of(path), 0, most);
    enum err_kind kind = outcome();
    CHECK(kind != ERR_INPUT || strcmp(job.err.field, "path") == 0);
    files_drop(&job);
    return kind;
}

static enum err_kind snap(uint32_t snapshot, uint32_t base, bool *changed)
{
    files_session_snap(new_job(), snapshot, base, false);
    enum err_kind kind = outcome();
    CHECK(kind == ERR_NONE || kind == ERR_LIMIT);
    CHECK_INT(job.err.sys, kind == ERR_LIMIT ? ENOSPC : 0);
    *changed = job.changed;
    files_drop(&job);
    return kind;
}

static enum err_kind restore(uint32_t snapshot)
{
    files_session_restore(new_job(), snapshot, 0);
    return over();
}

TEST(files_of_a_session_go_in_and_out)
{
    if (!begin())
        return;
    CHECK_INT(put("a/x", "one", 3), ERR_NONE);
    CHECK_INT(put("b", "two", 3), ERR_NONE);
    CHECK_INT(put("b", "three", 5), ERR_NONE);
    CHECK_INT(put("../b", "no", 2), ERR_INPUT);
    CHECK_INT(put("a", "no", 2), ERR_INPUT);
    files_session_put(new_job(), NULL, 0);
    CHECK_INT(over(), ERR_NONE);
    files_session_list(new_job());
    CHECK_INT(outcome(), ERR_NONE);
    CHECK(job.count == 3 && !job.cut);
    CHECK_TEXT(job.entries[0].path, "a");
    CHECK_INT(job.entries[0].type, BOX_ENTRY_DIR);
    CHECK_TEXT(job.entries[1].path, "a/x");
    CHECK_INT(job.entries[2].size, 5);
    files_drop(&job);
    CHECK(holds("a/x", "one") && holds("/workspace/b", "three"));
    CHECK_INT(get("nothing", 10), ERR_ABSENT);
    CHECK_INT(get("b/inner", 10), ERR_ABSENT);
    CHECK_INT(get("a", 10), ERR_INPUT);
    CHECK_INT(get("../etc/passwd", 10), ERR_INPUT);
    CHECK_INT(get("/etc/passwd", 10), ERR_INPUT);
    CHECK_INT(get("b", 4), ERR_LIMIT);
    /* What a dropped job was told is not told to the next. */
    files_session_list(new_job());
    files_drop(&job);
    CHECK(holds("a/x", "one"));
    end();
}

TEST(files_of_a_session_are_kept)
{
    bool changed;
    if (!begin())
        return;
    CHECK_INT(put("b", "two", 3), ERR_NONE);
    CHECK(snap(0, NONE, &changed) == ERR_NONE && changed);
    CHECK(snap(1, 0, &changed) == ERR_NONE && !changed);
    CHECK_INT(put("b", "other", 5), ERR_NONE);
    CHECK_INT(put("new", "new", 3), ERR_NONE);
    CHECK(snap(2, 1, &changed) == ERR_NONE && changed);
    CHECK_INT(files_session_forget(sock, 0), 0);
    CHECK_INT(restore(0), ERR_ABSENT);
    CHECK_INT(restore(1), ERR_NONE);
    CHECK(holds("b", "two"));
    CHECK_INT(get("new", 10), ERR_ABSENT);
    CHECK_INT(restore(2), ERR_NONE);
    CHECK(holds("b", "other") && holds("new", "new"));
    CHECK_INT(restore(NONE), ERR_NONE);
    CHECK_INT(get("b", 10), ERR_ABSENT);
    /* Until the store, twice the disk, is full. */
    own_str large = malloc(20 * MIB);
    memset(large, 1, 20 * MIB);
    enum err_kind kind = ERR_NONE;
    uint32_t snapshot = 3;
    for (; kind == ERR_NONE && snapshot < BOX_STATES; snapshot++) {
        large[0]++;
        CHECK_INT(restore(NONE), ERR_NONE); /* both would not fit on the disk */
        CHECK_INT(put("large", large, 20 * MIB), ERR_NONE);
        kind = snap(snapshot, snapshot == 3 ? NONE : snapshot - 1, &changed);
    }
    CHECK_INT(kind, ERR_LIMIT);
    CHECK_INT(snapshot, 7);
    CHECK_INT(files_session_forget(sock, 3), 0);
    CHECK_INT(snap(6, 5, &changed), ERR_NONE);
    CHECK_INT(restore(5), ERR_NONE);
    CHECK_INT(restore(2), ERR_NONE);
    CHECK(holds("b", "other"));
    end();
}

static size_t collect(const struct request *request, struct files_seen *seen, int64_t since_ns,
                      char *names, size_t room)
{
    struct result result = { 0 };
    size_t len = 0;
    files_session_collect(new_job(), request, &result, since_ns, seen);
    CHECK_INT(outcome(), ERR_NONE);
    names[0] = 0;
    for (size_t i = 0; i < result.artifact_count; i++)
        len += (size_t)snprintf(names + len, room - len, "%s ", result.artifacts[i].path);
    size_t count = result.artifact_count;
    files_drop(&job);
    result_done(&result);
    return count;
}

static int64_t real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

TEST(files_of_a_session_are_told_once)
{
    struct request request = REQUEST_INIT;
    struct files_seen seen = FILES_SEEN_INIT;
    char names[256];
    if (!begin())
        return;
    request.limits.value[LIMITS_ARTIFACT_BYTES] = request.limits.value[LIMITS_INPUT] = MIB;
    request.limits.value[LIMITS_ARTIFACT_FILES] = 10;
    CHECK_INT(put("old", "old", 3), ERR_NONE);
    nanosleep(&(struct timespec){ 0, 30000000 }, NULL);
    int64_t since = real_ns();
    CHECK_INT(put("d/new", "new", 3), ERR_NONE);
    CHECK_INT(put("e", "e", 1), ERR_NONE);
    CHECK_INT(collect(&request, &seen, since, names, sizeof names), 2);
    CHECK_TEXT(names, "d/new e ");
    CHECK_INT(collect(&request, &seen, since, names, sizeof names), 0);
    CHECK_INT(put("e", "f", 1), ERR_NONE);
    CHECK_INT(collect(&request, &seen, since, names, sizeof names), 1);
    CHECK_TEXT(names, "e ");
    /* What is only noted is not told. */
    CHECK_INT(put("noted", "n", 1), ERR_NONE);
    files_session_collect(new_job(), &request, NULL, since, &seen);
    CHECK_INT(over(), ERR_NONE);
    CHECK_INT(collect(&request, &seen, since, names, sizeof names), 0);
    files_seen_done(&seen);
    end();
}
