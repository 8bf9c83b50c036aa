/* The engine: opening, closing, and a run from the request to the result. */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/own.h"
#include "engine/engine_int.h"

struct engine *engine_open(struct err *err)
{
    struct engine *engine = buf_alloc_zero(1, sizeof *engine);
    engine->broker = BOX_BROKER_INIT;
    engine->trace = getenv("CUPEL_TRACE") != NULL;
    if (state_open(&engine->state, err) == 0 && box_broker_open(&engine->broker, err) == 0 &&
        box_drop_door(err) == 0)
        return engine;
    engine_close(engine);
    return NULL;
}

void engine_close(struct engine *engine)
{
    if (!engine)
        return;
    box_broker_close(&engine->broker);
    own_close_fd(&engine->state);
    free(engine);
}

static void name_run(char out[32])
{
    unsigned char bytes[12];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        memset(bytes, 0, sizeof bytes);
    snprintf(out, 32, "r_");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 + 2 * i, 3, "%02x", bytes[i]);
}

/* A profile may ask for more than this image can give. */
static int admit(const struct request *request, struct err *err)
{
    if (!request->profile->strict)
        return 0;
    err_set(err, ERR_HOST, "profile 'strict' needs an image that shares no file with the host, and "
            "image '%s' is the host's own /usr", request->image);
    err_hint(err, "use profile 'baseline'");
    return -1;
}

int engine_run(struct engine *engine, const struct request *request,
               const struct engine_hooks *hooks, struct result *out, struct err *err)
{
    own_image image = IMAGE_INIT;
    char font_list[64] = "";
    if (admit(request, err) < 0 ||
        image_open(request->image, engine->state, /* recompute= */ false, &image, err) < 0)
        return -1;
    if (!image.from_cache && engine->state >= 0) {
        struct err ignored = ERR_INIT;
        image_save(&image, engine->state, &ignored); /* a cache that cannot be kept is no harm */
    }
    own_fd fonts = -1;
    if (prepare_wants_fonts(request))
        fonts = prepare_font_list(engine, &image, font_list, sizeof font_list);
    name_run(out->run);
    out->limits = request->limits;
    out->image = buf_strdup(str_of(image.name));
    out->image_digest = buf_strdup(str_of(image.digest));
    out->tier = "native";
    hash_hex(request->code, out->code_sha256);
    request_inputs_sha256(request, out->inputs_sha256);
    if (run_on_box(engine, request, fonts >= 0 ? font_list : NULL, fonts, hooks, out, err) < 0)
        return -1;
    hint_add(request, out);
    return 0;
}
