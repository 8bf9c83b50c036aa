/* cupel: the program's entry. The broker and init are separate programs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/term/term.h"

/* If one of 0 to 2 is closed, the next open would take its number, and the code's output could end
 * in a file. */
static int fill_standard_fds(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd)
            return -1;
    return 0;
}

/* The caller's signal state must not matter: we wait for children, and report failed writes
 * ourselves. */
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
