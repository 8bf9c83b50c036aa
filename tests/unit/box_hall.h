/* Boxes with attachments, through the broker's own socket: trees made by hand below a temporary
 * folder, and one shell command in a box. */
#ifndef TESTS_UNIT_BOX_HALL_H
#define TESTS_UNIT_BOX_HALL_H

#include <stdbool.h>
#include <stdint.h>

#include "box/host/box.h"

#define HALL_HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HALL_OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

struct hall {
    char root[64]; /* the temporary folder, with "trees" */
    struct box_broker house;
    struct box_attach attach[2 + BOX_ATTACH_FILES];
    size_t attach_count;
    void (*look)(const struct hall *hall, uint32_t box); /* after the end, before the release */
};

/* A temporary folder that everybody can reach; as an ordinary user from here on if asked. */
void hall_begin(struct hall *hall, bool ordinary);
/* Remove everything; the broker must still answer. */
void hall_end(struct hall *hall);
/* Paths are relative to the temporary folder; "T/" at their begin stands for the tree HALL_HEX.
 * Folders above are made. */
const char *hall_path(const struct hall *hall, const char *path);
void hall_dir(const struct hall *hall, const char *path);
void hall_file(const struct hall *hall, const char *path, const char *text, int mode);
void hall_link(const struct hall *hall, const char *target, const char *path);
/* A static shell with its commands, as T/bin/busybox and T/bin/sh. False: there is none here. */
bool hall_busybox(const struct hall *hall);
void hall_attach(struct hall *hall, const char *path, enum box_attach_kind kind, bool writable);

/* False: no boxes here; says why. */
bool hall_open(struct hall *hall);
struct box_image hall_image(const char *hex, bool on_host);
/* Build a box as the call says, run the command in a shell of it, and release it. `out`: what it
 * printed. The news: STARTED, or the failure. */
struct box_news hall_run(const struct hall *hall, const struct box_call *create, int places,
                         const char *command, char *out, size_t room);
/* A porter of the ended box. */
int hall_porter(const struct hall *hall, uint32_t box, bool layer);
/* The same for an image, with what the box printed. */
const char *hall_say(const struct hall *hall, struct box_image image, const char *command);
struct box_call hall_create(struct box_image image);

/* Two tests of one, as root and as an ordinary user. The file has `begin`, which opens its hall;
 * false: nothing can be tested here. Its includes: check.h, <stdio.h>, <unistd.h>. */
#define TEST_BOTH(name)                                                                            \
    static void run_##name(bool ordinary);                                                         \
    TEST(name##_as_user)                                                                           \
    {                                                                                              \
        if (begin(/* ordinary= */ true))                                                           \
            run_##name(true);                                                                      \
    }                                                                                              \
    TEST(name##_as_root)                                                                           \
    {                                                                                              \
        if (geteuid() != 0)                                                                        \
            printf("# skipped: not root\n");                                                       \
        else if (begin(/* ordinary= */ false))                                                     \
            run_##name(false);                                                                     \
    }                                                                                              \
    static void run_##name(bool ordinary)

#endif
