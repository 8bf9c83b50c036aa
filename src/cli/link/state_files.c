/* The state folder for the command line. Runs in the cli process as the caller: root's folders
 * belong to the uid after the drop of rights, which can then rename files there. */
#include "cli/link/state_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "box/proto/boot.h"
#include "box/host/slot.h"

/* The same places as the engine's. */
static bool folder_path(char *path, size_t room)
{
    const struct {
        const char *variable, *below;
    } places[] = { { "CUPEL_STATE", "" },
                   { box_is_root() ? NULL : "XDG_STATE_HOME", "/cupel" },
                   { box_is_root() ? NULL : "HOME", "/.local/state/cupel" } };
    for (size_t i = 0; i < array_len(places); i++) {
        const char *value = places[i].variable ? getenv(places[i].variable) : NULL;
        if (!value || !value[0] || (places[i].below[0] && value[0] != '/'))
            continue;
        int n = snprintf(path, room, "%s%s", value, places[i].below);
        return n > 0 && (size_t)n < room;
    }
    if (!box_is_root())
        return false;
    snprintf(path, room, "/var/lib/cupel");
    return true;
}

/* Makes every missing folder of the path; true if the last one is new. */
static bool make_path(char *path)
{
    bool made = false;
    for (char *slash = path + 1; path[0]; slash++) {
        if (*slash != '/' && *slash != 0)
            continue;
        char kept = *slash;
        *slash = 0;
        made = mkdir(path, 0700) == 0;
        *slash = kept;
        if (!kept)
            break;
    }
    return made;
}

int cli_state_open(void)
{
    char path[PATH_MAX];
    if (!folder_path(path, sizeof path))
        return -1;
    mode_t callers = umask(077);
    bool made = make_path(path);
    umask(callers);
    own_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && made && box_is_root() && fchown(fd, BOOT_DOOR_UID, BOOT_DOOR_UID) < 0)
        return -1;
    return take_fd(&fd);
}

int cli_state_open_folder(const char *name)
{
    const uid_t owner = box_is_root() ? BOOT_DOOR_UID : geteuid();
    own_fd state = cli_state_open();
    if (state < 0)
        return -1;
    mode_t callers = umask(077);
    bool made = mkdirat(state, name, 0700) == 0;
    umask(callers);
    own_fd fd = openat(state, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || (made && box_is_root() && fchown(fd, owner, owner) < 0) || fstat(fd, &st) < 0)
        return -1;
    if (st.st_uid != owner || (st.st_mode & 077) != 0) {
        errno = EPERM;
        return -1;
    }
    return take_fd(&fd);
}
