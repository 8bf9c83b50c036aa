/* Starts an engine. Runs in any client, also inside a foreign threaded process: posix_spawn, and no
 * fork. The engine inherits none of that process's descriptors, signals and terminal. */
#include "embed/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#define PASSED_FD 3

int embed_launch(const char *program, char **argv, int errors, int passed, pid_t *out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setflags(&how,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    /* First, because `errors` may itself be the number that `passed` gets. */
    if (errors >= 0)
        posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
    if (passed >= 0)
        posix_spawn_file_actions_adddup2(&files, passed, PASSED_FD);
    for (int fd = 0; fd < (errors >= 0 ? STDERR_FILENO : PASSED_FD); fd++)
        posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_addclosefrom_np(&files, PASSED_FD + (passed >= 0));
    int rc = posix_spawnp(out, program, &files, &how, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return rc;
}
