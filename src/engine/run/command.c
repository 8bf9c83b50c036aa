/* A command of `cupel exec`: its streams go straight between its pipes and the door, and a slow
 * door stops the command instead of growing memory. Runs in the engine. The program `shell`
 * (src/box/shell) sends no words: a command's end is a fact of the kernel. */
#include "engine/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 65536 /* a pipe's capacity */

static void tell_door(struct engine_run *run, const struct engine_event *event)
{
    if (run->hooks.on_event)
        run->hooks.on_event(run->hooks.user, event);
}

/* The pipe stays open, and is not looked at. */
static void look_away(struct engine_run *run, enum run_pipe_id id)
{
    struct loop_source *source = &run->pipe[id].source;
    int fd = source->fd;
    loop_remove(&run->engine->loop, source);
    source->fd = fd;
}

static bool look_at(struct engine_run *run, enum run_pipe_id id, uint32_t events)
{
    return loop_add(&run->engine->loop, &run->pipe[id].source, events) == 0 || errno == EEXIST;
}

bool run_command_begin(struct engine_run *run)
{
    int in = run->pipe[RUN_IN].source.fd;
    run_close_pipe(run, RUN_WORDS);
    return in >= 0 && fcntl(in, F_SETFL, O_NONBLOCK) == 0 && look_at(run, RUN_IN, EPOLLOUT);
}

void run_command_has_room(struct engine_run *run)
{
    look_away(run, RUN_IN);
    tell_door(run, &(struct engine_event){ .kind = ENGINE_ROOM });
}

void run_command_hear(struct engine_run *run, enum run_pipe_id id)
{
    static char bytes[CHUNK];
    ssize_t n = read(run->pipe[id].source.fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        run_close_pipe(run, id);
        return;
    }
    tell_door(run, &(struct engine_event){
                       .kind = id == RUN_ERR ? ENGINE_STDERR : ENGINE_STDOUT,
                       .bytes = { bytes, (size_t)n },
                   });
}

/* --- the door's calls --- */

static bool is_open(const struct engine_run *run, enum run_pipe_id id)
{
    return !run->over && run->stage == RUN_GOING && run->request->command &&
           run->pipe[id].source.fd >= 0;
}

long engine_command_write(struct engine_run *run, struct str bytes)
{
    if (!is_open(run, RUN_IN))
        return -1;
    ssize_t n = write(run->pipe[RUN_IN].source.fd, bytes.at, bytes.len);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        run_close_pipe(run, RUN_IN);
        return -1;
    }
    return look_at(run, RUN_IN, EPOLLOUT) ? (n < 0 ? 0 : (long)n) : -1;
}

void engine_command_end_input(struct engine_run *run)
{
    if (is_open(run, RUN_IN))
        run_close_pipe(run, RUN_IN);
}

void engine_command_pause(struct engine_run *run, bool is_err, bool paused)
{
    enum run_pipe_id id = is_err ? RUN_ERR : RUN_OUT;
    if (!is_open(run, id))
        return;
    if (paused)
        look_away(run, id);
    else if (!look_at(run, id, EPOLLIN))
        run_kill(run, RESULT_INTERNAL);
}

void engine_command_resize(struct engine_run *run, unsigned rows, unsigned columns)
{
    char message[PLAN_COMMAND_MESSAGE];
    if (!is_open(run, RUN_REQUESTS) || !run->request->command->terminal)
        return;
    plan_command_size(rows, columns, message);
    /* A command that stops `shell` for long gets no more sizes. */
    if (run_say_line(run, (struct str){ message, sizeof message }) < 0)
        run_close_pipe(run, RUN_REQUESTS);
}
