/* The tools that the code has, from CALLER_TOOLS: one entry each, `NAME US LINE US HELP RS`. Runs
 * in the box, as the user's code. */
#include "box/caller/caller.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define FIELD '\x1f'
#define ENTRY '\x1e'
#define FILE_MAX (16u << 20)

struct entry {
    const char *name, *line, *help;
    int name_len, line_len, help_len;
};

static const char none[] = "this program has no tools, or its cell is over";

static bool is_pipe(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

int caller_read_tools(struct caller_tools *out)
{
    struct stat st;
    own_fd fd = open(CALLER_TOOLS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        return -caller_fail(CALLER_ERROR, NULL, none);
    size_t len = (size_t)st.st_size;
    char *text = calloc(1, len + 1); /* until the program ends */
    if (!text || io_read_all(fd, text, len) < 0)
        return -caller_fail(CALLER_ERROR, NULL, none);
    struct caller_tools tools = { .words = -1 };
    int head = 0;
    if (sscanf(text, "%39s %d %d\n%n", tools.nonce, &tools.words, &tools.requests, &head) != 3 ||
        head == 0)
        return -caller_fail(CALLER_ERROR, NULL, none);
    if (!is_pipe(tools.words) || !is_pipe(tools.requests))
        return -caller_fail(CALLER_ERROR, NULL,
                            "the channel to cupel is not open here: call tools from the shell");
    tools.text = text + head;
    *out = tools;
    return 0;
}

/* The next entry; false at the end. */
static bool next(const char **at, struct entry *out)
{
    const char *end = strchr(*at, ENTRY), *first = strchr(*at, FIELD);
    const char *second = first ? strchr(first + 1, FIELD) : NULL;
    if (!end || !second || second > end)
        return false;
    *out = (struct entry){ *at, first + 1, second + 1, (int)(first - *at),
                           (int)(second - first - 1), (int)(end - second - 1) };
    *at = end + 1;
    return true;
}

static bool find(const struct caller_tools *tools, const char *name, struct entry *out)
{
    const char *at = tools->text;
    while (next(&at, out))
        if ((size_t)out->name_len == strlen(name) && strncmp(out->name, name, strlen(name)) == 0)
            return true;
    return false;
}

bool caller_has_tool(const struct caller_tools *tools, const char *name)
{
    struct entry entry;
    return find(tools, name, &entry);
}

int caller_list(const struct caller_tools *tools)
{
    const char *at = tools->text;
    struct entry entry;
    while (next(&at, &entry))
        printf("%.*s\n", entry.line_len, entry.line);
    return CALLER_OK;
}

static bool holds(const char *at, int len, const char *word)
{
    size_t size = strlen(word);
    for (int i = 0; i + (int)size <= len; i++)
        if (strncasecmp(at + i, word, size) == 0)
            return true;
    return false;
}

/* The tools that have every word; first those with one in the name. */
int caller_search(const struct caller_tools *tools, char *const *words)
{
    bool found = false;
    for (int named = 1; named >= 0; named--) {
        const char *at = tools->text;
        struct entry entry;
        while (next(&at, &entry)) {
            bool all = true, in_name = false;
            for (char *const *word = words; *word; word++) {
                all = all && (holds(entry.name, entry.name_len, *word) ||
                              holds(entry.help, entry.help_len, *word));
                in_name = in_name || holds(entry.name, entry.name_len, *word);
            }
            if (all && in_name == named) {
                printf("%.*s\n", entry.line_len, entry.line);
                found = true;
            }
        }
    }
    return found ? CALLER_OK : CALLER_ERROR;
}

int caller_help(const struct caller_tools *tools, const char *name)
{
    struct entry entry;
    if (!find(tools, name, &entry))
        return caller_fail(CALLER_ERROR, name, "this program has no such tool; tool --list");
    printf("%.*s\n", entry.help_len, entry.help);
    return CALLER_OK;
}
