/* Snapshots of a workspace against a model, and against a racer: random operations on a
 * tree, snapshots and restores between them, compared with how the tree was told then;
 * and a process that swaps directories for links meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "box/files/curator.h"
#include "check.h"
#include "curator_place.h"

#define NONE BOX_STATES
#define SNAPSHOTS 6
#define ROUNDS 400
#define NAMES 5

static unsigned state = 1;

static unsigned pick(unsigned below)
{
    state = state * 1103515245u + 12345u;
    return (state >> 16) % below;
}

/* A path of one to three components, all of which may be of any kind or not be there. */
static const char *any_path(void)
{
    static char paths[4][16];
    static unsigned next;
    char *path = paths[next++ % 4];
    size_t len = 0;
    for (unsigned i = 0, parts = 1 + pick(3); i < parts; i++)
        len += (size_t)snprintf(path + len, sizeof paths[0] - len, "%s%c", i ? "/" : "",
                                (char)('a' + pick(NAMES)));
    return path;
}

static void op_write(const char *path)
{
    static char bytes[20000];
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | (pick(2) ? O_TRUNC : 0),
                     0644);
    size_t len = pick(4) ? pick(16) : pick(sizeof bytes);
    memset(bytes, 'a' + (int)pick(4), sizeof bytes);
    if (fd >= 0 && pick(3) == 0 && lseek(fd, pick(40000), SEEK_SET) < 0)
        return;
    if (fd >= 0 && write(fd, bytes, len) < 0)
        return;
}

static void op_truncate(const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && truncate(path, pick(30000)) < 0)
        return;
}

static void op_chmod(const char *path)
{
    static const mode_t modes[] = { 0, 0400, 0444, 0600, 0755, 0500, 0311 };
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISLNK(st.st_mode))
        (void)!chmod(path, modes[pick(7)]);
}

static void op_touch(const char *path)
{
    const struct timespec times[2] = { { 0, UTIME_OMIT }, { 1000000000 + pick(3), pick(3) } };
    utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

static void op_remove(const char *path)
{
    if (unlink(path) < 0)
        rmdir(path);
}

static void op_mkdir(const char *path)
{
    mkdir(path, 0755);
}

static void op_link(const char *path)
{
    (void)!symlink(any_path(), path);
}

static void op_fifo(const char *path)
{
    mkfifo(path, 0600 | pick(077));
}

static void op_rename(const char *path)
{
    rename(any_path(), path);
}

static void op_exchange(const char *path)
{
    syscall(SYS_renameat2, AT_FDCWD, any_path(), AT_FDCWD, path, 2u); /* RENAME_EXCHANGE */
}

static void op_hard_link(const char *path)
{
    (void)!link(any_path(), path);
}

static void (*const ops[])(const char *path) = {
    op_write,  op_write, op_write, op_truncate, op_chmod,    op_touch,     op_remove,
    op_mkdir,  op_mkdir, op_link,  op_fifo,     op_rename,   op_exchange,  op_hard_link,
};

struct model {
    char *told[SNAPSHOTS], *coarse[SNAPSHOTS]; /* with and without times of directories */
};

static void snap(struct place *place, struct model *model, uint32_t snapshot, uint32_t base)
{
    free(model->told[snapshot]);
    free(model->coarse[snapshot]);
    model->told[snapshot] = place_tell(place->ws, true);
    model->coarse[snapshot] = place_tell(place->ws, false);
    struct box_porter_answer kept = place_snap(place, snapshot, base);
    CHECK_INT(kept.error, 0);
    bool differs = base == NONE || strcmp(model->coarse[snapshot], model->coarse[base]) != 0;
    CHECK_INT(kept.changed, differs);
}

static void model_test(struct place *place)
{
    struct model model = { { NULL }, { NULL } };
    uint32_t newest = 0;
    snap(place, &model, 0, NONE);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t snapshot = pick(SNAPSHOTS);
        for (unsigned i = pick(12); i > 0; i--)
            ops[pick(sizeof ops / sizeof ops[0])](any_path());
        if (pick(20) == 0)
            nanosleep(&(struct timespec){ 0, CURATOR_SETTLED_NS + 5000000 }, NULL);
        if (pick(2) && snapshot != newest) {
            snap(place, &model, snapshot, newest);
            newest = snapshot;
        } else if (model.told[snapshot]) {
            CHECK_INT(place_restore(place, snapshot), 0);
            own_str now = place_tell(place->ws, true);
            CHECK_TEXT(now, model.told[snapshot]);
        }
        snapshot = pick(SNAPSHOTS);
        if (pick(10) == 0 && snapshot != newest) {
            place_forget(place, snapshot);
            free(model.told[snapshot]);
            free(model.coarse[snapshot]);
            model.told[snapshot] = model.coarse[snapshot] = NULL;
        }
    }
    for (int i = 0; i < SNAPSHOTS; i++) {
        free(model.told[i]);
        free(model.coarse[i]);
    }
}

static void model_with_seed(unsigned seed)
{
    state = seed;
    place_run(model_test);
}

TEST(curator_is_as_the_model)
{
    const char *form = getenv("CUPEL_TESTS");
    unsigned last = form && strcmp(form, "long") == 0 ? 40 : 3;
    for (unsigned seed = 1; seed <= last; seed++)
        model_with_seed(seed);
}

/* --- the racer --- */

#define RACE_MS 700

/* What it can do to names that we go through: swap a directory for a link that leads
 * out, a file for a link to a file there, and write all the while. */
static void race(void)
{
    const unsigned exchange = 2;
    for (unsigned i = 0;; i++) {
        syscall(SYS_renameat2, AT_FDCWD, "d", AT_FDCWD, "d-link", exchange);
        syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "f-link", exchange);
        if (symlink("../outside", "d/inner") < 0)
            unlink("d/inner");
        if (i % 64 == 0) {
            own_fd fd = open("busy", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0);
            if (fd >= 0 && write(fd, "more", 4) < 0)
                _exit(1);
            own_fd dir = open("d", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (dir >= 0 && fchmod(dir, i % 128 ? 0 : 0700) < 0)
                _exit(1);
        }
        if (i % 256 == 0) {
            (void)!symlink("../outside", "d-link");
            (void)!symlink("../outside/f", "f-link");
            mkdir("d", 0755);
        }
    }
}

static void be_raced(struct place *place)
{
    struct timespec from, now;
    CHECK_INT(mkdir("d", 0755), 0);
    place_write("d/f", "inside");
    place_write("f", "inside");
    CHECK(symlink("../outside", "d-link") == 0 && symlink("../outside/f", "f-link") == 0);
    place_write("../outside/f", "outside");
    CHECK(mkdir("../outside/f2", 0) == 0 && mkdir("../outside/inner", 0500) == 0);
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    own_str before = place_tell(place->outside, true);
    pid_t racer = fork();
    if (racer == 0)
        race();
    unsigned worked = 0, rounds = 0;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        worked += place_restore(place, 0) == 0;
        worked += place_snap(place, 1 + rounds % 2, rounds % 3 ? 0 : 2 - rounds % 2).error == 0;
        rounds++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < RACE_MS);
    kill(racer, SIGKILL);
    CHECK_INT(waitpid(racer, NULL, 0), racer);
    own_str after = place_tell(place->outside, true);
    CHECK_TEXT(after, before);
    CHECK(worked > rounds / 2);
    /* And once it is quiet, all is as it was. */
    CHECK_INT(place_restore(place, 0), 0);
    CHECK(place_holds("d/f", "inside") && place_holds("f", "inside"));
    CHECK(access("busy", F_OK) < 0 && access("d/inner", F_OK) < 0);
    place_forget(place, 1);
    CHECK(!place_snap(place, 2, 0).changed);
}

TEST(curator_a_racer_changes_nothing_outside)
{
    place_run(be_raced);
}
