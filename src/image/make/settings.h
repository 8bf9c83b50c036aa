/* The caller's settings of indexes: which pip, npm and apt of a build use. Two steps: open, as the
 * caller; plant, after the drop of rights, into the stage. Nothing else of the caller's environment
 * reaches a build. */
#ifndef IMAGE_MAKE_SETTINGS_H
#define IMAGE_MAKE_SETTINGS_H

#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

#define MAKE_SETTINGS_FILES 5
#define MAKE_SETTINGS_ENV 64
#define MAKE_SETTINGS_READS 48

struct make_settings {
    char *env[MAKE_SETTINGS_ENV + 1];     /* "NAME=value", NULL at the end */
    char *reads[MAKE_SETTINGS_READS + 1]; /* paths that the settings name, NULL at the end */
    size_t env_count, reads_count;
    int files[MAKE_SETTINGS_FILES]; /* -1: there is none */
};
#define MAKE_SETTINGS_INIT ((struct make_settings){ .files = { -1, -1, -1, -1, -1 } })
void make_settings_done(struct make_settings *settings);
#define own_make_settings attr_cleanup(make_settings_done) struct make_settings

/* As the caller: takes what the environment says, and opens the files. One that cannot be opened is
 * left out, as its own program would. */
int make_settings_open(struct make_settings *out, struct err *err);
/* After the drop: folders for home, temporary files and caches in the stage, copies of the files
 * there that only their owner can read, and the rest of the environment. */
int make_settings_plant(struct make_settings *settings, int stage_fd, const char *stage,
                        struct err *err);

#endif
