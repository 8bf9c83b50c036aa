/* The checklist that a question itself asks for, by rules. Process: the task's. Pure.
 * English first. A rule that is unsure says nothing: a wrong requirement costs a repair, and
 * a missing one only a check. */
#include <strings.h>

#include "agent/verify/check_scan.h"
#include "agent/verify/checklist.h"
#include "base/attr.h"
#include "base/json.h"

#define TOKENS_MAX 1500
#define QUESTION_MAX (32u << 10)
#define COUNT_MAX 1000

struct token {
    struct str text; /* without marks around it */
    bool first;      /* of a sentence */
    bool comma;      /* one follows */
};

struct question {
    struct token at[TOKENS_MAX];
    size_t count;
    json_t *out;
};

static bool is(const struct question *question, size_t i, const char *word)
{
    return i < question->count && agent_scan_same(question->at[i].text, word);
}

static bool is_in(const struct question *question, size_t i, const char *const *words, size_t count)
{
    for (size_t w = 0; w < count; w++) {
        if (is(question, i, words[w]))
            return true;
    }
    return false;
}
#define IS_IN(question, i, words) is_in(question, i, words, array_len(words))

static void add(struct question *question, json_t *check, const char *fmt, ...) attr_printf(3, 4);
static void add(struct question *question, json_t *check, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t i;
    json_t *each;
    json_array_foreach (question->out, i, each) {
        if (json_equal(json_object_get(each, "check"), check)) {
            json_decref(check);
            return;
        }
    }
    json_array_append_new(question->out,
                          json_pack("{s:o, s:s, s:o}", "text", json_text(str_of(text)), "from",
                                    "rules", "check", check));
}

static void cut_tokens(struct str text, struct question *out)
{
    bool first = true;
    size_t i = 0;
    while (i < text.len && out->count < TOKENS_MAX) {
        bool line = false;
        while (i < text.len && strchr(" \t\r\n", text.at[i])) {
            line = line || text.at[i] == '\n';
            i++;
        }
        size_t start = i;
        while (i < text.len && !strchr(" \t\r\n", text.at[i]))
            i++;
        struct str word = { text.at + start, i - start };
        if (!word.len)
            break;
        bool ends = strchr(".?!", word.at[word.len - 1]), comma = word.at[word.len - 1] == ',';
        while (word.len && strchr(",.;:!?)\"'`*]", word.at[word.len - 1]))
            word.len--;
        while (word.len && strchr("(\"'`*[", word.at[0])) {
            word.at++;
            word.len--;
        }
        if (word.len)
            out->at[out->count++] = (struct token){ word, first || line, comma };
        first = ends;
    }
}

/* 2 to COUNT_MAX, in digits or in a word; 0: none. */
static long count_at(const struct question *question, size_t i)
{
    uint64_t value = 0;
    if (i >= question->count)
        return 0;
    if (!str_to_u64(question->at[i].text, &value)) {
        int word = agent_scan_number_word(question->at[i].text);
        value = word > 1 ? (uint64_t)word : 0;
    }
    return value > 1 && value <= COUNT_MAX ? (long)value : 0;
}

static size_t sentence_start(const struct question *question, size_t i)
{
    while (i > 0 && !question->at[i].first)
        i--;
    return i;
}

static bool said_before(const struct question *question, size_t i, const char *const *words,
                        size_t count)
{
    for (size_t w = sentence_start(question, i); w < i; w++) {
        if (is_in(question, w, words, count))
            return true;
    }
    return false;
}
#define SAID_BEFORE(question, i, words) said_before(question, i, words, array_len(words))

static const char *const savers[] = { "save",     "write",   "export",  "store",
                                      "output",   "dump",    "create",  "produce",
                                      "generate", "make",    "convert", "put",
                                      "saved",    "written", "deliver", "download" };

static const char *const superlatives[] = { "largest",  "biggest", "highest", "smallest",
                                            "lowest",   "best",    "worst",   "top",
                                            "cheapest", "longest", "shortest", "oldest",
                                            "newest",   "fastest", "slowest", "greatest" };
/* One value from many: so many go in, not out. */
static const char *const folds[] = { "sum",   "total",       "average",    "mean",    "product",
                                     "median", "difference", "share",      "probability",
                                     "between", "if",        "combined",   "ratio" };

/* "top 5", "the five largest", "which three": so many are named. */
static void rule_items(struct question *question)
{
    static const char *const ahead[] = { "top", "bottom", "first", "last", "which", "list", "name",
                                         "best", "worst" };
    static const char *const asks[] = { "which", "what",   "who",  "list",     "show",
                                        "name",  "find",   "give", "identify", "print",
                                        "top",   "report", "tell", "return" };
    for (size_t i = 0; i < question->count; i++) {
        long n = count_at(question, i);
        bool near = i > 0 && IS_IN(question, i - 1, ahead);
        near = near || (i > 1 && is(question, i - 1, "the") && IS_IN(question, i - 2, ahead) &&
                        !is(question, i - 2, "first"));
        if (!n || (!near && !IS_IN(question, i + 1, superlatives)))
            continue;
        /* "save the top 5 to X" speaks of the file. */
        if (i > 2 && IS_IN(question, is(question, i - 2, "the") ? i - 3 : i - 2, savers))
            continue;
        bool asked =
            SAID_BEFORE(question, i, asks) || IS_IN(question, sentence_start(question, i), asks);
        if (asked && !SAID_BEFORE(question, i, folds)) {
            add(question, json_pack("{s:I}", "items", (json_int_t)n), "the answer names %ld", n);
            return;
        }
    }
}

/* "with columns a, b and c" behind a place. */
static json_t *columns_from(const struct question *question, size_t i)
{
    json_t *out = json_array();
    for (; i < question->count && json_array_size(out) < 50; i++) {
        const struct token *token = &question->at[i];
        if (is(question, i, "and") || is(question, i, "named") || is(question, i, "called"))
            continue;
        if (token->first || token->text.len > 60)
            break;
        json_array_append_new(out, json_text(token->text));
        bool more = token->comma || is(question, i + 1, "and");
        if (!more)
            break;
    }
    if (json_array_size(out) >= 2)
        return out;
    json_decref(out);
    return NULL;
}

static json_t *columns_of(const struct question *question)
{
    for (size_t i = 1; i < question->count; i++) {
        bool with = is(question, i - 1, "with") || is(question, i - 1, "the") ||
                    is(question, i - 2 < i ? i - 2 : 0, "with");
        if (with && is(question, i, "columns"))
            return columns_from(question, i + 1);
    }
    return NULL;
}

/* The token behind the last file that was asked for, or the sentence's first. "a.csv and b.csv" are
 * one list. */
static size_t demand_start(const struct question *question, size_t file, size_t last)
{
    size_t start = sentence_start(question, file);
    bool list = last != SIZE_MAX && last + 2 == file && is(question, last + 1, "and");
    return last != SIZE_MAX && last >= start && !list ? last + 1 : start;
}

/* "save the top 5 to X", "write the five largest of Y as X": the rows of the file. */
static long rows_of(const struct question *question, size_t file, size_t last, const char *format)
{
    static const char *const not_one[] = { "each", "every", "per" };
    bool counts = !strcmp(format, "csv") || !strcmp(format, "tsv") || !strcmp(format, "json");
    bool saved = false, folded = false;
    for (size_t i = file; counts && i < question->count && !question->at[i].first; i++)
        counts = !IS_IN(question, i, not_one);
    if (!counts || SAID_BEFORE(question, file, not_one))
        return 0;
    for (size_t i = demand_start(question, file, last); i + 1 < file; i++) {
        folded = !IS_IN(question, i, savers) && (folded || IS_IN(question, i, folds));
        saved = saved || IS_IN(question, i, savers);
        long n = count_at(question, i);
        bool top = i > 0 && (is(question, i - 1, "top") || is(question, i - 1, "bottom"));
        if (saved && !folded && n && (top || IS_IN(question, i + 1, superlatives)))
            return n;
    }
    return 0;
}

/* Files that shall be made: a verb of making, and "to", "as", "called" right before the name. */
static bool rule_files(struct question *question)
{
    static const char *const links[] = { "to", "as", "into", "called", "named" };
    static const char *const drawers[] = { "draw", "plot", "render" };
    size_t last = SIZE_MAX;
    bool any = false;
    for (size_t i = 1; i < question->count; i++) {
        char path[200];
        struct str name = question->at[i].text;
        if (name.len < 3 || name.len >= sizeof path)
            continue;
        memcpy(path, name.at, name.len);
        path[name.len] = '\0';
        const char *format = agent_format_of_path(path);
        bool in =
            is(question, i - 1, "in") &&
            SAID_BEFORE(question, i, ((const char *const[]){ "save", "write", "store", "put" }));
        bool asked = SAID_BEFORE(question, i, savers) || SAID_BEFORE(question, i, drawers);
        bool next = i > 1 && last == i - 2 && is(question, i - 1, "and"); /* "a.png and b.svg" */
        if (!format || !asked ||
            !(IS_IN(question, i - 1, links) || IS_IN(question, i - 1, savers) || in || next))
            continue;
        long rows = rows_of(question, i, last, format);
        last = i;
        json_t *columns = columns_of(question);
        add(question, json_pack("{s:s, s:s, s:o, s:o}", "file", path, "format", format, "rows",
                                rows ? json_integer(rows) : json_null(), "columns",
                                columns ? columns : json_null()),
            "%s is a %s file", path, format);
        any = true;
    }
    return any;
}

/* "export it as CSV", "an Excel file": no name, but a kind. */
static void rule_formats(struct question *question)
{
    static const struct {
        const char *word, *file, *format;
    } kinds[] = { { "csv", "*.csv", "csv" },    { "excel", "*.xlsx", "xlsx" },
                  { "xlsx", "*.xlsx", "xlsx" }, { "pdf", "*.pdf", "pdf" },
                  { "png", "*.png", "png" },    { "html", "*.html", "html" },
                  { "json", "*.json", "json" } };
    for (size_t i = 1; i < question->count; i++) {
        bool as = is(question, i - 1, "as") ||
                  ((is(question, i - 1, "a") || is(question, i - 1, "an")) && i > 1 &&
                   is(question, i - 2, "as"));
        bool file = is(question, i + 1, "file") && SAID_BEFORE(question, i, savers);
        bool saved = as && SAID_BEFORE(question, i, savers);
        for (size_t k = 0; k < array_len(kinds); k++) {
            if (!is(question, i, kinds[k].word))
                continue;
            if (file || saved)
                add(question, json_pack("{s:s, s:s, s:n, s:n}", "file", kinds[k].file, "format",
                                        kinds[k].format, "rows", "columns"),
                    "a %s file is made", kinds[k].format);
            else if (as && !strcmp(kinds[k].format, "json"))
                add(question, json_pack("{s:s}", "answer", "json"), "the answer is JSON");
        }
    }
}

/* A chart, however it is called. "Draw a ball" and "a graph with 5 nodes" are none. */
static void rule_picture(struct question *question)
{
    static const char *const sure[] = { "chart", "charts", "histogram", "heatmap", "boxplot",
                                        "visualise", "visualize", "visualisation", "visualization",
                                        "barchart", "scatterplot" };
    static const char *const verbs[] = { "draw",   "plot",    "make",    "create",
                                         "show",   "produce", "with",    "generate",
                                         "sketch", "and",     "include", "add" };
    static const char *const pronouns[] = { "it", "them", "this", "that", "these", "those" };
    static const char *const kinds[] = { "bar", "line", "pie", "scatter", "box" };
    static const char *const land[] = { "of" };
    for (size_t i = 0; i < question->count; i++) {
        bool found = IS_IN(question, i, sure);
        bool noun =
            is(question, i, "plot") || is(question, i, "graph") || is(question, i, "diagram");
        found = found || (noun && i > 0 && IS_IN(question, i - 1, kinds));
        found = found ||
                (noun && SAID_BEFORE(question, i, verbs) && i > 0 && is(question, i - 1, "a") &&
                 !IS_IN(question, i + 1, land) && !is(question, i + 1, "with"));
        bool verb = is(question, i, "draw") || is(question, i, "plot") || is(question, i, "graph");
        found = found || (verb && IS_IN(question, i + 1, pronouns));
        found = found ||
                (is(question, i, "plot") && question->at[i].first && i + 1 < question->count);
        if (found) {
            add(question,
                json_pack("{s:s, s:s, s:n, s:n}", "file", "*", "format", "picture", "rows",
                          "columns"),
                "there is a picture");
            return;
        }
    }
}

/* Words in a row that say what kind of answer is asked for. */
static void rule_answer(struct question *question)
{
    static const struct {
        const char *words[4];
        const char *answer, *text;
        bool first; /* of a sentence */
    } asks[] = {
        { { "how", "many" }, "integer", "the answer says how many", false },
        { { "what", "percentage" }, "percent", "the answer is a percentage", false },
        { { "what", "percent" }, "percent", "the answer is a percentage", false },
        { { "which", "percentage" }, "percent", "the answer is a percentage", false },
        { { "yes", "or", "no" }, "yes_no", "the answer is yes or no", false },
        { { "what", "date" }, "date", "the answer is a date", false },
        { { "which", "date" }, "date", "the answer is a date", false },
        { { "which", "day" }, "date", "the answer is a date", false },
        { { "which", "month" }, "date", "the answer is a date", false },
        { { "when", "did" }, "date", "the answer is a date", false },
        { { "when", "was" }, "date", "the answer is a date", false },
        { { "what", "is", "the", "total" }, "number", "the answer is a number", false },
        { { "what", "is", "the", "average" }, "number", "the answer is a number", false },
        { { "what", "is", "the", "sum" }, "number", "the answer is a number", false },
        { { "what", "is", "the", "mean" }, "number", "the answer is a number", false },
        { { "what", "is", "the", "median" }, "number", "the answer is a number", false },
        { { "how", "much" }, "number", "the answer is a number", false },
        { { "who" }, "name", "the answer is a name", true },
    };
    for (size_t i = 0; i < question->count; i++) {
        for (size_t a = 0; a < array_len(asks); a++) {
            size_t w = 0;
            while (w < array_len(asks[a].words) && asks[a].words[w] &&
                   is(question, i + w, asks[a].words[w]))
                w++;
            bool whole = w == array_len(asks[a].words) || !asks[a].words[w];
            if (!whole || (asks[a].first && !question->at[i].first))
                continue;
            add(question, json_pack("{s:s}", "answer", asks[a].answer), "%s", asks[a].text);
            return; /* the first question is the main one */
        }
    }
}

/* "Which customers", "which five products": names, where the noun has names. */
static void rule_names(struct question *question)
{
    static const char *const nouns[] = {
        "customer", "customers", "product", "products",   "country",    "countries",  "city",
        "cities",   "person",    "people",  "company",    "companies",  "region",     "regions",
        "team",     "teams",     "store",   "stores",     "category",   "categories", "supplier",
        "employee", "employees", "player",  "department", "departments"
    };
    for (size_t i = 0; i + 1 < question->count; i++) {
        size_t noun = count_at(question, i + 1) ? i + 2 : i + 1;
        if (is(question, i, "which") && question->at[i].first && IS_IN(question, noun, nouns)) {
            add(question, json_pack("{s:s}", "answer", "name"), "the answer gives names");
            return;
        }
    }
}

/* "Give the total in EUR." The data "are in EUR" says nothing of the answer. */
static void rule_currency(struct question *question)
{
    static const char *const codes[] = { "EUR", "USD", "GBP", "JPY", "INR" };
    static const char *const asks[] = { "give", "express", "report", "answer", "convert", "state",
                                        "show", "what", "how", "calculate", "compute" };
    for (size_t i = 2; i < question->count; i++) {
        for (size_t c = 0; c < array_len(codes); c++) {
            if (is(question, i, codes[c]) && is(question, i - 1, "in") &&
                !is(question, i - 2, "are") && !is(question, i - 2, "is") &&
                SAID_BEFORE(question, i, asks))
                add(question, json_pack("{s:[s]}", "contains", codes[c]), "the answer is in %s",
                    codes[c]);
        }
    }
}

static void rule_order(struct question *question)
{
    static const char *const falling[] = { "descending", "decreasing" };
    static const char *const rising[] = { "ascending", "increasing" };
    static const char *const sorts[] = { "sort", "sorted", "order", "ordered", "ranked", "list" };
    for (size_t i = 1; i < question->count; i++) {
        bool down = IS_IN(question, i, falling) ||
                    (is(question, i + 1, "first") &&
                     (is(question, i, "largest") || is(question, i, "highest")));
        bool up = IS_IN(question, i, rising);
        if ((down || up) && SAID_BEFORE(question, i, sorts)) {
            add(question, json_pack("{s:s}", "sorted", down ? "descending" : "ascending"),
                "the list is in %s order", down ? "descending" : "ascending");
            return;
        }
    }
}

json_t *agent_checklist_of(const char *question)
{
    struct question *read = buf_alloc_zero(1, sizeof *read);
    struct str text = str_of(question);
    text.len = text.len > QUESTION_MAX ? QUESTION_MAX : text.len;
    read->out = json_array();
    cut_tokens(text, read);
    rule_items(read);
    if (!rule_files(read))
        rule_formats(read);
    rule_picture(read);
    rule_answer(read);
    rule_names(read);
    rule_currency(read);
    rule_order(read);
    agent_checklist_asserts(text, read->out);
    json_t *out = read->out;
    free(read);
    return out;
}
