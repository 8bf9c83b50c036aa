/* Programs that work for a build. Runs in the cli process after the drop of rights, which has one
 * thread; `mind` and its callees run in the minder, one for each program:
 * 1. it adopts orphans, so all descendants are its own (base/adopt.h);
 * 2. the end of its control descriptor is the caller's death or wish: it kills them all;
 * 3. when it is killed itself, the program dies with it, by the kernel, and its helpers end with
 *    their pipes.
 * Landlock is for the program, not for the minder, which reads /proc. */
#include "image/make/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/adopt.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "box/wall/confine.h"
#include "box/wall/landlock.h"

#define FILE_BYTES ((rlim_t)8 << 30)
#define OPEN_FILES 4096
#define MEASURE_NS (2 * CLOCK_S)
#define DEPTH_MAX 64
#define RULES_MAX 128
#define KILL_WAIT_NS (10 * CLOCK_S)

enum { READ_DATA = 0, READ_SAID = 1 };

/* ---- the program ---- */

static const char *const system_folders[] = {
    "/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc", "/sys/fs/cgroup",
    "/sys/devices/system/cpu", "/var/lib/dpkg", "/var/lib/apt/extended_states",
    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager",
};

static size_t add_rule(struct box_landlock_rule *rules, size_t count, const char *path,
                       uint64_t allowed)
{
    struct stat info;
    if (count == RULES_MAX || stat(path, &info) < 0)
        return count;
    if (!S_ISDIR(info.st_mode)) /* rights of folders are refused for a file */
        allowed &= BOX_LANDLOCK_READ_FILE | BOX_LANDLOCK_EXECUTE | BOX_LANDLOCK_WRITE_FILE;
    rules[count] = (struct box_landlock_rule){ .path = path, .dirfd = -1, .allowed = allowed };
    return count + 1;
}

/* A rule set as a descriptor; -1 with errno. */
static int walls(const struct make_scene *scene)
{
    const uint64_t reads = BOX_LANDLOCK_READ_FILE | BOX_LANDLOCK_READ_DIR;
    static const char *const devices[] = { "/dev/null", "/dev/urandom", "/dev/random",
                                           "/dev/zero", "/dev/full" };
    struct box_landlock_rule rules[RULES_MAX];
    size_t count = 0;
    rules[count++] = (struct box_landlock_rule){ .dirfd = scene->stage_fd,
                                                 .allowed = BOX_LANDLOCK_ALL };
    for (size_t i = 0; i < array_len(system_folders); i++)
        count = add_rule(rules, count, system_folders[i], reads | BOX_LANDLOCK_EXECUTE);
    for (size_t i = 0; i < array_len(devices); i++)
        count = add_rule(rules, count, devices[i],
                         BOX_LANDLOCK_READ_FILE | BOX_LANDLOCK_WRITE_FILE);
    for (size_t i = 0; scene->reads && scene->reads[i]; i++)
        count = add_rule(rules, count, scene->reads[i], reads);
    return box_landlock_make(rules, count, BOX_LANDLOCK_TCP);
}

static void set_limits(void)
{
    const struct rlimit none = { 0, 0 };
    struct rlimit files, bytes;
    setrlimit(RLIMIT_CORE, &none);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max > OPEN_FILES) {
        files.rlim_cur = files.rlim_max = OPEN_FILES;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (getrlimit(RLIMIT_FSIZE, &bytes) == 0 && bytes.rlim_max > FILE_BYTES) {
        bytes.rlim_cur = bytes.rlim_max = FILE_BYTES;
        setrlimit(RLIMIT_FSIZE, &bytes);
    }
}

struct order {
    const char *const *argv;
    char *const *env;
    int cwd, walls; /* descriptors; walls -1: none */
    int streams[3];
    int failed; /* errno of what kept it from starting */
};

/* Becomes the program, or tells why not. */
static attr_noreturn void become(pid_t minder, const struct order *order)
{
    adopt_begin_program(minder);
    umask(022);
    set_limits();
    int streams[3] = { order->streams[0], order->streams[1], order->streams[2] };
    bool good = fchdir(order->cwd) == 0 && box_confine_capabilities(0) == 0;
    good = good && (order->walls < 0 || box_landlock_restrict(order->walls) == 0);
    for (int i = 0; i < 3; i++)
        good = good && dup2(streams[i], i) == i;
    if (good)
        execve(order->argv[0], (char *const *)(uintptr_t)order->argv, order->env);
    int32_t error = errno ? errno : EIO;
    if (write(order->failed, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

/* ---- the minder ---- */

struct ended {
    int32_t status, error;
};

static attr_noreturn void mind(int control, struct order order)
{
    struct ended end = { 0, 0 };
    int failed[2];
    int32_t error;
    adopt_ignore_signals();
    setsid();
    if (adopt_orphans() < 0 || pipe2(failed, O_CLOEXEC) < 0)
        _exit(1);
    order.failed = failed[1];
    /* Nothing of the caller's stays open in the program: all of ours are closed by its exec, and
     * what the caller was started with is closed here. */
    int kept[] = { control,          order.cwd,        order.streams[0], order.streams[1],
                   order.streams[2], order.failed,     failed[0],        order.walls };
    if (io_place(kept, array_len(kept), 3, /* inherited= */ 0) < 0 ||
        io_close_from(3 + (int)array_len(kept)) < 0)
        _exit(1);
    order = (struct order){ order.argv, order.env, 4, order.walls < 0 ? -1 : 10, { 5, 6, 7 }, 8 };
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become(self, &order);
    if (pid > 0)
        setpgid(pid, pid);
    io_close_between(4, 8);
    if (pid > 0)
        end.status = adopt_attend(/* control= */ 3, pid);
    else
        end.error = errno;
    if (pid > 0 && read(9, &error, sizeof error) == (ssize_t)sizeof error)
        end.error = error;
    if (io_send_now(3, &end, sizeof end, NULL, 0) < 0)
        _exit(1);
    _exit(0);
}

/* ---- the caller's side ---- */

struct child {
    struct make_scene *scene;
    pid_t minder;
    int control;
    int pipes[2]; /* READ_DATA: stdout where it is asked for; READ_SAID */
    struct buf *answer, *said;
    bool overflows; /* the answer is too long */
};

static int start(struct child *child, const char *cwd, const char *const *argv, struct err *err)
{
    int ends[2], said[2], data[2] = { -1, -1 };
    own_fd null = open("/dev/null", O_RDWR | O_CLOEXEC);
    own_fd folder = openat(child->scene->stage_fd, cwd, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd rules = walls(child->scene);
    if (rules < 0 && errno != ENOSYS && errno != EOPNOTSUPP)
        return err_sys(err, "make the walls of '%s'", argv[0]);
    child->scene->bare |= rules < 0;
    if (null < 0 || folder < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make the descriptors of '%s'", argv[0]);
    own_fd ours = ends[0], theirs = ends[1];
    if (pipe2(said, O_CLOEXEC) < 0)
        return err_sys(err, "make the pipe of '%s'", argv[0]);
    own_fd said_in = said[0], said_out = said[1];
    if (child->answer && pipe2(data, O_CLOEXEC) < 0)
        return err_sys(err, "make the pipe of '%s'", argv[0]);
    own_fd data_in = data[0], data_out = data[1];
    const struct order order = { argv, child->scene->env, folder, rules,
                                 { null, data_out < 0 ? said_out : data_out, said_out }, -1 };
    child->minder = fork();
    if (child->minder < 0)
        return err_sys(err, "start the minder of '%s'", argv[0]);
    if (child->minder == 0) {
        close(take_fd(&ours));
        mind(theirs, order);
    }
    child->control = take_fd(&ours);
    child->pipes[READ_SAID] = take_fd(&said_in);
    child->pipes[READ_DATA] = take_fd(&data_in);
    return 0;
}

/* Keeps the end of what is said. */
static void keep(struct buf *said, struct str bytes)
{
    if (bytes.len > said->max / 2) {
        bytes.at += bytes.len - said->max / 2;
        bytes.len = said->max / 2;
    }
    if (said->len + bytes.len > said->max)
        buf_drop(said, said->len - said->max / 4);
    (void)!buf_add_str(said, bytes);
}

static void take(struct child *child, int which)
{
    char bytes[16384];
    ssize_t n = read(child->pipes[which], bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        own_close_fd(&child->pipes[which]);
        return;
    }
    struct str got = { bytes, (size_t)n };
    if (which == READ_DATA && buf_add_str(child->answer, got) < 0)
        child->overflows = true;
    if (which == READ_SAID) {
        keep(child->said, got);
        if (child->scene->said)
            child->scene->said(child->scene->user, got);
    }
}

/* Bytes and entries below a folder; walks no further once a bound is passed. */
static void measure(int dirfd, int depth, int64_t *bytes, int64_t *entries, int64_t most)
{
    own_fd own = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_dirp dir = own < 0 ? NULL : fdopendir(own);
    if (!dir)
        return;
    (void)take_fd(&own);
    for (const struct dirent *entry;
         *bytes <= most && *entries <= MAKE_STAGE_ENTRIES && (entry = readdir(dir));) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        ++*entries;
        *bytes += (int64_t)info.st_blocks * 512;
        if (!S_ISDIR(info.st_mode) || depth == DEPTH_MAX)
            continue;
        own_fd below = openat(dirfd, entry->d_name,
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            measure(below, depth + 1, bytes, entries, most);
    }
}

static int check_size(const struct make_scene *scene, struct err *err)
{
    const int64_t most = scene->bytes_max ? scene->bytes_max : MAKE_STAGE_BYTES;
    int64_t bytes = 0, entries = 0;
    measure(scene->stage_fd, 0, &bytes, &entries, most);
    if (bytes > most)
        return err_set(err, ERR_LIMIT, "the build has unpacked more than %lld bytes",
                       (long long)most);
    if (entries > MAKE_STAGE_ENTRIES)
        return err_set(err, ERR_LIMIT, "the build has more than %d files and folders",
                       MAKE_STAGE_ENTRIES);
    return 0;
}

static int check_time(const struct make_scene *scene, struct err *err)
{
    if (clock_now_ns() < scene->due_ns)
        return 0;
    err_set(err, ERR_SLOW, "the build was not ready in %lld s", (long long)scene->timeout_s);
    err_hint(err, "--timeout S gives it longer");
    return -1;
}

/* Until its streams and its minder have ended. */
static int attend(struct child *child, struct ended *end, struct err *err)
{
    int64_t measure_ns = clock_now_ns() + MEASURE_NS;
    for (bool over = false;
         !over || child->pipes[READ_SAID] >= 0 || child->pipes[READ_DATA] >= 0;) {
        struct pollfd watched[] = { { over ? -1 : child->control, POLLIN, 0 },
                                    { child->pipes[READ_SAID], POLLIN, 0 },
                                    { child->pipes[READ_DATA], POLLIN, 0 },
                                    { child->scene->stop_fd, POLLIN, 0 } };
        int64_t next = measure_ns < child->scene->due_ns ? measure_ns : child->scene->due_ns;
        if (poll(watched, array_len(watched), clock_poll_ms(next)) < 0 && errno != EINTR)
            return err_sys(err, "wait for a program of the build");
        if (watched[3].revents & POLLIN)
            return err_set(err, ERR_CANCELLED, "the build was interrupted; nothing of it is left");
        if (watched[1].revents)
            take(child, READ_SAID);
        if (watched[2].revents)
            take(child, READ_DATA);
        if (watched[0].revents) {
            over = true;
            if (recv(child->control, end, sizeof *end, MSG_DONTWAIT) != (ssize_t)sizeof *end)
                return err_set(err, ERR_HOST, "the minder of a program of the build was killed");
        }
        if (check_time(child->scene, err) < 0)
            return -1;
        if (clock_now_ns() < measure_ns)
            continue;
        if (check_size(child->scene, err) < 0)
            return -1;
        measure_ns = clock_now_ns() + MEASURE_NS;
    }
    return check_size(child->scene, err);
}

/* The minder kills everything when its control descriptor ends. */
static void finish(struct child *child)
{
    int64_t due = clock_now_ns() + KILL_WAIT_NS;
    own_close_fd(&child->control);
    own_close_fd(&child->pipes[READ_SAID]);
    own_close_fd(&child->pipes[READ_DATA]);
    while (waitpid(child->minder, NULL, WNOHANG) == 0) {
        if (clock_now_ns() > due)
            kill(child->minder, SIGKILL);
        poll(NULL, 0, 2);
    }
}

static int run(struct make_scene *scene, const char *cwd, const char *const *argv,
               struct buf *answer, struct buf *said, int *out_status, struct err *err)
{
    struct child child = { .scene = scene, .control = -1, .pipes = { -1, -1 }, .answer = answer,
                           .said = said };
    struct ended end = { 0, EIO };
    if (check_time(scene, err) < 0 || start(&child, cwd, argv, err) < 0)
        return -1;
    int rc = attend(&child, &end, err);
    finish(&child);
    if (rc < 0)
        return -1;
    if (end.error) {
        errno = end.error;
        return err_sys(err, "start '%s'", argv[0]);
    }
    if (child.overflows)
        return err_set(err, ERR_LIMIT, "'%s' says more than %zu bytes", argv[0], answer->max);
    *out_status = end.status;
    return 0;
}

int make_child_run(struct make_scene *scene, const char *cwd, const char *const *argv,
                   struct buf *said, int *out_status, struct err *err)
{
    return run(scene, cwd, argv, /* answer= */ NULL, said, out_status, err);
}

/* ---- with its words ---- */

static int must(struct make_scene *scene, const char *cwd, const char *tool,
                const char *const *argv, struct buf *answer, struct err *err)
{
    own_buf said = BUF_INIT(MAKE_SAID_MAX);
    int status = 0;
    char why[400];
    if (run(scene, cwd, argv, answer, &said, &status, err) < 0)
        return -1;
    if (status == 0)
        return 0;
    make_child_why(buf_str(&said), why, sizeof why);
    if (WIFSIGNALED(status))
        return err_set(err, ERR_HOST, "%s was killed by signal %d: %s", tool, WTERMSIG(status),
                       why);
    return err_set(err, ERR_HOST, "%s could not do it: %s", tool, why);
}

int make_child_must(struct make_scene *scene, const char *cwd, const char *tool,
                    const char *const *argv, struct err *err)
{
    return must(scene, cwd, tool, argv, /* answer= */ NULL, err);
}

int make_child_ask(struct make_scene *scene, const char *cwd, const char *tool,
                   const char *const *argv, struct buf *answer, struct err *err)
{
    return must(scene, cwd, tool, argv, answer, err);
}
