/* Landlock's rules for an occupant, where the kernel has it: they repeat what the mounts enforce,
 * and refuse signals and abstract sockets out of the domain. Runs in the box's first process, in
 * the finished root; no heap but that of opendir. */
#include "box/inside/enter.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/own.h"
#include "box/wall/landlock.h"

#define LOOK BOX_LANDLOCK_READ_DIR
#define RUN (BOX_LANDLOCK_READ_FILE | BOX_LANDLOCK_EXECUTE)
#define USE (RUN | LOOK)
#define WRITE (BOX_LANDLOCK_WRITE_FILE | BOX_LANDLOCK_TRUNCATE)

/* /dev/zero must not be writable: a shared mapping of it is memory that only a cgroup counts. The
 * root itself can only be listed: rules add up, and /.landlock must stay closed. */
static const struct box_landlock_rule fixed[] = {
    { .path = "/", .allowed = LOOK },
    { .path = "/usr", .allowed = USE },
    { .path = "/etc", .allowed = USE },
    { .path = "/sys", .allowed = USE },
    { .path = "/proc", .allowed = USE | WRITE },
    { .path = "/dev", .allowed = USE },
    { .path = "/dev/null", .allowed = WRITE },
    { .path = "/dev/full", .allowed = WRITE },
    { .path = "/dev/random", .allowed = WRITE },
    { .path = "/dev/urandom", .allowed = WRITE },
    { .path = "/dev/tty", .allowed = WRITE },
    { .path = "/dev/pts", .allowed = WRITE },
    { .path = "/dev/shm", .allowed = BOX_LANDLOCK_ALL },
    { .path = "/tmp", .allowed = BOX_LANDLOCK_ALL },
    { .path = "/workspace", .allowed = BOX_LANDLOCK_ALL },
};

/* Other entries of the root. Of an image that has more than these, the rest stays closed. */
#define OTHERS_MAX 64
static char others[OTHERS_MAX][260];

/* Where these are links, the target is elsewhere. The first four are those of the host's image. */
#define OF_HOST 4
static const char *const usual[] = { "bin",  "sbin", "lib",  "lib64", "lib32", "libx32", "opt",
                                     "home", "mnt",  "root", "run",   "srv",   "var",    "media" };
static const char *const never[] = { ".",    "..",   ".landlock", ".proc", "usr",      "etc",
                                     "sys",  "proc", "dev",       "tmp",   "workspace" };

struct list {
    struct box_landlock_rule rules[array_len(fixed) + OTHERS_MAX];
    size_t count;
};

static void add_other(struct list *list, const char *name, bool folder)
{
    struct stat st;
    if (list->count == array_len(list->rules))
        return;
    char *path = others[list->count - array_len(fixed)];
    snprintf(path, sizeof others[0], "/%.255s", name);
    if (lstat(path, &st) == 0 && (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)))
        list->rules[list->count++] = (struct box_landlock_rule){ .path = path,
                                                                 .allowed = folder ? USE : RUN };
}

static bool is_in(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static int add_unusual(struct list *list, bool folders)
{
    own_dirp root = opendir("/");
    const struct dirent *entry;
    if (!root)
        return -1;
    while ((entry = readdir(root)) && list->count < array_len(list->rules)) {
        const char *name = entry->d_name;
        if (!is_in(name, never, array_len(never)) && !is_in(name, usual, array_len(usual)))
            add_other(list, name, folders);
    }
    return 0;
}

int enter_rules(bool image, int *out)
{
    struct list list = { .count = array_len(fixed) };
    memcpy(list.rules, fixed, sizeof fixed);
    for (size_t i = 0; i < (image ? array_len(usual) : OF_HOST); i++)
        add_other(&list, usual[i], /* folder= */ true);
    if (image && (add_unusual(&list, /* folders= */ true) < 0 ||
                  add_unusual(&list, /* folders= */ false) < 0))
        return -1;
    *out = box_landlock_make(list.rules, list.count, BOX_LANDLOCK_TCP);
    return *out < 0 && errno != ENOSYS && errno != EOPNOTSUPP ? -1 : 0;
}
