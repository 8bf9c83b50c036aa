/* Transplanting a small C program that has something of everything, into another start of
 * it (another layout) and into a fork of it (the same one). The program is this one,
 * started with an environment variable; it waits as a session does. What it is told to
 * be ("fill"), it describes in a text, and the texts must agree. */
#include "transplant_target.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "check.h"

/* A sanitized program maps terabytes. */
#if INJECT_HERE && !defined(__SANITIZE_ADDRESS__)

#include <xmmintrin.h>

#define MARK "TRANSPLANT_PROGRAM"
#define PAGE ((size_t)4096)
#define BLOCKS 4000

/* --- the program --- */

static __thread int own_number = 1;
static char *block[BLOCKS], *plain, *fixed, *hidden, *image, *shared;
static volatile int signals_seen;
static int file = -1, folder = -1, pipe_ends[2] = { -1, -1 };
static double (*cosine)(double);
static char altstack[1 << 16];

static void on_signal(int sig)
{
    signals_seen += sig == SIGUSR1;
}

static void *add_one(void *number)
{
    return (void *)((uintptr_t)number + 1);
}

static uintptr_t in_thread(uintptr_t number)
{
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, add_one, (void *)number) == 0)
        pthread_join(thread, &result);
    return (uintptr_t)result;
}

static void *map(int prot, int flags, int fd)
{
    char *made = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
    for (size_t i = 0; i < 8; i += 3)
        memset(made + i * PAGE, (int)(i + 1), PAGE);
    mprotect(made, 8 * PAGE, prot);
    return made;
}

static void fill(const char *scratch)
{
    char path[1024];
    const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
    const stack_t stack = { .ss_sp = altstack, .ss_size = sizeof altstack };
    own_number = 41;
    image[2 * PAGE] = 3;
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(i * 7 % 9000 + 8);
        memset(block[i], (int)i, 8);
    }
    for (size_t i = 0; i < BLOCKS; i += 3) {
        free(block[i]);
        block[i] = NULL;
    }
    plain = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    fixed = map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    hidden = map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    shared = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    void *library = dlopen("libm.so.6", RTLD_NOW);
    *(void **)&cosine = library ? dlsym(library, "cos") : NULL;
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGUSR2, SIG_IGN);
    sigaltstack(&stack, NULL);
    _MM_SET_ROUNDING_MODE(_MM_ROUND_UP);
    umask(026);
    snprintf(path, sizeof path, "%s/file", scratch);
    file = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    folder = open(scratch, O_RDONLY | O_DIRECTORY);
    if (lseek(file, 5, SEEK_SET) != 5 || pipe(pipe_ends) < 0 || chdir(scratch) < 0)
        _exit(75);
    in_thread(1);
}

/* Before the fork that makes a sibling: what both have of one file, and each its own. */
static void prepare(void)
{
    int fd = memfd_create("image", MFD_CLOEXEC);
    if (ftruncate(fd, 8 * (off_t)PAGE) < 0)
        _exit(76);
    image = map(PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    munmap(image, 8 * PAGE);
    image = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
}

static uint32_t sum(const char *bytes, size_t len)
{
    uint32_t total = 7;
    for (size_t i = 0; bytes && i < len; i++)
        total = total * 31 + (unsigned char)bytes[i];
    return total;
}

static bool owner_is_us(void)
{
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_mutex_lock(&mutex);
    const bool ours = mutex.__data.__owner == (int)syscall(SYS_gettid);
    return pthread_mutex_unlock(&mutex) == 0 && ours;
}

static size_t describe(char *out, size_t room)
{
    char folder_name[256], byte = 0;
    uint32_t blocks = 0;
    struct sigaction ignored;
    stack_t stack;
    for (size_t i = 0; i < BLOCKS; i++)
        blocks += block[i] ? sum(block[i], 8) : 1;
    signals_seen = 0;
    raise(SIGUSR1);
    sigaction(SIGUSR2, NULL, &ignored);
    sigaltstack(NULL, &stack);
    const uint32_t image_now = sum(image, 8 * PAGE);
    mprotect(hidden, 8 * PAGE, PROT_READ);
    const uint32_t hidden_now = hidden ? sum(hidden, 8 * PAGE) : 0;
    mprotect(hidden, 8 * PAGE, PROT_NONE);
    return (size_t)snprintf(
        out, room,
        "tls %d blocks %u plain %u fixed %u hidden %u image %u shared %u cos %.3f "
        "signals %d ignored %d stack %p round %d umask %o at %ld byte %zd folder %s mine %d "
        "thread %zu cpu %d",
        own_number, blocks, sum(plain, 8 * PAGE), sum(fixed, 8 * PAGE), hidden_now, image_now,
        sum(shared, 8 * PAGE), cosine ? cosine(1.0) : 0.0, signals_seen,
        ignored.sa_handler == SIG_IGN, stack.ss_sp, (int)_MM_GET_ROUNDING_MODE(), umask(026),
        (long)lseek(file, 0, SEEK_CUR), pread(file, &byte, 1, 5) + byte,
        getcwd(folder_name, sizeof folder_name), owner_is_us(), in_thread(6), sched_getcpu() >= 0);
}

/* Allocate and free as much as a heap can be made to move. */
static void churn(void)
{
    static char *volatile many[3000];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < array_len(many); i++) {
            many[i] = malloc(i * 13 % 40000 + 1);
            memset(many[i], 1, i * 13 % 40000 + 1);
        }
        for (size_t i = 0; i < array_len(many); i++)
            free(many[i]);
    }
    memset(plain, 9, PAGE);
    image[5] = 9;
    own_number++;
}

static void obey(char *word)
{
    static char text[2048];
    size_t len = 2;
    if (strncmp(word, "fill ", 5) == 0)
        fill(word + 5);
    else if (strcmp(word, "churn") == 0)
        churn();
    if (strcmp(word, "describe") == 0)
        len = describe(text, sizeof text);
    else
        memcpy(text, "ok", 3);
    if (send(CELLS_WORDS, text, len, MSG_NOSIGNAL) < 0)
        _exit(77);
}

static void run_program(void)
{
    static char word[512];
    prepare();
    for (;;) {
        ssize_t len = read(CELLS_REQUESTS, word, sizeof word - 1);
        if (len <= 0)
            _exit(len < 0);
        word[len] = 0;
        obey(word);
    }
}

__attribute__((constructor)) static void start_as_program(void)
{
    unsigned own = 0, holder = 0;
    const char *ids = getenv(MARK);
    if (!ids)
        return;
    if (sscanf(ids, "%u %u", &own, &holder) != 2 || setresgid(own, own, own) < 0 ||
        setresuid(own, own, holder) < 0)
        _exit(78);
    run_program();
}

/* --- the tests --- */

/* As a kernel without CONFIG_CHECKPOINT_RESTORE answers. */
static void refuse_set_mm(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_MM, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { array_len(code), code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0)
        _exit(79);
}

static struct python start_program(bool old_kernel)
{
    char ids[64];
    int pair[2];
    cells_session = session;
    cells_session.channel[BOX_WORDS] = CELLS_WORDS;
    cells_session.channel[BOX_REQUESTS] = CELLS_REQUESTS;
    snprintf(ids, sizeof ids, "%u %u", session.own, session.holder);
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    struct python made = { .pid = fork(), .sock = pair[0] };
    if (made.pid == 0) {
        setenv(MARK, ids, 1);
        if (dup2(pair[1], CELLS_WORDS) < 0 || dup2(pair[1], CELLS_REQUESTS) < 0)
            _exit(70);
        io_close_between(3, CELLS_WORDS - 1);
        if (old_kernel)
            refuse_set_mm();
        execl("/proc/self/exe", "program", (char *)NULL);
        _exit(71);
    }
    close(pair[1]);
    CHECK_TEXT(ask(made.sock, "hello"), "ok");
    return made;
}

static struct park park_program(const struct python *at)
{
    struct park made = PARK_NONE;
    CHECK_TEXT(inject_end_name(park_copy(&cells_session, at->pid, &stay, &made)), "ok");
    return made;
}

/* A folder with a file, that the program may enter. */
static void make_scratch(char *out, size_t room)
{
    char path[128];
    snprintf(out, room, "/tmp/transplant-XXXXXX");
    CHECK(mkdtemp(out) && chmod(out, 0777) == 0);
    snprintf(path, sizeof path, "%s/file", out);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    CHECK(fd >= 0 && write(fd, "0123456789", 10) == 10 && fchmod(fd, 0666) == 0 && close(fd) == 0);
}

static void remove_scratch(const char *scratch)
{
    char path[128];
    snprintf(path, sizeof path, "%s/file", scratch);
    CHECK(unlink(path) == 0 && rmdir(scratch) == 0);
}

static void put(const struct park *parked, const struct python *fresh,
                struct transplant_report *out)
{
    enum inject_end end = transplant(&cells_session, parked, &cells_session, fresh->pid, 10000,
                                     out);
    if (end != INJECT_OK)
        check_failed(__FILE__, __LINE__, "%s, %s", inject_end_name(end), strerror(errno));
}

static void check_same(struct python *filled, struct python *fresh)
{
    char before[512], scratch[64], word[128];
    struct transplant_report report;
    make_scratch(scratch, sizeof scratch);
    snprintf(word, sizeof word, "fill %s", scratch);
    CHECK_TEXT(ask(filled->sock, word), "ok");
    snprintf(before, sizeof before, "%s", ask(filled->sock, "describe"));
    CHECK(strstr(before, "signals 1 ignored 1") && strstr(before, "mine 1 thread 7 cpu 1"));
    struct park parked = park_program(filled);
    put(&parked, fresh, &report);
    printf("# %u calls, %.1f MB\n", report.calls, (double)report.bytes_copied / 1e6);
    CHECK_TEXT(ask(fresh->sock, "describe"), before);
    CHECK_INT(report.lost_bits, BOX_LOST_BIT(PIPES) | BOX_LOST_BIT(MEMORY));
    CHECK_TEXT(ask(fresh->sock, "churn"), "ok");
    CHECK(strcmp(ask(fresh->sock, "describe"), before) != 0);
    CHECK_TEXT(ask(filled->sock, "describe"), before);
    CHECK_TEXT(ask(filled->sock, "churn"), "ok");
    /* The parked one is still what it was, and can be woken. */
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    struct python woken = { .sock = pair[0] };
    enum inject_end end = park_wake(&cells_session, &parked, (int[]){ pair[1], pair[1] }, &stay,
                                    &woken.pid, &woken_lost);
    CHECK_TEXT(inject_end_name(end), "ok");
    close(pair[1]);
    CHECK_TEXT(ask(woken.sock, "describe"), before);
    stop(&woken);
    remove_scratch(scratch);
}

TEST(transplant_a_program_into_another_layout)
{
    if (!may_run())
        return;
    for (int i = 0; i < 6; i++) {
        struct python filled = start_program(false), fresh = start_program(false);
        check_same(&filled, &fresh);
        stop(&filled);
        stop(&fresh);
    }
    check_nothing_left();
}

TEST(transplant_on_a_kernel_that_lacks_a_feature_says_so)
{
    if (!may_run())
        return;
    struct python filled = start_program(false), fresh = start_program(true);
    struct park parked = park_program(&filled);
    struct transplant_report report = { .calls = 7 };
    enum inject_end end = transplant(&cells_session, &parked, &cells_session, fresh.pid, 10000,
                                     &report);
    CHECK_INT(errno, ENOSYS);
    CHECK(end == INJECT_LOST && report.calls == 7);
    CHECK(strstr(transplant_reason(end, ENOSYS), "CONFIG_CHECKPOINT_RESTORE"));
    CHECK_TEXT(ask(filled.sock, "hello"), "ok");
    park_drop(&parked);
    stop(&filled);
    close(fresh.sock);
    check_nothing_left();
}

TEST(transplant_a_program_into_a_fork_of_it)
{
    if (!may_run())
        return;
    struct python filled = start_program(false);
    struct park parked = park_program(&filled);
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    struct python fresh = { .sock = pair[0] };
    CHECK_INT(park_wake(&cells_session, &parked, (int[]){ pair[1], pair[1] }, &stay, &fresh.pid,
                        &woken_lost),
              INJECT_OK);
    close(pair[1]);
    check_same(&filled, &fresh);
    stop(&filled);
    stop(&fresh);
    check_nothing_left();
}

#endif
