/* A session's state put into another session, of python3 as it is meant. Figures are
 * reported, never judged. */
#include "transplant_target.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"

#if INJECT_HERE

static struct transplant_report timed_put(const char *what, const struct park *parked,
                                          const struct cells *fresh)
{
    const int64_t from = clock_now_ns();
    struct transplant_report report = cells_put(parked, fresh);
    printf("# %s: %.2f ms, %u calls, %.1f MB copied\n", what,
           clock_ms_between(from, clock_now_ns()), report.calls, (double)report.bytes_copied / 1e6);
    return report;
}

TEST(transplant_a_session_goes_on_elsewhere_and_here)
{
    if (!may_run())
        return;
    struct cells a = cells_start(), b = cells_start();
    CHECK_TEXT(cell(&a, "x = {'a': [1, 2, 3]}; x"), "{'a': [1, 2, 3]}");
    CHECK_TEXT(cell(&a, "def f(n): return n * len(x['a'])"), "");
    CHECK_TEXT(cell(&b, "x = 'fresh'"), "");
    struct park parked = cells_park(&a);
    timed_put("small", &parked, &b);
    CHECK_TEXT(cell(&b, "f(2)"), "6");
    CHECK_TEXT(cell(&b, "x['a'].append(4); f(2)"), "8");
    CHECK_TEXT(cell(&a, "f(2)"), "6");
    park_drop(&parked);
    cells_end(&a);
    cells_end(&b);
    check_nothing_left();
}

static bool has_packages(struct cells *at)
{
    if (strcmp(cell(at, "import numpy as np, pandas as pd; pd.Series([1, 2]).sum()"), "3") == 0)
        return true;
    printf("# skipped: no pandas\n");
    return false;
}

/* Whatever an interpreter does, in one that was transplanted. */
static void use_all_of_it(struct cells *at)
{
    CHECK_TEXT(cell(at, "df.groupby('k').v.sum().tolist()"), "[2450, 2500]");
    CHECK_TEXT(cell(at, "import gc; gc.collect() >= 0"), "True");
    CHECK_TEXT(cell(at, "import threading, concurrent.futures as cf\n"
                        "with cf.ThreadPoolExecutor(4) as pool: r = list(pool.map(len, 'abcd'))\n"
                        "r"),
               "[1, 1, 1, 1]");
    CHECK_TEXT(cell(at, "1 / 0"), "ZeroDivisionError: division by zero");
    CHECK_TEXT(cell(at, "def deep(n): return n and 1 + deep(n - 1)\n"
                        "import sys; sys.setrecursionlimit(20000); deep(15000)"),
               "15000");
    CHECK_TEXT(cell(at, "import xml.etree.ElementTree as et, sqlite3, decimal, ctypes\n"
                        "sqlite3.connect(':memory:').execute('select 6*7').fetchone()"),
               "(42,)");
    CHECK_TEXT(cell(at, "import subprocess; subprocess.check_output(['echo', 'hi'])"), "b'hi\\n'");
    CHECK_TEXT(cell(at, "import os; pid = os.fork()\nif not pid: os._exit(7)\n"
                        "os.waitpid(pid, 0)[1] >> 8"),
               "7");
    CHECK_TEXT(cell(at, "import scipy.linalg as sl; round(float(sl.det(np.eye(50) * 2) - 2**50))"),
               "0");
    CHECK_TEXT(cell(at, "os.getpid() == threading.get_native_id() == "
                        "int(os.readlink('/proc/self'))"),
               "True");
    CHECK_TEXT(cell(at, "def nest(n): return n and next(map(nest, [n - 1])) + 1\n"
                        "nest(4000)"),
               "4000"); /* which needs the stack of C */
    CHECK_TEXT(cell(at, "big = np.ones(13107200); float(big.sum())"), "13107200.0");
    CHECK_TEXT(cell(at, "del big; blocks = [bytearray(n) for n in range(1, 60000, 7)]; "
                        "sum(map(len, blocks))"),
               "257155714");
    CHECK_TEXT(cell(at, "del blocks; gc.collect() >= 0"), "True");
    CHECK_TEXT(cell(at, "ctypes.CDLL(None).malloc_trim(0) in (0, 1)"), "True");
    CHECK_TEXT(cell(at, "len([bytearray(n) for n in range(1, 60000, 7)])"), "8572");
}

TEST(transplant_pandas_into_another_layout)
{
    if (!may_run())
        return;
    struct cells a = cells_start();
    if (has_packages(&a)) {
        CHECK_TEXT(cell(&a, "df = pd.DataFrame({'k': [i % 2 for i in range(100)], "
                            "'v': range(100)})"),
                   "");
        for (int i = 0; i < 4; i++) {
            struct cells b = cells_start();
            struct park parked = cells_park(&a);
            timed_put("pandas", &parked, &b);
            use_all_of_it(&b);
            CHECK_TEXT(cell(&b, "df = None"), "");
            CHECK_TEXT(cell(&a, "len(df)"), "100");
            park_drop(&parked);
            cells_end(&b);
        }
        use_all_of_it(&a);
    }
    cells_end(&a);
    check_nothing_left();
}

TEST(transplant_a_large_array)
{
    if (!may_run())
        return;
    struct cells a = cells_start();
    if (has_packages(&a)) {
        CHECK_TEXT(cell(&a, "data = np.ones(13107200)"), "");
        struct cells b = cells_start();
        struct park parked = cells_park(&a);
        timed_put("100 MB", &parked, &b);
        CHECK_TEXT(cell(&b, "data *= 2; float(data.sum())"), "26214400.0");
        CHECK_TEXT(cell(&a, "float(data.sum())"), "13107200.0");
        park_drop(&parked);
        cells_end(&b);
    }
    cells_end(&a);
    check_nothing_left();
}

/* As a keeper is: another uid, CAP_SYS_PTRACE and no other (CAP_KILL for the tests' end). */
static void become_keeper(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct caps[2] = { { .effective = 0 } };
    caps[0].effective = caps[0].permitted = 1u << CAP_SYS_PTRACE | 1u << CAP_KILL;
    CHECK_INT(syscall(SYS_capset, &head, caps), 0);
}

TEST(transplant_by_a_tracer_with_one_capability)
{
    if (!may_run() || !two_uids())
        return;
    struct cells a = cells_start(), b = cells_start(), c = cells_fork(&a);
    CHECK_TEXT(cell(&a, "x = list(range(200000)); y = bytearray(b'y') * (5 << 20)"), "");
    become_keeper();
    struct park parked = cells_park(&a);
    timed_put("one capability, another layout", &parked, &b);
    timed_put("one capability, the same layout", &parked, &c);
    CHECK_TEXT(cell(&b, "sum(x), y.count(b'y')"), "(19999900000, 5242880)");
    CHECK_TEXT(cell(&c, "sum(x), y.count(b'y')"), "(19999900000, 5242880)");
    CHECK_TEXT(cell(&b, "import subprocess; subprocess.check_output(['echo', 'hi'])"), "b'hi\\n'");
    park_drop(&parked);
    cells_end(&a);
    cells_end(&b);
    cells_end(&c);
    check_nothing_left();
}

TEST(transplant_between_forks_copies_what_differs)
{
    if (!may_run())
        return;
    struct cells a = cells_start();
    if (has_packages(&a)) {
        CHECK_TEXT(cell(&a, "df = pd.DataFrame({'k': [i % 2 for i in range(100)], "
                            "'v': range(100)})"),
                   "");
        struct cells b = cells_fork(&a);
        CHECK_TEXT(cell(&a, "x = [str(i) for i in range(1000)]"), "");
        struct park parked = cells_park(&a);
        timed_put("pandas, a fork", &parked, &b);
        CHECK_TEXT(cell(&b, "len(x), x[-1]"), "(1000, '999')");
        use_all_of_it(&b);
        park_drop(&parked);
        cells_end(&b);
    }
    cells_end(&a);
    check_nothing_left();
}

#endif
