/* A minimal Debian of its own: its essential packages and others, unpacked and not configured. */
#ifndef IMAGE_MAKE_DEBIAN_H
#define IMAGE_MAKE_DEBIAN_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "image/make/job.h"

#define MAKE_MIRROR_ROOM 1024

struct make_debian {
    const char *suite;  /* "bookworm" */
    const char *mirror; /* NULL: the one that the host's apt has, else Debian's own */
};

/* A code name, or a word such as "stable": a-z 0-9 -, at most 40. */
bool make_debian_suite_valid(struct str text);
/* http:// or https://, printable ASCII without spaces and quotes. */
bool make_debian_mirror_valid(struct str text);

/* Unpacks the suite and the packages of the job's wants into the image. *out_facts: members for its
 * manifest. */
int make_debian_add(struct make_job *job, const struct make_debian *debian, json_t **out_facts,
                    struct err *err);

#endif
