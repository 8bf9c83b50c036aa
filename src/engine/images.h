/* The images that this engine has open: `host` always, and those of recent runs. A stored image is
 * locked while it is open, so that no prune removes it. Runs and sessions hold the image that they
 * began with; names are looked at again for each run, which costs a few microseconds. */
#ifndef ENGINE_IMAGES_H
#define ENGINE_IMAGES_H

#include "base/buf.h"
#include "contract/request.h"
#include "engine/talk/plan.h"
#include "image/image.h"

#define IMAGES_OPEN_MAX                                                                            \
    32 /* without a run or session; the one longest unused is closed. A search
                            * for packages looks into as many. */
#define IMAGES_UNUSED_MS 120000 /* then it is closed */

struct engine;

struct engine_image {
    struct image image;
    char asked[IMAGE_NAMES_ROOM];  /* the name in requests */
    char lead[IMAGE_LEAD_ROOM];    /* what the name led to */
    unsigned holds;
    bool old;                      /* the name leads elsewhere now, or the host changed */
    int64_t looked_ns, used_ns;    /* at the host's facts; by a request */
    int64_t taken_ns;              /* a run of it began */
    int font_fd;                   /* matplotlib's font list for this image, -1: none yet */
    char font_list[64];            /* and its name */
    bool fonts_sought;
    struct engine_image *after;
};

struct images {
    struct engine_image *first; /* the newest first */
};

/* The image of a request; NULL with an err if it does not exist, has another digest than the
 * request pins, lacks its packages, or shares files with the host where the profile forbids it.
 * Borrowed: until the next turn of the loop, unless held. */
struct engine_image *engine_find_image(struct engine *engine, const struct request *request,
                                       struct err *err);
/* The same by name alone. */
struct engine_image *images_find(struct engine *engine, const char *name, struct err *err);
struct engine_image *images_hold(struct engine_image *image);
/* NULL is allowed. */
void images_drop(struct engine *engine, struct engine_image *image);
/* `host`, as it is now: for a run that began to wait before it changed. */
struct engine_image *images_renew(struct engine *engine, struct engine_image *image);
/* Closes those that nobody has used for a while, and lets go of those whose name leads elsewhere:
 * their pools close, so that prune can free them. */
void images_tidy(struct engine *engine);
void images_close(struct engine *engine);
/* Looks at the host's facts again. */
void engine_look_at_image(struct engine *engine);

/* For plans; without fonts where the code draws nothing, so that equal boxes have equal files. */
struct plan_image plan_image_of(const struct engine_image *image, bool fonts);

/* images_packages.c. Calls back for every stored image, by name, until `see` says true. */
void images_each(struct engine *engine, bool (*see)(void *user, struct engine_image *image),
                 void *user);
/* Does the image have them all? If not, *out_missing is the first that it lacks. */
bool images_have(const struct image *image, const json_t *packages, struct str *out_missing);
struct engine_image *images_for_packages(struct engine *engine, const struct request *request,
                                         struct err *err);
/* "; image data has polars 1.9: run with --image data", if there is such an image. The name is of a
 * module of Python, a package of npm or a program. */
enum images_kind { IMAGES_PYTHON, IMAGES_NPM, IMAGES_PROGRAM };
bool images_hint(struct engine *engine, const struct image *without, enum images_kind kind,
                 const char *name, struct buf *out);

/* The same for packages that code tried to install with a program of that option ("--pip"), and
 * the command that makes an image with them. */
void images_hint_packages(struct engine *engine, const json_t *packages, const char *option,
                          struct buf *out);

#endif
