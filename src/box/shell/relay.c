/* Carries bytes between a terminal and two pipes. Nothing is read before what was read is written:
 * a slow reader stops the command, and costs no memory. */
#include "box/shell/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "box/proto/proto.h"

#define PART 16384
/* The kernel hands on what the command wrote last a moment later. */
#define QUIET_MS 20
#define HUNG_MS 50 /* between looks at a terminal that no process has open */
#define LAST_MOST (1u << 20) /* bytes, where other programs go on writing */

struct way {
    int from, to;
    bool over; /* no more comes */
    size_t at, len; /* of the bytes: written, read */
    char bytes[PART];
};

static volatile sig_atomic_t ended, interrupted;

static void on_child(int number)
{
    (void)number;
    ended = 1;
}

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static bool is_empty(const struct way *way)
{
    return way->at == way->len;
}

static bool is_later(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Bytes that were read, 0: none now, -1: the end. */
static ssize_t fill(struct way *way)
{
    ssize_t n = read(way->from, way->bytes, sizeof way->bytes);
    if (is_later(n))
        return 0;
    if (n <= 0)
        return -1;
    way->at = 0;
    way->len = (size_t)n;
    return n;
}

static void drain(struct way *way)
{
    ssize_t n = write(way->to, way->bytes + way->at, way->len - way->at);
    if (n > 0)
        way->at += (size_t)n;
    else if (!is_later(n))
        way->at = way->len; /* nobody reads it */
}

struct relay {
    int master;
    pid_t command;
    struct way in, out;
    struct shell_inbox *inbox;
    bool deaf;    /* no sizes come any more */
    bool hung;    /* no process has the terminal open */
    bool reaped;
    int status;
    size_t last; /* bytes since the command's end */
};

/* The command's end, and the interrupt of `cupel exec`. */
static void take_signals(struct relay *relay)
{
    if (interrupted) {
        interrupted = 0;
        if (ioctl(relay->master, TIOCSIG, SIGINT) < 0)
            return;
    }
    if (!ended || relay->reaped)
        return;
    ended = 0;
    relay->reaped = waitpid(relay->command, &relay->status, WNOHANG) == relay->command;
}

enum { IN, OUT, MASTER, REQUESTS, WATCHED };

static int watch(const struct relay *relay, struct pollfd at[WATCHED], const sigset_t *open)
{
    const struct way *in = &relay->in, *out = &relay->out;
    int events = (is_empty(out) ? POLLIN : 0) | (is_empty(in) ? 0 : POLLOUT);
    bool listens = is_empty(in) && !in->over && !relay->reaped;
    at[IN] = (struct pollfd){ .fd = listens ? in->from : -1, .events = POLLIN };
    at[OUT] = (struct pollfd){ .fd = is_empty(out) ? -1 : out->to, .events = POLLOUT };
    at[MASTER] = (struct pollfd){ .fd = events && !relay->hung ? relay->master : -1,
                                  .events = (short)events };
    at[REQUESTS] = (struct pollfd){ .fd = relay->deaf ? -1 : BOX_FD_REQUESTS, .events = POLLIN };
    int patience_ms = relay->hung ? HUNG_MS : relay->reaped ? QUIET_MS : -1;
    struct timespec patience = { .tv_nsec = patience_ms * 1000000L };
    bool waits = patience_ms < 0 || !is_empty(out);
    return ppoll(at, WATCHED, waits ? NULL : &patience, open);
}

static void hear(struct relay *relay)
{
    struct shell_message size;
    int rc = shell_hear(relay->inbox, &size);
    if (rc > 0)
        shell_set_size(relay->master, &size);
    relay->deaf = rc < 0;
}

/* Reads from the terminal and writes to it, as far as it is ready. */
static void serve_master(struct relay *relay, short events)
{
    if (events & POLLOUT)
        drain(&relay->in);
    if (!(events & (POLLIN | POLLHUP | POLLERR)) || !is_empty(&relay->out))
        return;
    ssize_t n = fill(&relay->out);
    relay->hung = n < 0;
    relay->last += relay->reaped && n > 0 ? (size_t)n : 0;
}

/* False: all is told. */
static bool go_on(struct relay *relay, int ready)
{
    if (!relay->reaped || !is_empty(&relay->out))
        return true;
    return !relay->hung && relay->last < LAST_MOST && ready != 0;
}

static void prepare(sigset_t *out_open)
{
    struct sigaction child = { .sa_handler = on_child };
    struct sigaction interrupt = { .sa_handler = on_interrupt };
    sigset_t closed;
    sigemptyset(&closed);
    sigaddset(&closed, SIGCHLD);
    sigaddset(&closed, SIGINT);
    sigprocmask(SIG_BLOCK, &closed, out_open);
    sigdelset(out_open, SIGCHLD);
    sigdelset(out_open, SIGINT);
    sigaction(SIGCHLD, &child, NULL);
    sigaction(SIGINT, &interrupt, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int shell_relay(int master, pid_t command, struct shell_inbox *inbox)
{
    static struct relay relay;
    sigset_t open;
    relay = (struct relay){ .master = master,
                            .command = command,
                            .in = { .from = STDIN_FILENO, .to = master },
                            .out = { .from = master, .to = STDOUT_FILENO },
                            .inbox = inbox };
    ended = 1; /* it may have ended already */
    prepare(&open);
    relay.deaf = set_nonblocking(BOX_FD_REQUESTS) < 0;
    if (set_nonblocking(STDIN_FILENO) < 0 || set_nonblocking(STDOUT_FILENO) < 0)
        return SHELL_FAILED << 8;
    for (int ready = 1;;) {
        struct pollfd at[WATCHED];
        take_signals(&relay);
        if (!go_on(&relay, ready))
            return relay.status;
        ready = watch(&relay, at, &open);
        if (ready < 0)
            continue;
        relay.hung = relay.hung && ready > 0 && relay.reaped;
        if (at[IN].revents)
            relay.in.over = fill(&relay.in) < 0;
        if (at[OUT].revents)
            drain(&relay.out);
        if (at[MASTER].revents)
            serve_master(&relay, at[MASTER].revents);
        if (at[REQUESTS].revents)
            hear(&relay);
    }
}
