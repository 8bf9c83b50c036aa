/* A resident porter over a folder of /dev/shm, for tests. */
#include "curator_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "box/files/porter.h"
#include "box/files/tree.h"
#include "check.h"

#define SHM "/dev/shm"
#define NOBODY 65534
#define TELL_MAX (64u << 20)

/* As broker_store.c does it: the porter tells itself, then the other end is given away. */
static void be_porter(int engine_end, int own_end, int report, int store)
{
    struct box_porter_call stay = { .op = BOX_PORTER_STAY };
    const int kept[2] = { store, open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC) };
    if (io_send(engine_end, &stay, sizeof stay, kept, 2) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(99);
    own_end = fcntl(own_end, F_DUPFD_CLOEXEC, 50);
    report = fcntl(report, F_DUPFD_CLOEXEC, 50);
    io_close_between(3, 49);
    if (dup2(own_end, PORTER_FD) < 0)
        _exit(99);
    porter_run(report, /* layer= */ false);
}

static void start_porter(struct place *place, int store)
{
    struct box_report said;
    int pair[2], report[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        be_porter(pair[0], pair[1], report[1], store);
    close(pair[1]);
    close(report[1]);
    CHECK_INT(io_recv(report[0], &said, sizeof said, NULL, 0, NULL), 1);
    CHECK_INT(said.step, BOX_STEP_NONE);
    close(report[0]);
    place->sock = pair[0];
}

static void run_in(const char *folder, void (*test)(struct place *place))
{
    struct place place;
    if (getuid() == 0)
        CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* /proc/self is ours, as before */
    CHECK(chdir(folder) == 0 && mkdir("ws", 0755) == 0 && mkdir("store", 0700) == 0 &&
          mkdir("outside", 0755) == 0);
    own_fd store = open("store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place.ws = open("ws", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place.outside = open("outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fchdir(place.ws) == 0);
    start_porter(&place, store);
    test(&place);
    close(place.ws);
    close(place.outside);
    close(place.sock);
    CHECK(waitpid(-1, NULL, 0) > 0);
}

void place_run(void (*test)(struct place *place))
{
    char folder[] = SHM "/cupel-curator-XXXXXX";
    struct statfs fs;
    uint32_t work = 1u << 30;
    int status = -1;
    if (statfs(SHM, &fs) < 0 || fs.f_type != TMPFS_MAGIC || !mkdtemp(folder)) {
        printf("# skipped: no writable tmpfs at " SHM "\n");
        return;
    }
    CHECK(getuid() != 0 || chown(folder, NOBODY, NOBODY) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        run_in(folder, test);
        fflush(stdout);
        exit(0);
    }
    waitpid(pid, &status, 0);
    own_fd self = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    own_fd shm = open(SHM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tree_set_self(self);
    CHECK_INT(tree_remove(shm, folder + sizeof SHM, &work), 0);
    CHECK_INT(status, 0);
}

struct box_porter_answer place_ask(const struct place *place, const struct box_porter_call *call,
                                   int fd)
{
    struct box_porter_answer word;
    CHECK_INT(io_send(place->sock, call, sizeof *call, &fd, fd >= 0 ? 1 : 0), 0);
    CHECK_INT(io_recv(place->sock, &word, sizeof word, NULL, 0, NULL), 1);
    CHECK_INT(word.tag, call->tag);
    return word;
}

struct box_porter_answer place_snap(const struct place *place, uint32_t snapshot, uint32_t base)
{
    struct box_porter_call call = { .op = BOX_PORTER_SNAP, .snapshot = snapshot, .base = base,
                                    .tag = 7 };
    return place_ask(place, &call, -1);
}

int place_restore(const struct place *place, uint32_t snapshot)
{
    struct box_porter_call call = { .op = BOX_PORTER_RESTORE, .snapshot = snapshot, .tag = 8 };
    return place_ask(place, &call, -1).error;
}

void place_forget(const struct place *place, uint32_t snapshot)
{
    struct box_porter_call call = { .op = BOX_PORTER_FORGET, .snapshot = snapshot };
    CHECK_INT(io_send(place->sock, &call, sizeof call, NULL, 0), 0);
}

/* --- telling --- */

static void tell_content(struct buf *out, int dir, const char *name, const struct stat *st)
{
    static char bytes[1 << 16];
    ssize_t n = 0;
    if (S_ISLNK(st->st_mode)) {
        n = readlinkat(dir, name, bytes, sizeof bytes);
    } else if (S_ISREG(st->st_mode)) {
        own_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && fchmodat(dir, name, 0600, 0) == 0) {
            fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
            CHECK_INT(fchmod(fd, st->st_mode & 07777), 0);
        }
        n = pread(fd, bytes, sizeof bytes, 0);
    }
    CHECK(n >= 0);
    uint64_t sum = 14695981039346656037u;
    for (ssize_t i = 0; i < n; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211u;
    CHECK_INT(buf_printf(out, " %zd:%016llx", n, (unsigned long long)sum), 0);
}

static void tell_dir(struct buf *out, int dir, const char *path, bool dir_times);

static void tell_one(struct buf *out, int dir, const char *path, const char *name, bool dir_times)
{
    struct stat st;
    char inner[4096];
    CHECK_INT(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    bool is_dir = S_ISDIR(st.st_mode);
    if (S_ISSOCK(st.st_mode))
        return;
    buf_printf(out, "%s%s %o", path, name, S_ISLNK(st.st_mode) ? S_IFLNK : st.st_mode);
    if (!is_dir || dir_times)
        buf_printf(out, " %lld.%09ld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    if (!is_dir)
        tell_content(out, dir, name, &st);
    CHECK_INT(buf_printf(out, "\n"), 0);
    if (!is_dir)
        return;
    if ((st.st_mode & 0700) != 0700)
        CHECK_INT(fchmodat(dir, name, 0700, 0), 0);
    own_fd fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    snprintf(inner, sizeof inner, "%.3800s%.255s/", path, name);
    tell_dir(out, fd, inner, dir_times);
    if ((st.st_mode & 0700) != 0700)
        CHECK_INT(fchmod(fd, st.st_mode & 07777), 0);
}

static void tell_dir(struct buf *out, int dir, const char *path, bool dir_times)
{
    struct dirent **entries = NULL;
    int count = scandirat(dir, ".", &entries, NULL, alphasort);
    CHECK(count >= 0);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            tell_one(out, dir, path, name, dir_times);
        free(entries[i]);
    }
    free(entries);
}

char *place_tell(int dir, bool dir_times)
{
    struct buf out = BUF_INIT(TELL_MAX);
    tell_dir(&out, dir, "", dir_times);
    return buf_take(&out);
}

/* --- files --- */

void place_write(const char *path, const char *text)
{
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_INT(io_write_all(fd, text, strlen(text)), 0);
}

bool place_holds(const char *path, const char *text)
{
    char bytes[4096];
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    return n == (ssize_t)strlen(text) && memcmp(bytes, text, (size_t)n) == 0;
}
