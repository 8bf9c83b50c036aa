/* `shell`: reads how to run its command, and runs it. */
#include "box/shell/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box/proto/proto.h"

int shell_fail(const char *what)
{
    fprintf(stderr, "cupel: cannot %s: %s\n", what, strerror(errno));
    return SHELL_FAILED;
}

void shell_exec(char *const *argv)
{
    const char *path = getenv("PATH");
    execvp(argv[0], argv);
    int why = errno;
    bool absent = why == ENOENT || why == ENOTDIR;
    if (absent && !strchr(argv[0], '/'))
        fprintf(stderr, "cupel: command '%s' is not in the box (PATH is '%s')\n", argv[0],
                path ? path : "");
    else
        fprintf(stderr, "cupel: cannot run '%s' in the box: %s\n", argv[0], strerror(why));
    _exit(absent ? SHELL_NOT_FOUND : SHELL_NO_EXEC);
}

int shell_hear(struct shell_inbox *inbox, struct shell_message *out)
{
    uint8_t bytes[SHELL_MESSAGE];
    for (int heard = 0;;) {
        size_t used;
        ssize_t n = read(BOX_FD_REQUESTS, bytes, sizeof bytes - inbox->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return heard;
        int rc = n <= 0 ? -1 : shell_read(inbox, bytes, (size_t)n, &used, out);
        if (rc < 0)
            return -1;
        heard |= rc;
        if (rc && (fcntl(BOX_FD_REQUESTS, F_GETFL) & O_NONBLOCK) == 0)
            return heard;
    }
}

int main(int argc, char **argv)
{
    struct shell_inbox inbox = { .len = 0 };
    struct shell_message how;
    if (argc < 2 || shell_hear(&inbox, &how) < 0) {
        fputs("cupel: this program runs commands for cupel exec\n", stderr);
        return SHELL_FAILED;
    }
    /* The command has no use for the channel. */
    if (fcntl(BOX_FD_WORDS, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(BOX_FD_REQUESTS, F_SETFD, FD_CLOEXEC) < 0)
        return shell_fail("close the channel");
    if (how.word == SHELL_TERMINAL)
        return shell_run(&how, &inbox, argv + 1);
    shell_exec(argv + 1);
}
