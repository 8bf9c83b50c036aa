/* The checklist: what the question asks for, and whether the answer and its files have it. */
#include "test_verify_claim.h"

#include "agent/verify/check_items.h"
#include "base/attr.h"
#include "base/json.h"

#define TOP_CSV(rows) \
    "[{\"file\":\"top.csv\",\"format\":\"csv\",\"rows\":" rows ",\"columns\":null}]"

static const struct {
    const char *question, *want; /* checks as JSON, all of them */
} asked[] = {
    { "What is 2 + 2?", "[]" },
    { "Which five customers brought the most revenue? Draw it.",
      "[{\"items\":5},{\"file\":\"*\",\"format\":\"picture\",\"rows\":null,\"columns\":null},"
      "{\"answer\":\"name\"}]" },
    { "Show the top 10 products by total sales.", "[{\"items\":10}]" },
    { "List the three largest files.", "[{\"items\":3}]" },
    { "What are the 4 lowest temperatures?", "[{\"items\":4}]" },
    { "What is the sum of the first ten primes?", "[{\"answer\":\"number\"}]" },
    { "What is the average of the top five scores?", "[{\"answer\":\"number\"}]" },
    { "How many rows have no date?", "[{\"answer\":\"integer\"}]" },
    { "What percentage of orders was late?", "[{\"answer\":\"percent\"}]" },
    { "Is 91 prime? Answer yes or no.", "[{\"answer\":\"yes_no\"}]" },
    { "Who sold the most?", "[{\"answer\":\"name\"}]" },
    { "On which day was the peak?", "[{\"answer\":\"date\"}]" },
    { "Read sales.csv and save the top 5 to best.csv with columns name, revenue and share.",
      "[{\"file\":\"best.csv\",\"format\":\"csv\",\"rows\":5,"
      "\"columns\":[\"name\",\"revenue\",\"share\"]}]" },
    { "Save the five largest as top.csv.", TOP_CSV("5") },
    { "Write the 5 largest trees of trees.csv to top.csv.", TOP_CSV("5") },
    { "Compute the total and save the five largest by total sales as top.csv.", TOP_CSV("5") },
    { "Save the bottom 3 to top.csv.", TOP_CSV("3") },
    { "Save the five largest of each region as top.csv.", TOP_CSV("null") },
    { "Save the sum of the five largest as top.csv.", TOP_CSV("null") },
    { "Write all rows since the last 5 days to top.csv.", TOP_CSV("null") },
    { "Save the rest of the 5 regions as top.csv.", TOP_CSV("null") },
    { "Save the five largest as five.csv and the rest as top.csv.",
      "[{\"file\":\"five.csv\",\"format\":\"csv\",\"rows\":5,\"columns\":null},"
      "{\"file\":\"top.csv\",\"format\":\"csv\",\"rows\":null,\"columns\":null}]" },
    { "Write f.\nassert f(2) == 4\nassert f([1,\n  2]) == 5\n- `assert g(1) < 3`.\n",
      "[{\"code\":\"assert f(2) == 4\"},{\"code\":\"assert f([1,\\n  2]) == 5\"},"
      "{\"code\":\"assert g(1) < 3\"}]" },
    { "Write f.\nassert that f(2) == 4\nassert it firmly\n    assert x == 3\nassert f((2\n",
      "[]" },
    { "Clean up data.csv and write the result to clean.csv.", "[{\"file\":\"clean.csv\","
                                                              "\"format\":\"csv\",\"rows\":"
                                                              "null,\"columns\":null}]" },
    { "Export the table as an Excel file.", "[{\"file\":\"*.xlsx\",\"format\":\"xlsx\","
                                            "\"rows\":null,\"columns\":null}]" },
    { "Give me the result as JSON.", "[{\"answer\":\"json\"}]" },
    { "Plot revenue by month and save it as chart.png",
      "[{\"file\":\"chart.png\",\"format\":\"png\",\"rows\":null,\"columns\":null},"
      "{\"file\":\"*\",\"format\":\"picture\",\"rows\":null,\"columns\":null}]" },
    { "Make a bar chart of it.", "[{\"file\":\"*\",\"format\":\"picture\",\"rows\":null,"
                                 "\"columns\":null}]" },
    { "A man draws a ball from an urn with 5 red balls. Given a graph with 6 nodes, do it.",
      "[]" },
    { "He owns a plot of land. Compare a.csv to b.csv.", "[]" },
    { "Give the total in EUR.", "[{\"contains\":[\"EUR\"]}]" },
    { "Amounts are in EUR.", "[]" },
    { "List the cities sorted by population, descending.", "[{\"sorted\":\"descending\"}]" },
};

TEST(verify_list_rules_of_the_question)
{
    for (size_t i = 0; i < array_len(asked); i++) {
        json_t *list = agent_checklist_of(asked[i].question), *checks = json_array(), *each;
        size_t n;
        json_array_foreach (list, n, each)
            json_array_append(checks, json_object_get(each, "check"));
        char *got = json_dumps(checks, JSON_COMPACT);
        if (strcmp(got, asked[i].want) != 0)
            check_failed(__FILE__, __LINE__, "\"%s\" gives %s", asked[i].question, got);
        free(got);
        json_decref(checks);
        json_decref(list);
    }
}

TEST(verify_list_takes_the_models_requirements)
{
    json_t *from = json_pack("[s, {s:s, s:{s:i}}, {s:s, s:{s:s, s:s, s:i, s:[s]}}, {s:s, "
                             "s:{s:s}}, {s:s, s:{s:i}}, i,"
                             " {s:s, s:{s:s}}, {s:s, s:s}, {s:{s:s}}]",
                             "plain words", "text", "five", "check", "items", 5, "text", "file",
                             "check", "file", "a.csv", "format", "csv", "rows", 3, "columns", "x",
                             "text", "odd", "check", "answer", "poem", "text", "negative", "check",
                             "items", -5, 7, "text", "test", "check", "code", "assert 1", "text",
                             "flat", "file", "b.png", "other", "x", "y");
    json_t *list = agent_checklist_read(from);
    static const char *const want[] = {
        "null", "{\"items\":5}",
        "{\"file\":\"a.csv\",\"format\":\"csv\",\"rows\":3,\"columns\":[\"x\"]}", "null", "null",
        "{\"code\":\"assert 1\"}",
        "{\"file\":\"b.png\",\"format\":\"png\",\"rows\":null,\"columns\":null}",
    };
    CHECK_INT(json_array_size(list), array_len(want));
    for (size_t i = 0; i < array_len(want); i++) {
        char *got = json_dumps(json_object_get(json_array_get(list, i), "check"),
                               JSON_COMPACT | JSON_ENCODE_ANY);
        CHECK_TEXT(got, want[i]);
        free(got);
        CHECK_TEXT(json_string_value(json_object_get(json_array_get(list, i), "from")), "model");
    }
    json_decref(list);
    json_decref(from);
    from = json_array();
    for (int i = 0; i < 40; i++)
        json_array_append_new(from, json_string("again"));
    list = agent_checklist_read(from);
    CHECK_INT(json_array_size(list), 20);
    json_decref(list);
    json_decref(from);
    list = agent_checklist_read(NULL);
    CHECK_INT(json_array_size(list), 0);
    json_decref(list);
}

TEST(verify_list_counts_items)
{
    static const struct {
        const char *answer;
        size_t lists, first;
    } rows[] = {
        { "It is so.", 0, 0 },
        { "1. a\n2. b\n3. c", 1, 3 },
        { "Here:\n\n- a\n- b\n\nThat is all.", 1, 2 },
        { "* a\n  - inner\n  - inner\n* b\n", 1, 2 },
        { "1) a\n   more of a\n2) b", 1, 2 },
        { "**1.** a\n**2.** b", 1, 2 },
        { "\xe2\x80\xa2 one thing\n\xe2\x80\xa2 another thing", 1, 2 },
        { "1. a\n\n2. b\n\n3. c", 1, 3 },
        { "| n | v |\n|---|---|\n| a | 1 |\n| b | 2 |", 1, 2 },
        { "The three are: Acme, Beta and Corex.", 1, 3 },
        { "The three are: Acme, Beta, and Corex.", 1, 3 },
        { "[1, 2, 3, 4]", 1, 4 },
        { "- a\n- b\n\nAnd:\n\n- c", 2, 2 },
        { "Note: it is a long sentence that goes on and on, with a comma, and no list in it", 0,
          0 },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct agent_items items;
        agent_items_count(str_of(rows[i].answer), &items);
        if (items.lists != rows[i].lists || (items.lists && items.counts[0] != rows[i].first))
            check_failed(__FILE__, __LINE__, "row %zu: %zu lists, first %zu", i, items.lists,
                         items.counts[0]);
    }
}

/* One requirement against an answer and files. */
static const char *outcome(const char *check, const char *answer, const struct claim_file *files)
{
    static json_t *checks;
    json_decref(checks);
    checks = json_array();
    json_t *list = json_pack("[{s:s, s:s, s:o}]", "text", "it", "from", "model", "check",
                             json_loads(check, 0, NULL));
    json_t *artifacts = claim_artifacts(files);
    json_t *steps = json_pack("[o]", claim_step(1, "f()", "Acme 42\nBeta 17\n"));
    struct agent_claim claim = { .question = "Which customer?", .answer = answer,
                                 .requirements = list, .steps = steps, .artifacts = artifacts,
                                 .content = claim_content, .user = (void *)(uintptr_t)files };
    agent_check_list(&claim, checks);
    CHECK_INT(json_array_size(checks), 1);
    CHECK_TEXT(claim_text(checks, "checklist: it", "check"), "checklist: it");
    bool failed = !strcmp(claim_outcome(checks, "checklist"), "fail");
    CHECK(failed == (claim_text(checks, "checklist", "repair") != NULL));
    json_decref(artifacts);
    json_decref(steps);
    json_decref(list);
    return claim_outcome(checks, "checklist");
}

TEST(verify_list_checks_answers)
{
    static const struct {
        const char *check, *answer, *want;
    } rows[] = {
        { "{\"items\":5}", "1. a\n2. b\n3. c\n4. d\n5. e", "pass" },
        { "{\"items\":5}", "1. a\n2. b\n3. c\n4. d\n5. e\n6. f\n7. g\n8. h\n9. i\n10. j", "fail" },
        { "{\"items\":5}", "1. a\n2. b\n3. c\n4. d", "fail" },
        { "{\"items\":5}", "They shine like bright stars above dark hills.", "skip" },
        { "{\"items\":5}", "The mean amount is 105.22.", "fail" }, /* another question's */
        { "{\"items\":3}", "They are Acme, Beta and Corex.", "pass" },
        { "{\"items\":5}", "East:\n- a\n- b\n\nWest:\n- c\n- d\n- e", "pass" },
        { "{\"items\":3}", "The three: Acme, Beta and Corex", "pass" },
        { "{\"items\":3}", "The three: Acme and Beta", "fail" },
        { "{\"contains\":[\"EUR\"]}", "It is 5 €.", "pass" },
        { "{\"contains\":[\"EUR\"]}", "It is 5 dollars.", "fail" },
        { "{\"answer\":\"integer\"}", "There are 12.", "pass" },
        { "{\"answer\":\"integer\"}", "There are twelve.", "pass" },
        { "{\"answer\":\"integer\"}", "There are 12.5.", "fail" },
        { "{\"answer\":\"integer\"}", "Acme is the largest.", "fail" },
        { "{\"answer\":\"number\"}", "3.14", "pass" },
        { "{\"answer\":\"number\"}", "2*pi", "pass" },
        { "{\"answer\":\"number\"}", "sqrt(x)", "skip" },
        { "{\"answer\":\"number\"}", "It is blue.", "fail" },
        { "{\"answer\":\"percent\"}", "12 %", "pass" },
        { "{\"answer\":\"percent\"}", "0.12", "skip" },
        { "{\"answer\":\"percent\"}", "many", "fail" },
        { "{\"answer\":\"date\"}", "On 2024-03-01.", "pass" },
        { "{\"answer\":\"date\"}", "In March.", "pass" },
        { "{\"answer\":\"date\"}", "It was Acme.", "fail" },
        { "{\"answer\":\"yes_no\"}", "Yes, it is.", "pass" },
        { "{\"answer\":\"yes_no\"}", "Perhaps.", "fail" },
        { "{\"answer\":\"json\"}", "```json\n{\"a\": 1}\n```", "pass" },
        { "{\"answer\":\"json\"}", "[1, 2]", "pass" },
        { "{\"answer\":\"json\"}", "a = 1", "fail" },
        { "{\"answer\":\"name\"}", "Acme", "pass" },
        { "{\"answer\":\"name\"}", "The largest is Beta.", "pass" },
        { "{\"answer\":\"name\"}", "Zeta", "fail" },
        { "{\"answer\":\"name\"}", "42", "fail" },
        { "{\"answer\":\"name\"}", "None of these things could ever be said to qualify.", "skip" },
        { "{\"sorted\":\"descending\"}", "- a: 3\n- b: 2\n- c: 1", "pass" },
        { "{\"sorted\":\"descending\"}", "- a: 3\n- b: 1\n- c: 2", "fail" },
        { "{\"sorted\":\"ascending\"}", "- a: 3\n- b: 2\n- c: 1", "fail" },
        { "{\"sorted\":\"descending\"}", "- a\n- b\n- c", "skip" },
        { "{\"file\":\"*\",\"format\":\"picture\"}", "There.", "fail" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        const char *got = outcome(rows[i].check, rows[i].answer, NULL);
        if (strcmp(got, rows[i].want) != 0)
            check_failed(__FILE__, __LINE__, "row %zu: %s, \"%s\" gives %s", i, rows[i].check,
                         rows[i].answer, got);
    }
}

/* The least of each kind that is whole. */
#define PNG "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x8\0\0\0\0\x3a\x7e\x9b\x55"          \
            "\0\0\0\nIDATx\x9c\x63\x68\0\0\0\x82\0\x81\x77\xcd\x72\xb6\0\0\0\0IEND\xae\x42\x60\x82"
#define GIF "GIF89a\1\0\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\0;"
#define JPEG "\xff\xd8\xff\xc0\0\x0b\x08\0\1\0\1\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0\x00\xff\xd9"
#define PDF "%PDF-1.4\n1 0 obj\n<<>>\nendobj\nstartxref\n9\n%%EOF\n"
#define ZIP_OF(name, len)                                                                        \
    "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" len "\0\0\0" name                       \
    "PK\1\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" len                                 \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" name "PK\5\6\0\0\0\0\1\0\1\0"
#define XLSX ZIP_OF("xl/workbook.xml", "\x0f") "\x3d\0\0\0\x2d\0\0\0\0\0"
#define ZIP ZIP_OF("a.txt", "\x05") "\x33\0\0\0\x23\0\0\0\0\0"

static const struct {
    const char *check;
    struct claim_file file;
    const char *want;
} opened[] = {
    { "{\"file\":\"a.csv\",\"format\":\"csv\"}", { "a.csv", STR("a,b\n1,2\n") }, "pass" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\"}", { "b.csv", STR("a,b\n1,2\n") }, "fail" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\"}", { "out/a.csv", STR("a,b\n1,2\n") }, "pass" },
    { "{\"file\":\"*.csv\",\"format\":\"csv\"}", { "b.csv", STR("a,b\n1,2\n") }, "pass" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\"}", { "a.csv", STR("") }, "fail" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\"}", { "a.csv", STR("a,b\n1,2,3\n") }, "fail" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\"}", { "a.csv", STR("{\"a\": 1}") }, "fail" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\"}", { "a.csv", STR(PNG) }, "fail" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\"}",
      { "a.csv", STR("a,b\n\"x, \"\"y\"\"\nz\",2\n") },
      "pass" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\",\"rows\":2}",
      { "a.csv", STR("a,b\n\"x\ny\",2\r\n3,4\n\n") },
      "pass" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\",\"rows\":2}",
      { "a.csv", STR("a;b\n1;2\n") },
      "fail" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\",\"rows\":2}",
      { "a.csv", STR("1,2\n3,4\n") },
      "pass" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\",\"columns\":[\"Total revenue\",\"B\"]}",
      { "a.csv", STR("b,total_revenue\n1,2\n") },
      "pass" },
    { "{\"file\":\"a.csv\",\"format\":\"csv\",\"columns\":[\"c\"]}",
      { "a.csv", STR("a,b\n1,2\n") },
      "fail" },
    { "{\"file\":\"a.json\",\"format\":\"json\",\"rows\":2,\"columns\":[\"n\"]}",
      { "a.json", STR("[{\"n\":1},{\"n\":2}]") },
      "pass" },
    { "{\"file\":\"a.json\",\"format\":\"json\",\"rows\":3}",
      { "a.json", STR("[{\"n\":1},{\"n\":2}]") },
      "fail" },
    { "{\"file\":\"a.json\",\"format\":\"json\"}", { "a.json", STR("{'a': 1}") }, "fail" },
    { "{\"file\":\"a.png\",\"format\":\"png\"}", { "a.png", STR(PNG) }, "pass" },
    { "{\"file\":\"a.png\",\"format\":\"png\"}", { "a.png", STR(JPEG) }, "fail" },
    { "{\"file\":\"a.png\",\"format\":\"png\"}",
      { "a.png", { PNG, sizeof PNG - 10 } },
      "fail" },
    { "{\"file\":\"*\",\"format\":\"picture\"}", { "c.png", STR(PNG) }, "pass" },
    { "{\"file\":\"*\",\"format\":\"picture\"}", { "c.jpg", STR(JPEG) }, "pass" },
    { "{\"file\":\"*\",\"format\":\"picture\"}", { "c.gif", STR(GIF) }, "pass" },
    { "{\"file\":\"*\",\"format\":\"picture\"}",
      { "c.svg", STR("<svg><g/></svg>") },
      "pass" },
    { "{\"file\":\"*\",\"format\":\"picture\"}", { "c.png", STR("a,b\n") }, "fail" },
    { "{\"file\":\"c.pdf\",\"format\":\"pdf\"}", { "c.pdf", STR(PDF) }, "pass" },
    { "{\"file\":\"c.pdf\",\"format\":\"pdf\"}", { "c.pdf", STR("%PDF-1.4\n") }, "fail" },
    { "{\"file\":\"c.xlsx\",\"format\":\"xlsx\"}", { "c.xlsx", STR(XLSX) }, "pass" },
    { "{\"file\":\"c.xlsx\",\"format\":\"xlsx\"}", { "c.xlsx", STR(ZIP) }, "fail" },
    { "{\"file\":\"c.xlsx\",\"format\":\"xlsx\",\"rows\":5}",
      { "c.xlsx", STR(XLSX) },
      "skip" },
    { "{\"file\":\"c.xlsx\",\"format\":\"xlsx\"}", { "c.xlsx", STR("a,b\n1,2\n") }, "fail" },
    { "{\"file\":\"c.html\",\"format\":\"html\"}",
      { "c.html", STR("<html><p>x</html>") },
      "pass" },
    { "{\"file\":\"c.html\",\"format\":\"html\"}", { "c.html", STR("just text") }, "fail" },
    { "{\"file\":\"c.txt\",\"format\":\"txt\"}", { "c.txt", STR("text\n") }, "pass" },
    { "{\"file\":\"c.txt\",\"format\":\"txt\"}", { "c.txt", STR(" \n") }, "fail" },
    { "{\"file\":\"c.bin\",\"format\":null}", { "c.bin", STR("\1\2") }, "pass" },
};

TEST(verify_list_opens_files)
{
    for (size_t i = 0; i < array_len(opened); i++) {
        const struct claim_file files[] = { opened[i].file, { NULL, STR_NONE } };
        const char *got = outcome(opened[i].check, "There.", files);
        if (strcmp(got, opened[i].want) != 0)
            check_failed(__FILE__, __LINE__, "row %zu: %s with %s gives %s", i, opened[i].check,
                         opened[i].file.path, got);
    }
}

TEST(verify_list_broken_pictures_fail)
{
    char png[] = PNG;
    for (size_t i = 0; i + 1 < sizeof png; i++) { /* one byte, anywhere */
        memcpy(png, PNG, sizeof png);
        png[i] ^= 0x40;
        const struct claim_file files[] = { { "a.png", { png, sizeof png - 1 } },
                                            { NULL, STR_NONE } };
        const char *got = outcome("{\"file\":\"a.png\",\"format\":\"png\"}", "There.", files);
        if (strcmp(got, "fail") != 0)
            check_failed(__FILE__, __LINE__, "byte %zu: %s", i, got);
    }
}
