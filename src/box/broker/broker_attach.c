/* The caller's folders and files (struct box_attach): their detached mounts get a place on the
 * broker's own tmpfs. Boxes find them there in their copies of the broker's mounts, take what their
 * call names, and lose the rest with the old root. Broker only. */
#include "box/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "box/inside/mount_image.h"

static int put(int tree, const char *folder, const char *name, bool is_file)
{
    char path[2 * TEMPLATE_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (is_file) {
        own_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
        if (fd < 0)
            return -1;
    } else if (mkdir(path, 0755) < 0) {
        return -1;
    }
    return (int)syscall(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
}

static int make_places(const char *folder)
{
    static const char *const names[] = { MOUNT_TREE, MOUNT_OWN };
    char path[2 * TEMPLATE_PATH];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (mkdir(path, 0755) < 0)
            return -1;
    }
    return 0;
}

int broker_attach(struct broker *broker, const struct box_call *setup)
{
    const uint32_t count = setup->setup.images + (setup->setup.folder > 0) + setup->setup.files +
                           setup->setup.trees;
    int fd = BOOT_FD_ATTACHED;
    if (count == 0)
        return 0;
    if (setup->setup.images > 1 || setup->setup.files > BOX_ATTACH_FILES ||
        setup->setup.trees > BOX_ATTACH_TREES) {
        errno = EBADMSG;
        return -1;
    }
    const char *folder = template_place(&broker->templates);
    if (!folder || make_places(folder) < 0)
        return -1;
    /* Without images the boxes that need one fail. */
    for (uint32_t i = 0; i < setup->setup.images; i++)
        broker->images = put(fd++, folder, MOUNT_IMAGES, /* is_file= */ false) == 0;
    if (setup->setup.folder && put(fd++, folder, MOUNT_FOLDER, /* is_file= */ false) < 0)
        return -1;
    for (uint32_t i = 0; i < setup->setup.files; i++) {
        char name[16];
        snprintf(name, sizeof name, MOUNT_FILE, (unsigned)i);
        if (put(fd++, folder, name, /* is_file= */ true) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < setup->setup.trees; i++) {
        char name[16];
        snprintf(name, sizeof name, MOUNT_MORE, (unsigned)i);
        if (put(fd++, folder, name, /* is_file= */ false) < 0)
            return -1;
    }
    broker->folder = setup->setup.folder;
    broker->files = setup->setup.files;
    io_close_between(BOOT_FD_ATTACHED, BOOT_FD_ATTACHED + (int)count - 1);
    return 0;
}
