/* The engine's side of the broker's socket, and error messages for the broker's reports. Runs in
 * the engine's process, without privileges. */
#include "box/host/box.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "box/host/container.h"
#include "box/wall/filter.h"

const char *const box_wall_names[BOX_WALL_COUNT] = {
#define X(id, name, required) [BOX_WALL_##id] = name,
    BOX_WALLS(X)
#undef X
};

static const char *const step_texts[] = {
#define X(id, text) [BOX_STEP_##id] = text,
    BOX_STEPS(X)
#undef X
};

uint32_t box_walls_required(void)
{
    uint32_t walls = 0;
#define X(id, name, required) walls |= required ? BOX_WALL_BIT(id) : 0;
    BOX_WALLS(X)
#undef X
    return walls;
}

int box_send(const struct box_broker *broker, const struct box_call *call, const int *fds,
             size_t count, struct err *err)
{
    if (io_send(broker->sock, call, sizeof *call, fds, count) < 0)
        return box_broker_lost(broker, err);
    return 0;
}

int box_send_now(const struct box_broker *broker, const struct box_call *call, const int *fds,
                 size_t count, struct err *err)
{
    if (io_send_now(broker->sock, call, sizeof *call, fds, count) == 0)
        return 0;
    return errno == EAGAIN ? 1 : box_broker_lost(broker, err);
}

int box_receive(const struct box_broker *broker, struct box_news *news, int fds[BOX_NEWS_FDS],
                struct err *err)
{
    int came[BOX_NEWS_FDS];
    size_t count = 0, next = 0;
    int got = io_recv(broker->sock, news, sizeof *news, came, BOX_NEWS_FDS, &count);
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        fds[i] = -1;
    if (got != 1)
        return box_broker_lost(broker, err);
    /* Without bits the descriptors come in order from the first entry. */
    for (int i = 0; i < BOX_NEWS_FDS && next < count; i++) {
        if (news->fds & 1u << i || !news->fds)
            fds[i] = came[next++];
    }
    while (next < count)
        close(came[next++]);
    return 0;
}

void box_broker_close(struct box_broker *broker)
{
    own_close_fd(&broker->sock); /* the broker reads the end and ends everything */
    while (broker->broker > 0 && waitpid(broker->broker, NULL, 0) < 0 && errno == EINTR)
        continue;
    own_close_fd(&broker->lifeline);
    while (broker->janitor > 0 && waitpid(broker->janitor, NULL, 0) < 0 && errno == EINTR)
        continue;
    due_close(broker->due);
    *broker = BOX_BROKER_INIT;
}

static int tell_missing(uint32_t walls, struct err *err)
{
    char names[400] = "";
    size_t len = 0;
    for (size_t i = 0; i < BOX_WALL_COUNT; i++) {
        if (walls & 1u << i && len + 40 < sizeof names)
            len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", len > 0 ? ", " : "",
                                    box_wall_names[i]);
    }
    err_set(err, ERR_HOST, "the occupant's posture lacks walls that the profile requires: %s",
            names);
    err_hint(err, "'cupel doctor' says why this host cannot raise them for this user; as root on a "
                  "host with control groups all of them stand");
    err->sys = EPERM;
    return -1;
}

int box_failure(const struct box_news *news, struct err *err)
{
    static const struct {
        enum box_step step;
        int error; /* 0: any */
        const char *fix; /* NULL: box_container_hint */
    } fixes[] = {
        { BOX_STEP_CLONE, ENOSPC, "raise the limits: 'sysctl -w user.max_user_namespaces=10000 "
                                  "user.max_net_namespaces=10000'" },
        { BOX_STEP_CLONE, EPERM, NULL },
        { BOX_STEP_ID_MAP, EPERM, NULL },
        { BOX_STEP_JOIN, EPERM, NULL },
        { BOX_STEP_PRIVATE, 0, NULL },
        { BOX_STEP_ROOT, 0, NULL },
        { BOX_STEP_PIVOT, EPERM, NULL },
        { BOX_STEP_PROC, 0, NULL },
        { BOX_STEP_ENTER, EPERM, NULL },
        { BOX_STEP_IMAGE, ENODEV, "load the kernel's module: 'sudo modprobe overlay'" },
        { BOX_STEP_IMAGE, EPERM, "the kernel must allow overlayfs in user namespaces: Linux 5.11 "
                                 "or later" },
        { BOX_STEP_IMAGE, EINVAL, "the kernel refuses an overlay of /usr: run 'cupel doctor', "
                                  "and look for overlayfs in 'dmesg'" },
        { BOX_STEP_IMAGE, E2BIG, "too many mounts below /usr: 'findmnt -R /usr' lists them" },
        { BOX_STEP_TREE_OF_IMAGE, ENOENT, "'cupel images' lists the images; an engine that runs "
                                          "since before the first one must be started again" },
        { BOX_STEP_PARTED_IMAGE, 0, "use an image that stands alone; 'findmnt -R /usr' lists the "
                                    "mounts" },
        { BOX_STEP_FOLDER_XATTR, 0, "a layer over a folder needs Linux 6.6 or later; choose "
                                    "read-only or writing through" },
        { BOX_STEP_FOLDER, EINVAL, "the file system of the folder cannot be the lower layer of an "
                                   "overlay" },
        { BOX_STEP_SECCOMP, EBUSY, "run cupel outside a sandbox that itself intercepts system "
                                   "calls" },
        { BOX_STEP_POSTURE, 0, "'cupel doctor' names the wall that this host cannot raise" },
        { BOX_STEP_EXEC, ENOENT, "install the interpreter: 'cupel doctor' names the package" },
    };
    if (news->step == BOX_STEP_POSTURE && news->walls)
        return tell_missing(news->walls, err);
    err_set(err, ERR_HOST, "cannot %s: %s",
            news->step < array_len(step_texts) ? step_texts[news->step] : "go on",
            strerror(news->error));
    err->sys = news->error;
    for (size_t i = 0; i < array_len(fixes); i++) {
        if (fixes[i].step != news->step || (fixes[i].error && fixes[i].error != news->error))
            continue;
        if (fixes[i].fix)
            err_hint(err, "%s", fixes[i].fix);
        else
            box_container_hint(err);
    }
    return -1;
}

const char *box_call_name(int number)
{
    for (size_t i = 0; i < array_len(box_filter_names); i++) {
        if (box_filter_names[i].nr == number)
            return box_filter_names[i].name;
    }
    return "unknown";
}

int box_call_errno(int number)
{
    for (size_t i = 0; i < array_len(box_filter_loud); i++) {
        if (box_filter_loud[i].nr == number)
            return box_filter_loud[i].error;
    }
    return EPERM;
}
