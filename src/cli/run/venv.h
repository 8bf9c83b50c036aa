/* Virtual environments of Python (--venv). */
#ifndef CLI_RUN_VENV_H
#define CLI_RUN_VENV_H

#include "cli/dir/folder.h"
#include "contract/request.h"

/* After the drop of rights: reads its configuration. *out refers to the folder's path. ERR_USAGE
 * for a folder that is none, or whose `bin/python` leads to another program than it says. */
int cli_venv_read(struct cli_folder *folder, struct request_venv *out, struct err *err);

#endif
