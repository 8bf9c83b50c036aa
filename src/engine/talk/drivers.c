/* The drivers in cupel's read-only data: one program, nothing to install beside. */
#include "engine/talk/drivers.h"

#include "base/incbin.h"

EMBED(embed_driver_py, "drivers/driver.py");
EMBED(embed_driver_pyc, BUILD_DIR "/gen/driver.pyc");
EMBED(embed_driver_js, "drivers/driver.cjs");
EMBED(embed_driver_sh, "drivers/driver.sh");
EMBED(embed_rehearse_js, "drivers/rehearse.cjs");
EMBED(embed_cells_sh, "drivers/cells.sh");
EMBED(embed_cells_py, "drivers/cells.py");
EMBED(embed_names_py, "drivers/names.py");
EMBED(embed_advice_py, "drivers/advice.py");
EMBED(embed_magics_py, "drivers/magics.py");
EMBED(embed_terminal_py, "drivers/terminal.py");
EMBED(embed_cells_js, "drivers/cells.cjs");
EMBED(embed_names_js, "drivers/names.cjs");
EMBED(embed_matplotlibrc, "drivers/matplotlibrc");
EMBED(embed_prepare_py, "drivers/prepare.py");
EMBED(embed_zygote_py, "drivers/zygote.py");
EMBED(embed_zygote_so, BUILD_DIR "/zygote.so");

static const struct {
    const char *name, *from, *to;
} files[ENGINE_EMBED_COUNT] = {
    [ENGINE_EMBED_DRIVER_PY] = { "driver.py", embed_driver_py, embed_driver_py_end },
    [ENGINE_EMBED_DRIVER_PYC] = { "driver.pyc", embed_driver_pyc, embed_driver_pyc_end },
    [ENGINE_EMBED_DRIVER_JS] = { "driver.cjs", embed_driver_js, embed_driver_js_end },
    [ENGINE_EMBED_DRIVER_SH] = { "driver.sh", embed_driver_sh, embed_driver_sh_end },
    [ENGINE_EMBED_REHEARSE_JS] = { "rehearse.cjs", embed_rehearse_js, embed_rehearse_js_end },
    [ENGINE_EMBED_CELLS_SH] = { "cells.sh", embed_cells_sh, embed_cells_sh_end },
    [ENGINE_EMBED_CELLS_PY] = { "cells.py", embed_cells_py, embed_cells_py_end },
    [ENGINE_EMBED_NAMES_PY] = { "names.py", embed_names_py, embed_names_py_end },
    [ENGINE_EMBED_ADVICE_PY] = { "advice.py", embed_advice_py, embed_advice_py_end },
    [ENGINE_EMBED_MAGICS_PY] = { "magics.py", embed_magics_py, embed_magics_py_end },
    [ENGINE_EMBED_TERMINAL_PY] = { "terminal.py", embed_terminal_py, embed_terminal_py_end },
    [ENGINE_EMBED_CELLS_JS] = { "cells.cjs", embed_cells_js, embed_cells_js_end },
    [ENGINE_EMBED_NAMES_JS] = { "names.cjs", embed_names_js, embed_names_js_end },
    [ENGINE_EMBED_MATPLOTLIBRC] = { "matplotlibrc", embed_matplotlibrc, embed_matplotlibrc_end },
    [ENGINE_EMBED_PREPARE_PY] = { "prepare.py", embed_prepare_py, embed_prepare_py_end },
    [ENGINE_EMBED_ZYGOTE_PY] = { "zygote.py", embed_zygote_py, embed_zygote_py_end },
    [ENGINE_EMBED_ZYGOTE_SO] = { "zygote.so", embed_zygote_so, embed_zygote_so_end },
};

struct str engine_embed(enum engine_embed_id id)
{
    return (struct str){ files[id].from, (size_t)(files[id].to - files[id].from) };
}

const char *engine_embed_name(enum engine_embed_id id)
{
    return files[id].name;
}
