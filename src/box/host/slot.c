/* Slots by byte locks. Host side, before privileges are dropped. The lock belongs to the open file
 * description: the broker and the janitor inherit it, and it ends with the last of them. */
#include "box/host/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "box/proto/boot.h"

/* The capabilities that the bootstrap needs to assign uids. A container's root may lack them. */
static bool has_power(void)
{
    const uint32_t need = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SETPCAP |
                          1u << CAP_DAC_OVERRIDE | 1u << CAP_CHOWN;
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
    return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & need) == need;
}

bool box_is_root(void)
{
    unsigned long first, outside, count;
    bool mapped = false;
    if (geteuid() != 0 || !has_power())
        return false;
    FILE *file = fopen("/proc/self/uid_map", "re");
    while (file && !mapped && fscanf(file, "%lu %lu %lu", &first, &outside, &count) == 3)
        mapped = first <= BOOT_UID_BASE && first + count > BOOT_DOOR_UID;
    if (file)
        fclose(file);
    return mapped;
}

/* A directory that no other user can write: made here, or owned by this user and closed. */
static int own_dir(const char *path)
{
    struct stat st;
    mode_t callers = umask(0077); /* the caller's umask could lock it out */
    int made = mkdir(path, 0700);
    umask(callers);
    if (made < 0 && errno != EEXIST)
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0)
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

int box_runtime_dir(char *path, size_t room)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (box_is_root()) {
        snprintf(path, room, "/run/cupel");
        return own_dir(path);
    }
    if (runtime && runtime[0] == '/') {
        snprintf(path, room, "%s/cupel", runtime);
        int fd = own_dir(path);
        if (fd >= 0)
            return fd;
    }
    snprintf(path, room, "/tmp/cupel-%u", (unsigned)geteuid());
    return own_dir(path);
}

static int lock_byte(int fd, int number)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1 };
    return fcntl(fd, F_OFD_SETLK, &lock);
}

static int open_slots(struct err *err)
{
    char path[PATH_MAX];
    own_fd dir = box_runtime_dir(path, sizeof path);
    if (dir < 0) {
        err_sys(err, "make the directory '%s'", path);
        if (err->sys == EPERM || err->sys == EACCES || err->sys == ENOTDIR || err->sys == ELOOP)
            err_hint(err,
                     "remove '%s' if it is not yours, or set XDG_RUNTIME_DIR to a directory "
                     "of your own",
                     path);
        return -1;
    }
    int fd = openat(dir, "slots", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? err_sys(err, "open '%s/slots'", path) : fd;
}

int slot_take(struct slot *out, int first, struct err *err)
{
    mode_t callers = umask(0077);
    own_fd fd = open_slots(err);
    umask(callers);
    if (fd < 0)
        return -1;
    for (int number = first; number < BOOT_SLOTS; number++) {
        if (lock_byte(fd, number) == 0) {
            *out = (struct slot){ .fd = take_fd(&fd), .number = number };
            return 0;
        }
        if (errno != EAGAIN && errno != EACCES)
            return err_sys(err, "lock the file 'slots'");
    }
    err_set(err, ERR_BUSY, "instance limit (%d) reached", BOOT_SLOTS);
    return -1;
}

bool slot_is_held(const struct slot *mine, int number)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1 };
    if (number == mine->number)
        return true;
    return fcntl(mine->fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}
