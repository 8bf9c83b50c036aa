/* The parent's side of the clerk. Runs in the cli process. */
#include "cli/dir/clerk.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "cli/dir/clerk_int.h"

int clerk_open(int folder, bool writes, struct clerk *out, struct err *err)
{
    struct stat st;
    int ends[2];
    static struct clerk_answer ready;
    if (fstat(folder, &st) < 0)
        return err_sys(err, "look at the folder");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "make a socket for the folder's helper");
    own_fd ours = ends[0], theirs = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(err, "start the folder's helper");
    if (pid == 0) {
        close(take_fd(&ours));
        clerk_serve(theirs, folder, writes, st.st_uid, st.st_gid);
    }
    close(take_fd(&theirs));
    *out = (struct clerk){ .sock = take_fd(&ours), .pid = pid };
    if (io_recv(out->sock, &ready, sizeof ready, NULL, 0, NULL) == 1 && ready.error == 0)
        return 0;
    clerk_close(out);
    return err_set(err, ERR_HOST, "the folder's helper cannot be confined");
}

void clerk_close(struct clerk *clerk)
{
    if (clerk->sock < 0)
        return;
    own_close_fd(&clerk->sock);
    while (waitpid(clerk->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static int send_ask(struct clerk *clerk, const struct clerk_ask *ask, int fd, struct err *err)
{
    if (io_send(clerk->sock, ask, sizeof *ask, &fd, fd >= 0) < 0)
        return err_set(err, ERR_BUG, "the folder's helper is gone");
    return 0;
}

static int hear(struct clerk *clerk, const struct clerk_ask *ask, struct clerk_answer *out,
                int *out_fd, struct err *err)
{
    own_fd given = -1;
    size_t count = 0;
    if (io_recv(clerk->sock, out, sizeof *out, &given, 1, &count) != 1)
        return err_set(err, ERR_BUG, "the folder's helper is gone");
    if (out->err.kind != ERR_NONE) {
        *err = out->err;
        return -1;
    }
    if (out->error) {
        char path[120];
        str_plain(path, sizeof path, (struct str){ ask->path, ask->path_len });
        errno = out->error;
        return err_sys(err, "%s '%s'", ask->op >= CLERK_WRITE ? "change" : "look at", path);
    }
    if (out_fd)
        *out_fd = take_fd(&given);
    return 0;
}

/* One question and its answer. */
static int ask_clerk(struct clerk *clerk, const struct clerk_ask *ask, int fd,
                     struct clerk_answer *out, int *out_fd, struct err *err)
{
    return send_ask(clerk, ask, fd, err) < 0 ? -1 : hear(clerk, ask, out, out_fd, err);
}

static int fill_ask(struct clerk_ask *ask, enum clerk_op op, struct str path, struct err *err)
{
    memset(ask, 0, sizeof *ask);
    if (path.len >= sizeof ask->path)
        return err_set(err, ERR_LIMIT, "a path of %zu bytes is too long", path.len);
    ask->op = op;
    ask->path_len = (uint32_t)path.len;
    memcpy(ask->path, path.at, path.len);
    return 0;
}

static int read_list(int fd, struct buf *out, struct err *err)
{
    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || buf_read(out, fd) < 0)
        return err_sys(err, "read the list of the folder");
    return 0;
}

int clerk_masks_begin(struct clerk *clerk, struct str also, struct err *err)
{
    static struct clerk_ask ask;
    return fill_ask(&ask, CLERK_MASKS, also, err) < 0 ? -1 : send_ask(clerk, &ask, -1, err);
}

int clerk_masks_end(struct clerk *clerk, struct buf *out, struct walk_facts *facts, struct err *err)
{
    static const struct clerk_ask ask = { .op = CLERK_MASKS };
    static struct clerk_answer answer;
    own_fd fd = -1;
    if (hear(clerk, &ask, &answer, &fd, err) < 0 || read_list(fd, out, err) < 0)
        return -1;
    *facts = answer.facts;
    return 0;
}

int clerk_list(struct clerk *clerk, struct str path, struct buf *out, struct err *err)
{
    static struct clerk_ask ask;
    static struct clerk_answer answer;
    own_fd fd = -1;
    if (fill_ask(&ask, CLERK_LIST, path, err) < 0 ||
        ask_clerk(clerk, &ask, -1, &answer, &fd, err) < 0)
        return -1;
    return read_list(fd, out, err);
}

int clerk_look(struct clerk *clerk, struct str path, struct change_entry *out, struct err *err)
{
    static struct clerk_ask ask;
    static struct clerk_answer answer;
    if (fill_ask(&ask, CLERK_LOOK, path, err) < 0 ||
        ask_clerk(clerk, &ask, -1, &answer, NULL, err) < 0)
        return -1;
    *out = (struct change_entry){
        .kind = answer.kind < CHANGE_KINDS ? (enum change_kind)answer.kind : CHANGE_OTHER,
        .mode = answer.mode, .size = answer.size, .mtime_ns = answer.mtime_ns,
        .ctime_ns = answer.ctime_ns,
    };
    answer.target[sizeof answer.target - 1] = 0;
    if (out->kind == CHANGE_LINK)
        out->target = buf_strdup(str_of(answer.target));
    return 0;
}

int clerk_read(struct clerk *clerk, struct str path, int *out_fd, struct err *err)
{
    static struct clerk_ask ask;
    static struct clerk_answer answer;
    return fill_ask(&ask, CLERK_READ, path, err) < 0
               ? -1
               : ask_clerk(clerk, &ask, -1, &answer, out_fd, err);
}

static int change(struct clerk *clerk, enum clerk_op op, struct str path, uint32_t mode,
                  const char *target, int content, uint64_t size, struct err *err)
{
    static struct clerk_ask ask;
    static struct clerk_answer answer;
    if (fill_ask(&ask, op, path, err) < 0)
        return -1;
    ask.mode = mode;
    ask.size = size;
    if (target && strlen(target) >= sizeof ask.target)
        return err_set(err, ERR_LIMIT, "a link's target is too long");
    if (target)
        memcpy(ask.target, target, strlen(target));
    return ask_clerk(clerk, &ask, content, &answer, NULL, err);
}

int clerk_write(struct clerk *clerk, struct str path, uint32_t mode, int content, uint64_t size,
                struct err *err)
{
    return change(clerk, CLERK_WRITE, path, mode, NULL, content, size, err);
}

int clerk_make_link(struct clerk *clerk, struct str path, const char *target, struct err *err)
{
    return change(clerk, CLERK_LINK, path, 0, target, -1, 0, err);
}

int clerk_make_folder(struct clerk *clerk, struct str path, uint32_t mode, struct err *err)
{
    return change(clerk, CLERK_FOLDER, path, mode, NULL, -1, 0, err);
}

int clerk_remove(struct clerk *clerk, struct str path, struct err *err)
{
    return change(clerk, CLERK_REMOVE, path, 0, NULL, -1, 0, err);
}
