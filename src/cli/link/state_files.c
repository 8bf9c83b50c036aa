/* The state folder for the command line. Runs in the cli process as the caller: root's folders
 * belong to the uid after the drop of rights, which can then rename files there. */
#include "cli/link/state_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "box/proto/boot.h"
#include "box/host/slot.h"
#include "engine/engine.h"

int cli_state_open(void)
{
    char path[PATH_MAX];
    bool named;
    if (!engine_state_path(path, sizeof path, &named))
        return -1;
    bool made = engine_state_make(path) == 1;
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
