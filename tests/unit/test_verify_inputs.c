/* Is any of the task's files read by a cell that counts? */
#include "test_verify_claim.h"

#include "base/attr.h"

static const char *outcome(const json_t *steps, size_t files, const char **out_detail)
{
    static const struct agent_file given[] = { { "data/sales.csv", STR("a\n1\n") },
                                               { "tools.py", STR("x = 1\n") } };
    static json_t *checks;
    json_decref(checks);
    checks = json_array();
    const struct agent_claim claim = { .question = "How much?", .answer = "5", .steps = steps,
                                       .files = given, .file_count = files };
    agent_check_inputs(&claim, checks);
    bool failed = !strcmp(claim_outcome(checks, "inputs"), "fail");
    CHECK(failed == (claim_text(checks, "inputs", "repair") != NULL));
    *out_detail = claim_text(checks, "inputs", "detail");
    return claim_outcome(checks, "inputs");
}

TEST(verify_inputs_are_read)
{
    static const struct {
        const char *code, *want;
    } rows[] = {
        { "import csv\nprint(len(open('data/sales.csv').read()))", "pass" },
        { "df = pd.read_csv('/workspace/data/sales.csv')", "pass" },
        { "for stem in ['sales']: read(stem)", "pass" },
        { "df = pd.read_csv(f'{folder}/sales.{kind}')", "pass" },
        { "import os\nprint(os.listdir())", "pass" },
        { "from pathlib import Path\nfor p in Path('.').iterdir(): print(p)", "pass" },
        { "files = sorted(here.rglob(\"*.csv\"))", "pass" },
        { "print(open(path).read())", "pass" },
        { "print(open(path, 'rb').read())", "pass" },
        { "print(open(f'{name}.csv').read())", "pass" },
        { "import subprocess", "pass" },
        { "import tools\nprint(tools.x)", "pass" },
        { "print('#', open('sales.csv').read())", "pass" },
        { "print(6 * 7)", "fail" },
        { "sales = {'oak': 1262.5}\nprint(sum(sales.values()))", "fail" },
        { "# from sales.csv\nprint(6 * 7)", "fail" },
        { "x = 'it''s' # as open(path) has it\nprint(x)", "fail" },
        { "print(open('other.csv').read())", "fail" },
        { "print(open(r'other.csv').read())", "fail" },
        { "open(out, 'w').write('5')", "fail" },
        { "print(open(os.environ['X']).read())", "fail" },
        { "print('wholesales')", "fail" },
        { "", "fail" },
    };
    const char *detail;
    for (size_t i = 0; i < array_len(rows); i++) {
        json_t *steps = json_pack("[o]", claim_step(1, rows[i].code, "5\n"));
        if (strcmp(outcome(steps, 2, &detail), rows[i].want) != 0)
            check_failed(__FILE__, __LINE__, "row %zu: \"%s\" gives %s", i, rows[i].code, detail);
        CHECK_TEXT(outcome(steps, 0, &detail), "skip");
        json_decref(steps);
    }
}

TEST(verify_inputs_count_kept_cells_only)
{
    const char *detail;
    json_t *steps = json_pack("[o]", claim_step(1, "open('data/sales.csv')", ""));
    CHECK_TEXT(outcome(steps, 1, &detail), "pass");
    json_object_set_new(json_array_get(steps, 0), "state", json_string("rolled_back"));
    CHECK_TEXT(outcome(steps, 1, &detail), "skip");
    CHECK_TEXT(detail, "nothing ran");
    json_array_append_new(steps, claim_step(2, "print(5)", "5\n"));
    CHECK_TEXT(outcome(steps, 1, &detail), "fail");
    CHECK_TEXT(detail, "no cell reads data/sales.csv");
    CHECK_TEXT(outcome(steps, 2, &detail), "fail");
    CHECK_TEXT(detail, "no cell reads data/sales.csv or tools.py");
    json_decref(steps);
}
