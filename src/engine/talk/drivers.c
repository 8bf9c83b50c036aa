/* The drivers in cupel's read-only data: one program, nothing to install beside it. */
#include "engine/talk/drivers.h"

#include "base/builtin.h"
#include "box/proto/proto.h"

/* The source, and the same compiled by the build's Python. */
#define PYTHON(name)                                         \
    BUILTIN(builtin_##name##_py, "drivers/" #name ".py");    \
    BUILTIN(builtin_##name##_pyc, BUILD_DIR "/gen/" #name ".pyc")

PYTHON(driver);
BUILTIN(builtin_driver_js, "drivers/driver.cjs");
BUILTIN(builtin_driver_sh, "drivers/driver.sh");
BUILTIN(builtin_tools_js, "drivers/tools.cjs");
BUILTIN(builtin_order_js, "drivers/order.cjs");
BUILTIN(builtin_rehearse_js, "drivers/rehearse.cjs");
BUILTIN(builtin_ending_js, "drivers/ending.cjs");
BUILTIN(builtin_cells_sh, "drivers/cells.sh");
BUILTIN(builtin_tools_sh, "drivers/tools.sh");
BUILTIN(builtin_tool, BUILD_DIR "/tool");
BUILTIN(builtin_shell, BUILD_DIR "/shell");
PYTHON(cells);
PYTHON(names);
PYTHON(show);
PYTHON(patches);
PYTHON(pretty);
PYTHON(charts);
PYTHON(ipython);
PYTHON(media);
PYTHON(order);
PYTHON(advice);
PYTHON(magics);
PYTHON(report);
PYTHON(source);
PYTHON(tasks);
PYTHON(late);
PYTHON(tools);
PYTHON(functions);
PYTHON(large);
PYTHON(terminal);
PYTHON(answer);
PYTHON(values);
PYTHON(made);
PYTHON(proof);
PYTHON(trace);
PYTHON(called);
PYTHON(select);
PYTHON(facts);
PYTHON(flow);
PYTHON(origin);
PYTHON(schema);
BUILTIN(builtin_types_js, "drivers/types.cjs");
PYTHON(foreign);
BUILTIN(builtin_main_r, "drivers/main.R");
BUILTIN(builtin_cells_js, "drivers/cells.cjs");
BUILTIN(builtin_names_js, "drivers/names.cjs");
BUILTIN(builtin_matplotlibrc, "drivers/matplotlibrc");
BUILTIN(builtin_prepare_py, "drivers/prepare.py");
BUILTIN(builtin_zygote_py, "drivers/zygote.py");
BUILTIN(builtin_zygote_so, BUILD_DIR "/zygote.so");
BUILTIN(builtin_seed_so, BUILD_DIR "/seed.so");
BUILTIN(builtin_preload, "drivers/preload");
PYTHON(seed);
BUILTIN(builtin_seed_js, "drivers/seed.cjs");

static const struct {
    struct {
        const char *name, *from, *to;
    } form[2]; /* the second: compiled; empty if there is none */
} files[ENGINE_BUILTIN_COUNT] = {
#define FORM(name, at) { name, builtin_##at, builtin_##at##_end }
#define ROW(id, name, at) [ENGINE_BUILTIN_##id] = { { FORM(name, at) } }
#define COMPILED_ROW(id, name) \
    [ENGINE_BUILTIN_##id] = { { FORM(#name ".py", name##_py), FORM(#name ".pyc", name##_pyc) } }
    COMPILED_ROW(DRIVER_PY, driver),
    ROW(DRIVER_JS, "driver.cjs", driver_js),
    ROW(DRIVER_SH, "driver.sh", driver_sh),
    ROW(TOOLS_JS, "tools.cjs", tools_js),
    ROW(ORDER_JS, "order.cjs", order_js),
    ROW(REHEARSE_JS, "rehearse.cjs", rehearse_js),
    ROW(ENDING_JS, "ending.cjs", ending_js),
    ROW(CELLS_SH, "cells.sh", cells_sh),
    ROW(TOOLS_SH, "tools.sh", tools_sh),
    ROW(TOOL, BOX_PLANT_PROGRAM, tool),
    ROW(SHELL, BOX_PLANT_SHELL, shell),
    COMPILED_ROW(CELLS_PY, cells),
    COMPILED_ROW(NAMES_PY, names),
    COMPILED_ROW(SHOW_PY, show),
    COMPILED_ROW(PATCHES_PY, patches),
    COMPILED_ROW(PRETTY_PY, pretty),
    COMPILED_ROW(CHARTS_PY, charts),
    COMPILED_ROW(IPYTHON_PY, ipython),
    COMPILED_ROW(MEDIA_PY, media),
    COMPILED_ROW(ORDER_PY, order),
    COMPILED_ROW(ADVICE_PY, advice),
    COMPILED_ROW(MAGICS_PY, magics),
    COMPILED_ROW(REPORT_PY, report),
    COMPILED_ROW(SOURCE_PY, source),
    COMPILED_ROW(TASKS_PY, tasks),
    COMPILED_ROW(LATE_PY, late),
    COMPILED_ROW(TOOLS_PY, tools),
    COMPILED_ROW(FUNCTIONS_PY, functions),
    COMPILED_ROW(LARGE_PY, large),
    COMPILED_ROW(TERMINAL_PY, terminal),
    COMPILED_ROW(ANSWER_PY, answer),
    COMPILED_ROW(VALUES_PY, values),
    COMPILED_ROW(MADE_PY, made),
    COMPILED_ROW(PROOF_PY, proof),
    COMPILED_ROW(TRACE_PY, trace),
    COMPILED_ROW(CALLED_PY, called),
    COMPILED_ROW(SELECT_PY, select),
    COMPILED_ROW(FACTS_PY, facts),
    COMPILED_ROW(FLOW_PY, flow),
    COMPILED_ROW(ORIGIN_PY, origin),
    COMPILED_ROW(SCHEMA_PY, schema),
    ROW(CELLS_JS, "cells.cjs", cells_js),
    ROW(TYPES_JS, "types.cjs", types_js),
    COMPILED_ROW(FOREIGN_PY, foreign),
    ROW(MAIN_R, "main.R", main_r),
    ROW(NAMES_JS, "names.cjs", names_js),
    ROW(MATPLOTLIBRC, "matplotlibrc", matplotlibrc),
    ROW(PREPARE_PY, "prepare.py", prepare_py),
    ROW(ZYGOTE_PY, "zygote.py", zygote_py),
    ROW(ZYGOTE_SO, "zygote.so", zygote_so),
    ROW(SEED_SO, "seed.so", seed_so),
    ROW(PRELOAD, "preload", preload),
    COMPILED_ROW(SEED_PY, seed),
    ROW(SEED_JS, "seed.cjs", seed_js),
#undef ROW
#undef COMPILED_ROW
};

struct engine_file engine_builtin(enum engine_builtin_id id, bool compiled)
{
    int form = compiled && files[id].form[1].name;
    return (struct engine_file){
        .name = files[id].form[form].name,
        .bytes = { files[id].form[form].from,
                   (size_t)(files[id].form[form].to - files[id].form[form].from) },
    };
}
