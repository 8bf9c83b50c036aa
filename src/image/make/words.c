/* The words in which pip, npm and apt say why they failed: outside text, cut to one line. Pure. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "image/make/child.h"

#define LINE_MOST 200
#define LINE_END 80

static bool begins(struct str line, const char *mark)
{
    return line.len >= strlen(mark) && memcmp(line.at, mark, strlen(mark)) == 0;
}

/* npm's lines on a missing package: its page of advice, and lines without words. mmdebstrap's on
 * what it had called. */
static bool is_advice(struct str line)
{
    static const char *const words[] = { "npm error code ", "npm ERR! code ",
                                         "Note that you can also install", "tarball, folder,",
                                         "E: mmdebstrap failed to run", "E: apt-get ",
                                         "E: apt download failed:" };
    for (size_t i = 0; i < array_len(words); i++)
        if (memmem(line.at, line.len, words[i], strlen(words[i])))
            return true;
    return str_is(line, "npm error") || str_is(line, "npm error 404") || str_is(line, "npm ERR!") ||
           str_is(line, "npm ERR! 404");
}

/* pip tells below its sentence on hashes which package is meant. */
static bool is_reason(struct str line)
{
    static const char *const marks[] = { "ERROR:", "error:", "npm error", "npm ERR!", "E:",
                                         "dpkg-deb: error", "OSError", "CRITICAL:",
                                         "Expected sha256", "Got   " };
    static const char log[] = "A complete log of this run";
    for (size_t i = 0; i < array_len(marks); i++)
        if (begins(line, marks[i]))
            return !is_advice(line) && !memmem(line.at, line.len, log, sizeof log - 1);
    return line.len > 0 && line.at[line.len - 1] == ':' && memmem(line.at, line.len, "==", 2);
}

/* The sentence itself is longer than what it says. */
static struct str shorten(struct str line)
{
    static const char hashes[] = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES";
    return begins(line, hashes) ? (struct str){ line.at, sizeof hashes - 1 } : line;
}

static struct str last_line(struct str *rest)
{
    while (rest->len > 0 && memchr("\r\n", rest->at[rest->len - 1], 2))
        rest->len--;
    size_t start = rest->len;
    while (start > 0 && !memchr("\r\n", rest->at[start - 1], 2))
        start--;
    struct str line = { rest->at + start, rest->len - start };
    rest->len = start;
    return str_trim(line);
}

/* Without the middle of a long one: of pip's list of all versions, the end has the newest. */
static void add_line(struct buf *out, struct str line)
{
    if (line.len <= LINE_MOST) {
        (void)!buf_add_str(out, line);
        return;
    }
    struct str end = { line.at + line.len - LINE_END, LINE_END };
    (void)!buf_add(out, line.at, LINE_MOST - LINE_END - 5);
    (void)!buf_add_text(out, " ... ");
    (void)!buf_add_str(out, end);
}

/* Lines from the end on, as many as fit, in their order. */
static bool collect(struct str said, bool reasons, char *out, size_t room)
{
    struct str rest = said, lines[12];
    size_t count = 0, bytes = 0, most = reasons ? array_len(lines) : 4;
    while (rest.len > 0 && count < most) {
        struct str line = last_line(&rest);
        if (line.len == 0 || (reasons && !is_reason(line)))
            continue;
        line = shorten(line);
        size_t len = line.len < LINE_MOST ? line.len : LINE_MOST;
        if (bytes + len + 2 > room && count > 0)
            break;
        bytes += len + 2;
        lines[count++] = line;
    }
    own_buf text = BUF_INIT(MAKE_SAID_MAX);
    for (size_t i = count; i-- > 0;) {
        add_line(&text, lines[i]);
        (void)!buf_add_text(&text, i ? "; " : "");
    }
    str_plain(out, room, buf_str(&text));
    return count > 0;
}

void make_child_why(struct str said, char *out, size_t room)
{
    if (!collect(said, /* reasons= */ true, out, room) &&
        !collect(said, /* reasons= */ false, out, room))
        snprintf(out, room, "it said nothing");
}
