/* A session of the real broker: see the header. */
#include "keep_session.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "check.h"
#include "engine/plan.h"


#define WAIT_MS 20000

struct box_broker keep_house = BOX_BROKER_INIT;
static struct box_news waiting[64];
static size_t waiting_count;
static int streams[BOX_NEWS_FDS]; /* of the occupant; it must not lose them */
int keep_live = -1;

/* stdout of the driver goes to a pipe that nobody reads: the loop prints nothing. */
static const char program[] =
    "{\"op\":\"run\",\"code\":\""
    "import os, signal, socket, sys, time, ctypes, subprocess, fcntl\\n"
    "box, names, x = socket.socket(fileno=251), globals(), 1\\n"
    "def answer(text):\\n"
    "    try: return eval(text, names)\\n"
    "    except SyntaxError: return exec(text, names)\\n"
    "def refused(call, *args):\\n"
    "    try: call(*args)\\n"
    "    except OSError as e: return e.errno\\n"
    "    return 0\\n"
    "def others(): return [p for p in [*range(2, 40), *range(32250, 32300)] if p != os.getpid()]\\n"
    "while True:\\n"
    "    try:\\n"
    "        text = box.recvmsg(65536)[0].decode()\\n"
    "        if not text: os._exit(0)\\n"
    "        said = answer(text)\\n"
    "    except BaseException as e: said = repr(e)\\n"
    "    box.send(str(said).encode())\\n"
    "\",\"args\":[],\"call\":null,\"stdin\":false,\"env\":{}}\n";

struct box_news keep_news_of(uint32_t kind)
{
    struct err err = ERR_INIT;
    for (size_t i = 0; i < waiting_count; i++) {
        if (waiting[i].kind == kind) {
            struct box_news found = waiting[i];
            memmove(&waiting[i], &waiting[i + 1], (--waiting_count - i) * sizeof found);
            return found;
        }
    }
    for (;;) {
        struct pollfd ready = { .fd = keep_house.sock, .events = POLLIN };
        struct box_news news;
        int fds[BOX_NEWS_FDS];
        if (poll(&ready, 1, WAIT_MS) != 1)
            check_failed(__FILE__, __LINE__, "news %u does not come", kind);
        CHECK_INT(box_receive(&keep_house, &news, fds, &err), 0);
        if (news.kind == BOX_NEWS_STARTED)
            memcpy(streams, fds, sizeof fds);
        if (news.kind == kind)
            return news;
        if (news.kind == BOX_NEWS_FAILED)
            check_failed(__FILE__, __LINE__, "step %u failed: %s", news.step,
                         strerror(news.error));
        CHECK(waiting_count < array_len(waiting));
        waiting[waiting_count++] = news;
    }
}

bool keep_heard(uint32_t kind)
{
    for (size_t i = 0; i < waiting_count; i++) {
        if (waiting[i].kind == kind)
            return true;
    }
    return false;
}

void keep_order(const struct box_call *call, const int *fds, size_t count)
{
    struct err err = ERR_INIT;
    CHECK_INT(box_send(&keep_house, call, fds, count, &err), 0);
}

void keep_order_place(uint32_t op, uint32_t place)
{
    keep_order(&(struct box_call){ .op = op, .box = BOX, .keep.place = place }, NULL, 0);
}

const char *keep_ask(const char *text)
{
    static char said[4096];
    struct pollfd ready = { .fd = keep_live, .events = POLLIN };
    if (send(keep_live, text, strlen(text), MSG_NOSIGNAL) < 0)
        return "gone";
    CHECK_INT(poll(&ready, 1, WAIT_MS), 1);
    ssize_t n = recv(keep_live, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    return n > 0 ? said : "gone";
}

static int channel(int *out_theirs)
{
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    own_close_fd(&keep_live);
    keep_live = pair[0];
    *out_theirs = pair[1];
    return pair[0];
}

static void start_zygote(void)
{
    struct plan plan;
    struct err err = ERR_INIT;
    int fds[BOX_PLANTS_MAX + 1];
    CHECK_INT(plan_zygote(false, NULL, -1, &plan, &err), 0);
    size_t count = plan.create.zygote.plants.count;
    memcpy(fds, plan.plant_fds, count * sizeof fds[0]);
    fds[count++] = plan.exec_block;
    keep_order(&plan.create, fds, count);
    plan_done(&plan);
    keep_news_of(BOX_NEWS_ZYGOTE);
}

/* A session in box BOX; false: it cannot be here, and says why. */
bool keep_begin_as_we_are(int64_t memory_bytes)
{
    struct err err = ERR_INIT;
    if (box_broker_open(&keep_house, &err) < 0) {
        printf("# skipped: %s\n", err.text);
        return false;
    }
    start_zygote();
    keep_move_in(BOX, memory_bytes);
    return true;
}

void keep_move_in(uint32_t box, int64_t memory_bytes)
{
    struct box_call create = { .op = BOX_OP_CREATE, .box = box,
                               .create = { memory_bytes, 32 * MIB, 4096, 32, 1000, { 0 } } };
    keep_order(&create, NULL, 0);
    keep_news_of(BOX_NEWS_READY);
    int theirs;
    channel(&theirs);
    struct box_call fork_it = {
        .op = BOX_OP_FORK, .box = box,
        .start = { .required = box_walls_required(), .cpu_s = 120, .open_files = 512, .waits = 1,
                   .has_control = 1, .session = 1 },
    };
    keep_order(&fork_it, &theirs, 1);
    close(theirs);
    keep_news_of(BOX_NEWS_STARTED);
    keep_order(&(struct box_call){ .op = BOX_OP_BEGIN, .box = box }, NULL, 0);
    CHECK_INT(send(keep_live, program, sizeof program - 1, MSG_NOSIGNAL), sizeof program - 1);
}

bool keep_begin(int64_t memory_bytes)
{
    if (geteuid() != 0)
        printf("# skipped: needs root, for three uids\n");
    if (geteuid() != 0 || !keep_begin_as_we_are(memory_bytes))
        return false;
    CHECK_TEXT(keep_ask("os.getresuid()"), "(1000, 1000, 1001)");
    return true;
}

bool keep_begin_as_user(int64_t memory_bytes)
{
    const uid_t ordinary = 61005;
    if (geteuid() == 0 && (setresgid(ordinary, ordinary, ordinary) < 0 ||
                           setresuid(ordinary, ordinary, ordinary) < 0 ||
                           prctl(PR_SET_DUMPABLE, 1) < 0))
        check_failed(__FILE__, __LINE__, "cannot become an ordinary user");
    if (!keep_begin_as_we_are(memory_bytes))
        return false;
    CHECK_TEXT(keep_ask("os.getresuid()"), "(1000, 1000, 1000)");
    return true;
}

struct box_news keep_park(uint32_t place)
{
    keep_order_place(BOX_OP_PARK, place);
    struct box_news news = keep_news_of(BOX_NEWS_PARKED);
    CHECK_INT(news.place, place);
    return news;
}

void keep_must_park(uint32_t place)
{
    struct box_news news = keep_park(place);
    if (news.end != INJECT_OK)
        check_failed(__FILE__, __LINE__, "parked: %s, %s", inject_end_name(news.end),
                     strerror(news.error));
}

struct box_news keep_wake(uint32_t place)
{
    return keep_wake_ticket(place, 0);
}

struct box_news keep_wake_ticket(uint32_t place, uint64_t ticket)
{
    int theirs;
    channel(&theirs);
    struct box_call call = { .op = BOX_OP_WAKE, .box = BOX,
                             .keep = { .place = place, .ticket = ticket } };
    keep_order(&call, &theirs, 1);
    close(theirs);
    return keep_news_of(BOX_NEWS_AWAKE);
}

struct box_news keep_sweep(void)
{
    keep_order(&(struct box_call){ .op = BOX_OP_SWEEP, .box = BOX }, NULL, 0);
    return keep_news_of(BOX_NEWS_SWEPT);
}

/* Back to the state of a place, whatever has become of the live process. */
void keep_go_back(uint32_t place)
{
    keep_sweep();
    keep_news_of(BOX_NEWS_EXITED);
    struct box_news news = keep_wake(place);
    if (news.end != INJECT_OK)
        check_failed(__FILE__, __LINE__, "awake: %s, %s", inject_end_name(news.end),
                     strerror(news.error));
}

void keep_end(void)
{
    keep_order(&(struct box_call){ .op = BOX_OP_RELEASE, .box = BOX }, NULL, 0);
    /* The next answer shows that it was not held up. */
    struct box_call create = { .op = BOX_OP_CREATE, .box = BOX,
                               .create = { 64 * MIB, 8 * MIB, 512, 8, 1000, { 0 } } };
    keep_order(&create, NULL, 0);
    keep_news_of(BOX_NEWS_READY);
    box_broker_close(&keep_house);
}

/* A child of the broker, by its name; 0: none. Read as the host sees it. */
pid_t keep_process_named(const char *name)
{
    char line[256], path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", keep_house.broker, keep_house.broker);
    FILE *list = fopen(path, "re");
    pid_t found = 0;
    int pid;
    CHECK(list != NULL);
    while (!found && fscanf(list, "%d", &pid) == 1) {
        snprintf(path, sizeof path, "/proc/%d/comm", pid);
        FILE *comm = fopen(path, "re");
        if (comm && fgets(line, sizeof line, comm) && strncmp(line, name, strlen(name)) == 0)
            found = pid;
        if (comm)
            fclose(comm);
    }
    fclose(list);
    return found;
}

int keep_children_of_broker(void)
{
    char path[64];
    int count = 0, pid;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", keep_house.broker, keep_house.broker);
    FILE *list = fopen(path, "re");
    CHECK(list != NULL);
    while (fscanf(list, "%d", &pid) == 1)
        count++;
    fclose(list);
    return count;
}

int keep_fds_of(pid_t pid)
{
    char path[64];
    int count = 0;
    for (int fd = 0; fd < 512; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
        count += faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    }
    return count;
}

/* "Name:\tvalue" of /proc/PID/status. */
const char *keep_status_of(pid_t pid, const char *name)
{
    static char line[256];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *status = fopen(path, "re");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            break;
    }
    fclose(status);
    line[strcspn(line, "\n")] = 0;
    return line + strlen(name) + 2;
}

#endif
