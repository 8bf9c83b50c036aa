/* Prints an answer: lines of a word, a space and JSON; those of files have three values. Runs in
 * the box, as the user's code. The lines are the engine's, but the file is the box's: a line that
 * is none ends the program with an error. */
#include "box/caller/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define FILES_AT "/tmp/tool-XXXXXX"
#define VALUES_AT "/tmp/tools"
#define VALUES_MOST 100000 /* files of one tool */
#define FILE_NAME_MAX 200
#define FILES_MAX 64

struct out {
    int fd;
    size_t len;
    bool failed;
    char bytes[65536];
};

static char files_at[] = FILES_AT; /* the folder, once there is one */

struct files {
    char path[FILES_MAX][sizeof FILES_AT + FILE_NAME_MAX + 8];
    size_t count;
};

static void flush(struct out *out)
{
    out->failed = out->failed || io_write_all(out->fd, out->bytes, out->len) < 0;
    out->len = 0;
}

static void put(struct out *out, const char *bytes, size_t len)
{
    if (len > sizeof out->bytes - out->len)
        flush(out);
    if (len > sizeof out->bytes) {
        out->failed = out->failed || io_write_all(out->fd, bytes, len) < 0;
        return;
    }
    memcpy(out->bytes + out->len, bytes, len);
    out->len += len;
}

/* --- JSON strings --- */

/* The end of the string that begins at `at`, behind its quote; NULL: it is none. */
static const char *string_end(const char *at, const char *end)
{
    if (at == end || *at != '"')
        return NULL;
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : NULL;
}

static unsigned hex4(const char *at, const char *end)
{
    char text[5] = { 0 };
    if (end - at < 4)
        return 0;
    memcpy(text, at, 4);
    return (unsigned)strtoul(text, NULL, 16);
}

static void put_point(struct out *out, unsigned point)
{
    char text[4];
    size_t len = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char heads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = len - 1; i > 0; i--, point >>= 6)
        text[i] = (char)(0x80 | (point & 0x3f));
    text[0] = (char)(heads[len] | point);
    put(out, text, len);
}

/* One escape, whose letter is at `at`; the byte after it. */
static const char *put_escape(struct out *out, const char *at, const char *end)
{
    static const char letters[] = "bfnrt", bytes[] = "\b\f\n\r\t";
    const char *letter = memchr(letters, *at, sizeof letters - 1);
    if (*at != 'u') {
        put(out, letter ? &bytes[letter - letters] : at, 1);
        return at + 1;
    }
    unsigned point = hex4(at + 1, end), low;
    at += 5;
    if (point >= 0xd800 && point < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        low = hex4(at + 2, end);
        point = 0x10000 + ((point - 0xd800) << 10) + ((low - 0xdc00) & 0x3ff);
        at += 6;
    }
    put_point(out, point);
    return at < end ? at : end;
}

/* The text of a JSON string, from quote to quote. */
static void put_string(struct out *out, const char *at, const char *end)
{
    for (at++, end--; at < end;) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        put(out, at, (size_t)((escape ? escape : end) - at));
        at = escape ? escape + 1 : end;
        if (escape && at < end)
            at = put_escape(out, at, end);
    }
}

/* --- files --- */

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = memchr(digits, c, sizeof digits - 1);
    return at ? (int)(at - digits) : -1;
}

static void put_base64(struct out *out, const char *at, const char *end)
{
    unsigned bits = 0, count = 0;
    for (; at < end; at++) {
        int digit = digit_of(*at);
        if (digit < 0)
            continue;
        bits = bits << 6 | (unsigned)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            char byte = (char)(bits >> count);
            put(out, &byte, 1);
        }
    }
}

/* The last part of a tool's name for a file, which may be anything. */
static void name_of(const char *at, const char *end, size_t index, char name[FILE_NAME_MAX + 1])
{
    size_t len = 0;
    for (at++, end--; at < end; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '/')
            len = 0;
        else if (byte == '\\' || byte < 0x20 || byte == 0x7f)
            name[len < FILE_NAME_MAX ? len++ : len - 1] = '_';
        else if (len < FILE_NAME_MAX)
            name[len++] = (char)byte;
    }
    name[len] = 0;
    if (len == 0 || name[0] == '.' || name[0] == '-')
        snprintf(name, FILE_NAME_MAX, "file%zu", index + 1);
}

/* A line `NAME MIME BASE64`. False: it is none, or the disk is full. */
static bool take_file(struct files *files, const char *at, const char *end)
{
    char name[FILE_NAME_MAX + 1];
    const char *name_end = string_end(at, end);
    const char *mime_end = name_end && name_end < end ? string_end(name_end + 1, end) : NULL;
    if (!mime_end || mime_end == end || files->count == FILES_MAX ||
        (files->count == 0 && !mkdtemp(files_at)))
        return false;
    char *path = files->path[files->count];
    name_of(at, name_end, files->count, name);
    snprintf(path, sizeof files->path[0], "%s/%s", files_at, name);
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 && errno == EEXIST) {
        snprintf(path, sizeof files->path[0], "%s/%zu-%s", files_at, files->count + 1, name);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    }
    static struct out out;
    out.fd = fd;
    out.len = 0;
    put_base64(&out, mime_end + 1, end);
    flush(&out);
    files->count++;
    return fd >= 0 && !out.failed;
}

/* --- answers --- */

/* A new file for a value of that tool. */
static int value_file(const char *tool, char path[FILE_NAME_MAX])
{
    int fd = -1;
    if (mkdir(VALUES_AT, 0777) < 0 && errno != EEXIST)
        return -1;
    for (int i = 1; fd < 0 && i <= VALUES_MOST; i++) {
        snprintf(path, FILE_NAME_MAX, VALUES_AT "/%.*s-%d", CALLER_NAME_MAX, tool, i);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* A text as it is, else JSON. */
static void put_value(struct out *out, const char *at, const char *end)
{
    if (string_end(at, end) == end)
        put_string(out, at, end);
    else
        put(out, at, (size_t)(end - at));
}

/* The value goes to a file, which cannot be written then, and its name to stdout. */
static bool put_in_file(struct out *out, const char *tool, const char *at, const char *end)
{
    char path[FILE_NAME_MAX];
    own_fd fd = value_file(tool, path);
    if (fd < 0)
        return false;
    out->fd = fd;
    put_value(out, at, end);
    flush(out);
    if (out->failed || fchmod(fd, 0444) < 0) {
        unlink(path);
        return false;
    }
    out->fd = STDOUT_FILENO;
    put(out, path, strlen(path));
    return true;
}

static int print_value(const char *at, const char *end, const struct files *files,
                       const char *in_file)
{
    static struct out out;
    out.fd = STDOUT_FILENO;
    bool only_files = files->count > 0 && end - at == 4 && memcmp(at, "null", 4) == 0;
    if (only_files)
        in_file = NULL;
    if (in_file && !put_in_file(&out, in_file, at, end))
        return caller_fail(CALLER_ERROR, in_file, "the box could not keep its value in a file");
    if (!in_file && !only_files)
        put_value(&out, at, end);
    if (!only_files)
        put(&out, "\n", 1);
    for (size_t i = 0; i < files->count; i++) {
        put(&out, files->path[i], strlen(files->path[i]));
        put(&out, "\n", 1);
    }
    flush(&out);
    return out.failed ? caller_fail(CALLER_ERROR, NULL, "its value could not be written") : 0;
}

static int print_error(const char *tool, const char *word, const char *at, const char *end)
{
    static struct out out;
    out.fd = STDERR_FILENO;
    put(&out, "tool: ", 6);
    put(&out, tool, strlen(tool));
    put(&out, ": ", 2);
    if (string_end(at, end) == end)
        put_string(&out, at, end);
    put(&out, "\n", 1);
    flush(&out);
    return strcmp(word, "denied") == 0    ? CALLER_DENIED
           : strcmp(word, "timeout") == 0 ? CALLER_TIMEOUT
                                          : CALLER_ERROR;
}

static int print_lines(const char *at, const char *end, const char *tool, bool to_file)
{
    static struct files files;
    while (at < end) {
        char word[16] = "";
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const char *space = memchr(at, ' ', (size_t)(end - at));
        if (!line_end || !space || space > line_end || space - at >= (long)sizeof word)
            break;
        memcpy(word, at, (size_t)(space - at));
        if (strcmp(word, "value") == 0)
            return print_value(space + 1, line_end, &files, to_file ? tool : NULL);
        if (strcmp(word, "file") != 0)
            return print_error(tool, word, space + 1, line_end);
        if (!take_file(&files, space + 1, line_end))
            return caller_fail(CALLER_ERROR, tool, "a file of the answer could not be written");
        at = line_end + 1;
    }
    return caller_fail(CALLER_ERROR, tool, "no room for the answer: the box's disk is full");
}

int caller_print(int fd, const char *tool, bool to_file)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size == 0)
        return caller_fail(CALLER_ERROR, tool, "no room for the answer: the box's disk is full");
    char *text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED)
        return caller_fail(CALLER_ERROR, tool, "the answer cannot be read");
    return print_lines(text, text + st.st_size, tool, to_file);
}
