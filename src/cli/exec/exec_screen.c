/* The raw mode of the caller's terminal. Runs in the cli process. Its handlers call nothing that a
 * handler may not: tcsetattr, kill and write are safe there. */
#include "cli/exec/exec_screen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/attr.h"

static struct termios before, raw;
static volatile sig_atomic_t is_raw;
static int pipe_end = -1;

struct cli_exec_size cli_exec_screen_size(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
        return (struct cli_exec_size){ 0, 0 };
    return (struct cli_exec_size){ size.ws_row, size.ws_col };
}

/* TCSADRAIN would wait for a terminal that nobody reads. */
static void set(const struct termios *mode)
{
    while (tcsetattr(STDIN_FILENO, TCSANOW, mode) < 0 && errno == EINTR)
        ;
}

static void look_at_size(void)
{
    if (write(pipe_end, "s", 1) < 0) /* a full pipe holds enough of them */
        return;
}

static void on_size(int number)
{
    int saved = errno;
    (void)number;
    look_at_size();
    errno = saved;
}

/* The shell that stops us finds its terminal as it was. SIGSTOP acts here; the rest follows when we
 * go on. */
static void on_stop(int number)
{
    int saved = errno;
    (void)number;
    if (is_raw)
        set(&before);
    kill(getpid(), SIGSTOP);
    errno = saved;
}

/* In the background this stops us until we are in front again. */
static void on_continue(int number)
{
    int saved = errno;
    (void)number;
    if (is_raw)
        set(&raw);
    look_at_size();
    errno = saved;
}

/* A signal that ends us at once; SA_RESETHAND makes the second one do so. */
static void on_death(int number)
{
    if (is_raw)
        set(&before);
    raise(number);
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
    sigaction(number, &action, NULL);
}

static void handle_signals(void)
{
    static const int deaths[] = { SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGALRM,
                                  SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM, SIGPROF };
    for (size_t i = 0; i < array_len(deaths); i++)
        handle(deaths[i], on_death, (int)SA_RESETHAND | SA_NODEFER);
    handle(SIGWINCH, on_size, SA_RESTART);
    handle(SIGTSTP, on_stop, SA_RESTART);
    handle(SIGCONT, on_continue, SA_RESTART);
}

int cli_exec_screen_begin(int *out_fd, struct err *err)
{
    int ends[2];
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return err_sys(err, "read the terminal's settings");
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(err, "make a pipe for signals");
    pipe_end = ends[1];
    raw = before;
    cfmakeraw(&raw);
    handle_signals();
    is_raw = 1;
    set(&raw);
    look_at_size(); /* it may have changed since the command was told */
    *out_fd = ends[0];
    return 0;
}

void cli_exec_screen_end(void)
{
    if (!is_raw)
        return;
    is_raw = 0;
    set(&before);
}
