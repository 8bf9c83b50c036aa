/* The drivers in cupel's read-only data: one program, nothing to install beside it. */
#include "engine/talk/drivers.h"

#include "base/builtin.h"

BUILTIN(builtin_driver_py, "drivers/driver.py");
BUILTIN(builtin_driver_pyc, BUILD_DIR "/gen/driver.pyc");
BUILTIN(builtin_driver_js, "drivers/driver.cjs");
BUILTIN(builtin_driver_sh, "drivers/driver.sh");
BUILTIN(builtin_order_js, "drivers/order.cjs");
BUILTIN(builtin_rehearse_js, "drivers/rehearse.cjs");
BUILTIN(builtin_ending_js, "drivers/ending.cjs");
BUILTIN(builtin_cells_sh, "drivers/cells.sh");
BUILTIN(builtin_cells_py, "drivers/cells.py");
BUILTIN(builtin_names_py, "drivers/names.py");
BUILTIN(builtin_show_py, "drivers/show.py");
BUILTIN(builtin_patches_py, "drivers/patches.py");
BUILTIN(builtin_pretty_py, "drivers/pretty.py");
BUILTIN(builtin_charts_py, "drivers/charts.py");
BUILTIN(builtin_ipython_py, "drivers/ipython.py");
BUILTIN(builtin_media_py, "drivers/media.py");
BUILTIN(builtin_order_py, "drivers/order.py");
BUILTIN(builtin_advice_py, "drivers/advice.py");
BUILTIN(builtin_magics_py, "drivers/magics.py");
BUILTIN(builtin_report_py, "drivers/report.py");
BUILTIN(builtin_source_py, "drivers/source.py");
BUILTIN(builtin_tasks_py, "drivers/tasks.py");
BUILTIN(builtin_terminal_py, "drivers/terminal.py");
BUILTIN(builtin_answer_py, "drivers/answer.py");
BUILTIN(builtin_proof_py, "drivers/proof.py");
BUILTIN(builtin_trace_py, "drivers/trace.py");
BUILTIN(builtin_select_py, "drivers/select.py");
BUILTIN(builtin_types_js, "drivers/types.cjs");
BUILTIN(builtin_foreign_py, "drivers/foreign.py");
BUILTIN(builtin_main_r, "drivers/main.R");
BUILTIN(builtin_cells_js, "drivers/cells.cjs");
BUILTIN(builtin_names_js, "drivers/names.cjs");
BUILTIN(builtin_matplotlibrc, "drivers/matplotlibrc");
BUILTIN(builtin_prepare_py, "drivers/prepare.py");
BUILTIN(builtin_zygote_py, "drivers/zygote.py");
BUILTIN(builtin_zygote_so, BUILD_DIR "/zygote.so");

static const struct {
    const char *name, *from, *to;
} files[ENGINE_BUILTIN_COUNT] = {
#define ROW(id, name, at) [ENGINE_BUILTIN_##id] = { name, builtin_##at, builtin_##at##_end }
    ROW(DRIVER_PY, "driver.py", driver_py),
    ROW(DRIVER_PYC, "driver.pyc", driver_pyc),
    ROW(DRIVER_JS, "driver.cjs", driver_js),
    ROW(DRIVER_SH, "driver.sh", driver_sh),
    ROW(ORDER_JS, "order.cjs", order_js),
    ROW(REHEARSE_JS, "rehearse.cjs", rehearse_js),
    ROW(ENDING_JS, "ending.cjs", ending_js),
    ROW(CELLS_SH, "cells.sh", cells_sh),
    ROW(CELLS_PY, "cells.py", cells_py),
    ROW(NAMES_PY, "names.py", names_py),
    ROW(SHOW_PY, "show.py", show_py),
    ROW(PATCHES_PY, "patches.py", patches_py),
    ROW(PRETTY_PY, "pretty.py", pretty_py),
    ROW(CHARTS_PY, "charts.py", charts_py),
    ROW(IPYTHON_PY, "ipython.py", ipython_py),
    ROW(MEDIA_PY, "media.py", media_py),
    ROW(ORDER_PY, "order.py", order_py),
    ROW(ADVICE_PY, "advice.py", advice_py),
    ROW(MAGICS_PY, "magics.py", magics_py),
    ROW(REPORT_PY, "report.py", report_py),
    ROW(SOURCE_PY, "source.py", source_py),
    ROW(TASKS_PY, "tasks.py", tasks_py),
    ROW(TERMINAL_PY, "terminal.py", terminal_py),
    ROW(ANSWER_PY, "answer.py", answer_py),
    ROW(PROOF_PY, "proof.py", proof_py),
    ROW(TRACE_PY, "trace.py", trace_py),
    ROW(SELECT_PY, "select.py", select_py),
    ROW(CELLS_JS, "cells.cjs", cells_js),
    ROW(TYPES_JS, "types.cjs", types_js),
    ROW(FOREIGN_PY, "foreign.py", foreign_py),
    ROW(MAIN_R, "main.R", main_r),
    ROW(NAMES_JS, "names.cjs", names_js),
    ROW(MATPLOTLIBRC, "matplotlibrc", matplotlibrc),
    ROW(PREPARE_PY, "prepare.py", prepare_py),
    ROW(ZYGOTE_PY, "zygote.py", zygote_py),
    ROW(ZYGOTE_SO, "zygote.so", zygote_so),
#undef ROW
};

struct str engine_builtin(enum engine_builtin_id id)
{
    return (struct str){ files[id].from, (size_t)(files[id].to - files[id].from) };
}

const char *engine_builtin_name(enum engine_builtin_id id)
{
    return files[id].name;
}
