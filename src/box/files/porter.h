/* The porter: carries input files into a box and shows what came of it. */
#ifndef BOX_FILES_PORTER_H
#define BOX_FILES_PORTER_H

#define PORTER_FD 5 /* its socket with the engine */

/* Confine to the porter's own policy, say so on report_fd, serve until the
 * engine hangs up. Current directory is the box's /workspace. A porter that finds a STAY in
 * its socket, sent before anybody else had the other end, is resident: see box/files/curator.h. */
void porter_run(int report_fd) __attribute__((noreturn));

#endif
