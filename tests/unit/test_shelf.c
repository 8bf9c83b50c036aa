/* The shelf in a folder of its own: what stays, for how long, and which files go first. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "store/shelf.h"

#define ID(digit) "s_00000000000000000000000" digit

static struct loop loop;
static struct errands *errands;
static struct shelf *shelf;
static int state = -1;
static char place[] = "/tmp/cupel-unit-shelf-XXXXXX";
static int64_t used[2]; /* of k_a, of all others */

static void counted(void *user, const char *owner, int64_t bytes)
{
    (void)user;
    used[strcmp(owner, "k_a") != 0] += bytes;
}

static void clean(void)
{
    if (fork() == 0) {
        execl("/bin/rm", "rm", "-rf", place, (char *)NULL);
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
    shelf = shelf_open(&(struct shelf_options){ .loop = &loop, .errands = errands,
                                                .state_dir = state, .age_s = age_s,
                                                .owner_bytes = 10, .bytes = 16, .sessions = 4,
                                                .counted = counted }, &err);
    CHECK_TEXT(err.text, "");
}

static void close_all(void)
{
    shelf_close(shelf);
    errands_close(errands);
    loop_close(&loop);
}

static unsigned answers;

static void told(void *user, const struct err *err)
{
    (void)user;
    CHECK_TEXT(err->text, "");
    answers++;
}

static void await(void)
{
    for (unsigned before = answers; answers == before;)
        CHECK(loop_turn(&loop) == 0);
}

/* A session with one folder and one file of `len` bytes, in two parts. */
static void keep(const char *session, const char *owner, size_t len)
{
    static const char digits[] = "0123456789";
    struct shelf_put *put = shelf_put(shelf, session, owner, told, NULL);
    shelf_put_add(put, 1, buf_strdup((struct str){ digits, len / 2 }), len / 2);
    await();
    shelf_put_add(put, 1, buf_strdup((struct str){ digits + len / 2, len - len / 2 }),
                  len - len / 2);
    await();
    shelf_put_end(put, json_pack("{s:[{s:s,s:s,s:i},{s:s,s:s,s:I}]}", "files", "path", "d", "type",
                                 "directory", "size_bytes", 60, "path", "../x", "type", "file",
                                 "size_bytes", (json_int_t)len));
    await();
    shelf_put_free(put);
}

static bool is_kept(const char *session, const char *owner, const char *text)
{
    struct err err = ERR_INIT;
    char bytes[32] = "";
    uint64_t size = 0;
    const char *found = shelf_owner(shelf, session);
    if (!found)
        return false;
    CHECK_TEXT(found, owner);
    own_json about = shelf_about(shelf, session, &err);
    CHECK(json_array_size(json_object_get(about, "files")) == 2);
    own_fd fd = shelf_file(shelf, session, 1, &size, &err);
    CHECK(fd >= 0 && read(fd, bytes, sizeof bytes - 1) == (ssize_t)size);
    CHECK_TEXT(bytes, text);
    return true;
}

TEST(shelf_keeps_files_over_a_restart_until_they_are_old)
{
    open_all(1000);
    keep(ID("1"), "k_a", 7);
    CHECK(is_kept(ID("1"), "k_a", "0123456") && !is_kept(ID("2"), "k_a", ""));
    CHECK_INT(used[0], 7);
    close_all();
    open_all(1000);
    CHECK(is_kept(ID("1"), "k_a", "0123456"));
    CHECK_INT(used[0], 7);
    close_all();
    open_all(0); /* everything is too old */
    CHECK(loop_turn(&loop) == 0);
    CHECK(!is_kept(ID("1"), "k_a", ""));
    CHECK_INT(used[0], 0);
    close_all();
    CHECK(faccessat(state, "shelf/" ID("1"), F_OK, 0) < 0);
}

TEST(shelf_removes_the_oldest_of_an_owner_that_has_too_much)
{
    open_all(1000);
    keep(ID("1"), "k_a", 4);
    keep(ID("2"), "k_b", 4);
    keep(ID("3"), "k_a", 4);
    keep(ID("4"), "k_a", 4); /* twelve of k_a: its first goes, not that of k_b */
    CHECK(!is_kept(ID("1"), "k_a", "") && is_kept(ID("2"), "k_b", "0123"));
    CHECK(is_kept(ID("3"), "k_a", "0123") && is_kept(ID("4"), "k_a", "0123"));
    keep(ID("5"), "k_b", 5); /* seventeen of all: of the one that has most */
    CHECK(!is_kept(ID("2"), "k_b", "") && is_kept(ID("3"), "k_a", "0123"));
    CHECK(is_kept(ID("5"), "k_b", "01234"));
    CHECK(used[0] == 8 && used[1] == 5);
    close_all();
}

TEST(shelf_leaves_nothing_of_a_put_that_was_given_up)
{
    open_all(1000);
    struct shelf_put *put = shelf_put(shelf, ID("1"), "k_a", told, NULL);
    shelf_put_add(put, 0, buf_strdup(STR("abc")), 3);
    shelf_put_free(put); /* while it is under way */
    CHECK(mkdirat(state, "shelf/tmp/" ID("2"), 0700) == 0); /* of a process that was killed */
    CHECK(mkdirat(state, "shelf/" ID("3"), 0700) == 0); /* without its list */
    close_all();
    open_all(1000);
    CHECK(faccessat(state, "shelf/tmp/" ID("1"), F_OK, 0) < 0);
    CHECK(faccessat(state, "shelf/tmp/" ID("2"), F_OK, 0) < 0);
    CHECK(faccessat(state, "shelf/" ID("3"), F_OK, 0) < 0);
    CHECK(used[0] == 0 && used[1] == 0);
    close_all();
}
