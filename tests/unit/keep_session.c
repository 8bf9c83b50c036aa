/* A session of the real broker: see the header. */
#include "keep_session.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "check.h"
#include "engine/talk/plan.h"

#define WAIT_MS 20000

struct box_broker keep_house = BOX_BROKER_INIT;
static struct box_news waiting[64];
static size_t waiting_count;
static int streams[BOX_NEWS_FDS]; /* of the occupant; it must not lose them */
struct keep_channel keep_live = { -1, -1 };

/* stdout of the driver goes to a pipe that nobody reads: the loop prints nothing. */
static const char program[] =
    "{\"op\":\"run\",\"code\":\""
    "import os, signal, socket, sys, time, ctypes, subprocess, fcntl\\n"
    "names, x, said = globals(), 1, 'up'\\n"
    "def answer(text):\\n"
    "    try: return eval(text, names)\\n"
    "    except SyntaxError: return exec(text, names)\\n"
    "def refused(call, *args):\\n"
    "    try: call(*args)\\n"
    "    except OSError as e: return e.errno\\n"
    "    return 0\\n"
    "def others(): return [p for p in [*range(2, 40), *range(32250, 32300)] if p != os.getpid()]\\n"
    "while True:\\n"
    "    os.write(250, str(said).encode() + bytes(1))\\n"
    "    try:\\n"
    "        text = os.read(251, 65536).decode()\\n"
    "        if not text: os._exit(0)\\n"
    "        said = answer(text)\\n"
    "    except BaseException as e: said = repr(e)\\n"
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
            check_failed(__FILE__, __LINE__, "step %u failed: %s", news.step, strerror(news.error));
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
    keep_order(&(struct box_call){ .op = op, .box = BOX, .keep.state = place }, NULL, 0);
}

void keep_tell(const char *text)
{
    CHECK_INT(write(keep_live.requests, text, strlen(text)), strlen(text));
}

/* Each answer ends with a NUL. */
static const char *hear(void)
{
    static char said[4096];
    struct pollfd ready = { .fd = keep_live.words, .events = POLLIN };
    for (size_t len = 0; len < sizeof said; len++) {
        CHECK_INT(poll(&ready, 1, WAIT_MS), 1);
        if (read(keep_live.words, said + len, 1) != 1)
            return "gone";
        if (!said[len])
            return said;
    }
    return "too long";
}

const char *keep_ask(const char *text)
{
    if (write(keep_live.requests, text, strlen(text)) < 0)
        return "gone";
    return hear();
}

static void channel(int theirs[BOX_CHANNEL])
{
    int words[2], requests[2];
    CHECK(pipe2(words, O_CLOEXEC) == 0 && pipe2(requests, O_CLOEXEC) == 0);
    own_close_fd(&keep_live.words);
    own_close_fd(&keep_live.requests);
    keep_live = (struct keep_channel){ words[0], requests[1] };
    theirs[BOX_WORDS] = words[1];
    theirs[BOX_REQUESTS] = requests[0];
}

static void order_with_channel(const struct box_call *call)
{
    int theirs[BOX_CHANNEL];
    channel(theirs);
    keep_order(call, theirs, BOX_CHANNEL);
    close(theirs[BOX_WORDS]);
    close(theirs[BOX_REQUESTS]);
}

static void start_zygote(void)
{
    struct plan plan;
    struct err err = ERR_INIT;
    int fds[BOX_PLANTS_MAX + 1];
    own_image image = IMAGE_INIT;
    CHECK_INT(image_open("host", /* state_dirfd= */ -1, /* recompute= */ false, &image, &err), 0);
    const struct plan_image in = { &image, NULL, -1 };
    CHECK_INT(plan_zygote(false, &in, &plan, &err), 0);
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
    signal(SIGPIPE, SIG_IGN);
    if (box_broker_open(&keep_house, NULL, 0, &err) < 0) {
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
                               .create = { .memory_bytes = memory_bytes, .disk_bytes = 32 * MIB,
                                           .disk_inodes = 4096, .pids = 32,
                                           .cpu_thousandths = 1000 } };
    keep_order(&create, NULL, 0);
    keep_news_of(BOX_NEWS_READY);
    struct box_call fork_it = {
        .op = BOX_OP_FORK, .box = box,
        .start = { .required = box_walls_required(), .cpu_s = 120, .open_files = 512, .waits = 1,
                   .session = 1 },
    };
    order_with_channel(&fork_it);
    keep_news_of(BOX_NEWS_STARTED);
    keep_order(&(struct box_call){ .op = BOX_OP_BEGIN, .box = box }, NULL, 0);
    keep_tell(program);
    CHECK_TEXT(hear(), "up");
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
    if (geteuid() == 0 &&
        (setresgid(ordinary, ordinary, ordinary) < 0 ||
         setresuid(ordinary, ordinary, ordinary) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0))
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
    CHECK_INT(news.state, place);
    return news;
}

void keep_must_park(uint32_t place)
{
    struct box_news news = keep_park(place);
    /* It has answered, but on a busy machine it may not have come to wait again. */
    for (int i = 0; i < 20 && news.end == INJECT_NOT_QUIET; i++)
        news = keep_park(place);
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
    struct box_call call = { .op = BOX_OP_WAKE, .box = BOX,
                             .keep = { .state = place, .ticket = ticket } };
    order_with_channel(&call);
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
                               .create = { .memory_bytes = 64 * MIB, .disk_bytes = 8 * MIB,
                                           .disk_inodes = 512, .pids = 8,
                                           .cpu_thousandths = 1000 } };
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

static int count_children_of_broker(void)
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

int keep_children_of_broker(int awaited)
{
    int count = count_children_of_broker();
    for (int i = 0; i < 500 && count != awaited; i++) {
        poll(NULL, 0, 10);
        count = count_children_of_broker();
    }
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
