/* cupel: the one entry of the program. The broker and init are programs of their own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/term/term.h"

/* Started with one of 0 to 2 closed, the next open would become it, and the
 * code's output could end in a file. */
static int fill_standard_fds(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd)
            return -1;
    return 0;
}

/* Whatever state a caller starts us in: we wait for children, and say by ourselves
 * what cannot be written. */
static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
    reset_signals();
    if (fill_standard_fds() < 0)
        return 125;
    if (argc < 2) {
        cli_print_overview(stderr);
        return 2;
    }
    const struct cli_command *command = cli_find_command(argv[1]);
    if (!command)
        return cli_refuse_command(argv[1]);
    int code = command->run(argc - 2, argv + 2);
    bool arrived = fflush(stdout) == 0 && !ferror(stdout) && !cli_term_lost_output();
    return arrived || code != 0 ? code : 125;
}
