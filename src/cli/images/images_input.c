/* Both ends of the helper that packs a folder. It is forked from the cli process before the rights
 * are dropped: it has the caller's uid, no capability, and with Landlock that folder alone. It
 * reads bytes and parses none, and ends with the pipe. */
#include "cli/images/images_input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/adopt.h"
#include "base/own.h"
#include "box/wall/confine.h"
#include "image/archive/archive.h"

#define PIPE_BYTES (1 << 20)

static attr_noreturn void pack(int folder, int out, pid_t parent, struct err *err)
{
    struct err mine = ERR_INIT;
    /* The library is loaded before Landlock hides it. */
    int rc = image_archive_ready(&mine);
    if (rc == 0 && (adopt_end_with_parent() < 0 || getppid() != parent ||
                    box_confine_steward(out, folder, /* reads= */ true) < 0))
        rc = err_sys(&mine, "confine the helper that reads the folder");
    signal(SIGPIPE, SIG_IGN);
    if (rc == 0)
        rc = image_pack(folder, out, &mine);
    if (rc < 0)
        *err = mine;
    _exit(rc < 0);
}

static int start(int folder, struct images_input *out, struct err *err)
{
    int ends[2];
    struct err *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "make a pipe for the folder");
    *shared = ERR_INIT;
    own_fd ours = ends[0], theirs = ends[1];
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return err_sys(err, "start the helper that reads the folder");
    if (pid == 0)
        pack(folder, theirs, parent, shared);
    (void)fcntl(ours, F_SETPIPE_SZ, PIPE_BYTES);
    *out = (struct images_input){ take_fd(&ours), pid, shared };
    return 0;
}

static int open_path(const char *path, int *out, struct stat *st, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    own_fd fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                         : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, st) < 0)
        return err_sys(err, "open '%.200s'", standard ? "standard input" : path);
    if (standard && isatty(fd)) {
        err_set(err, ERR_USAGE, "standard input is a terminal, not an archive");
        err_hint(err, "for example: docker save IMAGE | cupel images import -");
        return -1;
    }
    *out = take_fd(&fd);
    return 0;
}

int images_input_open(const char *path, struct images_input *out, struct err *err)
{
    struct stat st;
    own_fd fd = -1;
    if (open_path(path, &fd, &st, err) < 0)
        return -1;
    if (S_ISDIR(st.st_mode))
        return start(fd, out, err);
    *out = (struct images_input){ .fd = take_fd(&fd) };
    return 0;
}

int images_input_check(struct images_input *input, struct err *err)
{
    int status = 0;
    if (input->pid == 0)
        return err->kind == ERR_NONE ? 0 : -1;
    /* One that still writes gets EPIPE. */
    own_close_fd(&input->fd);
    while (waitpid(input->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    input->pid = 0;
    bool stopped_by_us = input->helper->sys == EPIPE;
    if (status != 0 && err->kind == ERR_NONE)
        err_set(err, ERR_HOST, "the helper that reads the folder ended early");
    if (status != 0 && input->helper->kind != ERR_NONE && !stopped_by_us)
        *err = *input->helper;
    return err->kind == ERR_NONE ? 0 : -1;
}

void images_input_close(struct images_input *input)
{
    struct err ignored = ERR_INIT;
    own_close_fd(&input->fd);
    (void)!images_input_check(input, &ignored);
    if (input->helper)
        munmap(input->helper, sizeof *input->helper);
    input->helper = NULL;
}
