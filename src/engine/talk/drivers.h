/* The drivers and their files, as bytes inside cupel. */
#ifndef ENGINE_TALK_DRIVERS_H
#define ENGINE_TALK_DRIVERS_H

#include <stdbool.h>

#include "base/str.h"

enum engine_builtin_id {
    ENGINE_BUILTIN_DRIVER_PY,
    ENGINE_BUILTIN_DRIVER_JS,
    ENGINE_BUILTIN_DRIVER_SH,
    ENGINE_BUILTIN_TOOLS_JS,    /* read when the code has tools */
    ENGINE_BUILTIN_ORDER_JS,    /* read at the first output beside stdout */
    ENGINE_BUILTIN_REHEARSE_JS, /* a waiting node */
    ENGINE_BUILTIN_ENDING_JS,   /* a large program */
    ENGINE_BUILTIN_CELLS_SH,    /* a waiting bash */
    ENGINE_BUILTIN_TOOLS_SH,    /* read by bash when the code has tools */
    ENGINE_BUILTIN_TOOL,        /* its program `tool`: src/box/caller/main.c */
    ENGINE_BUILTIN_SHELL,       /* commands: src/box/shell/main.c */
    ENGINE_BUILTIN_CELLS_PY,    /* sessions */
    ENGINE_BUILTIN_NAMES_PY,
    ENGINE_BUILTIN_SHOW_PY,   /* read when a value is shown */
    ENGINE_BUILTIN_PRETTY_PY, /* ... that is not small and plain */
    ENGINE_BUILTIN_CHARTS_PY, /* ... that is a figure or a data frame */
    ENGINE_BUILTIN_IPYTHON_PY, /* read when code asks for IPython */
    ENGINE_BUILTIN_MEDIA_PY,
    ENGINE_BUILTIN_PATCHES_PY, /* read when code imports certain modules */
    ENGINE_BUILTIN_ORDER_PY,  /* read at the first output beside stdout */
    ENGINE_BUILTIN_ADVICE_PY, /* read when code has failed or is checked */
    ENGINE_BUILTIN_REPORT_PY, /* read when the interpreter prints an error */
    ENGINE_BUILTIN_SOURCE_PY, /* read when code is not Python */
    ENGINE_BUILTIN_MAGICS_PY, /* read when it has magics */
    ENGINE_BUILTIN_TASKS_PY, /* read when code awaits, or a cell uses asyncio */
    ENGINE_BUILTIN_LATE_PY,  /* read when a cell may start threads */
    ENGINE_BUILTIN_TOOLS_PY, /* read when the code has tools */
    ENGINE_BUILTIN_FUNCTIONS_PY,
    ENGINE_BUILTIN_LARGE_PY,
    ENGINE_BUILTIN_TERMINAL_PY, /* read when a person is at the client */
    ENGINE_BUILTIN_ANSWER_PY, /* the agent: read where CUPEL_AGENT is set */
    ENGINE_BUILTIN_VALUES_PY, /* ... its values */
    ENGINE_BUILTIN_MADE_PY, /* ... its files */
    ENGINE_BUILTIN_PROOF_PY, /* ... its rerun */
    ENGINE_BUILTIN_TRACE_PY, /* ... its analysis of the cells */
    ENGINE_BUILTIN_CALLED_PY,
    ENGINE_BUILTIN_SELECT_PY,
    ENGINE_BUILTIN_FACTS_PY,
    ENGINE_BUILTIN_FLOW_PY,
    ENGINE_BUILTIN_ORIGIN_PY,
    ENGINE_BUILTIN_SCHEMA_PY,
    ENGINE_BUILTIN_CELLS_JS,
    ENGINE_BUILTIN_NAMES_JS,
    ENGINE_BUILTIN_TYPES_JS, /* read by programs and cells of TypeScript */
    ENGINE_BUILTIN_FOREIGN_PY, /* R and Java */
    ENGINE_BUILTIN_MAIN_R,
    ENGINE_BUILTIN_MATPLOTLIBRC,
    ENGINE_BUILTIN_PREPARE_PY,
    ENGINE_BUILTIN_ZYGOTE_PY,
    ENGINE_BUILTIN_ZYGOTE_SO, /* called to fork: src/box/zygote/zygote.c */
    ENGINE_BUILTIN_SEED_SO, /* the clock of a seeded run: src/box/seed/seed.c */
    ENGINE_BUILTIN_PRELOAD, /* names it to the loader */
    ENGINE_BUILTIN_SEED_PY,
    ENGINE_BUILTIN_SEED_JS,
    ENGINE_BUILTIN_COUNT,
    ENGINE_BUILTIN_AGENT_FIRST = ENGINE_BUILTIN_ANSWER_PY,
    ENGINE_BUILTIN_AGENT_LAST = ENGINE_BUILTIN_SCHEMA_PY
};

struct engine_file {
    const char *name; /* in a box */
    struct str bytes;
};

/* `compiled`: by the build's Python, where that is possible. */
struct engine_file engine_builtin(enum engine_builtin_id id, bool compiled);

#endif
