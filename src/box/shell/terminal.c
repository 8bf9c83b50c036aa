/* A command on a terminal of its own. */
#include "box/shell/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/own.h"
#include "box/proto/proto.h"

void shell_set_size(int master, const struct shell_message *size)
{
    struct winsize now = { .ws_row = size->rows, .ws_col = size->columns };
    /* The kernel tells the foreground programs, if that is another size. */
    if (ioctl(master, TIOCSWINSZ, &now) < 0)
        return;
}

/* Both ends of a new terminal. -1 with errno. */
static int open_terminal(const struct shell_message *how, int *out_slave)
{
    int number, lock = 0;
    char path[32];
    struct termios mode;
    own_fd master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0 || ioctl(master, TIOCSPTLCK, &lock) < 0 || ioctl(master, TIOCGPTN, &number) < 0)
        return -1;
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    own_fd slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0 || tcgetattr(slave, &mode) < 0)
        return -1;
    mode.c_iflag |= IUTF8; /* backspace removes a whole character */
    if (tcsetattr(slave, TCSANOW, &mode) < 0)
        return -1;
    shell_set_size(master, how);
    *out_slave = take_fd(&slave);
    return take_fd(&master);
}

static attr_noreturn void begin(const struct shell_message *how, int slave, char *const *argv)
{
    bool failed = setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && !failed; fd++)
        failed = !(fd == STDERR_FILENO && how->err_apart) && dup2(slave, fd) < 0;
    if (failed)
        _exit(shell_fail("give the command its terminal"));
    shell_exec(argv);
}

/* Ends as the command did. */
static int end_like(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    int number = WTERMSIG(status);
    sigset_t all;
    sigfillset(&all);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    raise(number);
    return 128 + number;
}

int shell_run(const struct shell_message *how, struct shell_inbox *inbox, char *const *argv)
{
    own_fd slave = -1;
    own_fd master = open_terminal(how, &slave);
    if (master < 0)
        return shell_fail("open a terminal");
    pid_t command = fork();
    if (command < 0)
        return shell_fail("start the command");
    if (command == 0)
        begin(how, slave, argv);
    own_close_fd(&slave);
    return end_like(shell_relay(master, command, inbox));
}
