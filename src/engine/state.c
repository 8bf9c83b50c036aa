/* The state directory: records and caches that outlive a run. Opened before
 * privileges are dropped; as root it belongs to the doors' private uid. */
#include "engine/engine_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "box/boot.h"
#include "box/slot.h"

/* Every missing directory of the path, 0700. */
static int make_path(char *path)
{
    for (char *slash = path + 1;; slash++) {
        if (*slash != '/' && *slash != 0)
            continue;
        char kept = *slash;
        *slash = 0;
        int failed = mkdir(path, 0700) < 0 && errno != EEXIST;
        *slash = kept;
        if (failed)
            return -1;
        if (!kept)
            return 0;
    }
}

static bool pick_path(char *path, size_t room, bool *out_named)
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

int state_open(int *out_fd, struct err *err)
{
    char path[PATH_MAX];
    bool named;
    *out_fd = -1;
    if (!pick_path(path, sizeof path, &named))
        return 0;
    own_fd fd = make_path(path) < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const uid_t door = BOOT_DOOR_UID;
    bool usable = fd >= 0 && (!box_is_root() || fchown(fd, door, door) == 0) &&
                  faccessat(fd, ".", W_OK, 0) == 0;
    if (usable) {
        *out_fd = take_fd(&fd);
        return 0;
    }
    if (!named)
        return 0; /* no home: run without one */
    err_sys(err, "open the state directory '%s'", path);
    err_hint(err, "make it writable for this user, or set CUPEL_STATE to another directory");
    return -1;
}
