/* The minder: runs one program for the tool host. It adopts the program's orphans, and kills every
 * descendant when the program ends or the control descriptor does; so nothing that a tool starts
 * outlives its call, in whatever session or group. One process for each program, of one thread,
 * forked by the guard. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/adopt.h"
#include "base/io.h"
#include "base/own.h"
#include "tool/host/host_int.h"

#define FILES_USUAL 256
#define FILE_BYTES_USUAL ((uint64_t)1 << 30)

enum { CONTROL, WORDS, STREAMS }; /* places of the descriptors */

struct words {
    char *argv[PROGRAM_WORDS_MAX + 1], *env[PROGRAM_WORDS_MAX + 1];
    const char *cwd;
};

/* The host is not an attacker, but it parses what attackers say: the counts are checked. */
static int read_words(const struct host_program *program, int fd, struct words *out)
{
    if (program->argc == 0 || program->argc > PROGRAM_WORDS_MAX ||
        program->envc > PROGRAM_WORDS_MAX || program->bytes == 0 ||
        program->bytes > PROGRAM_BYTES_MAX)
        return -1;
    char *at = malloc(program->bytes), *end = at ? at + program->bytes : NULL;
    if (!at || pread(fd, at, program->bytes, 0) != (ssize_t)program->bytes || end[-1])
        return -1;
    for (uint32_t i = 0; i <= program->argc + program->envc; i++) {
        if (at >= end)
            return -1;
        if (i < program->argc)
            out->argv[i] = at;
        else if (i < program->argc + program->envc)
            out->env[i - program->argc] = at;
        else
            out->cwd = at;
        at += strlen(at) + 1;
    }
    return 0;
}

/* Never more than the process may have. */
static void limit(int what, uint64_t value)
{
    struct rlimit now;
    if (getrlimit(what, &now) < 0)
        return;
    struct rlimit wanted = { value < now.rlim_max ? value : now.rlim_max, 0 };
    wanted.rlim_max = wanted.rlim_cur;
    setrlimit(what, &wanted);
}

static void set_limits(const struct program_limits *limits)
{
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, limits->open_files ? limits->open_files : FILES_USUAL);
    limit(RLIMIT_FSIZE, limits->file_bytes ? limits->file_bytes : FILE_BYTES_USUAL);
    if (limits->memory_bytes)
        limit(RLIMIT_DATA, limits->memory_bytes);
    if (limits->cpu_s)
        limit(RLIMIT_CPU, limits->cpu_s);
}

/* Becomes the program, or tells why not through `failed`, which exec closes. */
static attr_noreturn void become(pid_t minder, const struct host_program *program,
                                 const struct words *words, const int *streams, int failed)
{
    adopt_begin_program(minder);
    set_limits(&program->limits);
    bool placed = true;
    for (int i = 0; i < 3; i++)
        placed = placed && dup2(streams[i], i) == i;
    if (placed && chdir(words->cwd) == 0)
        execvpe(words->argv[0], words->argv, words->env);
    int32_t error = errno;
    if (write(failed, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

/* execvpe looks in the PATH of the process that calls it. */
static void take_path(char *const *env)
{
    unsetenv("PATH");
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            setenv("PATH", *env + 5, /* overwrite= */ 1);
}

static struct program_end run(const struct host_program *program, const int *fds)
{
    static struct words words;
    int failed[2];
    if (read_words(program, fds[WORDS], &words) < 0)
        return (struct program_end){ .error = EINVAL };
    take_path(words.env);
    if (pipe2(failed, O_CLOEXEC) < 0)
        return (struct program_end){ .error = errno };
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become(self, program, &words, fds + STREAMS, failed[1]);
    struct program_end end = { .error = pid < 0 ? errno : 0 };
    if (pid > 0)
        setpgid(pid, pid);
    close(failed[1]);
    for (int i = WORDS; i < HOST_PROGRAM_FDS; i++)
        close(fds[i]);
    if (pid > 0)
        end.status = adopt_attend(fds[CONTROL], pid);
    int32_t error;
    if (pid > 0 && read(failed[0], &error, sizeof error) == (ssize_t)sizeof error)
        end.error = error;
    close(failed[0]);
    return end;
}

attr_noreturn void host_mind(const struct host_program *program, const int fds[HOST_PROGRAM_FDS])
{
    if (adopt_orphans() < 0)
        _exit(1);
    struct program_end end = run(program, fds);
    /* Nobody may be left to hear it. */
    if (io_send_now(fds[CONTROL], &end, sizeof end, NULL, 0) < 0)
        _exit(0);
    _exit(0);
}
