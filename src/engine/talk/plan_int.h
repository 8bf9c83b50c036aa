/* Shared by the files that plan a box: the languages, and the purposes of a process. */
#ifndef ENGINE_TALK_PLAN_INT_H
#define ENGINE_TALK_PLAN_INT_H

#include <stdbool.h>

#include "engine/talk/drivers.h"
#include "engine/talk/plan.h"

/* A run with known code, one that waits for its code, or a session. */
enum plan_purpose { PLAN_RUN, PLAN_WAITING, PLAN_SESSION, PLAN_PURPOSES };

struct plan_language {
    enum engine_builtin_id driver;
    enum engine_builtin_id beside[PLAN_PURPOSES][40]; /* further files; 0: none */
    enum { PLAN_PYTHON, PLAN_NODE, PLAN_BASH, PLAN_NOTHING } program; /* that reads the driver */
    const char *argv[6]; /* after the interpreter's path */
    bool code_in_file;   /* the code is placed as main.sh, not sent to the driver */
    const char *env, *waiting_env; /* at its start; if it does not know its code yet */
    enum engine_builtin_id cells;    /* a session's driver; 0: that of a waiting one */
    const char *word; /* the driver's first argument; the memory limit in bytes is the second */
};

/* Read when they are needed, in a run and in a session. */
#define PLAN_PYTHON_FILES                                                                         \
    ENGINE_BUILTIN_SHOW_PY, ENGINE_BUILTIN_NAMES_PY, ENGINE_BUILTIN_ADVICE_PY,                    \
        ENGINE_BUILTIN_TOOLS_PY, ENGINE_BUILTIN_FUNCTIONS_PY, ENGINE_BUILTIN_LARGE_PY,            \
        ENGINE_BUILTIN_REPORT_PY, ENGINE_BUILTIN_SOURCE_PY, ENGINE_BUILTIN_MAGICS_PY,             \
        ENGINE_BUILTIN_PRETTY_PY, ENGINE_BUILTIN_CHARTS_PY, ENGINE_BUILTIN_IPYTHON_PY,            \
        ENGINE_BUILTIN_MEDIA_PY, ENGINE_BUILTIN_PATCHES_PY, ENGINE_BUILTIN_CELLS_PY,              \
        ENGINE_BUILTIN_TASKS_PY, ENGINE_BUILTIN_ORDER_PY, ENGINE_BUILTIN_ANSWER_PY,               \
        ENGINE_BUILTIN_VALUES_PY, ENGINE_BUILTIN_MADE_PY, ENGINE_BUILTIN_PROOF_PY,                \
        ENGINE_BUILTIN_TRACE_PY, ENGINE_BUILTIN_CALLED_PY, ENGINE_BUILTIN_SELECT_PY,              \
        ENGINE_BUILTIN_FACTS_PY, ENGINE_BUILTIN_FLOW_PY, ENGINE_BUILTIN_ORIGIN_PY,                \
        ENGINE_BUILTIN_SCHEMA_PY
/* And in a session alone. */
#define PLAN_PYTHON_SESSION_FILES                                                                  \
    PLAN_PYTHON_FILES, ENGINE_BUILTIN_TERMINAL_PY, ENGINE_BUILTIN_LATE_PY

const struct plan_language *plan_language_of(const struct request *request);

#endif
