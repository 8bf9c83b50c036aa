/* The streams between our standard input and output and a command. */
#ifndef CLI_EXEC_EXEC_RELAY_H
#define CLI_EXEC_EXEC_RELAY_H

#include "cli/term/stream.h"
#include "engine/engine.h"

#define CLI_EXEC_PART 65536

struct cli_exec_out {
    struct cli_stream stream;
    struct loop_source room; /* watched while its reader is slow */
    bool paused;
};

struct cli_exec_relay {
    struct engine *engine;
    struct engine_run *run; /* NULL: none yet, or no more */
    bool terminal; /* the command has one, and so have we */
    struct cli_exec_out out[2]; /* stdout, stderr */
    struct loop_source in, size; /* our stdin, while more is wanted; news of the terminal's size */
    bool takes; /* the command takes input */
    bool is_file; /* stdin cannot be watched, and never waits */
    bool over; /* no more input comes, or is wanted */
    size_t at, len; /* of `bytes`: written, read */
    char bytes[CLI_EXEC_PART];
};

void cli_exec_relay_init(struct cli_exec_relay *relay, struct engine *engine, bool terminal);
void cli_exec_relay_event(struct cli_exec_relay *relay, const struct engine_event *event);
/* The terminal's size may change from now on: a byte in that pipe for each change. */
void cli_exec_relay_watch_size(struct cli_exec_relay *relay, int fd);
/* The run is over: writes what is left, until that is done, its reader is gone, or a byte comes
 * from interrupt_fd. */
void cli_exec_relay_finish(struct cli_exec_relay *relay, int interrupt_fd);
void cli_exec_relay_done(struct cli_exec_relay *relay);

#endif
