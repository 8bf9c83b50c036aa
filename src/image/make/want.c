/* Reading the wishes of a build. Runs in the cli process, after the drop of rights; pure. */
#include "image/make/want.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

const char *const make_kind_names[MAKE_KINDS] = { "pip", "npm", "apt" };

static const char *const bounds[MAKE_KINDS] = {
    "NAME[EXTRA]==VERSION, also with other comparisons and a marker",
    "NAME or @SCOPE/NAME, with @VERSION",
    "NAME or NAME=VERSION",
};

void make_wants_done(struct make_wants *wants)
{
    for (size_t i = 0; i < wants->count; i++)
        free(wants->at[i].text);
    free(wants->at);
    *wants = (struct make_wants){ 0 };
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_of(char c, const char *others)
{
    return is_word(c) || (c && strchr(others, c));
}

/* How many bytes from `at` on are letters, digits or of `others`. */
static size_t span(struct str text, size_t at, const char *others)
{
    size_t n = 0;
    while (at + n < text.len && is_of(text.at[at + n], others))
        n++;
    return n;
}

static size_t skip_blanks(struct str text, size_t at)
{
    while (at < text.len && (text.at[at] == ' ' || text.at[at] == '\t'))
        at++;
    return at;
}

bool make_version_valid(struct str text)
{
    return text.len > 0 && text.len < MAKE_VERSION_ROOM && is_word(text.at[0]) &&
           span(text, 0, ".+!-_~:") == text.len;
}

bool make_name_python(struct str text, char out[MAKE_NAME_ROOM])
{
    size_t n = 0;
    if (text.len == 0 || text.len >= MAKE_NAME_ROOM || span(text, 0, "-_.") < text.len ||
        !is_word(text.at[0]) || !is_word(text.at[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool is_dash = !is_word(c);
        if (is_dash && n > 0 && out[n - 1] == '-')
            continue;
        out[n++] = (char)(is_dash ? '-' : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    out[n] = '\0';
    return true;
}

static bool is_lower_name(struct str text, const char *others)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_of(text.at[i], others) || (text.at[i] >= 'A' && text.at[i] <= 'Z'))
            return false;
    return text.len > 0 && is_word(text.at[0]);
}

/* Old packages of npm have capitals; no name begins with a dot or a dash. */
static bool is_npm_name(struct str text)
{
    size_t start = 0;
    if (text.len > 0 && text.at[0] == '@') {
        size_t scope = span(text, 1, "-_.~");
        if (scope == 0 || !is_of(text.at[1], "_~") || scope + 1 >= text.len ||
            text.at[scope + 1] != '/')
            return false;
        start = scope + 2;
    }
    return start < text.len && is_of(text.at[start], "_~") &&
           span(text, start, "-_.~") == text.len - start;
}

bool make_name_valid(enum make_kind kind, struct str text)
{
    char plain[MAKE_NAME_ROOM];
    if (text.len == 0 || text.len >= MAKE_NAME_ROOM)
        return false;
    if (kind == MAKE_PIP)
        return make_name_python(text, plain);
    return kind == MAKE_NPM ? is_npm_name(text) : is_lower_name(text, "+-.") && text.len > 1;
}

/* ---- Python's ---- */

/* "[extra, other]" at `at`: where it ends, or 0. */
static size_t extras_end(struct str text, size_t at)
{
    do {
        at = skip_blanks(text, at + 1);
        size_t n = span(text, at, "-_.");
        if (n == 0)
            return 0;
        at = skip_blanks(text, at + n);
    } while (at < text.len && text.at[at] == ',');
    return at < text.len && text.at[at] == ']' ? at + 1 : 0;
}

/* Comparisons from `at` on, up to a ";" or the end: where they end, or 0. */
static size_t comparisons_end(struct str text, size_t at, bool *out_pinned)
{
    size_t count = 0;
    bool exact = false, bracket = at < text.len && text.at[at] == '(';
    if (bracket)
        at = skip_blanks(text, at + 1);
    while (at < text.len && text.at[at] != ';' && text.at[at] != ')') {
        size_t start = at;
        while (at < text.len && strchr("<>=!~", text.at[at]) && text.at[at])
            at++;
        struct str sign = { text.at + start, at - start };
        static const char *const signs[] = { "==", "===", ">=", "<=", "!=", "~=", ">", "<" };
        bool known = false;
        for (size_t i = 0; i < array_len(signs); i++)
            known |= str_is(sign, signs[i]);
        at = skip_blanks(text, at);
        size_t n = span(text, at, ".+!-_*");
        if (!known || n == 0)
            return 0;
        exact = sign.len >= 2 && sign.at[0] == '=' && !memchr(text.at + at, '*', n);
        count++;
        at = skip_blanks(text, at + n);
        if (at < text.len && text.at[at] == ',')
            at = skip_blanks(text, at + 1);
        else if (at < text.len && text.at[at] != ';' && text.at[at] != ')')
            return 0;
    }
    if (bracket && (at >= text.len || text.at[at++] != ')'))
        return 0;
    *out_pinned = exact && count == 1;
    return skip_blanks(text, at);
}

static bool read_python(struct str text, struct make_want *out)
{
    size_t n = span(text, 0, "-_."), at = skip_blanks(text, n);
    if (!make_name_python((struct str){ text.at, n }, out->name))
        return false;
    if (at < text.len && text.at[at] == '[' && !(at = extras_end(text, at)))
        return false;
    at = comparisons_end(text, skip_blanks(text, at), &out->pinned);
    if (at == 0)
        return false;
    /* A marker: pip reads it. It holds no end of a line, and here no option. */
    return at == text.len || (text.at[at] == ';' && at + 1 < text.len &&
                              !memmem(text.at + at, text.len - at, "--", 2));
}

/* ---- npm's and Debian's ---- */

static bool read_npm(struct str text, struct make_want *out)
{
    size_t at = text.len > 0 ? 1 : 0; /* the "@" of a scope is no version's */
    while (at < text.len && text.at[at] != '@')
        at++;
    struct str name = { text.at, at };
    if (!make_name_valid(MAKE_NPM, name))
        return false;
    memcpy(out->name, name.at, name.len);
    out->name[name.len] = '\0';
    if (at == text.len)
        return true;
    struct str version = { text.at + at + 1, text.len - at - 1 };
    size_t dots = 0;
    for (size_t i = 0; i < version.len; i++)
        dots += version.at[i] == '.';
    out->pinned = make_version_valid(version) && version.at[0] >= '0' && version.at[0] <= '9' &&
                  dots >= 2 && span(version, 0, ".+-") == version.len &&
                  !memmem(version.at, version.len, ".x", 2); /* "1.2.x" is a range */
    return version.len > 0 && span(version, 0, ".+-^~<>=|* ") == version.len &&
           version.at[0] != '-' && version.at[0] != '.';
}

static bool read_debian(struct str text, struct make_want *out)
{
    const char *sign = memchr(text.at, '=', text.len);
    size_t len = sign ? (size_t)(sign - text.at) : text.len;
    if (!make_name_valid(MAKE_APT, (struct str){ text.at, len }))
        return false;
    memcpy(out->name, text.at, len);
    out->name[len] = '\0';
    out->pinned = sign != NULL;
    return !sign || make_version_valid((struct str){ sign + 1, text.len - len - 1 });
}

/* apt takes "name-" for a wish to remove it, and "name+" for the opposite. */
static bool is_order(const struct make_want *want)
{
    char last = want->name[strlen(want->name) - 1];
    return want->kind == MAKE_APT && last == '-';
}

static bool is_printable(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < 0x20 || (unsigned char)text.at[i] > 0x7e)
            return false;
    return text.len > 0 && text.len < MAKE_WANT_TEXT;
}

int make_wants_add(struct make_wants *wants, enum make_kind kind, struct str text, struct err *err)
{
    static bool (*const readers[MAKE_KINDS])(struct str, struct make_want *) = {
        read_python, read_npm, read_debian
    };
    struct make_want want = { .kind = kind };
    char shown[128];
    text = str_trim(text);
    str_plain(shown, sizeof shown, text);
    if (wants->count == MAKE_WANTS_MAX)
        return err_input(err, make_kind_names[kind], shown, "at most 2000 packages",
                         "a build adds at most %d packages", MAKE_WANTS_MAX);
    if (!is_printable(text) || !readers[kind](text, &want) || is_order(&want)) {
        err_input(err, make_kind_names[kind], shown, bounds[kind], "'%s' names no package for %s",
                  shown, make_kind_names[kind]);
        if (kind == MAKE_PIP)
            err_hint(err, "a wheel of your own is found by its name: PIP_FIND_LINKS names its "
                          "folder, and '-r FILE' reads a file of requirements");
        else
            err_hint(err, "it must be %s: no path and no address", bounds[kind]);
        return -1;
    }
    want.text = buf_strdup(text);
    wants->at = buf_list_room(wants->at, wants->count, sizeof *wants->at);
    wants->at[wants->count++] = want;
    return 0;
}

/* ---- requirements.txt ---- */

/* " --hash=sha256:HEX" as often as it is there, at the end of a requirement: what is before. */
static struct str cut_hashes(struct str line, bool *out_valid)
{
    static const char mark[] = " --hash=";
    const char *first = line.len ? memmem(line.at, line.len, mark, sizeof mark - 1) : NULL;
    *out_valid = true;
    if (!first)
        return line;
    struct str rest = { first, line.len - (size_t)(first - line.at) };
    while (rest.len > 0 && *out_valid) {
        *out_valid = rest.len > sizeof mark - 1 && !memcmp(rest.at, mark, sizeof mark - 1);
        size_t n = *out_valid ? span(rest, sizeof mark - 1, ":") : 0;
        *out_valid = n > 0 && memchr(rest.at + sizeof mark - 1, ':', n);
        rest = (struct str){ rest.at + sizeof mark - 1 + n, rest.len - (sizeof mark - 1) - n };
        size_t blanks = skip_blanks(rest, 0);
        if (blanks == rest.len)
            break;
        rest = (struct str){ rest.at + blanks - 1, rest.len - (blanks - 1) };
        *out_valid &= blanks > 0 && rest.at[0] == ' ';
    }
    return str_trim((struct str){ line.at, (size_t)(first - line.at) });
}

static int refuse_line(size_t number, const char *name, struct str line, const char *why,
                       const char *hint, struct err *err)
{
    char shown[128];
    str_plain(shown, sizeof shown, line);
    err_input(err, "requirements", shown, "names of packages, with versions and --hash",
              "line %zu of '%.200s' %s: '%s'", number, name, why, shown);
    err_hint(err, "%s", hint);
    return -1;
}

static int add_line(struct make_wants *wants, struct str line, size_t number, const char *name,
                    struct err *err)
{
    static const char plant[] = "say it by the environment or the configuration of pip: "
                                "PIP_INDEX_URL, PIP_FIND_LINKS, pip.conf";
    bool good;
    struct str text = cut_hashes(line, &good);
    struct err why = ERR_INIT;
    if (line.at[0] == '-')
        return refuse_line(number, name, line, "has an option", plant, err);
    if (wants->count == MAKE_WANTS_MAX)
        return refuse_line(number, name, line, "is one package too many",
                           "a build adds at most 2000 packages", err); /* MAKE_WANTS_MAX */
    if (line.len >= (size_t)64 << 10)
        return refuse_line(number, name, line, "is too long", "a line has at most 65535 bytes",
                           err);
    if (!good)
        return refuse_line(number, name, line, "has no good --hash",
                           "write --hash=sha256:HEX after the version", err);
    if (make_wants_add(wants, MAKE_PIP, text, &why) < 0) {
        refuse_line(number, name, line, "names no package", why.hint, err);
        return -1;
    }
    struct make_want *last = &wants->at[wants->count - 1];
    if (text.len < line.len) {
        free(last->text);
        last->text = buf_strdup(line);
        last->hashed = true;
    }
    return 0;
}

/* A comment begins the line, or follows a blank. */
static struct str cut_comment(struct str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.at[i] == '#' && (i == 0 || line.at[i - 1] == ' ' || line.at[i - 1] == '\t'))
            return (struct str){ line.at, i };
    return line;
}

int make_wants_add_file(struct make_wants *wants, struct str text, const char *name,
                        struct err *err)
{
    own_buf joined = BUF_INIT(MAKE_REQUIREMENTS_MAX);
    size_t number = 0, first = 0;
    if (text.len > MAKE_REQUIREMENTS_MAX)
        return err_input(err, "requirements", name, "at most 1048576 bytes",
                         "'%.200s' has more than %zu bytes", name, MAKE_REQUIREMENTS_MAX);
    if (text.len >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0) /* as editors of Windows begin */
        text = (struct str){ text.at + 3, text.len - 3 };
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        struct str line = { text.at, end ? (size_t)(end - text.at) : text.len };
        text = end ? (struct str){ end + 1, text.len - line.len - 1 } : STR_NONE;
        number++;
        if (joined.len == 0)
            first = number;
        line = str_trim(cut_comment(line));
        bool goes_on = line.len > 0 && line.at[line.len - 1] == '\\';
        if (goes_on)
            line = str_trim((struct str){ line.at, line.len - 1 });
        if ((joined.len > 0 && buf_add_text(&joined, " ") < 0) || buf_add_str(&joined, line) < 0)
            return err_set(err, ERR_LIMIT, "'%.200s' has a line that is too long", name);
        if (goes_on && text.len > 0)
            continue;
        line = str_trim(buf_str(&joined));
        if (line.len > 0 && add_line(wants, line, first, name, err) < 0)
            return -1;
        joined.len = 0;
    }
    return 0;
}
