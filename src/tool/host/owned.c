/* Owner and mode of files and folders, of the open descriptor. Runs in the tool host's process. */
#include "tool/host/owned.h"

#include <sys/stat.h>
#include <unistd.h>

static const struct {
    mode_t type, refused;
    const char *not_type, *open, *fix;
} kinds[] = {
    [OWNED_FILE] = { S_IFREG, 022, "it is not a regular file", "other users may write it",
                     "chmod go-w" },
    [OWNED_SECRET_FILE] = { S_IFREG, 077, "it is not a regular file", "other users may open it",
                            "chmod 600" },
    [OWNED_FOLDER] = { S_IFDIR, 022, "it is not a folder", "other users may write in it",
                       "chmod go-w" },
};

int owned_check(int fd, enum owned_kind kind, struct err *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return err_sys(err, "look at it");
    if ((info.st_mode & S_IFMT) != kinds[kind].type)
        return err_set(err, ERR_INPUT, "%s", kinds[kind].not_type);
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        err_set(err, ERR_INPUT, "it belongs to another user (uid %ld)", (long)info.st_uid);
        err_hint(err, "it must be your own or root's: chown it");
        return -1;
    }
    if (info.st_mode & kinds[kind].refused) {
        err_set(err, ERR_INPUT, "%s (mode %03o)", kinds[kind].open, (unsigned)info.st_mode & 0777);
        err_hint(err, "close it: %s", kinds[kind].fix);
        return -1;
    }
    return 0;
}
