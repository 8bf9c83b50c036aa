/* What the files of box/park.h share. */
#ifndef BOX_PARK_INT_H
#define BOX_PARK_INT_H

#include "box/park.h"

#if INJECT_HERE

#define PARK_GIFTS_MAX (PARK_TASKS_MAX + 1)

/* What has reached a copy, under the numbers that it has there. */
struct park_gifts {
    uint64_t page;
    size_t count;
    int fd[PARK_GIFTS_MAX];
};

/* Calls that must succeed: REFUSED with errno where the kernel answers an error. */
enum inject_end park_call(struct inject *at, struct inject_order order, long *out) attr_must_use;
enum inject_end park_call_all(struct inject *at, const struct inject_order *orders, size_t count)
    attr_must_use;

/* A page and a pair of sockets that are the copy's alone; we take one end, and through
 * it send what it shall have. */
enum inject_end park_hand_over(struct inject *copy, int pidfd, const int *fds, size_t count,
                               struct park_gifts *out) attr_must_use;
/* From the gift `first` on they are `tasks`: enter each and close it. */
enum inject_end park_enter_groups(struct inject *copy, const struct park_gifts *gifts,
                                  size_t first) attr_must_use;
enum inject_end park_forget_page(struct inject *copy, const struct park_gifts *gifts) attr_must_use;

#endif
#endif
