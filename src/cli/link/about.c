/* Asks an engine for its info frame. Runs in the cli process, as the caller. The process is the one
 * that the kernel names for the socket; its answer after pidfd_open proves that it still lived
 * then, so that the descriptor is not another process's. */
#include "cli/link/about.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "embed/link.h"

#define ANSWER_MS 10000

static int ask(struct embed_link *link, json_t **out, struct err *err)
{
    own_json question = json_pack("{s:s}", "op", "info");
    own_buf frame = BUF_INIT(4096);
    int64_t until = clock_now_ns() + ANSWER_MS * CLOCK_MS;
    if (frame_add(&frame, question, 4096) < 0 || io_write_all(link->fd, frame.at, frame.len) < 0)
        return err_sys(err, "ask the engine");
    for (;;) {
        struct str text;
        int rc = embed_next(link, &text, err);
        if (rc < 0)
            return -1;
        if (rc > 0) {
            own_json answer = json_read(text, FRAME_NEWS_MAX, err);
            if (!answer)
                return err_wrap(err, "read the engine's answer");
            if (!str_is(json_get_str(answer, "op"), "info"))
                continue; /* a session's news */
            *out = take_ptr(answer);
            return 0;
        }
        struct pollfd ready = { .fd = link->fd, .events = POLLIN };
        if (poll(&ready, 1, clock_poll_ms(until)) == 0)
            return err_set(err, ERR_BUSY, "the engine did not answer within %d s",
                           ANSWER_MS / 1000);
        rc = embed_fill(link, err);
        if (rc == 0)
            return err_set(err, ERR_ABSENT, "the engine ended");
        if (rc < 0)
            return -1;
    }
}

int cli_about_read(const char *socket, struct cli_about *out, struct err *err)
{
    struct embed_link link = EMBED_LINK_INIT;
    struct ucred peer = { 0 };
    socklen_t size = sizeof peer;
    *out = CLI_ABOUT_INIT;
    if (embed_connect(socket ? socket : embed_named(), &link, err) < 0)
        return -1;
    if (getsockopt(link.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0)
        out->pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    int rc = ask(&link, &out->info, err);
    embed_close(&link);
    if (rc < 0)
        cli_about_done(out);
    return rc;
}

void cli_about_done(struct cli_about *about)
{
    json_decref(about->info);
    own_close_fd(&about->pidfd);
    *about = CLI_ABOUT_INIT;
}
