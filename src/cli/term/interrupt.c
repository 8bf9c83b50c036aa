/* Signal handlers of the cli process. They only write to a pipe: the run then ends in order, with
 * its result, and leaves nothing behind. */
#include "cli/term/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static int pipe_end = -1;
static volatile sig_atomic_t ended_by;

/* The pipe is non-blocking: a full one holds more requests than needed. */
static void wish(const char *bytes, size_t count)
{
    int saved = errno;
    if (write(pipe_end, bytes, count) < 0)
        errno = saved;
    errno = saved;
}

static void on_interrupt(int number)
{
    (void)number;
    wish("i", 1);
}

static void on_end(int number)
{
    ended_by = number;
    wish("kk", 2);
}

static void on_hup(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code > 0) /* the kernel's */
        on_end(number);
    else
        wish("h", 1);
}

void cli_interrupt_reloads(void)
{
    struct sigaction action = { .sa_sigaction = on_hup, .sa_flags = SA_RESTART | SA_SIGINFO };
    sigaction(SIGHUP, &action, NULL);
}

void cli_interrupt_kill(void)
{
    wish("kk", 2);
}

int cli_interrupt_signal(void)
{
    return ended_by;
}

int cli_interrupt_open(int *out_fd, struct err *err)
{
    static const struct {
        int number;
        void (*handler)(int);
    } rows[] = {
        { SIGINT, on_interrupt }, { SIGTERM, on_end }, { SIGHUP, on_end }, { SIGPIPE, SIG_IGN },
    };
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(err, "make a pipe for signals");
    pipe_end = ends[1];
    for (size_t i = 0; i < array_len(rows); i++) {
        struct sigaction action = { .sa_handler = rows[i].handler, .sa_flags = SA_RESTART };
        struct sigaction before;
        /* Under nohup a hang-up stays ignored. SIGINT does not: shells ignore it for background
         * programs, but a sent one is intended. */
        if (rows[i].number == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 &&
            before.sa_handler == SIG_IGN)
            continue;
        sigaction(rows[i].number, &action, NULL);
    }
    *out_fd = ends[0];
    return 0;
}
