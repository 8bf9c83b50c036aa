/* Explains an error to a model. Pure. One specific hint, the failing lines, and what survived;
 * never a library's whole traceback, and never the same advice for the third time. */
#include "agent/read/repair.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/read/observe.h"
#include "base/attr.h"
#include "base/json.h"

#define FRAMES_MAX 4
#define MESSAGE_MAX 1500
#define VALUES_MAX 8
#define HINT_MAX 500
#define SEEN_MAX 1000
#define PROBLEMS_MAX 6
#define STATE_SAID "the session goes on from the state "

/* --- fingerprints --- */

void agent_repair_done(struct agent_repair *repair)
{
    free(repair->seen);
    *repair = (struct agent_repair){ 0 };
}

int64_t agent_repair_count(struct agent_repair *repair, uint64_t print)
{
    for (size_t i = 0; i < repair->count; i++)
        if (repair->seen[i].print == print)
            return ++repair->seen[i].times;
    if (repair->count >= SEEN_MAX)
        return 1;
    repair->seen = buf_list_room(repair->seen, repair->count, sizeof *repair->seen);
    repair->seen[repair->count++] = (struct agent_repair_seen){ print, 1 };
    return 1;
}

/* FNV-1a; a collision only makes a task longer. */
static uint64_t mix(uint64_t print, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        print = (print ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return print;
}

uint64_t agent_repair_print(const char *kind, struct str text)
{
    uint64_t print = mix(UINT64_C(0xcbf29ce484222325), kind, strlen(kind));
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (isspace(c))
            continue;
        if (!isdigit(c)) {
            print = mix(print, text.at + i, 1);
            continue;
        }
        print = mix(print, "#", 1);
        while (i + 1 < text.len &&
               (isxdigit((unsigned char)text.at[i + 1]) || strchr("x._+-", text.at[i + 1])) &&
               text.at[i + 1])
            i++;
    }
    return print ? print : 1;
}

uint64_t agent_repair_error_print(const json_t *result)
{
    const json_t *error = json_object_get(result, "error");
    const char *kind = json_string_value(json_object_get(error, "kind"));
    if (!json_is_object(error) || !kind)
        return 0;
    own_buf text = BUF_INIT(1u << 20);
    struct str message = json_get_str(error, "message");
    buf_add_str(&text, json_get_str(error, "name"));
    buf_add(&text, message.at, message.len < MESSAGE_MAX ? message.len : MESSAGE_MAX);
    return agent_repair_print(kind, buf_str(&text));
}

/* --- the error --- */

/* The code's frames: the first, and the last few. A single one is the failing line itself. */
static void add_frames(const json_t *frames, struct buf *out)
{
    size_t count = json_array_size(frames), i;
    json_t *frame;
    json_array_foreach (frames, i, frame) {
        struct str function = json_get_str(frame, "function"), text = json_get_str(frame, "text");
        if (count < 2 || (i > 0 && i + FRAMES_MAX - 1 < count))
            continue;
        buf_printf(out, "  line %lld, in %.*s: %.*s\n",
                   (long long)json_integer_value(json_object_get(frame, "line")),
                   (int)str_cut_utf8(function, 100), function.at, (int)str_cut_utf8(text, 300),
                   text.at);
    }
}

static void add_value(struct buf *out, struct str name, struct str text, bool first)
{
    buf_add_text(out, first ? "values on that line: " : ", ");
    buf_add(out, name.at, name.len < 80 ? name.len : str_cut_utf8(name, 80));
    buf_add_text(out, " = ");
    buf_add(out, text.at, text.len < 200 ? text.len : str_cut_utf8(text, 200));
}

static void add_values(const json_t *values, struct buf *out)
{
    size_t shown = 0, i;
    json_t *value;
    json_array_foreach (values, i, value)
        if (shown < VALUES_MAX && json_get_str(value, "name").len)
            add_value(out, json_get_str(value, "name"), json_get_str(value, "text"), shown++ == 0);
    if (shown)
        buf_add_text(out, "\n");
}

/* The engine's hint without its words about the state, for which we have our own. */
static struct str hint_of(const json_t *error)
{
    struct str hint = json_get_str(error, "hint");
    const char *state = hint.len ? memmem(hint.at, hint.len, STATE_SAID, strlen(STATE_SAID)) : NULL;
    if (state)
        hint.len = (size_t)(state - hint.at);
    while (hint.len && strchr("; ", hint.at[hint.len - 1]))
        hint.len--;
    return hint;
}

void agent_repair_error(const json_t *result, struct buf *out)
{
    const json_t *error = json_object_get(result, "error");
    const json_t *line = json_object_get(error, "line");
    struct str name = json_get_str(error, "name"), message = json_get_str(error, "message");
    struct str snippet = json_get_str(error, "snippet");
    if (!json_is_object(error))
        return;
    add_frames(json_object_get(error, "frames"), out);
    if (json_is_integer(line))
        buf_printf(out, "line %lld: %.*s\n", (long long)json_integer_value(line),
                   (int)(snippet.len < 300 ? snippet.len : str_cut_utf8(snippet, 300)), snippet.at);
    add_values(json_object_get(error, "values"), out);
    buf_printf(out, "%.*s: ", (int)(name.len < 100 ? name.len : 100), name.at);
    agent_observe_text(message, MESSAGE_MAX, out);
    if (!message.len)
        buf_add_text(out, "\n");
    if (hint_of(error).len) {
        buf_add_text(out, "hint: ");
        agent_observe_text(hint_of(error), HINT_MAX, out);
    }
}

/* --- advice --- */

static const struct {
    const char *state, *text;
} survived[] = {
    { "kept", "What the cell did before the error is kept: do not do it again." },
    { "rolled_back", "Nothing of this cell is kept: names and files are as before it. Send it "
                     "again whole." },
    { "lost", "All names are gone, files are there: import and load again." },
};

#define LESS_MEMORY                                                                           \
    "Read in chunks or stream line by line, keep only the columns you need, and do not build " \
    "large lists."

/* The engine's own hint is better: it knows the packages and names. */
static const struct {
    const char *field, *is, *hint;
} hints[] = {
    { "kind", "timeout", "Use a cheaper algorithm: vectorise, sort once, use a dict or set, or "
                         "compute less; more time will not be given." },
    { "kind", "cpu", "Use a cheaper algorithm: vectorise, sort once, use a dict or set." },
    { "kind", "memory", LESS_MEMORY },
    { "kind", "disk", "Write less: the writable space is full." },
    { "kind", "output", "Print less." },
    { "kind", "pids", "Use one process and few threads." },
    { "kind", "denied", "The sandbox does not allow this, and asking again will not change it: do "
                        "it with the files and packages that are here." },
    { "kind", "syntax", "Send only Python: no text, markdown or LaTeX inside of the code." },
    { "kind", "import", "Use a package that is installed, or the standard library." },
    { "name", "MemoryError", LESS_MEMORY }, /* an allocation hit the limit */
    { "name", "KeyError", "Print the keys or columns that are there, and use one of them." },
    { "name", "NameError", "Define or import that name first, or use one that is there." },
    { "name", "IndexError", "Check the length before indexing." },
    { "name", "FileNotFoundError", "Use a path of the task's files." },
    { "name", "AssertionError", "Find out which side is wrong, the code or the expectation, before "
                                "changing either." },
    { "name", "EOFError", "There is no keyboard: do not call input()." },
};

static void add_hint(const json_t *error, struct buf *out)
{
    for (size_t i = 0; !hint_of(error).len && i < array_len(hints); i++) {
        if (!str_is(json_get_str(error, hints[i].field), hints[i].is))
            continue;
        buf_printf(out, "Hint: %s\n", hints[i].hint);
        return;
    }
}

void agent_repair_again(int64_t times, struct buf *out)
{
    if (times == 2)
        buf_add_text(out, "This is the second time: the last change did not help. Find the cause "
                          "first, and do not repeat that change.\n");
    else if (times >= AGENT_REPAIR_TRIES)
        buf_add_text(out, "This is the third time. Leave this way: use another approach to the "
                          "same goal.\n");
}

void agent_repair_advice(const json_t *result, int64_t times, struct buf *out)
{
    const json_t *error = json_object_get(result, "error");
    struct str state = json_get_str(result, "state");
    for (size_t i = 0; i < array_len(survived); i++)
        if (str_is(state, survived[i].state))
            buf_printf(out, "%s\n", survived[i].text);
    add_hint(error, out);
    agent_repair_again(times, out);
    if (times < 2)
        buf_add_text(out, "Fix only the lines that need it.\n");
}

/* --- problems found before running --- */

/* Only a certain failure keeps a cell from running. */
static bool is_certain(const json_t *problem)
{
    static const char *const kinds[] = { "syntax", "name", "module", "import" };
    const json_t *certain = json_object_get(problem, "certain");
    struct str kind = json_get_str(problem, "kind");
    for (size_t i = 0; i < array_len(kinds); i++)
        if (str_is(kind, kinds[i]))
            return !json_is_false(certain);
    return false;
}

void agent_repair_problems(const json_t *problems, struct buf *out)
{
    size_t i, shown = 0;
    json_t *problem;
    json_array_foreach (problems, i, problem) {
        struct str message = json_get_str(problem, "message"), hint = json_get_str(problem, "hint");
        if (!is_certain(problem) || shown++ >= PROBLEMS_MAX)
            continue;
        buf_printf(out,
                   "line %lld: ", (long long)json_integer_value(json_object_get(problem, "line")));
        agent_observe_text(message.len ? message : json_get_str(problem, "name"), 300, out);
        if (hint.len) {
            buf_add_text(out, "  hint: ");
            agent_observe_text(hint, 300, out);
        }
    }
}
