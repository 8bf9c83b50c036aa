/* Numbers in text. Process: the task's. Pure.
 * A run of digits that is part of a name (x1, report_2.csv, 1.2.3, 0x1f) is no number: it is
 * passed over whole. */
#include "agent/verify/check_scan.h"

#include "base/attr.h"

#define DIGITS_MAX 400 /* of one number: what is longer is no quantity */

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char at(struct str text, size_t i)
{
    return i < text.len ? text.at[i] : '\0';
}

static bool starts(struct str text, size_t i, const char *with)
{
    size_t len = strlen(with);
    return i <= text.len && text.len - i >= len && memcmp(text.at + i, with, len) == 0;
}

/* A power of ten; pow() would need another library. */
static double ten_to(int power)
{
    double out = 1;
    for (int i = power < 0 ? -power : power; i > 0; i--)
        out *= 10;
    return power < 0 ? 1 / out : out;
}

static size_t digits_from(struct str text, size_t i)
{
    size_t n = 0;
    while (digit(at(text, i + n)))
        n++;
    return n;
}

/* The length of a mark that may stand between thousands, 0 if there is none. */
static size_t group_mark(struct str text, size_t i, bool apart)
{
    static const char *const marks[] = { "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89", "'", "_" };
    if (!apart && at(text, i) == ',')
        return 1;
    for (size_t m = 0; m < array_len(marks); m++) {
        if (starts(text, i, marks[m]))
            return strlen(marks[m]);
    }
    return 0;
}

struct reading {
    double value, step;
    size_t end;
    bool grouped, whole;
};

/* "1,234,567": groups of three behind one to three digits. */
static size_t read_groups(struct str text, size_t i, bool apart, double *io_value)
{
    size_t first = digits_from(text, i), end = i + first, mark;
    if (first > 3 || (at(text, i) == '0' && first > 0))
        return end;
    struct str kind = STR_NONE;
    while ((mark = group_mark(text, end, apart)) > 0 && digits_from(text, end + mark) == 3) {
        struct str found = { text.at + end, mark };
        if (kind.len && !str_eq(kind, found))
            break;
        kind = found;
        for (size_t d = 0; d < 3; d++)
            *io_value = *io_value * 10 + (text.at[end + mark + d] - '0');
        end += mark + 3;
    }
    return end;
}

/* The fraction: '.', or ',' where it is no list and no group. */
static size_t read_fraction(struct str text, size_t i, bool apart, bool grouped,
                            struct reading *out)
{
    bool point = at(text, i) == '.';
    bool comma = !apart && !grouped && at(text, i) == ',';
    size_t n = point || comma ? digits_from(text, i + 1) : 0;
    if (n == 0 || (comma && (n > 2 || at(text, i + 1 + n) == ',')))
        return i;
    double place = 1;
    for (size_t d = 0; d < n; d++) {
        place /= 10;
        out->value += (text.at[i + 1 + d] - '0') * place;
    }
    out->step = ten_to(n > 300 ? -300 : -(int)n);
    out->whole = false;
    /* Summing digits drifts: for what matters the library is exact. */
    if (point && !grouped) {
        size_t start = i;
        char copy[64];
        while (start > 0 && digit(text.at[start - 1]))
            start--;
        if (i + 1 + n - start < sizeof copy) {
            memcpy(copy, text.at + start, i + 1 + n - start);
            copy[i + 1 + n - start] = '\0';
            out->value = strtod(copy, NULL);
        }
    }
    return i + 1 + n;
}

/* "e-05", "×10^5", " x 10^5", " * 10**5" */
static size_t read_exponent(struct str text, size_t i, struct reading *io)
{
    static const char *const tens[] = { "×10^",       " × 10^",      "x10^",  " x 10^",
                                        "*10^",       " * 10^",      "*10**", " * 10**",
                                        "\\times10^", " \\times 10^" };
    size_t from = i;
    if ((at(text, i) == 'e' || at(text, i) == 'E'))
        from = i + 1;
    for (size_t t = 0; t < array_len(tens) && from == i; t++) {
        if (starts(text, i, tens[t]))
            from = i + strlen(tens[t]);
    }
    if (from == i)
        return i;
    bool brace = at(text, from) == '{';
    from += brace;
    bool minus = at(text, from) == '-';
    from += minus || at(text, from) == '+';
    size_t n = digits_from(text, from);
    if (n == 0 || n > 3 || letter(at(text, from + n)))
        return i;
    int power = 0;
    for (size_t d = 0; d < n; d++)
        power = power * 10 + (text.at[from + d] - '0');
    double factor = ten_to(minus ? -power : power);
    io->value *= factor;
    io->step *= factor;
    io->whole = false;
    return from + n + (brace && at(text, from + n) == '}');
}

/* "1.234.567,89", "1.234,5": points part thousands where a comma follows, or where there are two.
 */
static bool read_european(struct str text, size_t i, struct reading *out)
{
    size_t n = digits_from(text, i), end = i + n, groups = 0;
    double value = 0;
    if (n == 0 || n > 3)
        return false;
    for (; at(text, end) == '.' && digits_from(text, end + 1) == 3; end += 4)
        groups++;
    size_t rest = at(text, end) == ',' ? digits_from(text, end + 1) : 0;
    bool fraction = rest == 1 || rest == 2;
    if (groups == 0 || (groups == 1 && !fraction))
        return false;
    for (size_t d = i; d < end; d++)
        value = text.at[d] == '.' ? value : value * 10 + (text.at[d] - '0');
    *out = (struct reading){ value, 1, end, true, true };
    if (fraction) {
        out->step = rest == 1 ? 0.1 : 0.01;
        for (size_t d = 1; d <= rest; d++)
            out->value += (text.at[end + d] - '0') * (d == 1 ? 0.1 : 0.01);
        out->whole = false;
        out->end = end + 1 + rest;
    }
    return true;
}

static void read_plain(struct str text, size_t i, bool apart, struct reading *out)
{
    if (!apart && read_european(text, i, out))
        return;
    *out = (struct reading){ .step = 1, .whole = true };
    size_t n = digits_from(text, i);
    for (size_t d = 0; d < n; d++)
        out->value = out->value * 10 + (text.at[i + d] - '0');
    size_t end = read_groups(text, i, apart, &out->value);
    out->grouped = end > i + n;
    end = read_fraction(text, end, apart, out->grouped, out);
    out->end = read_exponent(text, end, out);
}

/* 2024-03-01, 2024/3/1, 1.3.2024, 1/3/24, 10:30, 10:30:05: its end, 0 if it is none. */
static size_t read_date(struct str text, size_t i)
{
    size_t a = digits_from(text, i), b, c;
    char mark = at(text, i + a);
    if (a == 0 || a > 4 || !mark || !strchr("-/.:", mark))
        return 0;
    b = digits_from(text, i + a + 1);
    if (mark == ':') {
        if (a > 2 || b != 2)
            return 0;
        c = at(text, i + a + 3) == ':' ? digits_from(text, i + a + 4) : 0;
        return c == 2 ? i + a + 6 : i + a + 3;
    }
    size_t second = i + a + 1 + b;
    if (b == 0 || b > 2 || at(text, second) != mark)
        return 0;
    c = digits_from(text, second + 1);
    bool year_first = a == 4 && (c == 1 || c == 2) && mark != '.';
    bool year_last = a <= 2 && (c == 4 || (c == 2 && mark != '-'));
    if (!year_first && !year_last)
        return 0;
    size_t end = second + 1 + c;
    if (at(text, end) == 'T' || at(text, end) == ' ') {
        size_t time = digits_from(text, end + 1) == 2 ? read_date(text, end + 1) : 0;
        end = time && at(text, end + 3) == ':' ? time : end;
    }
    return end;
}

static const struct scale {
    const char *word;
    double factor;
    bool tight; /* only directly behind the digits, or with money */
} scales[] = {
    { "thousand", 1e3, false }, { "million", 1e6, false },  { "billion", 1e9, false },
    { "trillion", 1e12, false }, { "mn", 1e6, false },      { "bn", 1e9, false },
    { "k", 1e3, true },         { "K", 1e3, true },         { "M", 1e6, true },
    { "MM", 1e6, true },        { "B", 1e9, true },         { "mln", 1e6, false },
};

/* %, k, M, million, percent, st: what follows the digits. */
static void read_unit(struct str text, struct agent_scan_number *out)
{
    size_t space = out->end;
    while (at(text, space) == ' ' && space - out->end < 2)
        space++;
    space += starts(text, space, "\xc2\xa0") ? 2 : starts(text, space, "\xe2\x80\xaf") ? 3 : 0;
    size_t n = 0;
    while (letter(at(text, space + n)) && n < 16)
        n++;
    struct str word = { text.at + (n ? space : 0), n };
    for (size_t s = 0; s < array_len(scales) && n; s++) {
        bool near = space == out->end || out->money || !scales[s].tight;
        bool same = scales[s].tight ? str_is(word, scales[s].word)
                                    : agent_scan_same(word, scales[s].word);
        bool m = out->money && space == out->end && str_is(word, "m");
        if (near && (same || (m && scales[s].factor == 1e6))) {
            out->scale = scales[s].factor;
            out->value *= out->scale;
            out->step *= out->scale;
            out->end = space + n;
            return;
        }
    }
    bool sign = at(text, space) == '%' || starts(text, space, "\\%");
    if (sign || agent_scan_same(word, "percent") || agent_scan_same(word, "pct") ||
        agent_scan_same(word, "percentage") || starts(text, space, "per cent")) {
        out->percent = true;
        out->end = space + (sign ? 1 : n);
    } else if (space == out->end && (str_is(word, "st") || str_is(word, "nd") ||
                                     str_is(word, "rd") || str_is(word, "th"))) {
        out->kind = AGENT_SCAN_ORDINAL;
        out->end = space + n;
    }
}

static const char *const coins[] = { "$", "€", "£", "¥", "₹", "USD ", "EUR ", "GBP ", "CHF " };

/* The sign and the currency in front of the digits, in either order. */
static void read_front(struct str text, struct agent_scan_number *out)
{
    for (int turn = 0; turn < 2; turn++) {
        for (size_t c = 0; c < array_len(coins); c++) {
            size_t len = strlen(coins[c]);
            if (out->at >= len && starts(text, out->at - len, coins[c])) {
                out->at -= len;
                out->money = true;
                break;
            }
        }
        size_t minus = out->at >= 1 && text.at[out->at - 1] == '-' ? 1
                       : out->at >= 3 && starts(text, out->at - 3, "\xe2\x88\x92") ? 3 : 0;
        char before = out->at > minus ? text.at[out->at - minus - 1] : ' ';
        /* "10-20" and "a-1" are no negative numbers. */
        if (minus && !out->negative && !digit(before) && !letter(before) && before != ')' &&
            before != '%') {
            out->negative = true;
            out->at -= minus;
        }
    }
}

/* Pass over a run of letters, digits and inner marks that is a name. */
static size_t pass_name(struct str text, size_t i)
{
    while (digit(at(text, i)) || letter(at(text, i)))
        i++;
    return i;
}

/* Digits at `i` that are no quantity: in a name, hexadecimal, a version. Its end, or 0. */
static size_t no_quantity(struct str text, size_t i)
{
    char before = i > 0 ? text.at[i - 1] : ' ';
    size_t n = digits_from(text, i);
    if (letter(before) || (before == '-' && i > 1 && letter(text.at[i - 2]))) /* x1, UTF-8 */
        return pass_name(text, i);
    if (at(text, i) == '0' && (at(text, i + 1) == 'x' || at(text, i + 1) == 'X'))
        return pass_name(text, i);
    if (at(text, i + n) == '_' && digits_from(text, i + n + 1) != 3)
        return pass_name(text, i);
    if (n > DIGITS_MAX)
        return i + n;
    size_t dots = 0, end = i + n;
    bool threes = n <= 3;
    while (at(text, end) == '.' && (n = digits_from(text, end + 1)) > 0) {
        threes = threes && n == 3;
        end += 1 + n;
        dots++;
    }
    return dots > 1 && !threes ? end : 0;
}

bool agent_scan_number(struct str text, size_t *io_at, bool apart, struct agent_scan_number *out)
{
    for (size_t i = *io_at; i < text.len;) {
        bool point = text.at[i] == '.' && digit(at(text, i + 1)) &&
                     (i == 0 || (!digit(text.at[i - 1]) && !letter(text.at[i - 1])));
        if (!digit(text.at[i]) && !point) {
            i++;
            continue;
        }
        *out = (struct agent_scan_number){ .at = i, .digits = i, .scale = 1 };
        size_t date = point ? 0 : read_date(text, i),
               pass = point || date ? 0 : no_quantity(text, i);
        if (pass) {
            i = pass;
            continue;
        }
        if (date) {
            out->kind = AGENT_SCAN_DATE;
            out->end = *io_at = date;
            return true;
        }
        struct reading plain;
        read_plain(text, i, apart, &plain);
        out->value = plain.value;
        out->step = plain.step;
        out->grouped = plain.grouped;
        out->whole = plain.whole;
        out->end = plain.end;
        read_front(text, out);
        read_unit(text, out);
        if (out->negative)
            out->value = -out->value;
        *io_at = out->end;
        return true;
    }
    *io_at = text.len;
    return false;
}
