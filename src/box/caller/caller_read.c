/* Reads the channel for all calling programs: lines of the engine into the files of their calls.
 * Runs in the box, as the user's code.
 *
 * A line is RS, the number of its call, a space, a word, a space, and JSON up to the newline, which
 * has neither byte. The reader looks for RS: bytes before it, of a line that somebody has read a
 * part of, are dropped. Each step ends with one change of the place, and can be done again. */
#include "box/caller/caller_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"

#define RS '\x1e'
#define LOOK_MS 500 /* a signal just before is seen then */
#define HEAD_MAX 16 /* RS, the digits of a number, a space and the first letter of the word */

static void settle(struct caller_state *state)
{
    if (state->changes)
        state->now = state->next;
    state->changes = false;
}

static void change(struct caller_state *state, const struct caller_place *place)
{
    state->next = *place;
    state->changes = true;
    settle(state);
}

/* The place as the last reader left it. */
static struct caller_place look(struct caller_state *state)
{
    settle(state);
    struct caller_place place = state->now;
    if (place.which > 1 || place.len > CALLER_PART || place.from > place.len)
        place = (struct caller_place){ .which = 0 }; /* not our doing */
    size_t more = strnlen(state->part[place.which] + place.len, CALLER_PART - place.len);
    place.len += (uint32_t)more;
    return place;
}

/* --- the file of a call --- */

static int open_part(const struct caller_frame *frame, int flags)
{
    char path[CALLER_PATH_ROOM];
    caller_answer_path(frame->number, /* whole= */ false, path);
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

static uint64_t size_of(const struct caller_frame *frame)
{
    struct stat st;
    own_fd fd = open_part(frame, O_RDONLY);
    return fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* A disk that is full leaves a file without its last newline, which the caller notices. */
static void put(struct caller_frame *frame, const char *bytes, size_t len)
{
    own_fd fd = open_part(frame, O_WRONLY | O_CREAT);
    if (fd < 0 || pwrite(fd, bytes, len, (off_t)frame->size) != (ssize_t)len) {
        frame->kept = false;
        return;
    }
    frame->size += len;
}

static bool lives(const struct caller *caller, int32_t number)
{
    return number == caller->number || caller_is_locked(caller, CALLER_CALLS + (int64_t)number);
}

static void hand_over(struct caller *caller, const struct caller_frame *frame)
{
    struct caller_state *state = caller->state;
    char from[CALLER_PATH_ROOM], to[CALLER_PATH_ROOM];
    if (frame->number == 0)
        state->over = true; /* the engine has answered every call */
    if (frame->number == 0 || frame->more)
        return;
    caller_answer_path(frame->number, /* whole= */ false, from);
    caller_answer_path(frame->number, /* whole= */ true, to);
    if (lives(caller, frame->number))
        rename(from, to);
    else
        unlink(from);
    for (size_t i = 0; i < CALLER_OPEN_MAX; i++)
        if (state->open[i] == frame->number)
            state->open[i] = 0;
}

/* --- steps --- */

/* The head of a line at `at`: its length, 0 if more bytes are needed, -1 if it is none. */
static int read_head(const char *at, size_t len, struct caller_frame *out)
{
    int64_t number = 0;
    size_t i = 1;
    while (i < len && i < HEAD_MAX && at[i] >= '0' && at[i] <= '9')
        number = number * 10 + (at[i++] - '0');
    if (i + 1 >= len && i + 1 < HEAD_MAX)
        return 0;
    if (i == 1 || i + 1 >= HEAD_MAX || at[i] != ' ' || number > INT32_MAX)
        return -1;
    *out = (struct caller_frame){ .number = (int32_t)number, .inside = true,
                                  .more = at[i + 1] == 'f' };
    return (int)i + 1;
}

/* True: it did something. */
static bool begin_line(struct caller *caller, struct caller_place place)
{
    const char *at = caller->state->part[place.which] + place.from;
    size_t len = place.len - place.from;
    const char *mark = memchr(at, RS, len);
    if (!mark) {
        place.from = place.len;
        change(caller->state, &place);
        return len > 0;
    }
    place.from += (uint32_t)(mark - at);
    struct caller_frame *frame = &place.frame;
    int head = read_head(mark, place.len - place.from, frame);
    if (head > 0) {
        frame->kept = frame->number > 0 && lives(caller, frame->number);
        frame->size = frame->kept ? size_of(frame) : 0;
    }
    place.from += (uint32_t)(head > 0 ? head : -head);
    change(caller->state, &place);
    return head != 0;
}

static bool go_on(struct caller *caller, struct caller_place place)
{
    const char *at = caller->state->part[place.which] + place.from;
    size_t len = place.len - place.from, part = 0;
    if (place.frame.whole) {
        hand_over(caller, &place.frame);
        place.frame = (struct caller_frame){ .inside = false };
        change(caller->state, &place);
        return true;
    }
    while (part < len && at[part] != '\n' && at[part] != RS)
        part++;
    bool ends = part < len;
    bool whole = ends && at[part] == '\n';
    part += whole;
    if (place.frame.kept && part > 0)
        put(&place.frame, at, part);
    place.frame.whole = whole;
    if (ends && !whole)
        place.frame = (struct caller_frame){ .inside = false }; /* the next line has come */
    place.from += (uint32_t)part;
    change(caller->state, &place);
    return len > 0;
}

/* Use all bytes that were read. */
static void use(struct caller *caller)
{
    for (;;) {
        struct caller_place place = look(caller->state);
        bool went = place.frame.inside ? go_on(caller, place) : begin_line(caller, place);
        if (!went)
            return;
    }
}

/* Room for more: what was not used goes to the other part. */
static void turn_over(struct caller_state *state)
{
    struct caller_place place = look(state);
    size_t left = place.len - place.from;
    char *to = state->part[!place.which];
    memmove(to, state->part[place.which] + place.from, left);
    memset(to + left, 0, CALLER_PART - left);
    place.which = !place.which;
    place.from = 0;
    place.len = (uint32_t)left;
    change(state, &place);
}

int caller_pump(struct caller *caller)
{
    struct caller_state *state = caller->state;
    struct pollfd channel = { .fd = caller->tools.requests, .events = POLLIN };
    use(caller);
    char path[CALLER_PATH_ROOM];
    caller_answer_path(caller->number, /* whole= */ true, path);
    if (state->over || access(path, F_OK) == 0 || poll(&channel, 1, LOOK_MS) <= 0)
        return 0;
    turn_over(state);
    struct caller_place place = look(state);
    ssize_t n = read(caller->tools.requests, state->part[place.which] + place.len,
                     CALLER_PART - place.len);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        return -1;
    use(caller);
    return 0;
}
