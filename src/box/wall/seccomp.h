/* Raising a seccomp filter around the calling process. Every process of a box; no heap. */
#ifndef BOX_WALL_SECCOMP_H
#define BOX_WALL_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attr.h"

#define seccomp_program(table)                                                     \
    ((struct sock_fprog){ .len = array_len(table),                                 \
                          .filter = (struct sock_filter *)(uintptr_t)(table) })

/* 0 or a listener, or -1 with errno. */
static inline int seccomp_install(const struct sock_fprog *program, unsigned flags)
{
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);
}
#define seccomp_raise(table, flags) seccomp_install(&seccomp_program(table), (flags))

#endif
