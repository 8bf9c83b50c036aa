/* The container around cupel, if any, and the flags that it needs for boxes. For hints of errors
 * and for the doctor. */
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
    bool filtered;     /* a system call filter applies to this process */
    bool masked;       /* something is mounted below /proc, so the kernel refuses another /proc */
    bool selinux;      /* SELinux confines, else AppArmor */
    char label[96];    /* the confining label, or "" */
};

void box_container_look(struct box_container *out);

/* The exact flags that this container lacks. False and "" without a container or without a known
 * obstacle. */
bool box_container_fix(const struct box_container *container, char *out, size_t room);

/* Outside containers: the setting that allows user namespaces here. */
void box_container_host_fix(char *out, size_t room);

/* Hint for an err about forbidden user namespaces or mounts: one of the two above. */
void box_container_hint(struct err *err);

#endif
