/* Carries a command's streams. Runs in the cli process, inside the engine's loop. Each direction
 * holds one part: a slow reader of ours makes the command wait, and a command that reads nothing
 * makes our writer wait. */
#include "cli/exec/exec_relay.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "cli/exec/exec_screen.h"
#include "cli/term/interrupt.h"

/* --- output --- */

static void after_writing(struct cli_exec_relay *relay, struct cli_exec_out *out, bool was_closed)
{
    const bool is_err = out == &relay->out[1], behind = cli_stream_is_behind(&out->stream);
    if (out->stream.closed && !was_closed && !is_err)
        cli_interrupt_kill(); /* no reader: end, as SIGPIPE would */
    if (behind == out->paused || !relay->run)
        return;
    struct loop *loop = engine_loop(relay->engine);
    if (behind) {
        out->room.fd = out->stream.fd;
        if (loop_add(loop, &out->room, EPOLLOUT) < 0) {
            out->room.fd = -1; /* a file: never slow */
            return;
        }
    } else {
        loop_remove(loop, &out->room);
    }
    out->paused = behind;
    engine_command_pause(relay->run, is_err, behind);
}

static void write_out(struct cli_exec_relay *relay, struct cli_exec_out *out, struct str bytes)
{
    bool was_closed = out->stream.closed;
    cli_stream_add(&out->stream, bytes);
    after_writing(relay, out, was_closed);
}

static void catch_up(struct cli_exec_relay *relay, struct cli_exec_out *out)
{
    bool was_closed = out->stream.closed;
    cli_stream_catch_up(&out->stream);
    after_writing(relay, out, was_closed);
}

static void on_out_room(struct loop_source *source, uint32_t events)
{
    struct cli_exec_relay *relay = loop_owner(source, struct cli_exec_relay, out[0].room);
    (void)events;
    catch_up(relay, &relay->out[0]);
}

static void on_err_room(struct loop_source *source, uint32_t events)
{
    struct cli_exec_relay *relay = loop_owner(source, struct cli_exec_relay, out[1].room);
    (void)events;
    catch_up(relay, &relay->out[1]);
}

/* --- input --- */

static void end_input(struct cli_exec_relay *relay)
{
    relay->over = true;
    if (relay->terminal)
        cli_interrupt_kill(); /* the terminal was closed */
    else
        engine_command_end_input(relay->run);
}

static void read_part(struct cli_exec_relay *relay)
{
    ssize_t n = read(STDIN_FILENO, relay->bytes, sizeof relay->bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_input(relay);
        return;
    }
    relay->at = 0;
    relay->len = (size_t)n;
}

/* Watches stdin until it has more. False: it cannot be watched. */
static bool wait_for_input(struct cli_exec_relay *relay)
{
    if (relay->is_file)
        return false;
    if (relay->in.fd >= 0)
        return true;
    relay->in.fd = STDIN_FILENO;
    relay->is_file = loop_add(engine_loop(relay->engine), &relay->in, EPOLLIN) < 0;
    if (relay->is_file)
        relay->in.fd = -1;
    return !relay->is_file;
}

/* One part, where there is one and it is wanted. The next follows ENGINE_ROOM. */
static void carry(struct cli_exec_relay *relay)
{
    if (!relay->takes || relay->over || !relay->run)
        return;
    if (relay->at == relay->len && wait_for_input(relay))
        return;
    if (relay->at == relay->len)
        read_part(relay);
    if (relay->over || relay->at == relay->len)
        return;
    struct str bytes = { relay->bytes + relay->at, relay->len - relay->at };
    long n = engine_command_write(relay->run, bytes);
    relay->takes = false;
    relay->at += n > 0 ? (size_t)n : 0;
    relay->over = n < 0;
}

static void on_input(struct loop_source *source, uint32_t events)
{
    struct cli_exec_relay *relay = loop_owner(source, struct cli_exec_relay, in);
    (void)events;
    loop_remove(engine_loop(relay->engine), source);
    if (!relay->run || relay->over)
        return;
    read_part(relay);
    carry(relay);
}

/* --- the terminal --- */

static void on_size(struct loop_source *source, uint32_t events)
{
    struct cli_exec_relay *relay = loop_owner(source, struct cli_exec_relay, size);
    char bytes[64];
    (void)events;
    if (read(source->fd, bytes, sizeof bytes) <= 0 || !relay->run)
        return;
    struct cli_exec_size size = cli_exec_screen_size();
    engine_command_resize(relay->run, size.rows, size.columns);
}

void cli_exec_relay_watch_size(struct cli_exec_relay *relay, int fd)
{
    relay->size.fd = fd;
    if (loop_add(engine_loop(relay->engine), &relay->size, EPOLLIN) < 0)
        relay->size.fd = -1;
}

/* --- begin and end --- */

void cli_exec_relay_init(struct cli_exec_relay *relay, struct engine *engine, bool terminal)
{
    static const int fds[] = { STDOUT_FILENO, STDERR_FILENO };
    *relay = (struct cli_exec_relay){
        .engine = engine,
        .terminal = terminal,
        .out = { { .room = { -1, LOOP_HANDLER(on_out_room) } },
                 { .room = { -1, LOOP_HANDLER(on_err_room) } } },
        .in = { -1, LOOP_HANDLER(on_input) },
        .size = { -1, LOOP_HANDLER(on_size) },
    };
    for (int i = 0; i < 2; i++)
        cli_stream_init(&relay->out[i].stream, fds[i], /* raw= */ true);
}

void cli_exec_relay_event(struct cli_exec_relay *relay, const struct engine_event *event)
{
    if (event->kind == ENGINE_STDOUT || event->kind == ENGINE_STDERR) {
        write_out(relay, &relay->out[event->kind == ENGINE_STDERR], event->bytes);
    } else if (event->kind == ENGINE_ROOM) {
        relay->takes = true;
        carry(relay);
    }
}

/* Waits for room, or for a wish to stop. */
static bool may_wait(int fd, int interrupt_fd)
{
    struct pollfd at[] = { { .fd = fd, .events = POLLOUT }, { interrupt_fd, POLLIN, 0 } };
    if (cli_interrupt_signal())
        return false;
    return poll(at, 2, -1) > 0 ? !at[1].revents : errno == EINTR;
}

void cli_exec_relay_finish(struct cli_exec_relay *relay, int interrupt_fd)
{
    struct loop *loop = engine_loop(relay->engine);
    relay->run = NULL;
    loop_remove(loop, &relay->in);
    loop_remove(loop, &relay->size);
    for (int i = 0; i < 2; i++) {
        struct cli_stream *stream = &relay->out[i].stream;
        loop_remove(loop, &relay->out[i].room);
        do
            cli_stream_catch_up(stream);
        while (cli_stream_is_behind(stream) && may_wait(stream->fd, interrupt_fd));
    }
}

void cli_exec_relay_done(struct cli_exec_relay *relay)
{
    for (int i = 0; i < 2; i++)
        cli_stream_done(&relay->out[i].stream);
}
