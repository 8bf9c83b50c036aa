/* The broker and init programs, built beforehand, in cupel's read-only data: cupel execs them from
 * sealed memory files and needs no installed path. */
#include "box/host/programs.h"

#include "base/builtin.h"

BUILTIN(box_builtin_broker, BUILD_DIR "/broker");
BUILTIN(box_builtin_init, BUILD_DIR "/init");
