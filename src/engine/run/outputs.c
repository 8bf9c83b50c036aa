/* Reads what the code writes (stdout, stderr, the driver's words), puts it in one order, and hands
 * it to the result and to the door. Runs in the engine. The box decides what comes, and when: each
 * turn reads a bounded part of each pipe, never waits, and tells a bounded number of portions. */
#include "engine/run/run.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

#define CHUNK 65536 /* a pipe's capacity: one read takes all that was written before it */
#define DRAIN_MAX 64 /* chunks read from a box that may still write */
#define DRAIN_TOLD (1u << 14) /* ... and portions told; what an honest one has left is less */
#define LINE_LEAST 16 /* bytes of a driver's line that costs as much as a portion */
#define TELL_MAX 512 /* portions in one turn */

/* By the numbers of struct order. */
static const enum run_pipe_id pipes[ORDER_PIPES] = { RUN_OUT, RUN_ERR, RUN_WORDS };

static void tell_door(struct engine_run *run, const struct engine_event *event)
{
    if (run->hooks.on_event)
        run->hooks.on_event(run->hooks.user, event);
}

static void take_output(struct engine_run *run, bool is_err, struct str bytes)
{
    struct result_stream *stream = is_err ? &run->result.err_stream : &run->result.out;
    size_t cap = (size_t)run_limit(run, is_err ? LIMITS_STDERR : LIMITS_STDOUT);
    struct buf *spill = &run->spill[is_err];
    if (run->request->command) {
        tell_door(run, &(struct engine_event){ .kind = is_err ? ENGINE_STDERR : ENGINE_STDOUT,
                                               .bytes = bytes });
        return;
    }
    result_outputs_add(&run->result, is_err, bytes);
    result_stream_add(stream, cap, bytes.at, bytes.len);
    size_t room = spill->max - spill->len;
    buf_add(spill, bytes.at, bytes.len < room ? bytes.len : room);
    /* The caps are the result's: a streaming door gets every byte. */
    tell_door(run, &(struct engine_event){ .kind = is_err ? ENGINE_STDERR : ENGINE_STDOUT,
                                           .bytes = bytes });
    if (stream->truncated && run->request->on_output_limit == REQUEST_STOP)
        run_kill(run, RESULT_OUTPUT_LIMIT);
}

static void tell(void *user, unsigned pipe, uint32_t cell, struct str bytes)
{
    struct engine_run *run = user;
    run->told += pipes[pipe] == RUN_WORDS ? bytes.len / LINE_LEAST + 1 : 1;
    bool late = run->session && cell > 0 && cell < run->result.cell;
    if (late && pipes[pipe] != RUN_WORDS)
        run->cell_ops->late(run, cell, pipes[pipe] == RUN_ERR, bytes);
    else if (pipes[pipe] == RUN_WORDS)
        driver_feed(&run->driver, bytes.at, bytes.len);
    else
        take_output(run, pipes[pipe] == RUN_ERR, bytes);
}

/* The driver took a line that has a place in the order. */
static void heard(struct driver *driver, enum driver_word word, size_t index)
{
    struct engine_run *run = loop_owner(driver, struct engine_run, driver);
    if (word == DRIVER_CALL) {
        run_on_call(run, index);
    } else if (word == DRIVER_CALL_OVER) {
        run_on_call_over(run);
    } else if (word == DRIVER_ERROR) {
        result_outputs_error(&run->result);
    } else if (word == DRIVER_CLEARED) {
        result_outputs_clear(&run->result);
        tell_door(run, &(struct engine_event){ .kind = ENGINE_CLEAR });
    } else {
        if (word == DRIVER_RESULT)
            result_outputs_result(&run->result, index);
        tell_door(run, &(struct engine_event){ .kind = ENGINE_RESULT,
                                               .index = index,
                                               .updates = word == DRIVER_UPDATED,
                                               .data = json_array_get(driver->results, index),
                                               .about = json_array_get(driver->about, index) });
    }
}

void run_outputs_init(struct engine_run *run)
{
    order_init(&run->order, tell, run);
    enum request_language language = run->request->language;
    if (language == REQUEST_PYTHON || language == REQUEST_JAVASCRIPT ||
        language == REQUEST_TYPESCRIPT) /* the other drivers make no marks */
        hash_random_hex(run->order.secret, ORDER_SECRET);
    run->driver.heard = heard;
}

/* Reads once; false if there is nothing more now. */
static bool read_pipe(struct engine_run *run, unsigned pipe, bool *out_told)
{
    static char bytes[CHUNK];
    int fd = run->pipe[pipes[pipe]].source.fd;
    if (fd < 0)
        return false;
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0)
        return errno == EINTR;
    if (n == 0) {
        run_close_pipe(run, pipes[pipe]);
        return false;
    }
    *out_told = order_add(&run->order, pipe, (struct str){ bytes, (size_t)n });
    return true;
}

void run_hear(struct engine_run *run, enum run_pipe_id id)
{
    struct order *order = &run->order;
    bool told = false;
    unsigned ready = 0;
    while (ready < ORDER_PIPES - 1 && pipes[ready] != id)
        ready++;
    if (!order_is_settled(order)) {
        if (!order_waits(order) && (!read_pipe(run, ready, &told) || told))
            return;
        /* A mark: all that was written before it is in the other pipes by now. */
        unsigned newest = order_newest(order, ready);
        for (unsigned i = 0; i < ORDER_PIPES; i++)
            if (i != newest)
                read_pipe(run, i, &told);
        order_settle(order, newest);
    }
    order_tell(order, TELL_MAX);
    run_hear_again(run, order_waits(order) ? clock_now_ns() : LOOP_NEVER);
}

bool run_drain(struct engine_run *run)
{
    size_t before = run->told;
    for (int chunks = 0; chunks <= DRAIN_MAX || run->empty; chunks++) {
        bool more = false, told = false;
        if (run->told - before > DRAIN_TOLD && !run->empty)
            return false;
        for (unsigned i = 0; i < ORDER_PIPES; i++)
            more |= read_pipe(run, i, &told);
        order_tell_all(&run->order, /* whole= */ !more);
        if (!more)
            return true;
    }
    return false;
}

/* The bytes in a pipe, and of those at most what is read below. */
static int held_by(const struct engine_run *run, unsigned pipe)
{
    int fd = run->pipe[pipes[pipe]].source.fd, held = 0;
    bool known = fd >= 0 && ioctl(fd, FIONREAD, &held) == 0;
    return known && held < DRAIN_MAX * CHUNK ? held : known ? DRAIN_MAX * CHUNK : 0;
}

void run_drain_written(struct engine_run *run)
{
    bool told = false, more = false;
    for (unsigned i = 0; i < ORDER_PIPES; i++)
        for (int left = held_by(run, i); left > 0 && read_pipe(run, i, &told); left -= CHUNK)
            ;
    for (unsigned i = 0; i < ORDER_PIPES; i++)
        more |= held_by(run, i) > 0;
    order_tell_all(&run->order, /* whole= */ !more); /* an empty pipe ends with no part of a mark */
}

void run_say(struct engine_run *run, const char *text)
{
    take_output(run, /* is_err= */ true, str_of(text));
}
