/* The janitor: a child of the door that outlives everything else of an instance,
 * even a door that was killed, to remove the cgroup bases. It reads nothing but the
 * end of a pipe. The top of a cgroup hierarchy is writable for nobody (mode 0555),
 * so as root it keeps CAP_DAC_OVERRIDE, and only that; Landlock leaves it nothing
 * but removing directories, and killing, below the hierarchies it works in; where
 * the door had to step down into a group of ours, also seeing who is there. */
#include "box/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/io.h"
#include "box/confine.h"
#include "box/landlock.h"

/* All that it keeps open, above stdio; the slot stays taken until all is removed. */
#define LIFE_FD 3
#define SLOT_FD 4

static int confine(const struct hierarchy *h)
{
    struct box_landlock_rule rules[BOX_CG_COUNT];
    size_t count = 0;
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (h->base[i] >= 0)
            rules[count++] = (struct box_landlock_rule){
                .path = h->parent[i],
                .allowed = BOX_LANDLOCK_READ_DIR | BOX_LANDLOCK_REMOVE_DIR |
                           BOX_LANDLOCK_WRITE_FILE |
                           (h->in_front ? BOX_LANDLOCK_READ_FILE : 0),
            };
    }
    if (box_confine_capabilities(geteuid() == 0 ? 1u << CAP_DAC_OVERRIDE : 0) < 0)
        return -1;
    return box_landlock_apply(rules, count, BOX_LANDLOCK_NO_TCP) < 0 && errno != ENOSYS &&
                   errno != EOPNOTSUPP
               ? -1
               : 0;
}

static void stay(const struct hierarchy *h, int life_read, int slot_fd)
    __attribute__((noreturn));
static void stay(const struct hierarchy *h, int life_read, int slot_fd)
{
    char word;
    prctl(PR_SET_NAME, "cupel-janitor");
    setsid();
    for (int sig = 1; sig < 32; sig++)
        signal(sig, sig == SIGCHLD ? SIG_DFL : SIG_IGN);
    /* Nothing of the caller's stays open here: whoever reads its output must see the
     * end, and we would wait for ourselves if we kept the lifeline. */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    /* By way of numbers that are neither's place. */
    int life = fcntl(life_read, F_DUPFD_CLOEXEC, SLOT_FD + 1);
    int slot = fcntl(slot_fd, F_DUPFD_CLOEXEC, SLOT_FD + 1);
    if (life < 0 || slot < 0 || dup2(life, LIFE_FD) < 0 || dup2(slot, SLOT_FD) < 0)
        _exit(70);
    if (io_close_from(SLOT_FD + 1) < 0 || confine(h) < 0)
        _exit(70);
    while (read(LIFE_FD, &word, 1) < 0 && errno == EINTR)
        continue;
    hierarchy_remove(h);
    _exit(0);
}

pid_t janitor_start(const struct hierarchy *h, int life_read, int slot_fd, struct err *err)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(err, "start the janitor");
    if (pid == 0)
        stay(h, life_read, slot_fd);
    return pid;
}
