/* Starts an engine in the background. Runs in the cli process, as the caller. The engine's output
 * before it is ready goes to memory that only we read: a failed start is reported here, and no file
 * is left behind. */
#include "cli/link/engine_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "cli/term/term.h"
#include "embed/launch.h"

#define START_S 60 /* for the engine that we start */
#define OTHER_S 20 /* for one that another process has begun to start */
#define PAUSE_MS 20
#define IDLE_EXIT "60"

/* "cupel: TEXT\n  hint: HINT\n", as cli_term_refuse writes it. */
static void read_reason(int errors, struct err *err)
{
    char said[1024];
    ssize_t n = pread(errors, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    char *text = strncmp(said, "cupel: ", 7) == 0 ? said + 7 : said;
    char *hint = strstr(text, "\n  hint: ");
    text[strcspn(text, "\n")] = 0;
    err_set(err, ERR_HOST, "start an engine: %s", text[0] ? text : "it ended without a message");
    if (!hint)
        return;
    hint += strlen("\n  hint: ");
    hint[strcspn(hint, "\n")] = 0;
    err_hint(err, "%s", hint);
}

/* -1 if the engine ended by itself, except because another one is already there. */
static int look_after(pid_t *pid, int errors, int64_t *until, struct err *err)
{
    int status = 0;
    if (*pid <= 0 || waitpid(*pid, &status, WNOHANG) != *pid)
        return 0;
    *pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == err_exit_code(ERR_BUSY)) {
        *until = clock_now_ns() + OTHER_S * CLOCK_S;
        return 0;
    }
    read_reason(errors, err);
    return -1;
}

static int wait_for_engine(struct cli_remote *remote, pid_t *pid, int errors, struct err *err)
{
    int64_t until = clock_now_ns() + START_S * CLOCK_S;
    for (;;) {
        struct err why = ERR_INIT;
        if (cli_remote_connect(remote, &why) == 0)
            return 0;
        if (look_after(pid, errors, &until, err) < 0)
            return -1;
        if (clock_now_ns() > until) {
            *err = why;
            return err_wrap(err, "wait for the engine");
        }
        poll(NULL, 0, PAUSE_MS);
    }
}

/* Another engine won the race: ours may still wait for the lock, and must not start after the
 * winner's end. */
static void end_if_late(const struct cli_remote *remote, pid_t *pid)
{
    struct ucred engine;
    socklen_t len = sizeof engine;
    const int fd = remote->client.link.fd;
    if (*pid <= 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &engine, &len) < 0 ||
        engine.pid == *pid)
        return;
    kill(*pid, SIGTERM);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *pid = 0;
}

int cli_session_start(struct cli_remote *remote, struct err *err)
{
    char name[] = "cupel", command[] = "serve", quiet[] = "-q", idle[] = "--idle-exit";
    char seconds[] = IDLE_EXIT;
    char *argv[] = { name, command, quiet, idle, seconds, NULL };
    struct err why = ERR_INIT;
    pid_t pid = 0;
    if (cli_remote_connect(remote, &why) == 0)
        return 0;
    if (why.kind != ERR_ABSENT) {
        *err = why;
        return -1;
    }
    own_fd errors = memfd_create("cupel-serve", MFD_CLOEXEC);
    if (errors < 0)
        return err_sys(err, "make a buffer for the engine's messages");
    int rc = embed_launch("/proc/self/exe", argv, errors, /* passed= */ -1, &pid);
    if (rc != 0) {
        errno = rc;
        return err_sys(err, "start an engine");
    }
    if (wait_for_engine(remote, &pid, errors, err) < 0)
        return -1;
    int status = 0;
    end_if_late(remote, &pid);
    if (pid > 0 && waitpid(pid, &status, WNOHANG) == 0)
        cli_term_note("started an engine in the background (process %ld); it ends a minute "
                      "after its last session",
                      (long)pid);
    return 0;
}

int cli_session_reach(struct cli_remote *remote, const char *id, struct err *err)
{
    struct err why = ERR_INIT;
    if (cli_remote_connect(remote, &why) == 0)
        return 0;
    *err = why;
    if (why.kind != ERR_ABSENT || (why.sys != ENOENT && why.sys != ECONNREFUSED))
        return -1;
    err_set(err, ERR_ABSENT,
            id ? "no engine is running, so session '%.40s' does not exist"
               : "no engine is running, so there are no sessions",
            id);
    err_hint(err, "'cupel session new' makes one, and starts an engine for it");
    return -1;
}

int cli_session_carry(struct cli_remote *remote, struct err *err)
{
    struct err why = ERR_INIT;
    if (cli_remote_connect(remote, &why) == 0)
        return 0;
    if (embed_named() || why.kind != ERR_ABSENT) {
        *err = why;
        return -1;
    }
    return cli_remote_spawn(remote, /* options= */ NULL, /* errors= */ -1, err);
}

int cli_session_own_heard(struct cli_remote *remote, char *const *options, int *out_errors,
                          struct err *err)
{
    own_fd errors = memfd_create("cupel-serve", MFD_CLOEXEC);
    if (errors < 0)
        return err_sys(err, "make a buffer for the engine's messages");
    if (cli_remote_spawn(remote, options, errors, err) == 0) {
        *out_errors = take_fd(&errors);
        return 0;
    }
    if (lseek(errors, 0, SEEK_END) > 0)
        read_reason(errors, err);
    return -1;
}

int cli_session_own(struct cli_remote *remote, char *const *options, struct err *err)
{
    own_fd errors = -1;
    return cli_session_own_heard(remote, options, &errors, err);
}
