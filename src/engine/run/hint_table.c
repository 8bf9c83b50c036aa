/* The table of hints: why code fails in a box that would not fail elsewhere, and the way on. A row
 * fits by the error's name and words in its message (the box's claim: wrong claims mislead only
 * their author), or, if a program that the code started failed, by words at the end of stderr.
 * Runs in the engine. */
#include "engine/engine_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"

#define STDERR_END 4096

struct failure {
    const struct request *request;
    const struct result *result;
    const struct result_error *error;
    struct str said; /* the end of stderr, if a program failed; else empty */
};

struct row {
    const char *names[8]; /* of the error; none: any error of a failed program */
    const char *words[8]; /* one of them is in the message, or at the end of stderr; none: any */
    bool (*applies)(const struct failure *failure); /* NULL: always */
    const char *hint;     /* "@": limits.memory_bytes */
};

bool hint_is_command(const struct result_error *error)
{
    return error->kind == RESULT_E_EXIT ||
           (error->name && strcmp(error->name, "CalledProcessError") == 0) ||
           (error->message && strncmp(error->message, "Command failed: ", 16) == 0);
}

struct str hint_stderr_end(const struct result *result)
{
    const struct buf *from = result->err_stream.tail.len > 0 ? &result->err_stream.tail
                                                             : &result->err_stream.head;
    struct str text = buf_str(from);
    size_t skip = text.len > STDERR_END ? text.len - STDERR_END : 0;
    return (struct str){ text.at + skip, text.len - skip };
}

static bool has(struct str text, const char *words)
{
    return text.len > 0 && memmem(text.at, text.len, words, strlen(words)) != NULL;
}

static bool is_fetch_without_network(const struct failure *failure)
{
    struct str trace = str_of(failure->error->traceback);
    return has(trace, "EAI_AGAIN") || has(trace, "ENOTFOUND") || has(trace, "ENETUNREACH");
}

static bool has_no_stdin(const struct failure *failure)
{
    return failure->request->stdin_text.len == 0;
}

static bool has_stdin(const struct failure *failure)
{
    return failure->request->stdin_text.len > 0;
}

/* The last path in quotes, of a message such as "[Errno 13] Permission denied: 'a.csv'". */
static struct str path_of(const struct failure *failure)
{
    struct str text = str_of(failure->error->message);
    while (text.len > 0 && text.at[text.len - 1] != '\'')
        text.len--;
    size_t end = text.len > 0 ? text.len - 1 : 0, from = end;
    while (from > 0 && text.at[from - 1] != '\'')
        from--;
    return (struct str){ text.at + from, from > 0 ? end - from : 0 };
}

static bool is_below(struct str path, const char *folder)
{
    size_t len = strlen(folder);
    return path.len >= len && memcmp(path.at, folder, len) == 0 &&
           (path.len == len || path.at[len] == '/');
}

static bool is_readonly_input(const struct failure *failure)
{
    static const char *const folders[] = { "/workspace/", "/mnt/data/", "/home/user/", "./" };
    struct str path = path_of(failure);
    for (size_t i = 0; i < array_len(folders); i++) {
        size_t len = strlen(folders[i]);
        if (path.len > len && memcmp(path.at, folders[i], len) == 0)
            path = (struct str){ path.at + len, path.len - len };
    }
    for (size_t i = 0; i < failure->request->file_count; i++) {
        const struct request_file *file = &failure->request->files[i];
        if (file->readonly && str_is(path, file->path))
            return true;
    }
    return false;
}

static bool is_outside(const struct failure *failure)
{
    static const char *const writable[] = { "/workspace", "/tmp", "/home/user", "/mnt/data",
                                            "/dev" };
    struct str path = path_of(failure);
    bool outside = path.len > 0 && path.at[0] == '/';
    for (size_t i = 0; i < array_len(writable); i++)
        outside = outside && !is_below(path, writable[i]);
    return outside;
}

static bool has_no_zones(const struct failure *failure)
{
    (void)failure;
    return access("/usr/share/zoneinfo/Europe", F_OK) < 0;
}

static bool was_started_twice(const struct failure *failure)
{
    return has(hint_stderr_end(failure->result), "freeze_support()");
}

static bool cannot_find_function(const struct failure *failure)
{
    return has(hint_stderr_end(failure->result), "Can't get attribute");
}

#define PROGRAM { NULL }
#define NETWORK_ERRORS { "gaierror", "URLError", "OSError", "ConnectionError", "ConnectError", \
                         "ClientConnectorError", "Error" }
#define NO_NETWORK "a box has no network: give the data as input files, and write in the code " \
                   "what it would download"
#define NO_ROOT "a box has no root and no package manager: leave sudo and apt out; on the host " \
                "'cupel images add NAME --apt PACKAGE' makes an image that has one"
#define NO_SCREEN "a box has no screen: leave matplotlib.use() and windows out; figures come " \
                  "back as results by themselves, and savefig() works"
#define OUTSIDE "only /workspace and /tmp can be written: use a relative path, and the file " \
                "comes back as an artifact"

/* The first that fits counts. */
static const struct row rows[] = {
    { NETWORK_ERRORS,
      { "Temporary failure in name resolution", "Name or service not known",
        "Network is unreachable", "Cannot connect to host", "getaddrinfo EAI_AGAIN",
        "getaddrinfo ENOTFOUND", "connect ENETUNREACH" },
      NULL, NO_NETWORK },
    { { "TypeError" }, { "fetch failed" }, is_fetch_without_network, NO_NETWORK },
    { PROGRAM,
      { "Could not resolve host", "unable to resolve host", "Temporary failure in name resolution",
        "Network is unreachable", "Could not resolve hostname", "getaddrinfo EAI_AGAIN",
        "Temporary failure resolving" },
      NULL, NO_NETWORK },
    { { "EOFError" }, { "EOF when reading a line" }, has_no_stdin,
      "the request has no stdin: give the lines that input() reads as 'stdin' (cupel run --stdin "
      "FILE), or put the values into the code" },
    { { "EOFError" }, { "EOF when reading a line" }, has_stdin,
      "the code reads more lines than the request's stdin has: give more, or stop at the end" },
    { { "ImportError" }, { "tried using: 'pyarrow', 'fastparquet'" }, NULL,
      "Parquet needs pyarrow, which is not in the image and which Debian does not package: use "
      "CSV, JSON, Excel or pickle" },
    { { "ImportError" }, { "Pandas requires version" }, NULL,
      "the image has that package in a version that is too old for pandas: use the package "
      "itself (xlrd.open_workbook for .xls), or another format" },
    { { "ImportError" }, { "interactive framework" }, NULL, NO_SCREEN },
    { { "TclError" }, { "no display name", "couldn't connect to display" }, NULL, NO_SCREEN },
    { { "CalledProcessError" }, { "died with <Signals.SIGKILL" }, NULL,
      "a program that the code started was killed, most often because it needed too much memory: "
      "use less, or set limits.memory_bytes above @" },
    { { "CalledProcessError" }, { "died with <Signals.SIGSYS" }, NULL,
      "a program that the code started made a system call that the box forbids: do the work "
      "without it" },
    { { "PermissionError", "OSError", "Error" },
      { "Permission denied", "Read-only file system", "EACCES: permission denied",
        "EROFS: read-only file system" },
      is_readonly_input,
      "the file is a read-only input: write to another name in /workspace" },
    { { "PermissionError", "OSError", "Error" },
      { "Permission denied", "Read-only file system", "EACCES: permission denied",
        "EROFS: read-only file system" },
      is_outside, OUTSIDE },
    { PROGRAM, { "sudo: command not found", "sudo: not found", "are you root?" }, NULL, NO_ROOT },
    { { "FileNotFoundError" },
      { "No such file or directory: 'sudo'", "No such file or directory: 'apt-get'",
        "No such file or directory: 'apt'" },
      NULL, NO_ROOT },
    { PROGRAM, { ": Read-only file system" }, NULL, OUTSIDE },
    { { "MemoryError" }, { NULL }, NULL,
      "one object needed more memory than the box has: work in chunks or use smaller types, or set "
      "limits.memory_bytes above @" },
    { { "RecursionError", "RangeError" },
      { "maximum recursion depth exceeded", "Maximum call stack size exceeded" }, NULL,
      "look for a recursion that never ends, or use a loop" },
    { { "RuntimeError" }, { "no running event loop" }, NULL,
      "no event loop runs here: write 'await f()' at the top of the code, or asyncio.run(f())" },
    { { "BdbQuit" }, { NULL }, NULL,
      "nobody answers a debugger here: print the values, or give its commands as 'stdin'" },
    { { "RuntimeError", "BrokenProcessPool" },
      { "has finished its bootstrapping", "terminated abruptly" }, was_started_twice,
      "a spawned process runs the code again: start processes below \"if __name__ == "
      "'__main__':\", or use multiprocessing.get_context('fork')" },
    { { "BrokenProcessPool" }, { "terminated abruptly" }, cannot_find_function,
      "a spawned process does not have the functions of this code: use "
      "multiprocessing.get_context('fork'), or put them into a file and import it" },
    { { "ZoneInfoNotFoundError" }, { "No time zone found" }, has_no_zones,
      "the image has no time zones: 'sudo apt-get install tzdata' on the host adds them" },
    { { "ZoneInfoNotFoundError" }, { "No time zone found" }, NULL,
      "there is no such time zone: zoneinfo.available_timezones() has the names" },
};

static bool fits_name(const struct row *row, const struct failure *failure)
{
    if (!row->names[0])
        return failure->said.len > 0;
    for (size_t i = 0; i < array_len(row->names) && row->names[i]; i++) {
        if (failure->error->name && strcmp(row->names[i], failure->error->name) == 0)
            return true;
    }
    return false;
}

static bool fits_words(const struct row *row, const struct failure *failure)
{
    struct str text = row->names[0] ? str_of(failure->error->message) : failure->said;
    for (size_t i = 0; i < array_len(row->words) && row->words[i]; i++) {
        if (has(text, row->words[i]))
            return true;
    }
    return !row->words[0];
}

void hint_from_table(const struct request *request, const struct result *result, struct buf *out)
{
    struct failure failure = { request, result, &result->error, STR_NONE };
    if (hint_is_command(&result->error))
        failure.said = hint_stderr_end(result);
    for (size_t i = 0; i < array_len(rows); i++) {
        const struct row *row = &rows[i];
        if (!fits_name(row, &failure) || !fits_words(row, &failure) ||
            (row->applies && !row->applies(&failure)))
            continue;
        size_t before = strcspn(row->hint, "@");
        buf_add(out, row->hint, before);
        if (row->hint[before])
            buf_printf(out, "%lld%s", (long long)request->limits.value[LIMITS_MEMORY],
                       row->hint + before + 1);
        return;
    }
}
