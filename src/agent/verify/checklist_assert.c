/* Lines "assert f(2) == 4" of a question: tests of the final program. Process: the task's. Pure.
 * Indented ones stand within something, and are not whole; prose that begins so is none. */
#include "agent/verify/check_scan.h"
#include "agent/verify/checklist.h"
#include "base/attr.h"
#include "base/json.h"

#define REQUIREMENTS_MAX 20
#define SAID_MAX 200
#define CODE_MAX 2000 /* a longer one is not joined further */

/* How far brackets are open at the end of the code. */
static int open_brackets(struct str code)
{
    int depth = 0;
    for (size_t i = 0; i < code.len; i++) {
        bool opens = code.at[i] && strchr("([{", code.at[i]);
        depth += opens ? 1 : code.at[i] && strchr(")]}", code.at[i]) ? -1 : 0;
    }
    return depth;
}

/* Python, and not "assert that it is so"? It compares or calls. */
static bool is_assertion(struct str line)
{
    static const char *const marks[] = { "==", "!=", "<", ">", "(", "[" };
    static const char *const prose[] = { "that ", "the ", "whether ", "your " };
    const size_t lead = strlen("assert ");
    bool compares = false;
    if (line.len <= lead || memcmp(line.at, "assert ", lead) != 0)
        return false;
    for (size_t i = 0; i < array_len(prose); i++) {
        size_t len = strlen(prose[i]);
        if (line.len > lead + len && !memcmp(line.at + lead, prose[i], len))
            return false;
    }
    for (size_t i = 0; i < array_len(marks); i++)
        compares = compares || memmem(line.at, line.len, marks[i], strlen(marks[i]));
    return compares;
}

void agent_checklist_asserts(struct str text, json_t *out)
{
    for (size_t at = 0, end; at < text.len; at = end + 1) {
        const char *stop = memchr(text.at + at, '\n', text.len - at);
        end = stop ? (size_t)(stop - text.at) : text.len;
        size_t start = at;
        while (start < end && strchr("->*`", text.at[start]) && text.at[start]) {
            start++; /* a list's mark, a prompt, a mark of code: with one space behind it */
            start += start < end && text.at[start] == ' ';
        }
        struct str code = { text.at + start, end - start };
        if (!is_assertion(code))
            continue;
        while (open_brackets(code) > 0 && code.len < CODE_MAX && start + code.len < text.len) {
            const char *from = text.at + start + code.len + 1;
            const char *next = memchr(from, '\n', (size_t)(text.at + text.len - from));
            code.len = (size_t)((next ? next : text.at + text.len) - code.at);
        }
        end = start + code.len;
        code = agent_scan_trim(code);
        while (code.len && strchr("`.;", code.at[code.len - 1]) && code.at[code.len - 1])
            code.len--;
        struct str said = { code.at, str_cut_utf8(code, SAID_MAX) };
        if (open_brackets(code) == 0 && json_array_size(out) < REQUIREMENTS_MAX)
            json_array_append_new(out, json_pack("{s:o, s:s, s:{s:o}}", "text", json_text(said),
                                                 "from", "rules", "check", "code",
                                                 json_text(code)));
    }
}
