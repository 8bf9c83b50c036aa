/* The drivers and the files that go with them, as bytes inside cupel. */
#ifndef ENGINE_TALK_DRIVERS_H
#define ENGINE_TALK_DRIVERS_H

#include "base/str.h"

enum engine_embed_id {
    ENGINE_EMBED_DRIVER_PY,
    ENGINE_EMBED_DRIVER_PYC, /* the same, compiled by the Python of ENGINE_EMBED_PYTHON */
    ENGINE_EMBED_DRIVER_JS,
    ENGINE_EMBED_DRIVER_SH,
    ENGINE_EMBED_REHEARSE_JS, /* node that waits for its code */
    ENGINE_EMBED_CELLS_SH,    /* bash that does */
    ENGINE_EMBED_CELLS_PY,    /* sessions */
    ENGINE_EMBED_NAMES_PY,
    ENGINE_EMBED_ADVICE_PY, /* read when code has failed or is checked */
    ENGINE_EMBED_MAGICS_PY, /* read when a cell is no Python */
    ENGINE_EMBED_TERMINAL_PY, /* and when a person is at the other end */
    ENGINE_EMBED_CELLS_JS,
    ENGINE_EMBED_NAMES_JS,
    ENGINE_EMBED_MATPLOTLIBRC,
    ENGINE_EMBED_PREPARE_PY,
    ENGINE_EMBED_ZYGOTE_PY,
    ENGINE_EMBED_ZYGOTE_SO, /* what it calls to fork: src/box/zygote/zygote.c */
    ENGINE_EMBED_COUNT
};

/* Name under which the file is placed in a box, and its bytes. */
struct str engine_embed(enum engine_embed_id id);
const char *engine_embed_name(enum engine_embed_id id);

#endif
