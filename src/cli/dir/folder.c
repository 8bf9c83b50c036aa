/* Opens folders for runs. Runs in the cli process, as the caller: reads no foreign byte. */
#include "cli/dir/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/own.h"
#include "cli/link/state_files.h"
#include "cli/term/term.h"
#include "engine/engine.h"

#define TICK_LOOKS 100 /* for a tick, which is 10 ms at most */

/* Folders that no code gets. `below`: nor anything in them. `writes`: only not for writing. */
static const struct {
    const char *path;
    bool below, writes;
    const char *why;
} refused[] = {
    { "/", false, false, "it is the whole system" },
    { "/proc", true, false, "it belongs to the kernel" },
    { "/sys", true, false, "it belongs to the kernel" },
    { "/dev", true, false, "it belongs to the kernel" },
    { "/boot", true, true, "the system starts from it" },
    { "/etc", true, true, "it configures the system" },
    { "/usr", false, true, "it is part of the system" },
    { "/usr/bin", true, true, "it is part of the system" },
    { "/usr/sbin", true, true, "it is part of the system" },
    { "/usr/lib", true, true, "it is part of the system" },
    { "/usr/lib64", true, true, "it is part of the system" },
    { "/usr/share", true, true, "it is part of the system" },
    { "/usr/local", false, true, "it is part of the system" },
    { "/bin", true, true, "it is part of the system" },
    { "/sbin", true, true, "it is part of the system" },
    { "/lib", true, true, "it is part of the system" },
    { "/lib64", true, true, "it is part of the system" },
    { "/var", false, true, "it is part of the system" },
    { "/var/lib", false, true, "it is part of the system" },
    { "/run", false, true, "it is part of the system" },
    { "/opt", false, true, "it is part of the system" },
    { "/srv", false, true, "it is part of the system" },
    { "/tmp", false, true, "everybody's files are in it" },
    { "/var/tmp", false, true, "everybody's files are in it" },
    { "/home", false, true, "it holds home folders" },
    { "/root", false, true, "it is a home folder, with settings that run programs" },
};

static bool is_same(const char *path, const struct stat *folder)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == folder->st_dev && st.st_ino == folder->st_ino;
}

static bool is_below(const char *path, const char *above)
{
    size_t len = strlen(above);
    return strncmp(path, above, len) == 0 && (path[len] == '/' || path[len] == 0);
}

static int refuse(const char *path, const char *why, bool writes, struct err *err)
{
    err_input(err, "dir", NULL, NULL, "the folder '%.200s' is not for code%s: %s", path,
              writes ? " to write" : "", why);
    if (writes)
        err_hint(err, "name the project's own folder, or leave --write out and use cupel apply");
    else
        err_hint(err, "name the project's own folder");
    return -1;
}

static int check_place(const char *path, const struct stat *st, bool writes, struct err *err)
{
    for (size_t i = 0; i < array_len(refused); i++) {
        if (refused[i].writes && !writes)
            continue;
        if (is_same(refused[i].path, st) || (refused[i].below && is_below(path, refused[i].path)))
            return refuse(path, refused[i].why, writes && refused[i].writes, err);
    }
    const char *home = getenv("HOME");
    char above[PATH_MAX];
    if (!writes || !home || home[0] != '/' || strlen(home) >= sizeof above)
        return 0;
    snprintf(above, sizeof above, "%s", home);
    for (char *slash; above[0]; slash[0] = 0) {
        if (is_same(above, st))
            return refuse(path, "it holds your home folder, with settings that run programs", true,
                          err);
        slash = strrchr(above, '/');
    }
    return 0;
}

int cli_folder_open(const char *path, bool writes, bool changes, struct cli_folder *out,
                    struct err *err)
{
    char link[40], real[PATH_MAX];
    struct stat st;
    *out = CLI_FOLDER_INIT;
    out->writes = writes;
    out->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->fd < 0 || fstat(out->fd, &st) < 0) {
        int error = errno;
        err_sys(err, "open the folder '%.200s'", path);
        err->kind = error == ENOENT ? ERR_ABSENT : ERR_USAGE;
        return -1;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", out->fd);
    ssize_t n = readlink(link, real, sizeof real - 1);
    if (n < 0)
        return err_sys(err, "find the path of '%.200s'", path);
    real[n] = 0;
    out->path = buf_strdup(str_of(real));
    out->device = st.st_dev;
    out->inode = st.st_ino;
    if (check_place(real, &st, writes || changes, err) < 0)
        return -1;
    return clerk_open(out->fd, changes, &out->clerk, err);
}

void cli_folder_done(struct cli_folder *folder)
{
    clerk_close(&folder->clerk);
    own_close_fd(&folder->fd);
    own_close_fd(&folder->shelf);
    free(folder->path);
    buf_done(&folder->masks);
    *folder = CLI_FOLDER_INIT;
}

/* The path of cupel's own state; heap, or NULL. */
static char *state_path(void)
{
    char path[PATH_MAX];
    bool named;
    return engine_state_path(path, sizeof path, &named) ? realpath(path, NULL) : NULL;
}

/* Places that every box has for itself, or that no virtual environment is in. */
static const char *const of_boxes[] = {
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/boot", "/run", "/mnt", "/var/tmp",
    "/var/run", "/workspace", "/home/user",
};

static int check_venv_place(const char *path, struct err *err)
{
    for (size_t i = 0; i < array_len(of_boxes); i++) {
        if (!is_below(path, of_boxes[i]))
            continue;
        err_input(err, "venv", NULL, NULL,
                  "the virtual environment '%.200s' cannot be shown at its path: a box has its "
                  "own '%s'",
                  path, of_boxes[i]);
        err_hint(err, "make one elsewhere: python3 -m venv DIR");
        return -1;
    }
    return 0;
}

int cli_folder_open_shown(const char *path, bool is_venv, struct cli_folder *out, struct err *err)
{
    if (cli_folder_open(path, /* writes= */ false, /* changes= */ false, out, err) < 0)
        return -1;
    own_str state = state_path();
    if (state && is_below(out->path, state))
        return refuse(out->path, "it is cupel's own state", false, err);
    return is_venv ? check_venv_place(out->path, err) : 0;
}

/* cupel's own state, where the folder holds it: its path inside, or "". */
static void find_state(const struct cli_folder *folder, char *out, size_t room)
{
    out[0] = 0;
    own_str real = state_path();
    size_t len = strlen(folder->path);
    if (real && is_below(real, folder->path) && real[len] == '/')
        snprintf(out, room, "%s", real + len + 1);
}

int cli_folder_search(struct cli_folder *folder, struct err *err)
{
    char state[PATH_MAX];
    find_state(folder, state, sizeof state);
    return clerk_masks_begin(&folder->clerk, str_of(state), err);
}

int cli_folder_prepare(struct cli_folder *folder, struct err *err)
{
    if (!folder->writes) {
        folder->shelf = cli_state_open_folder("changes");
        if (folder->shelf < 0) {
            err_sys(err, "open the state folder, where the changes would be kept");
            err_hint(err,
                     "set CUPEL_STATE to a folder that this user can write to, or say --write");
            return -1;
        }
    }
    return cli_folder_search(folder, err);
}

/* The time of the next tick: every change before this call is older, every later one is not. Times
 * of files have the resolution of a tick, and since Linux 6.13 sometimes a finer one. */
static int64_t next_tick_ns(void)
{
    const struct timespec pause = { 0, 200000 };
    struct timespec first, now;
    clock_gettime(CLOCK_REALTIME_COARSE, &first);
    now = first;
    for (int i = 0; i < TICK_LOOKS && clock_ns(now) == clock_ns(first); i++) {
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    }
    return clock_ns(now);
}

int cli_folder_begin(struct cli_folder *folder, struct err *err)
{
    folder->masks = BUF_INIT(WALK_MASKS_BYTES);
    if (clerk_masks_end(&folder->clerk, &folder->masks, &folder->facts, err) < 0)
        return -1;
    folder->began_ns = next_tick_ns();
    return 0;
}

void cli_folder_tell(const struct cli_folder *folder)
{
    if (folder->facts.linked > 0)
        cli_term_note("folder: %u hidden file%s another name; under that name the code may read it",
                      folder->facts.linked, folder->facts.linked == 1 ? " has" : "s have");
}
