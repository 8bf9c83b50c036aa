/* The porter: writes input files into a box and reads results from it. */
#ifndef BOX_FILES_PORTER_H
#define BOX_FILES_PORTER_H

#include <stdbool.h>

#define PORTER_FD 5 /* its socket with the engine */

/* Confine to the porter's own policy, report on report_fd, serve until the engine hangs up. The
 * current directory is the box's /workspace, or with `layer` the layer of changes to it. A porter
 * that finds a STAY in its socket is resident: see box/files/curator.h. */
void porter_run(int report_fd, bool layer) __attribute__((noreturn));

#endif
