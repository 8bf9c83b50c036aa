/* Attachments on their way from the caller's mounts to the broker: see struct box_attach. */
#ifndef BOX_HOST_ATTACH_H
#define BOX_HOST_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"
#include "box/host/box.h"
#include "box/proto/boot.h"

struct attach_set {
    size_t count; /* in the order of the broker: images, folder, files, trees */
    struct attach {
        struct box_attach from;
        int tree;   /* as root: the detached mount; -1: not made yet */
        char *path; /* as an ordinary user */
        dev_t dev;
        ino_t ino;
    } at[BOOT_ATTACHED];
};

/* Look at the attachments; as root make their mounts. `first_uid` is the first uid of the
 * instance's range; 0 as an ordinary user. ERR_INPUT or ERR_HOST with the reason. */
int attach_open(struct attach_set *set, const struct box_attach *attach, size_t count,
                uid_t first_uid, struct err *err);
void attach_close(struct attach_set *set);
#define own_attach_set attr_cleanup(attach_close) struct attach_set
/* In the new mount namespace, before exec: one mount for each attachment. `none`, a descriptor
 * that is no mount, stands for images that cannot be shown. 0, or -1 with errno. */
int attach_mounts(const struct attach_set *set, int none, int fds[BOOT_ATTACHED]);
/* For the SETUP call. */
void attach_describe(const struct attach_set *set, struct box_call *setup);

#endif
