/* The zygote's service, loaded into an interpreter with its packages imported (drivers/zygote.py).
 * It never runs user code and reads only from the broker. It is uid 0 of W with CAP_SYS_ADMIN there
 * and nothing else, in the broker's pid namespace. Its forks enter a box (src/box/inside/enter.c)
 * and then continue as the interpreter.
 *
 * The fork is a bare clone3: neither libc's nor the interpreter's handlers run. There is one thread
 * without locks, and this code sets the two things that libc would set: the cached thread id and
 * the robust list. No heap, no stdio; after the freeze only the stack is written.
 *
 * A fork costs the pages that it writes: each first write is a fault that copies the page. A
 * training run before the first fork shows which pages those are; every occupant copies them in a
 * few calls, which takes half the time. */
#include "box/zygote/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/io.h"
#include "box/inside/enter.h"
#include "box/wall/filter.h"
#include "box/wall/seccomp.h"
#include "box/zygote/freeze.h"

#define DATA_UNKNOWN (-1)
/* Just under the largest block that malloc adapts to (32 MiB on 64 bits). */
#define LARGEST_BLOCK ((size_t)(32u << 20) - 8192)

#define PAGE UINT64_C(4096)
#define FRESH_MAX 16
#define RANGES_MAX 8000
#define MAPS_ROOM ((size_t)(1u << 20))
#define ENTRIES_AT_ONCE 4096
/* /proc/self/pagemap: the page is present, anonymous, and mapped by no other process. */
#define PAGEMAP_KIND (UINT64_C(1) << 63 | UINT64_C(1) << 61 | UINT64_C(1) << 56)
#define PAGEMAP_OWN (UINT64_C(1) << 63 | UINT64_C(1) << 56)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define TIDY_BLOCK ((size_t)(1u << 20))

/* Filled by drivers/zygote.py with the same layout. */
struct zygote_setup {
    const char *request[ZYGOTE_TRAININGS];
    uint64_t fresh_count;
    struct {
        void *at;
        uint64_t len;
    } fresh[FRESH_MAX]; /* must be random and different in every occupant */
};

struct pages {
    uint64_t count;
    struct {
        char *at;
        size_t len;
    } range[RANGES_MAX];
};

/* One for each training. Its child writes it, every occupant reads it; the address is set before
 * the freeze. */
static struct pages *trained;

struct service {
    const struct zygote_setup *setup;
    int sock, own_pid_ns;
    uint64_t tid_address; /* address of libc's cached thread id */
    void *robust_head;
    size_t robust_len;
    int64_t data_bytes; /* that the interpreter already uses: RLIMIT_DATA counts them */
};

/* Many words may equal the thread id when it is a small number. The right one is where libc finds
 * the owner of a mutex. */
static bool is_tid_address(int *address)
{
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    const int tid = *address, other = tid ^ 0x10000000;
    *(volatile int *)address = other;
    bool found = pthread_mutex_lock(&mutex) == 0 && mutex.__data.__owner == other;
    pthread_mutex_unlock(&mutex);
    *(volatile int *)address = tid;
    return found;
}

static int find_tid_address(uint64_t *out)
{
    int *address = NULL;
    const int tid = (int)syscall(SYS_gettid);
    if (prctl(PR_GET_TID_ADDRESS, &address, 0, 0, 0) == 0 && address && *address == tid &&
        is_tid_address(address)) {
        *out = (uint64_t)(uintptr_t)address;
        return 0;
    }
    int *block = __builtin_thread_pointer(); /* a kernel without checkpoint/restore */
    for (int i = 0; i < 512; i++) {
        if (block[i] == tid && is_tid_address(&block[i])) {
            *out = (uint64_t)(uintptr_t)&block[i];
            return 0;
        }
    }
    errno = ENOTSUP;
    return -1;
}

static int64_t data_now(void)
{
    char text[128];
    if (io_read_text(AT_FDCWD, "/proc/self/statm", text, sizeof text) <= 0)
        return DATA_UNKNOWN;
    const char *at = text;
    int64_t pages = 0;
    for (int field = 0; field < 5 && *at; field++) /* size resident shared text lib DATA */
        at += strcspn(at, " ") + 1;
    for (; *at >= '0' && *at <= '9'; at++)
        pages = pages * 10 + (*at - '0');
    return pages * 4096;
}

static int confine(void)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return seccomp_raise(box_filter_zygote, SECCOMP_FILTER_FLAG_SPEC_ALLOW);
}

static int answer(const struct service *service, int32_t pid, int error)
{
    struct zygote_answer word = { .pid = pid, .error = error };
    return io_send(service->sock, &word, sizeof word, NULL, 0);
}

/* A hint: an old kernel refuses it, and a full box faults soon enough. */
static void make_ready(const struct pages *pages)
{
    for (uint64_t i = 0; i < pages->count; i++) {
        if (madvise(pages->range[i].at, pages->range[i].len, MADV_POPULATE_WRITE) < 0 &&
            errno == EINVAL)
            return;
    }
}

/* Random state must differ in every occupant. */
static void refresh(const struct zygote_setup *setup)
{
    for (uint64_t i = 0; i < setup->fresh_count; i++) {
        uint64_t done = 0;
        while (done < setup->fresh[i].len) {
            ssize_t n = getrandom((char *)setup->fresh[i].at + done, setup->fresh[i].len - done, 0);
            if (n < 0 && errno != EINTR)
                _exit(75);
            done += n > 0 ? (uint64_t)n : 0;
        }
    }
}

/* In the child. On failure enter_box reports and exits. */
static void enter(const struct service *service, const struct zygote_order *order, const int *fds)
{
    const int *rest = fds + POSTURE_NS_COUNT + (order->has_cgroup ? 1 : 0);
    const int *mine = rest + order->join_count + (order->has_rules ? 1 : 0);
    struct enter_plan plan = {
        .ns_fds = fds, .join_fds = rest, .join_count = (int)order->join_count,
        .report = mine[5], .rules = order->has_rules ? mine[-1] : -1, .two_ids = order->two_ids,
        .outside = &order->outside,
    };
    struct enter_start start = {
        .stdio = { mine[0], mine[1], mine[2] }, .channel = { mine[3], mine[4] }, .exec_block = -1,
        .required = order->required, .broker_walls = order->broker_walls,
        .cpu_s = order->cpu_s, .open_files = order->open_files, .processes = order->processes,
        .file_bytes = order->file_bytes,
        .data_bytes = order->data_bytes ? order->data_bytes + service->data_bytes : 0,
        .piped_core = order->piped_core, .through = order->through,
        .parkable = order->parkable,
    };
    enter_box(&plan, &start);
    make_ready(&trained[ZYGOTE_TRAIN_LEAST]);
    if (order->rehearsal != ZYGOTE_NO_REHEARSAL)
        make_ready(&trained[ZYGOTE_TRAIN_COMMON]);
    if (order->rehearsal == ZYGOTE_REHEARSE_ALL)
        make_ready(&trained[ZYGOTE_TRAIN_LARGE]);
    refresh(service->setup);
    syscall(SYS_set_robust_list, service->robust_head, service->robust_len);
    close(ENTER_FD_REPORT);
}

static size_t fds_of(const struct zygote_order *order)
{
    if (order->join_count > IO_FDS_MAX)
        return 0;
    return POSTURE_NS_COUNT + (order->has_cgroup ? 1u : 0u) + order->join_count +
           (order->has_rules ? 1u : 0u) + 6;
}

/* 0 in the child, its pid in the zygote, or -1 with errno. */
static long fork_into(const struct service *service, const struct zygote_order *order,
                      const int *fds)
{
    struct clone_args args = {
        .flags = CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
        .child_tid = service->tid_address,
    };
    if (order->has_cgroup) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)fds[POSTURE_NS_COUNT];
    }
    if (setns(fds[POSTURE_NS_PID], CLONE_NEWPID) < 0)
        return -1;
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        return 0;
    int saved = errno;
    /* Otherwise the zygote would keep a dead box's namespace, and the next fork would land in
     * it. */
    if (setns(service->own_pid_ns, CLONE_NEWPID) < 0)
        _exit(72);
    errno = saved;
    return pid;
}

/* Usually the numbers are consecutive. */
static void close_all(const int *fds, size_t count)
{
    if (count > 0 && fds[count - 1] - fds[0] == (int)count - 1) {
        io_close_between(fds[0], fds[count - 1]);
        return;
    }
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static int serve(const struct service *service)
{
    for (;;) {
        struct zygote_order order;
        int fds[IO_FDS_MAX];
        size_t count = 0;
        int got = io_recv(service->sock, &order, sizeof order, fds, IO_FDS_MAX, &count);
        if (got != 1)
            _exit(got == 0 ? 0 : 73); /* the broker is gone, or sent another size */
        errno = EBADMSG;
        long pid = count == fds_of(&order) ? fork_into(service, &order, fds) : -1;
        if (pid == 0) {
            enter(service, &order, fds);
            return (int)order.rehearsal;
        }
        int error = pid < 0 ? errno : 0;
        close_all(fds, count);
        if (answer(service, pid < 0 ? -1 : (int32_t)pid, error) < 0)
            _exit(0);
    }
}

/* The compiler would drop a plain pair of calls. */
static void take_and_free(size_t len)
{
    void *volatile block = malloc(len);
    free(block);
}

/* From now on large blocks come from the heap's end, as after a program's first big array, and not
 * from mappings of their own, which cannot be frozen. Called before the imports. */
__attribute__((visibility("default"))) void zygote_prepare(void);
void zygote_prepare(void)
{
    take_and_free(LARGEST_BLOCK);
}

/* Sort free blocks into the heap's bins now. libc delays this until a large block is requested, and
 * then each child would write to every free block. */
static void tidy_heap(void)
{
    malloc_trim(0);
    for (int i = 0; i < 64; i++) /* libc sorts at most 10,000 blocks at once */
        take_and_free(TIDY_BLOCK);
}

/* --- training --- */

static void note_page(struct pages *out, char *page)
{
    uint64_t last = out->count - 1;
    if (out->count && out->range[last].at + out->range[last].len == page) {
        out->range[last].len += PAGE;
    } else if (out->count < RANGES_MAX) {
        out->range[out->count].at = page;
        out->range[out->count++].len = PAGE;
    }
}

/* Note the pages of one mapping that are private to this process. */
static void note_mapping(struct pages *out, int pagemap, uint64_t from, uint64_t to)
{
    uint64_t entries[ENTRIES_AT_ONCE];
    for (uint64_t at = from; at < to;) {
        size_t want = (to - at) / PAGE;
        want = want < ENTRIES_AT_ONCE ? want : ENTRIES_AT_ONCE;
        ssize_t n = pread(pagemap, entries, want * sizeof entries[0],
                          (off_t)(at / PAGE * sizeof entries[0]));
        if (n < (ssize_t)sizeof entries[0])
            return;
        for (size_t i = 0; i < (size_t)n / sizeof entries[0]; i++, at += PAGE) {
            if ((entries[i] & PAGEMAP_KIND) == PAGEMAP_OWN)
                note_page(out, (char *)(uintptr_t)at);
        }
    }
}

/* The end of a training, in its child: never returns. */
__attribute__((visibility("default"))) void zygote_note_pages(int training);
void zygote_note_pages(int training)
{
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    char *text = mmap(NULL, MAPS_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (maps < 0 || pagemap < 0 || text == MAP_FAILED)
        _exit(1);
    size_t len = 0;
    ssize_t n;
    while (len < MAPS_ROOM - 1 && (n = read(maps, text + len, MAPS_ROOM - 1 - len)) > 0)
        len += (size_t)n;
    for (const char *line = text; *line; line = strchrnul(line, '\n') + 1) {
        char *at;
        uint64_t from = strtoull(line, &at, 16), to = strtoull(at + 1, &at, 16);
        if (from != (uint64_t)(uintptr_t)text && at[2] == 'w' && at[4] == 'p')
            note_mapping(&trained[training], pagemap, from, to);
        if (!*strchrnul(line, '\n'))
            break;
    }
    _exit(0);
}

/* Fork a child that runs a built-in request like an occupant and notes its pages. 0 in the child. A
 * child that fails notes nothing. */
static int train(const struct service *service, int training)
{
    struct clone_args args = {
        .flags = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
        .child_tid = service->tid_address, .exit_signal = SIGCHLD,
    };
    const char *request = service->setup->request[training];
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return -1;
    /* The request is short and fits into the pipe; nobody reads the answer. */
    int failed = io_write_all(pair[1], request, strlen(request));
    long pid = failed ? -1 : syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        int nobody = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nobody < 0 || dup2(pair[0], BOX_FD_REQUESTS) < 0 || dup2(nobody, BOX_FD_WORDS) < 0)
            _exit(1);
        close(nobody);
        close(pair[1]);
        refresh(service->setup);
        return 0;
    }
    close(pair[0]);
    while (pid > 0 && waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(pair[1]);
    return pid > 0 ? 1 : -1;
}

/* Replace shared memory by a private copy at the same address. */
static int keep_trained(void)
{
    const size_t len = ZYGOTE_TRAININGS * sizeof *trained;
    void *copy = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return -1;
    for (int i = 0; i < ZYGOTE_TRAININGS; i++)
        memcpy((struct pages *)copy + i, &trained[i],
               offsetof(struct pages, range) + trained[i].count * sizeof trained[i].range[0]);
    return mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, trained) == trained ? 0 : -1;
}

/* The pages that a session's cells write: the keeper makes them ready. */
static int tell_ready(const struct service *service)
{
    static struct zygote_ready word;
    struct park_pages *out = &word.cell_pages;
    const struct pages *cell = &trained[ZYGOTE_TRAIN_CELL];
    for (uint64_t i = 0; i < cell->count; i++) {
        for (size_t at = 0; at < cell->range[i].len && out->count < PARK_PAGES_MAX; at += PAGE)
            out->at[out->count++] = (uint64_t)(uintptr_t)cell->range[i].at + at;
    }
    return io_send(service->sock, &word, sizeof word, NULL, 0);
}

/* Called before the program of a large request starts. */
__attribute__((visibility("default"))) void zygote_make_ready(void);
void zygote_make_ready(void)
{
    make_ready(&trained[ZYGOTE_TRAIN_LARGE]);
}

/* In the training of a cell: continue as a copy. The original, which shares all pages that are not
 * written, waits for its end. */
__attribute__((visibility("default"))) void zygote_copy(void);
void zygote_copy(void)
{
    struct clone_args args = { .exit_signal = SIGCHLD };
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        return;
    while (pid > 0 && waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    _exit(pid < 0);
}

__attribute__((visibility("default"))) void zygote_fill_gaps(const struct freeze_allocator *python);
void zygote_fill_gaps(const struct freeze_allocator *python)
{
    tidy_heap();
    freeze_fill_gaps(python);
}

/* Freeze, train, confine, report to the broker, and fork on its orders. Returns in each child, with
 * the rehearsal to do; in the zygote it returns only -1, when the setup failed. */
__attribute__((visibility("default"))) int zygote_serve(int sock, const struct zygote_setup *setup);
int zygote_serve(int sock, const struct zygote_setup *setup)
{
    struct service service = { .sock = sock, .setup = setup };
    service.own_pid_ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    service.data_bytes = data_now();
    trained = mmap(NULL, ZYGOTE_TRAININGS * sizeof *trained, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (service.own_pid_ns < 0 || service.data_bytes < 0 || trained == MAP_FAILED ||
        find_tid_address(&service.tid_address) < 0 ||
        syscall(SYS_get_robust_list, 0, &service.robust_head, &service.robust_len) < 0 ||
        freeze_memory() < 0)
        return -1;
    for (int training = 0; training < ZYGOTE_TRAININGS; training++) {
        int state = train(&service, training);
        if (state <= 0)
            return state < 0 ? -1 : ZYGOTE_TRAINING + training;
    }
    if (keep_trained() < 0 || confine() < 0 || tell_ready(&service) < 0)
        return -1;
    return serve(&service);
}
