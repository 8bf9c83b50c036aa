/* Ownership in the type of the variable: `own_fd fd = -1;` closes itself at the end of its scope;
 * take_fd(&fd) hands it over. The same for heap strings, JSON values and buffers (own_json in
 * base/json.h, own_buf in base/buf.h). */
#ifndef BASE_OWN_H
#define BASE_OWN_H

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/attr.h"

static inline void own_close_fd(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
    }
    *fd = -1;
}

static inline void own_close_dir(DIR **dir)
{
    int saved = errno;
    if (*dir)
        closedir(*dir);
    errno = saved;
}

static inline void own_free_str(char **text)
{
    free(*text);
    *text = NULL;
}

#define own_fd attr_cleanup(own_close_fd) int
#define own_dirp attr_cleanup(own_close_dir) DIR *
#define own_str attr_cleanup(own_free_str) char *

static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

#define take_ptr(p)                     \
    ({                                  \
        __auto_type take_ptr_at = &(p); \
        __auto_type take_ptr_v = *take_ptr_at; \
        *take_ptr_at = NULL;            \
        take_ptr_v;                     \
    })

#endif
