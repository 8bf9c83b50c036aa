/* The engine's own state: shared by its files, opaque to doors. */
#ifndef ENGINE_ENGINE_INT_H
#define ENGINE_ENGINE_INT_H

#include "box/box.h"
#include "engine/engine.h"
#include "image/image.h"

struct engine {
    struct box_broker broker;
    int state;          /* the state directory, -1: none */
    bool trace;         /* CUPEL_TRACE is set: figures for tests on stderr */
    uint32_t next_box;
};

/* One run on one box, from CREATE to RELEASE; image facts are the caller's. */
int run_on_box(struct engine *engine, const struct request *request, const char *font_list,
               int font_fd, const struct engine_hooks *hooks, struct result *out, struct err *err);

/* prepare.c: what is made once for each image and kept in the state directory. */
/* Does this request look as if it will draw? */
bool prepare_wants_fonts(const struct request *request);
/* A descriptor of matplotlib's font list for this image, built if it is not there
 * yet, and the name that matplotlib looks for; -1 where there is none. */
int prepare_font_list(struct engine *engine, const struct image *image, char *out_name,
                      size_t room);

/* state.c: open or make the state directory, before privileges are dropped. -1 in
 * *out_fd where there is none; an err only for one that was named and is unusable. */
int state_open(int *out_fd, struct err *err);

/* hint.c: what could be used instead of a package that is not there. */
void hint_add(const struct request *request, struct result *result);

#endif
