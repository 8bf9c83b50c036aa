/* Numbers of an answer against the evidence, in both directions: right answers in many phrasings
 * hold, plausible wrong ones do not. */
#include "test_verify_claim.h"

#include "base/attr.h"

struct row {
    const char *question, *out, *answer;
};

static void expect(const struct row *rows, size_t count, const char *want)
{
    for (size_t i = 0; i < count; i++) {
        json_t *steps = json_pack("[o]", claim_step(1, "print(compute())", rows[i].out));
        json_t *checks = json_array();
        struct agent_claim claim = { .question = rows[i].question, .answer = rows[i].answer,
                                     .steps = steps };
        agent_check_numbers(&claim, checks);
        if (strcmp(claim_outcome(checks, "numbers"), want) != 0)
            check_failed(__FILE__, __LINE__, "row %zu: \"%s\" against \"%s\" gives %s, not %s: %s",
                         i, rows[i].answer, rows[i].out, claim_outcome(checks, "numbers"), want,
                         claim_text(checks, "numbers", "detail"));
        json_decref(steps);
        json_decref(checks);
    }
}
#define EXPECT(rows, want) expect(rows, array_len(rows), want)

#define SALES                                                                                    \
    "customer  revenue  orders\nAcme      1234.5   42\nBeta      987.25   17\nCorex     45.0   " \
    "  5\n"
#define REGIONS "{'North': 120, 'South': 80, 'East': 40}\n"
#define YEARS "year  revenue\n2021  1500000\n2022  1810000\n2023  990000\n"

TEST(verify_numbers_right_answers_hold)
{
    static const struct row rows[] = {
        { "What is the total?", "2266.75\n", "The total is 2266.75." },
        { "What is the total?", "2266.75\n", "The total is 2,266.75." },
        { "What is the total?", "2266.75\n", "The total is **$2,266.75**." },
        { "What is the total?", "2266.75\n", "About 2267 in all." },
        { "What is the total?", "2266.75\n", "2,266.8" },
        { "What is the total?", "2266.7499999\n", "The total is 2266.75 EUR." },
        { "What is the total?", "1234567.891\n", "Revenue was $1.2M." },
        { "What is the total?", "1234567.891\n", "Revenue was 1.23 million dollars." },
        { "What is the total?", "1234567.891\n", "Revenue was roughly 1,200,000." },
        { "What is the total?", "1234567.891\n", "Revenue was 1,235k." },
        { "What is the total?", "1234567.891\n", "Revenue was over 1.2 million." },
        { "What is the total?", "revenue (millions): 1.23\n", "Revenue was 1.23 million." },
        { "What is the total?", "1 234 567\n", "It is 1 234 567." },
        { "What is the total?", "1234.5\n", "It is 1\xe2\x80\xaf" "234.5." },
        { "What is the total?", "1234.56\n", "It is 1.234,56 or so: 1234.56" },
        { "What share?", "0.1234\n", "The share is 12.3%." },
        { "What share?", "0.1234\n", "The share is 12.34 %." },
        { "What share?", "12.34\n", "The share is 12.3 percent." },
        { "What share?", "share_pct 0.238\n", "The share is 0.238%." },
        { "What share?", "share: 12.34%\n", "The share is 0.1234." },
        { "What share?", "0.125\n", "It is 1/8, or 12.5%." },
        { "What is x?", "-3.5\n", "x is -3.5" },
        { "What is x?", "-3.5\n", "x is \xe2\x88\x92" "3.5" },
        { "How did it change?", "change: -0.052\n", "Revenue fell by 5.2%." },
        { "How did it change?", "change: -52.4\n", "A decrease of 52.4 units." },
        { "How did it change?", "-52.4\n", "It was down 52.4." },
        { "What is it?", "6.02214e+23\n", "It is 6.022e23." },
        { "What is it?", "6.02214e+23\n", "It is 6.02 × 10^23." },
        { "What is it?", "1.6e-05\n", "It is 0.000016." },
        { "What is it?", "3/4\n", "It is 0.75." },
        { "What is it?", "0.75\n", "It is 3/4." },
        { "What is it?", "0.75\n", "It is $\\frac{3}{4}$." },
        { "Range?", "min 10 max 20\n", "Between 10 and 20." },
        { "Range?", "min 10 max 20\n", "The range is 10-20." },
        { "Range?", "min 10 max 20\n", "The range is 10–20." },
        { "Price?", "19.99\n", "It costs €19.99." },
        { "Price?", "19.99\n", "It costs 19.99 USD." },
        { "Price?", "-19.99\n", "The balance is -$19.99." },
        { "Give all", "[10, 200, 3000]\n", "The values are 10, 200 and 3000." },
        { "Give all", "[100, 200, 300]\n", "100,200,300" },
        { "Solve", "{a: 9, d: -2}\n", "a = 9, d = -2" },
        { "Which rank?", "7\n", "It is the 3rd step: 7." },
        { "Count rows", "(1000, 12)\n", "There are 1,000 rows and 12 columns." },
        { "Half of 10?", "5.0\n", "5" },
        { "In 2023, how much?", "42\n", "In 2023 it was 42." },
        { "When?", "2024-03-05\n", "It was on 2024-03-05." },
        { "When?", "2024-03-05\n", "It was on March 5, 2024." },
        { "When?", "2024-03-05\n", "It was on 5 March 2024." },
        { "When?", "2024-03-05 00:00:00\n", "It was on the 5th of March." },
        { "When?", "05/03/2024\n", "On 5 March 2024." },
        { "n?", "Name: orders, Length: 12, dtype: int64\n", "There are 12 orders." },
    };
    EXPECT(rows, "pass");
}

TEST(verify_numbers_right_labels_hold)
{
    static const struct row rows[] = {
        { "Top?", SALES, "Acme had the most revenue: 1,234.50 with 42 orders." },
        { "Top?", SALES, "1. Acme: 1234.5\n2. Beta: 987.25\n3. Corex: 45" },
        { "Top?", SALES, "- **Acme** – $1,234.50 (42 orders)\n- **Beta** – $987.25 (17 orders)" },
        { "Top?", SALES,
          "| Customer | Revenue | Orders |\n|---|---|---|\n| Acme | 1,234.50 | 42 |\n"
          "| Beta | 987.25 | 17 |" },
        { "Top?", SALES,
          "| # | Customer | Revenue |\n|---|---|---|\n| 1 | Acme | 1234.5 |\n"
          "| 2 | Beta | 987.25 |\n| 3 | Corex | 45.0 |" },
        { "Top?", SALES, "Acme (42 orders) beat Beta (17 orders)." },
        { "Top?", SALES, "42 orders came from Acme, 17 from Beta." },
        { "Top?", SALES, "Acme has 42 orders and Beta 17." },
        { "Top?", SALES, "Acme and Beta have 42 and 17 orders respectively." },
        { "Top?", SALES, "Acme and Beta are 1234.5 and 987.25." },
        { "Top?", SALES, "The revenues of Acme, Beta, and Corex were 1234.5, 987.25, and 45." },
        { "Top?", SALES, "Acme and Beta brought 1234.5 EUR and 987.25 EUR." },
        { "Top?", SALES, "Acme and Beta have the most orders, 42 and 17." },
        { "Top?", "Acme Corp 42\nBeta Corp 17\nDelta Corp 5\n",
          "Acme Corp and Beta Corp have 42 and 17." },
        { "Top?", "Acme Inn 420\nBeta Hut 170\nDelta Bar 500\n",
          "Acme Inn and Beta Hut have 420 and 170." },
        { "Year?", YEARS, "In 2021 and 2022 revenue was 1,500,000 and 1,810,000." },
        { "Top?", SALES, "The leader is Acme, with 1234.5." },
        { "Top?", SALES, "The best customer brought 1234.5." },
        { "Top?", REGIONS, "North 120, South 80, East 40" },
        { "Top?", REGIONS, "North leads with 120, while South has 80." },
        { "Top?", REGIONS, "The highest is 120 (North)." },
        { "Top?", "[('Acme', 42), ('Beta', 17)]\n", "Acme: 42, Beta: 17" },
        { "Top?", "Acme: 42, Beta: 17\n", "Acme: 42; Beta: 17" },
        { "Year?", YEARS, "In 2022 revenue was 1.81 million." },
        { "Year?", YEARS, "Revenue rose from 1,500,000 in 2021 to 1,810,000 in 2022." },
        { "Mean?", "Acme: 42\nBeta: 17\nmean: 29.5\n",
          "Over Acme and Beta the average is 29.5." },
        { "Mean?", "Acme 42\nBeta 17\n", "Acme: 42" },
        { "Mean?", "Acme: 42.5\nBeta: 17\nmean: 29.75\n", "Acme has an average of 42.5." },
        { "Mean?", "count 9\nmean 29.5\nstd 3.25\nmax 42\n",
          "The average is 29.5, the highest 42." },
        { "Rows?", "rows before: 192\nduplicates removed: 12\nrows after: 173\n",
          "Of 192 rows 12 duplicates were removed, and 173 are left after that." },
        { "5% of it?", "total 1262.625\nshare 63.13125\n", "5% of the total is 63.13." },
        { "Sales?", "Month: 2024-03, sales: 4512.0\nMonth: 2024-04, sales: 3980.5\n",
          "Sales were 4,512 in March 2024 and fell to 3,980.50 in April 2024." },
        { "Mean?", "{'mean': 5.25, 'std': 1.5, 'n': 40}\n", "Mean 5.25 ± 1.5 (n = 40)." },
        { "How long?", "total_seconds 5400.0\nhours 1.5\n",
          "It takes 1.5 hours (5,400 seconds)." },
        { "Growth?", "Q1 120.5\nQ2 130.2\nQ4 141.0\n",
          "It grew from 120.5 in Q1 to 141.0 in Q4." },
        { "Top?", "Acme\n42\nBeta\n17\n", "Beta has 17 and Acme 42." },
        { "Top?", "name,orders\nAcme,42\nBeta,17\n", "Acme: 42\nBeta: 17" },
    };
    EXPECT(rows, "pass");
}

TEST(verify_numbers_wrong_ones_fail)
{
    static const struct row rows[] = {
        { "What is the total?", "2266.75\n", "The total is 2276.75." }, /* from nowhere */
        { "What is the total?", "2266.75\n",
          "The total is 2,266.80." }, /* wrong at its precision */
        { "What is the total?", "2266.75\n", "The total is 2266.6." },
        { "What is the total?", "1234567\n", "Revenue was $1.2k." }, /* magnitude */
        { "What is the total?", "1234567\n", "Revenue was 1.2 billion." },
        { "What is the total?", "1234.5\n", "Revenue was 1.2 million." },
        { "What is the total?", "1234567\n", "Revenue was 1.2." },
        { "What is the total?", "1234567\n", "Revenue was about 1,300,000." },
        { "What share?", "0.1234\n", "The share is 12.8%." },
        { "What share?", "0.1234\n", "The share is 1.23%." },
        { "What is x?", "-3.5\n", "x is 3.5" }, /* sign */
        { "What is x?", "3.5\n", "x is -3.5" },
        { "How did it change?", "change: -0.052\n", "Revenue rose by 5.2%." },
        { "How did it change?", "change: 0.052\n", "Revenue changed by -5.2%." },
        { "What is it?", "3.14\n", "It is 3.14159." }, /* more digits than were shown */
        { "What is it?", "", "It is 42." },
        { "What is it?", "nothing here\n", "It is 42." },
        { "What is it?", "0.75\n", "It is 3/5." },
        { "What share?", "ash share 0.2376\n", "ash has 0.238% of the total." },
        { "What is the total?", "mean 105.21875\n", "The total is 105.22." },
        { "When?", "2024-03-05\n", "It was on March 6, 2024." },
        { "When?", "2024-03-05\n", "It was on 2024-04-05." },
        { "Who?", "x1 y22 report_7.csv\n", "It is 7." }, /* digits in names are no values */
        { "n?", "0x2a\n", "It is 42." },
        { "n?", "1.2.3\n", "It is 2.3" },
    };
    EXPECT(rows, "fail");
}

TEST(verify_numbers_of_another_row_fail)
{
    static const struct row rows[] = {
        { "Top?", SALES, "Acme had 17 orders." },
        { "Top?", SALES, "Beta: 1234.5" },
        { "Top?", SALES, "1. Acme: 987.25\n2. Beta: 1234.5" }, /* swapped */
        { "Top?", SALES, "| Customer | Orders |\n|---|---|\n| Acme | 42 |\n| Beta | 5 |" },
        { "Top?", SALES, "Acme and Beta are 987.25 and 1234.5." },
        { "Top?", SALES, "The revenues of Acme, Beta, and Corex were 1234.5, 45, and 987.25." },
        { "Top?", SALES, "Acme and Beta have 17 and 42 orders respectively." },
        { "Top?", SALES, "Acme and Beta brought 987.25 EUR and 1234.5 EUR." },
        { "Top?", "Acme Inn 420\nBeta Hut 170\nDelta Bar 500\n",
          "Acme Inn and Beta Hut have 170 and 420." },
        { "Year?", YEARS, "In 2021 and 2022 revenue was 1,810,000 and 1,500,000." },
        { "Top?", SALES, "Acme (17 orders) lost to Beta (42 orders)." },
        { "Top?", SALES, "- **Corex** – $987.25" },
        { "Top?", REGIONS, "North 80, South 120" },
        { "Top?", REGIONS, "North leads with 120, while South has 40." },
        { "Top?", "[('Acme', 42), ('Beta', 17)]\n", "Acme: 17" },
        { "Top?", "Acme: 42, Beta: 17\n", "Acme: 17; Beta: 42" },
        { "Top?", "Acme has revenue of 42\nBeta has revenue of 17\n", "Beta's revenue is 42." },
        { "Year?", YEARS, "In 2021 revenue was 1.81 million." },
        { "Top?", "name,orders\nAcme,42\nBeta,17\n", "Acme: 17" },
        { "Top?", "Acme Corp 42\nBeta Corp 17\nDelta Corp 5\n", "Beta Corp has 42." },
        { "Mean?", "count 9\nmean 29.5\nstd 3.25\nmax 42\n", "The average is 3.25." },
        { "Mean?", "count 9\nmean 29.5\nstd 3.25\nmax 42\n", "The maximum is 29.5." },
        { "Rows?", "rows before: 192\nduplicates removed: 12\nrows after: 173\n",
          "- rows before: 173\n- rows after: 192" },
        { "Rows?", "rows before: 192\nduplicates removed: 12\nrows after: 173\n",
          "There were 12 rows before." },
    };
    EXPECT(rows, "fail");
}

#define TREES "oak 120.5\nelm 80.25\nash 300.0\nfir 42.75\n"
#define SERIES "oak     120.5\nelm      80.25\nash     300.0\nName: amount, dtype: float64\n"
#define FRAME "  tree  amount\n0  oak   120.5\n3  elm    80.25\n1  ash   300.0\n"
#define DICT "{'oak': 120.5, 'elm': 80.25, 'ash': 300.0}\n"
#define WHICH "Which tree has the largest amount?"
#define LEAST "Which tree has the smallest amount in trees.csv?"

TEST(verify_numbers_superlatives_hold)
{
    static const struct row rows[] = {
        { WHICH, TREES, "Ash has the largest amount: 300.0." },
        { WHICH, SERIES, "Ash, with 300." },
        { WHICH, DICT, "Ash: 300" },
        { LEAST, TREES, "Fir has the smallest amount: 42.75." },
        { LEAST, "oak 5\nelm -7.5\n", "Elm, with -7.5." },
        /* a sum, a remainder, and lines that the code names are no rows of the data */
        { WHICH, "oak 120.5\nelm 80.25\ntotal 200.75\n", "Oak, with 120.5." },
        { WHICH, "oak 120.5\nelm 80.25\nother 900.5\n", "Oak, with 120.5." },
        { WHICH, "compute 5000\noak 120.5\n", "Oak has the largest amount: 120.5." },
        /* a condition, a place, another quantity, another table */
        { "Which tree has the second largest amount?", TREES, "Oak, with 120.5." },
        { "Which tree has the largest amount below 200?", TREES, "Oak, with 120.5." },
        { "Which tree has the largest amount, ash excluded?", TREES, "Oak, with 120.5." },
        { "Which of oak and elm has the largest amount?", TREES, "Oak, with 120.5." },
        { "What is the amount of the tree with the most leaves?", TREES, "Oak: 120.5." },
        { "Which has at least 100?", TREES, "Oak has 120.5." },
        { "Which tree has the largest drop?", "oak -5.5\nelm 7.25\n", "Oak, by -5.5." },
        { "Which runner has the best time?", TREES, "Fir, with 42.75." },
        { WHICH, TREES "\nheight\noak 7.5\nelm 9.5\n", "Oak, with a height of 7.5." },
        { WHICH, "north 500.5\nsouth 300.25\n\noak 120.5\nelm 80.25\n", "Oak, with 120.5." },
        { WHICH, "oak 120.5 3\nelm 80.25 9\n", "Elm has 80.25." }, /* two quantities */
        { WHICH, TREES "best of the park: oak 120.5\n", "Oak, with 120.5." },
        { "How much is oak?", TREES, "Oak has 120.5." },
        { WHICH, TREES, "Ash is first, oak second with 120.5." },
    };
    EXPECT(rows, "pass");
}

TEST(verify_numbers_superlatives_of_another_row_fail)
{
    static const struct row rows[] = {
        { WHICH, TREES, "Elm has the largest amount: 80.25." },
        { WHICH, SERIES, "Oak, with 120.5." },
        { WHICH, FRAME, "Oak, with 120.5." },
        { WHICH, DICT, "Oak: 120.5" },
        { WHICH, TREES "\nnorth 500.5\nsouth 300.25\n", "Oak, with 120.5." },
        { "Which tree has the most?", TREES, "Oak has the most, 120.5." },
        { "Which tree is best?", TREES, "The best is oak (120.5)." },
        { LEAST, TREES, "Elm has the smallest amount: 80.25." },
        { "Which tree has the fewest?", TREES, "Oak: 120.5" },
    };
    EXPECT(rows, "fail");
}

/* A name that holds one result may be of some rows only; one that holds them all says nothing. */
TEST(verify_numbers_superlatives_and_names)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "{'oak': 120.5, 'elm': 80.25, 'ash': 300.0}", "fail" },
        { "120.5", "pass" },
        { "('oak', 120.5)", "pass" },
        { "{'oak': 120.5}", "pass" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        json_t *step = claim_step(1, "print(compute())", TREES), *checks = json_array();
        json_object_set_new(json_object_get(step, "result"), "names_added",
                            json_pack("[{s:s, s:s}]", "name", "kept", "text", rows[i].text));
        json_t *steps = json_pack("[o]", step);
        struct agent_claim claim = { .question = WHICH, .answer = "Oak, with 120.5.",
                                     .steps = steps };
        agent_check_numbers(&claim, checks);
        if (strcmp(claim_outcome(checks, "numbers"), rows[i].want) != 0)
            check_failed(__FILE__, __LINE__, "row %zu: %s", i, claim_outcome(checks, "numbers"));
        bool told = !strcmp(rows[i].want, "pass") ||
                    strstr(claim_text(checks, "numbers", "repair"), "\"ash 300.0\" is larger");
        CHECK(told);
        json_decref(steps);
        json_decref(checks);
    }
}

TEST(verify_numbers_that_claim_nothing)
{
    static const struct row rows[] = {
        { "Top?", "done\n", "It is done." },
        { "Top?", "done\n", "1. Acme\n2. Beta\n3. Corex" },
        { "Top?", "done\n", "This is the 2nd time; see step 3." },
        { "Top?", "done\n", "I wrote sales_2024.csv and 2024-05-report.pdf." },
        { "Top?", "done\n", "It is in UTF-8, rounded to 2 decimals, at 95% confidence, in m^2." },
        { "What of the top 5 of 200?", "done\n", "Here are the top 5 of the 200." },
        { "Which of the ten?", "done\n", "None of the 10." },
        { "Write a function", "done\n", "```python\nreturn 42 * 17\n```\nThat is it." },
        { "Top?", "done\n", "All 3 are here:\n- Acme\n- Beta\n- Corex" },
    };
    EXPECT(rows, "skip");
}

static const char *outcome_of(json_t *steps, const char *answer, const struct claim_file *files)
{
    static json_t *checks;
    json_decref(checks);
    checks = json_array();
    json_t *artifacts = claim_artifacts(files);
    struct agent_claim claim = { .question = "What is it?", .answer = answer, .steps = steps,
                                 .artifacts = artifacts, .content = claim_content,
                                 .user = (void *)(uintptr_t)files };
    agent_check_numbers(&claim, checks);
    json_decref(artifacts);
    json_decref(steps);
    return claim_outcome(checks, "numbers");
}

TEST(verify_numbers_of_the_code_prove_nothing)
{
    static const struct {
        const char *code, *out, *want;
    } rows[] = {
        { "print(\"total 42\")", "total 42\n", "fail" },
        { "print('total', 42)", "total 42\n", "fail" },
        { "total = 42\nprint(total)", "42\n", "fail" },
        { "total = 42\nprint(f'total {total}')", "total 42\n", "fail" },
        { "x = 1\ntotal = 42  # by hand\nprint('total', total)", "total 42\n", "fail" },
        { "print('''a\ntotal 42\nb''')", "a\ntotal 42\nb\n", "fail" },
        { "# 42\npass", "", "fail" },
        { "total = sum(rows)\nprint('total', total)", "total 42\n", "pass" },
        { "total = 0\nfor r in rows:\n    total += r\nprint(total)", "42\n", "pass" },
        { "print(f'total {sum(rows)}')", "total 42\n", "pass" },
        { "assert f(3) == '42'\nprint(f(3))", "42\n", "pass" },
        { "total = 40\ntotal = total + 2\nprint(total)", "42\n", "pass" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        const char *got = outcome_of(json_pack("[o]", claim_step(1, rows[i].code, rows[i].out)),
                                     "The total is 42.", NULL);
        if (strcmp(got, rows[i].want) != 0)
            check_failed(__FILE__, __LINE__, "row %zu: %s", i, got);
    }
    static const char *const made_up[] = {
        "print('total', float('1262.625'))",
        "total = 1000 + 262.625\nprint('total', total)",
        "rows = {'oak': 1262.625}\nprint('total', sum(rows.values()))",
    };
    for (size_t i = 0; i < array_len(made_up); i++) {
        json_t *one = json_pack("[o]", claim_step(1, made_up[i], "total 1262.625\n"));
        CHECK_TEXT(outcome_of(one, "The total is 1,262.63.", NULL), "fail");
    }
    /* A value that was computed may be written down later, or compared with. */
    json_t *later = json_pack("[o, o]", claim_step(1, "print(sum(rows))", "1262.625\n"),
                              claim_step(2, "bars = [1262.625]\nprint(bars)", "[1262.625]\n"));
    CHECK_TEXT(outcome_of(later, "It is 1262.625.", NULL), "pass");
    json_t *same = json_pack(
        "[o]", claim_step(1, "t = f()\nassert abs(t - 1262.625) < 1\nprint(t)", "1262.625\n"));
    CHECK_TEXT(outcome_of(same, "It is 1262.625.", NULL), "pass");
    json_t *two = json_pack("[o, o]", claim_step(1, "total = 42", ""),
                            claim_step(2, "print(total)", "42\n"));
    CHECK_TEXT(outcome_of(two, "It is 42.", NULL), "fail");
}

TEST(verify_numbers_of_undone_cells_are_stale)
{
    json_t *undone = claim_step(1, "f()", "41\n"), *kept = claim_step(2, "g()", "42\n");
    json_object_set_new(undone, "state", json_string("rolled_back"));
    json_t *steps = json_pack("[o, o]", undone, kept);
    CHECK_TEXT(outcome_of(json_incref(steps), "It is 42.", NULL), "pass");
    CHECK_TEXT(outcome_of(json_incref(steps), "It is 41.", NULL), "fail");
    /* What was before a loss is gone, too. */
    json_object_set_new(undone, "state", json_string("kept"));
    CHECK_TEXT(outcome_of(json_incref(steps), "It is 41.", NULL), "pass");
    json_object_set_new(kept, "state", json_string("lost"));
    CHECK_TEXT(outcome_of(json_incref(steps), "It is 41.", NULL), "fail");
    json_decref(steps);
}

TEST(verify_numbers_come_from_every_kind_of_evidence)
{
    json_t *step = claim_step(1, "f()", "");
    json_t *result = json_object_get(step, "result");
    json_object_set_new(result, "results",
                        json_pack("[{s:s, s:s}, {s:{s:i, s:i}}]", "text/plain", "<Table>",
                                  "text/html",
                                  "<table><tr><th>Acme</th><td>42</td></tr>\n<tr><th>Beta</th>"
                                  "<td>17</td></tr></table>",
                                  "application/json", "north", 5, "south", 6));
    json_object_set_new(result, "names_added",
                        json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:[i, i], s:s}]", "name", "mean",
                                  "type", "float", "text", "3.25", "name", "df", "type",
                                  "DataFrame", "shape", 120, 4, "text", "columns ['a']"));
    json_t *steps = json_pack("[o]", step);
    static const struct claim_file files[] = {
        { "out.csv", STR("name,total\n\"Corex, Inc\",\"1,234\"\nDelta,88\n") },
        { "out.json", STR("[{\"name\": \"Echo\", \"n\": 91},\n {\"name\": \"Fox\", \"n\": 92}]") },
        { "notes.txt", STR("grand total 777\n") },
        { NULL, STR_NONE },
    };
    static const char *const right[] = {
        "Acme has 42.", "North is 5 and south is 6.", "The mean is 3.25.", "There are 120 rows.",
        "Delta: 88", "Corex: 1,234", "Echo has 91", "Fox: 92", "The grand total is 777",
    };
    static const char *const wrong[] = {
        "Acme has 17.", "North is 6.", "The mean is 3.5.", "There are 121 rows.", "Delta: 1,234",
        "Echo has 92", "Fox: 91", "The grand total is 77",
    };
    for (size_t i = 0; i < array_len(right); i++) {
        if (strcmp(outcome_of(json_incref(steps), right[i], files), "pass") != 0)
            check_failed(__FILE__, __LINE__, "%s", right[i]);
    }
    for (size_t i = 0; i < array_len(wrong); i++) {
        if (strcmp(outcome_of(json_incref(steps), wrong[i], files), "fail") != 0)
            check_failed(__FILE__, __LINE__, "%s", wrong[i]);
    }
    json_decref(steps);
}

TEST(verify_numbers_tell_what_to_mend)
{
    json_t *steps = json_pack("[o]", claim_step(1, "f()", SALES)), *checks = json_array();
    struct agent_claim claim = { .question = "Top?", .answer = "Acme had 43 orders.",
                                 .steps = steps };
    agent_check_numbers(&claim, checks);
    char *told = agent_checks_repair(checks);
    CHECK(told && strstr(told, "43") && strstr(told, "Acme had 43 orders") && strstr(told, "42"));
    CHECK(strstr(told, "Compute and print it"));
    free(told);
    json_array_clear(checks);
    claim.answer = "Acme had 17 orders.";
    agent_check_numbers(&claim, checks);
    told = agent_checks_repair(checks);
    CHECK(told && strstr(told, "another name") && strstr(told, "Beta"));
    free(told);
    json_decref(checks);
    json_decref(steps);
}
