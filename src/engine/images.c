/* The table of open images. Runs in the engine, in its loop. */
#include "engine/images.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "engine/engine_int.h"

#define LOOK_MS 1000 /* the host is looked at again after so long */

static bool is_host(const char *name)
{
    return strcmp(name, "host") == 0;
}

static struct engine_image *find_open(struct engine *engine, const char *name)
{
    for (struct engine_image *at = engine->images.first; at; at = at->after) {
        if (!at->old && strcmp(at->asked, name) == 0)
            return at;
    }
    return NULL;
}

static void close_image(struct engine *engine, struct engine_image *image)
{
    struct engine_image **link = &engine->images.first;
    while (*link != image)
        link = &(*link)->after;
    *link = image->after;
    image_done(&image->image);
    own_close_fd(&image->font_fd);
    free(image);
}

struct engine_image *images_hold(struct engine_image *image)
{
    image->holds++;
    return image;
}

void images_drop(struct engine *engine, struct engine_image *image)
{
    if (image && --image->holds == 0 && image->old)
        close_image(engine, image);
}

static void retire(struct engine *engine, struct engine_image *image)
{
    image->old = true;
    if (image->holds == 0)
        close_image(engine, image);
}

/* Nobody uses the one that goes. */
static void make_room(struct engine *engine)
{
    struct engine_image *oldest = NULL;
    unsigned count = 0;
    for (struct engine_image *at = engine->images.first; at; at = at->after) {
        if (at->holds > 0 || is_host(at->asked))
            continue;
        count++;
        oldest = !oldest || at->used_ns < oldest->used_ns ? at : oldest;
    }
    if (count >= IMAGES_OPEN_MAX)
        close_image(engine, oldest);
}

/* Its name leads elsewhere, or nowhere: it was removed, made again or found changed. A digest that
 * covers the host's has no lead: nobody can take it away from its holders. */
static bool is_left(const struct engine *engine, const struct engine_image *image)
{
    char lead[IMAGE_LEAD_ROOM];
    if (is_host(image->asked) || image->old || !image->lead[0])
        return false;
    image_lead(image->asked, engine->state, lead);
    return strcmp(lead, image->lead) != 0;
}

void images_tidy(struct engine *engine)
{
    int64_t since_ns = clock_now_ns() - IMAGES_UNUSED_MS * CLOCK_MS;
    for (struct engine_image *at = engine->images.first, *after; at; at = after) {
        after = at->after;
        if (is_left(engine, at))
            retire(engine, at);
        else if (at->holds == 0 && !is_host(at->asked) && at->used_ns < since_ns)
            close_image(engine, at);
    }
}

void images_close(struct engine *engine)
{
    while (engine->images.first)
        close_image(engine, engine->images.first);
}

/* The host's facts are looked at once a second: by the pools where there are some. */
static bool is_current(struct engine *engine, struct engine_image *image, const char *lead)
{
    int64_t now = clock_now_ns();
    const struct engine_image *host = engine->pools.open ? find_open(engine, "host") : NULL;
    if (strcmp(image->lead, lead) != 0)
        return false;
    if (host)
        return !image->image.on_host || strcmp(image->image.key, host->image.key) == 0;
    if (!image->image.on_host || now - image->looked_ns < LOOK_MS * CLOCK_MS)
        return true;
    if (!image_is_current(&image->image))
        return false;
    image->looked_ns = now;
    return true;
}

static struct engine_image *open_image(struct engine *engine, const char *name, const char *lead,
                                       struct err *err)
{
    own_image image = IMAGE_INIT;
    if (image_open(name, engine->state, /* recompute= */ false, &image, err) < 0)
        return NULL;
    if (is_host(name) && !image.from_cache && engine->state >= 0) {
        struct err ignored = ERR_INIT;
        image_save(&image, engine->state, &ignored); /* works without a cache too */
    }
    make_room(engine);
    struct engine_image *made = buf_alloc_zero(1, sizeof *made);
    made->image = image;
    image = IMAGE_INIT; /* handed on */
    snprintf(made->asked, sizeof made->asked, "%s", name);
    snprintf(made->lead, sizeof made->lead, "%s", lead);
    made->font_fd = -1;
    made->looked_ns = clock_now_ns();
    made->after = engine->images.first;
    engine->images.first = made;
    return made;
}

struct engine_image *images_find(struct engine *engine, const char *name, struct err *err)
{
    char lead[IMAGE_LEAD_ROOM] = "";
    struct engine_image *found = find_open(engine, name);
    if (!is_host(name) && engine->state >= 0)
        image_lead(name, engine->state, lead);
    /* A digest that covers the host's leads nowhere: it is sought each time. */
    bool known = is_host(name) || lead[0];
    if (found && (!known || !is_current(engine, found, lead))) {
        retire(engine, found);
        found = NULL;
    }
    if (!found)
        found = open_image(engine, name, lead, err);
    if (found)
        found->used_ns = clock_now_ns();
    return found;
}

static int check_strict(const struct engine_image *image, const struct request *request,
                        struct err *err)
{
    if (!request->profile || !request->profile->strict || !image->image.on_host)
        return 0;
    err_input(err, "image", image->asked, "an image that stands alone",
              "profile 'strict' needs an image that shares no file with the host; '%s' does",
              image->asked);
    err_hint(err, "name one with --image: 'cupel images' lists them (base none), and 'cupel images "
                  "build --debian bookworm NAME' or 'cupel images import PATH' make one");
    return -1;
}

struct engine_image *engine_find_image(struct engine *engine, const struct request *request,
                                       struct err *err)
{
    struct engine_image *image = request->packages ? images_for_packages(engine, request, err)
                                                   : images_find(engine, request->image, err);
    if (!image || image_check_pin(&image->image, request->image_digest, err) < 0 ||
        check_strict(image, request, err) < 0)
        return NULL;
    return image;
}

struct engine_image *images_renew(struct engine *engine, struct engine_image *image)
{
    struct err ignored = ERR_INIT;
    if (!image->old || !is_host(image->asked))
        return image;
    struct engine_image *now = images_find(engine, "host", &ignored);
    if (!now)
        return image;
    images_hold(now);
    images_drop(engine, image);
    return now;
}

void engine_look_at_image(struct engine *engine)
{
    struct err ignored = ERR_INIT;
    struct engine_image *host = find_open(engine, "host");
    if (host && !image_is_current(&host->image) && open_image(engine, "host", "", &ignored))
        retire(engine, host); /* and its pools, by their next look */
}

const char *engine_image_digest(struct engine *engine, const struct request *request,
                                struct err *err)
{
    const struct engine_image *image = engine_find_image(engine, request, err);
    return image ? image->image.digest : NULL;
}

struct plan_image plan_image_of(const struct engine_image *image, bool fonts)
{
    fonts = fonts && image->font_fd >= 0;
    return (struct plan_image){ &image->image, fonts ? image->font_list : NULL,
                                fonts ? image->font_fd : -1 };
}
