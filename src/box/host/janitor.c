/* The janitor: a child of the door that outlives all other processes of an instance, even a killed
 * door, to remove the cgroup bases. It reads nothing but the end of a pipe. The top of a cgroup
 * hierarchy is writable for nobody (mode 0555), so as root it keeps CAP_DAC_OVERRIDE alone.
 * Landlock allows it only to remove directories and to kill below its hierarchies; and to read
 * there, if the door moved itself into a leaf of the base. */
#include "box/host/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/io.h"
#include "box/wall/confine.h"
#include "box/wall/landlock.h"

#define LIFE_FD 3 /* the lifeline, above stdio */

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

/* Keep the lifeline, the slot and the locks on the bases: slot and locks stay taken until all is
 * removed. */
static int keep_only(const struct hierarchy *h, int life_read, int slot_fd)
{
    int kept[2 + BOX_CG_COUNT] = { life_read, slot_fd }, count = 2;
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (h->base[i] >= 0)
            kept[count++] = h->base[i];
    }
    return io_place(kept, count, LIFE_FD, count) < 0 ? -1 : io_close_from(LIFE_FD + count);
}

static void stay(const struct hierarchy *h, int life_read, int slot_fd) __attribute__((noreturn));
static void stay(const struct hierarchy *h, int life_read, int slot_fd)
{
    char word;
    prctl(PR_SET_NAME, "cupel-janitor");
    setsid();
    for (int sig = 1; sig < 32; sig++)
        signal(sig, sig == SIGCHLD ? SIG_DFL : SIG_IGN);
    /* Close all of the caller's descriptors: a reader of the caller's output must see the end, and
     * the janitor would wait for itself if it kept the lifeline's writing end. */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    if (keep_only(h, life_read, slot_fd) < 0 || confine(h) < 0)
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
