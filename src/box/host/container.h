/* The container around us, if there is one, and how it must be started for boxes to be
 * built in it. For hints of errors and for the doctor. */
#ifndef BOX_HOST_CONTAINER_H
#define BOX_HOST_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum box_container_kind {
    BOX_CONTAINER_NONE,
    BOX_CONTAINER_DOCKER,
    BOX_CONTAINER_PODMAN,
    BOX_CONTAINER_KUBERNETES,
    BOX_CONTAINER_OTHER,
};

struct box_container {
    enum box_container_kind kind;
    const char *name;  /* "a Docker container", ... */
    bool filtered;     /* a system call filter is on us */
    bool masked;       /* something is mounted below /proc, so no other /proc may be */
    bool selinux;      /* who confines: SELinux, else AppArmor */
    char label[96];    /* what confines us, "" where nothing does */
};

void box_container_look(struct box_container *out);

/* Where boxes fail for it: the exact flags for what this container lacks. False, and ""
 * where there is no container, or nothing is known against it. */
bool box_container_fix(const struct box_container *container, char *out, size_t room);

/* Outside of containers: what allows user namespaces here. */
void box_container_host_fix(char *out, size_t room);

/* The hint of an error that user namespaces or mounts are forbidden: one of both. */
void box_container_hint(struct err *err);

#endif
