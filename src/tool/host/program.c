/* The threads' side of programs: an order with descriptors to the guard, and a control descriptor
 * for each program. Runs in the tool host's process, in any thread. */
#include "tool/host/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "tool/host/host_int.h"

static int guard_sock = -1; /* set before the first thread */

void host_use_guard(int guard)
{
    guard_sock = guard;
}

static int add_words(struct buf *out, const char *const *words, uint32_t *out_count,
                     struct err *err)
{
    for (*out_count = 0; words && words[*out_count]; ++*out_count)
        if (*out_count == PROGRAM_WORDS_MAX ||
            buf_add(out, words[*out_count], strlen(words[*out_count]) + 1) < 0)
            return err_set(err, ERR_LIMIT,
                           "command line and environment of a program exceed %d words or %d bytes",
                           PROGRAM_WORDS_MAX, PROGRAM_BYTES_MAX);
    return 0;
}

static const char *home(void)
{
    const char *home = getenv("HOME");
    return home && *home == '/' && access(home, X_OK) == 0 ? home : "/";
}

int program_start(const struct program_plan *plan, struct err *err)
{
    struct host_program program = { .limits = plan->limits };
    own_buf words = BUF_INIT(PROGRAM_BYTES_MAX);
    const char *cwd[] = { plan->cwd ? plan->cwd : home(), NULL };
    uint32_t one;
    if (add_words(&words, plan->argv, &program.argc, err) < 0 ||
        add_words(&words, plan->env, &program.envc, err) < 0 ||
        add_words(&words, cwd, &one, err) < 0)
        return -1;
    if (program.argc == 0)
        return err_set(err, ERR_INPUT, "a program to start has no name");
    program.bytes = (uint32_t)words.len;
    own_fd list = io_sealed_memfd("words", words.at, words.len, 0);
    int ends[2];
    if (list < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make the descriptors of '%.200s'", plan->argv[0]);
    own_fd ours = ends[0], theirs = ends[1];
    int fds[HOST_PROGRAM_FDS] = { theirs, list, plan->in, plan->out, plan->notes };
    if (io_send(guard_sock, &program, sizeof program, fds, HOST_PROGRAM_FDS) < 0)
        return err_sys(err, "start '%.200s': the guard of the tool host is gone", plan->argv[0]);
    return take_fd(&ours);
}

int program_ended(int handle, struct program_end *out)
{
    struct program_end end;
    ssize_t got = recv(handle, &end, sizeof end, MSG_DONTWAIT);
    if (got != (ssize_t)sizeof end)
        return -1;
    *out = end;
    return 0;
}

void program_stop(int handle, int64_t wait_ms)
{
    /* Shut down, not closed: the minder sees the end, and its own end stays to be seen. */
    if (handle < 0)
        return;
    shutdown(handle, SHUT_WR);
    int64_t due = clock_now_ns() + wait_ms * CLOCK_MS;
    struct pollfd watched = { handle, POLLIN, 0 };
    while (clock_now_ns() < due && poll(&watched, 1, clock_poll_ms(due)) < 0 && errno == EINTR)
        ;
    close(handle);
}

static bool is_named(const char *const *list, const char *name, size_t len)
{
    for (; list && *list; list++)
        if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
            return true;
    return false;
}

char **program_env(const char *const *extra)
{
    static const char *const inherited[] = { "PATH", "HOME", "LANG" };
    static const char *const usual[] = { "/usr/local/bin:/usr/bin:/bin", "/", "C.UTF-8" };
    size_t count = 0, used = 0;
    while (extra && extra[count])
        count++;
    char **env = buf_alloc_zero(count + array_len(inherited) + 1, sizeof *env);
    for (size_t i = 0; i < array_len(inherited); i++) {
        const char *value = getenv(inherited[i]);
        own_buf text = BUF_INIT(PROGRAM_BYTES_MAX);
        if (is_named(extra, inherited[i], strlen(inherited[i])))
            continue;
        if (buf_printf(&text, "%s=%s", inherited[i], value && *value ? value : usual[i]) == 0)
            env[used++] = buf_take(&text);
    }
    for (size_t i = 0; i < count; i++)
        env[used++] = buf_strdup(str_of(extra[i]));
    return env;
}

void program_env_free(char **env)
{
    for (size_t i = 0; env && env[i]; i++) {
        explicit_bzero(env[i], strlen(env[i]));
        free(env[i]);
    }
    free(env);
}
