/* MCP on standard input and output: one message a line. Runs in the cli process, which connects to
 * an engine as the caller and then drops its rights, before it reads a message.
 * 1. Nothing waits but poll: a client that does not read is not read from either.
 * 2. At the end of the input, what was asked is still answered, for END_S at most; then the
 *    sessions of this conversation end. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/link/starter.h"
#include "cli/mcp/mcp_options.h"
#include "cli/mcp/stored.h"
#include "cli/mcp/tasks.h"
#include "cli/term/interrupt.h"
#include "cli/term/term.h"
#include "mcp/tool.h"

#define TIMEOUT_S 30
#define KEPT_BYTES ((size_t)64 << 20)
#define READ_PART ((size_t)64 << 10)
#define WRITE_PART 4096             /* a pipe that polls writable takes this much */
#define OUT_FULL ((size_t)8 << 20)  /* unread bytes past which no message is read */
#define OUT_NOTES ((size_t)256 << 10) /* ... past which progress is left out */
#define END_S 30                    /* for the last answers, once the input has ended */
#define LEAVE_S 2                   /* for the sessions to end */

struct talk {
    struct mcp *mcp;
    struct mcp_peer *peer; /* NULL: it has ended */
    struct cli_mcp_stored *stored; /* NULL: there is no state folder */
    struct cli_mcp_tasks *tasks;   /* NULL: no model is configured */
    struct cli_starter starter;
    struct buf in, out;
    size_t looked;  /* bytes of `in` without a line's end */
    size_t written; /* of `out` */
    int stop_fd;
    bool skips;  /* the rest of a line that is too long */
    bool ended;  /* the input */
    bool closed; /* the output */
    bool stopped;
};

/* --- out --- */

static void add_message(struct talk *talk, json_t *message)
{
    own_json owned = message;
    if (talk->closed || !owned)
        return;
    if (json_add(&talk->out, owned) == 0)
        buf_add_text(&talk->out, "\n");
}

static size_t unread(const struct talk *talk)
{
    return talk->out.len - talk->written;
}

static void say(void *user, json_t *message)
{
    struct talk *talk = user;
    if (unread(talk) > OUT_NOTES)
        json_decref(message);
    else
        add_message(talk, message);
}

static void end(void *user, json_t *message, unsigned status)
{
    (void)status;
    add_message(user, message);
}

static void write_some(struct talk *talk)
{
    while (unread(talk) > 0 && !talk->closed) {
        struct pollfd ready = { .fd = STDOUT_FILENO, .events = POLLOUT };
        if (poll(&ready, 1, 0) <= 0)
            break;
        size_t part = unread(talk) < WRITE_PART ? unread(talk) : WRITE_PART;
        ssize_t n = write(STDOUT_FILENO, talk->out.at + talk->written, part);
        if (n > 0)
            talk->written += (size_t)n;
        else if (n < 0 && errno != EINTR && errno != EAGAIN)
            talk->closed = true;
        else
            break;
    }
    if (talk->closed || unread(talk) == 0) {
        buf_done(&talk->out);
        talk->written = 0;
    } else if (talk->written > talk->out.len / 2) {
        buf_drop(&talk->out, talk->written);
        talk->written = 0;
    }
}

/* --- in --- */

static void take_line(struct talk *talk, struct str line)
{
    const struct mcp_sink sink = { say, end, talk };
    line = str_trim(line);
    if (line.len > 0)
        mcp_take_text(talk->peer, line, /* headers= */ NULL, &sink);
}

static void refuse_line(struct talk *talk)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    mcp_fault_set(&fault, MCP_E_REQUEST, 400, "a message has at most %zu bytes", MCP_MESSAGE_MAX);
    add_message(talk, mcp_reply_fault(/* id= */ NULL, &fault));
    talk->skips = true;
}

static void take_lines(struct talk *talk)
{
    size_t taken = 0;
    char *newline;
    while (talk->in.len > talk->looked &&
           (newline = memchr(talk->in.at + talk->looked, '\n', talk->in.len - talk->looked))) {
        const size_t at = (size_t)(newline - talk->in.at);
        if (!talk->skips)
            take_line(talk, (struct str){ talk->in.at + taken, at - taken });
        talk->skips = false;
        taken = talk->looked = at + 1;
    }
    if (talk->skips)
        taken = talk->in.len;
    else if (talk->in.len - taken > MCP_MESSAGE_MAX) {
        refuse_line(talk);
        taken = talk->in.len;
    }
    if (taken == talk->in.len && talk->in.room > 16 * READ_PART)
        buf_done(&talk->in);
    else if (taken > 0)
        buf_drop(&talk->in, taken);
    talk->looked = talk->in.len;
}

static void read_some(struct talk *talk)
{
    char *room = buf_room(&talk->in, READ_PART);
    ssize_t n = read(STDIN_FILENO, room, READ_PART);
    if (n > 0) {
        buf_grew(&talk->in, (size_t)n);
        take_lines(talk);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        talk->ended = true;
        if (talk->in.len > 0 && !talk->skips)
            take_line(talk, buf_str(&talk->in)); /* a last line without its end */
    }
}

/* --- the loop --- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static int turn(struct talk *talk, int64_t until_ns, struct err *err)
{
    const bool reads = !talk->ended && unread(talk) < OUT_FULL;
    const int64_t due = earlier(mcp_due_ns(talk->mcp), until_ns);
    struct pollfd ready[] = {
        { .fd = reads ? STDIN_FILENO : -1, .events = POLLIN },
        { .fd = talk->closed ? -1 : STDOUT_FILENO, .events = unread(talk) > 0 ? POLLOUT : 0 },
        { .fd = mcp_fd(talk->mcp), .events = mcp_events(talk->mcp) },
        { .fd = talk->stop_fd, .events = POLLIN },
        { .fd = cli_mcp_stored_fd(talk->stored), .events = POLLIN },
        { .fd = cli_mcp_tasks_fd(talk->tasks), .events = POLLIN },
    };
    int n = poll(ready, array_len(ready), due ? clock_poll_ms(due) : -1);
    if (n < 0 && errno != EINTR)
        return err_sys(err, "wait for messages");
    if (n < 0)
        return 0;
    talk->stopped = talk->stopped || ready[3].revents;
    talk->closed = talk->closed || (ready[1].revents & (POLLERR | POLLNVAL));
    if (ready[0].revents)
        read_some(talk);
    if (ready[4].revents)
        cli_mcp_stored_take(talk->stored);
    if (ready[5].revents)
        cli_mcp_tasks_take(talk->tasks);
    mcp_ready(talk->mcp);
    write_some(talk);
    return 0;
}

static bool is_over(const struct talk *talk)
{
    return talk->stopped || talk->closed ||
           (talk->ended && mcp_is_answered(talk->mcp) && unread(talk) == 0);
}

static int go(struct talk *talk, struct err *err)
{
    int64_t until = 0;
    while (!is_over(talk) && (until == 0 || clock_now_ns() < until)) {
        if (turn(talk, until, err) < 0)
            return -1;
        if (talk->ended && until == 0)
            until = clock_now_ns() + END_S * CLOCK_S;
    }
    talk->ended = true;
    mcp_peer_end(take_ptr(talk->peer));
    until = clock_now_ns() + LEAVE_S * CLOCK_S;
    talk->stop_fd = -1;
    while (!mcp_is_quiet(talk->mcp) && clock_now_ns() < until)
        if (turn(talk, until, err) < 0)
            return -1;
    return 0;
}

static int reopen(void *user, struct embed_link *out, struct err *err)
{
    struct talk *talk = user;
    int fd = -1;
    return cli_starter_reach(&talk->starter, &fd, err) < 0 ? -1 : embed_adopt(fd, out, err);
}

static void find_stored(void *user, uint64_t ticket, const char *run, const char *path)
{
    const struct talk *talk = user;
    cli_mcp_stored_find(talk->stored, ticket, run, path);
}

/* A model that cannot be had costs the tool `ask` alone. */
static void leave_out_ask(struct talk *talk, const struct err *why)
{
    if (why->kind != ERR_NONE)
        cli_term_note("the tool 'ask' is left out: %s", why->text);
    cli_mcp_tasks_close(take_ptr(talk->tasks));
}

/* As the caller. The model comes first: it takes its keys out of what engines inherit. */
static int reach(struct talk *talk, int *out_fd, struct err *err)
{
    struct err why = ERR_INIT, unheard = ERR_INIT; /* without a state folder there are no records */
    talk->tasks = cli_mcp_tasks_open(&why);
    if (!talk->tasks)
        leave_out_ask(talk, &why);
    if (cli_interrupt_open(&talk->stop_fd, err) < 0 || cli_starter_open(&talk->starter, err) < 0 ||
        cli_starter_reach(&talk->starter, out_fd, err) < 0)
        return -1;
    talk->stored = cli_mcp_stored_open(&unheard);
    return 0;
}

static int prepare(struct talk *talk, const struct cli_mcp_options *options, struct err *err)
{
    struct embed_link link = EMBED_LINK_INIT;
    struct err why = ERR_INIT;
    own_fd engine = -1;
    if (reach(talk, &engine, err) < 0 || box_drop_door(err) < 0)
        return -1;
    own_str languages = mcp_host_languages(); /* while the engine starts */
    if (talk->tasks && cli_mcp_tasks_ready(talk->tasks, &talk->starter, &talk->mcp, &why) < 0)
        leave_out_ask(talk, &why);
    const struct mcp_options how = {
        .tools = mcp_tools, .definitions = mcp_definitions, .languages = languages,
        .timeout_s = options->timeout.given ? options->timeout.value : TIMEOUT_S,
        .kept_bytes = KEPT_BYTES, .reopen = reopen, .find = talk->stored ? find_stored : NULL,
        .user = talk, .agent = talk->tasks ? &cli_mcp_agent : NULL, .agent_user = talk->tasks,
    };
    talk->mcp = mcp_open(&how, /* link= */ NULL, err);
    if (!talk->mcp || embed_adopt(take_fd(&engine), &link, err) < 0)
        return -1;
    mcp_connect(talk->mcp, &link);
    if (talk->stored)
        cli_mcp_stored_ready(talk->stored, talk->mcp);
    return 0;
}

int cli_mcp_stdio(const struct cli_mcp_options *options)
{
    struct talk talk = { .in = BUF_INIT(MCP_MESSAGE_MAX + 2 * READ_PART),
                         .out = BUF_INIT((size_t)1 << 30), .stop_fd = -1,
                         .starter = CLI_STARTER_INIT };
    struct err err = ERR_INIT;
    int code = 0;
    if (prepare(&talk, options, &err) < 0) {
        code = cli_term_refuse(&err, /* json= */ false);
    } else {
        talk.peer = mcp_peer_new(talk.mcp, /* keeps= */ true);
        if (go(&talk, &err) < 0)
            code = cli_term_refuse(&err, /* json= */ false);
    }
    cli_mcp_stored_close(talk.stored);
    mcp_close(take_ptr(talk.mcp));
    cli_mcp_tasks_close(talk.tasks);
    cli_starter_close(&talk.starter);
    buf_done(&talk.in);
    buf_done(&talk.out);
    return code;
}
