/* The state directory: records and caches that outlive a run. Opened before rights are dropped; as
 * root it belongs to the door's uid. Runs in the engine. */
#include "engine/engine_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "box/proto/boot.h"
#include "box/host/slot.h"

static int make_path(char *path)
{
    for (char *slash = path + 1;; slash++) {
        if (*slash != '/' && *slash != 0)
            continue;
        char kept = *slash;
        *slash = 0;
        int made = mkdir(path, 0700) == 0 ? 1 : errno == EEXIST ? 0 : -1;
        *slash = kept;
        if (made < 0 || !kept)
            return made;
    }
}

int engine_state_make(char *path)
{
    mode_t callers = umask(077); /* it may lock us out of our own folder */
    int made = make_path(path);
    umask(callers);
    return made;
}

bool engine_state_path(char *path, size_t room, bool *out_named)
{
    const char *named = getenv("CUPEL_STATE"), *xdg = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int n;
    *out_named = named && named[0];
    if (*out_named)
        n = snprintf(path, room, "%s", named);
    else if (box_is_root())
        n = snprintf(path, room, "/var/lib/cupel");
    else if (xdg && xdg[0] == '/')
        n = snprintf(path, room, "%s/cupel", xdg);
    else if (home && home[0] == '/')
        n = snprintf(path, room, "%s/.local/state/cupel", home);
    else
        return false;
    return n > 0 && (size_t)n < room;
}

/* As root, the door's uid must be able to write there. Our own directory is given to it; a named
 * directory that existed belongs to someone, and stays as it is. */
static bool is_usable(int fd, bool ours)
{
    const uid_t door = BOOT_DOOR_UID;
    struct stat st;
    if (!box_is_root())
        return faccessat(fd, ".", W_OK, 0) == 0;
    if (ours)
        return fchown(fd, door, door) == 0;
    return fstat(fd, &st) == 0 && (st.st_uid == door || (st.st_mode & S_IWOTH) != 0);
}

int state_open(int *out_fd, struct err *err)
{
    char path[PATH_MAX];
    bool named;
    *out_fd = -1;
    if (!engine_state_path(path, sizeof path, &named))
        return 0;
    int made = engine_state_make(path);
    own_fd fd = made < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && is_usable(fd, made == 1 || !named)) {
        *out_fd = take_fd(&fd);
        return 0;
    }
    if (!named)
        return 0; /* no home: run without */
    if (fd >= 0)
        errno = EACCES;
    err_sys(err, "use the state directory '%s'", path);
    if (box_is_root())
        err_hint(err, "give it to cupel's private uid: 'chown %u %s'", BOOT_DOOR_UID, path);
    else
        err_hint(err, "make it writable for this user, or set CUPEL_STATE to another directory");
    return -1;
}

/* Made for images that come later: the broker is given the folder once, at its start. */
int engine_state_trees(int state)
{
    static const struct {
        const char *path;
        mode_t mode;
    } folders[] = { { "images", 0700 }, { "images/trees", 0755 } };
    own_fd fd = -1;
    for (size_t i = 0; state >= 0 && i < array_len(folders); i++) {
        mode_t callers = umask(077); /* it may lock us out of our own folder */
        bool made = mkdirat(state, folders[i].path, 0700) == 0;
        umask(callers);
        own_close_fd(&fd);
        fd = openat(state, folders[i].path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return -1;
        /* As root the store belongs to the door's uid. */
        if (made && ((box_is_root() && fchown(fd, BOOT_DOOR_UID, BOOT_DOOR_UID) < 0) ||
                     fchmod(fd, folders[i].mode) < 0))
            return -1;
    }
    return take_fd(&fd);
}

int engine_state_check(const struct engine *engine, struct err *err)
{
    if (engine->state < 0)
        return 0;
    /* Without a name: nothing stays, whatever happens. */
    own_fd fd = openat(engine->state, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EOPNOTSUPP && errno != EISDIR)
        return err_sys(err, "write to the state directory");
    if (fd >= 0 && write(fd, "x", 1) != 1)
        return err_sys(err, "write to the state directory");
    return 1;
}
