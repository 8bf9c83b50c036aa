/* The final program, its proof run cut into cells, and outputs compared with what never repeats
 * folded. */
#include "test_verify_claim.h"

#include "agent/verify/script.h"
#include "base/attr.h"
#include "base/buf.h"

TEST(verify_script_joins_the_kept_cells)
{
    json_t *steps = json_array();
    json_array_append_new(steps, claim_step(1, "import os\nx = 1", ""));
    json_array_append_new(steps, claim_step(2, "boom", ""));
    json_object_set_new(json_array_get(steps, 1), "state", json_string("rolled_back"));
    json_array_append_new(steps,
                          claim_step(3, "  from __future__ import annotations\n  x + 1", "2"));
    json_object_set_new(json_array_get(steps, 2), "purpose", json_string("add\nrm -rf /"));
    json_array_append_new(steps, claim_step(4, "x + 1", "2"));
    json_object_set_new(json_array_get(steps, 3), "repeated", json_true());
    json_array_append_new(steps, claim_step(5, "y = 2\n1/0", ""));
    json_object_set_new(json_array_get(steps, 4), "status", json_string("error"));
    json_array_append_new(steps, claim_step(6, "y = nope", ""));
    json_object_set_new(json_array_get(steps, 5), "status", json_string("not_run"));
    char *got = agent_script(steps);
    CHECK_TEXT(got, "from __future__ import annotations\n\n"
                    "# Cell 1\nimport os\nx = 1\n\n"
                    "# Cell 3: add\nx + 1\n\n"
                    "# Cell 5\ntry:\n    y = 2\n    1/0\n    pass\nexcept Exception:\n"
                    "    pass  # it failed so before, too\n");
    free(got);
    json_array_append_new(steps, claim_step(7, "killed", ""));
    json_object_set_new(json_array_get(steps, 6), "state", json_string("lost"));
    CHECK_TEXT(agent_script(steps), NULL);
    json_array_append_new(steps, claim_step(8, "z = 1", ""));
    got = agent_script(steps);
    CHECK_TEXT(got, "# Cell 8\nz = 1\n");
    free(got);
    json_decref(steps);
}

TEST(verify_proof_run_is_cut_into_its_parts)
{
    json_t *steps = json_pack("[o, o]", claim_step(1, "print('\"a\\n')", ""),
                              claim_step(2, "b", ""));
    json_t *tests = json_loads("[{\"check\":{\"code\":\"assert 1\"}},{\"check\":{\"items\":5}}]", 0,
                               NULL);
    char *code = agent_script_proof(steps, tests, "TAG");
    CHECK(code && strstr(code, "__cupel_proof([[1,\"print('\\\"a\\\\n')\",0],[2,\"b\",0]], "
                               "[\"assert 1\"], 'TAG')"));
    free(code);
    json_t *none = json_array();
    CHECK_TEXT(agent_script_proof(none, tests, "TAG"), NULL);
    json_decref(none);
    json_t *result = json_pack("{s:s, s:[{s:s}, {s:s}, {s:s}, {s:s}, {s:s}, {s:s}]}", "stdout",
                               "\x1eTAGbegin 0\x1e"
                               "a\nb"
                               "\x1eTAGend 0\x1e\x1eTAGbegin 1\x1e"
                               "cut",
                               "results", "text/plain", "TAGbegin 0", "text/plain", "7",
                               "text/plain", "8", "text/plain", "TAGend 0", "text/plain",
                               "TAGbegin 1", "text/plain", "TAGtest 0 ValueError: x");
    struct agent_script_part part;
    agent_script_part(result, "TAG", 0, &part);
    CHECK(part.begun && part.ended && str_is(part.out, "a\nb") && part.from == 1 && part.to == 3);
    agent_script_part(result, "TAG", 1, &part);
    CHECK(part.begun && !part.ended && str_is(part.out, "cut") && part.from == part.to);
    agent_script_part(result, "TAG", 2, &part);
    CHECK(!part.begun && part.out.len == 0 && part.from == part.to);
    CHECK(str_is(agent_script_test(result, "TAG", 0), "ValueError: x"));
    CHECK(agent_script_test(result, "TAG", 1).at == NULL);
    json_decref(result);
    json_decref(tests);
    json_decref(steps);
}

TEST(verify_fold_forgives_what_never_repeats)
{
    static const struct {
        const char *before, *after;
        bool same;
    } rows[] = {
        { "a\nb\n", "a\nb\n", true },
        { "a\nb\n", "a\nb", true },
        { "", "", true },
        { "a  \n", "a\n", true },
        { "total 0.30000000000000004\n", "total 0.3\n", true },
        { "total 1.0000000000001e-05\n", "total 1e-05\n", true },
        { "<f at 0x7f12ab>\n", "<f at 0x7f99cd00>\n", true },
        { "took 0.123 s\n", "took 1.7 s\n", true },
        { "Elapsed: 0:00:01.25\n", "Elapsed: 0:00:02.5\n", true },
        { "100 loops, 35ms each\n", "100 loops, 40ms each\n", true },
        { "2026-11-15 18:11:13.123\n", "2026-11-15 18:12:20.5\n", true },
        { "{'b', 'a'}\n", "{'a', 'b'}\n", true },
        { "total 42\n", "total 43\n", false },
        { "total 42\n", "total -42\n", false },
        { "total 0.30001\n", "total 0.3\n", false },
        { "a\nb\n", "a\n", false },
        { "a\n", "a\nb\n", false },
        { "", "x\n", false },
        { "{'b', 'a'}\n", "{'a', 'c'}\n", false },
        { "[2, 1]\n", "[1, 2]\n", false },
        { "Acme 42\n", "Beta 42\n", false },
        { "2024-01-01 18:11:13\n", "2024-01-01 18:12:20\n", false },
        { "0x10\n", "0y10\n", false },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_buf why = BUF_INIT(1024);
        bool same = agent_fold_same(str_of(rows[i].before), str_of(rows[i].after), "2026-11-15",
                                    &why);
        if (same != rows[i].same || (!same && !why.len))
            check_failed(__FILE__, __LINE__, "row %zu: %d %s", i, same, buf_str(&why).at);
    }
}

TEST(verify_cut_finds_the_true_mark)
{
    struct agent_cut cut;
    CHECK(agent_cut_find(STR("a\nb\n"), 4, &cut));
    CHECK(!cut.cut && str_is(cut.head, "a\nb\n") && str_is(cut.tail, "a\nb\n"));
    CHECK(agent_cut_find(STR("a\nb\n... 90 bytes left out ...\nc\nd\n"), 97, &cut));
    CHECK(cut.cut && str_is(cut.head, "a\nb") && str_is(cut.tail, "c\nd\n"));
    /* A program's own line looks the same, but its count is not right. */
    struct str forged = STR("a\n... 7 bytes left out ...\nb\n... 90 bytes left out ...\nc\n");
    CHECK(agent_cut_find(forged, forged.len - 27 + 90, &cut));
    CHECK(cut.cut && str_is(cut.tail, "c\n"));
    CHECK(!agent_cut_find(STR("a\nb\n"), 99, &cut));
    CHECK(!agent_cut_find(STR("a\n... x bytes left out ...\n"), 99, &cut));
    CHECK(!agent_cut_find(STR("a\n... 5"), 99, &cut));
    CHECK(!agent_cut_find(STR(""), 99, &cut));
}

TEST(verify_cut_compares_beginning_and_end)
{
    static const struct {
        struct str head, tail;
        bool same, exact;
    } rows[] = {
        { STR("1\n2\n3\n4"), STR("7\n8\n9\n"), true, true },
        { STR("1\n2\n3\n"), STR("8\n9\n"), true, true }, /* less of it is left */
        { STR("1\n2\n3\n44\n55\n6"), STR("66\n77\n7\n8\n9\n"), true, true },
        { STR("1\n2.0000000000001\n3\n"), STR("8\n9\n"), true, false },
        { STR("1\n5\n3\n"), STR("8\n9\n"), false, false },
        { STR("1\n2\n3\n"), STR("5\n9\n"), true, true }, /* the line at the cut is not whole */
        { STR("1\n2\n3\n"), STR("7\n5\n9\n"), false, false },
        { STR_NONE, STR("7\n8\n9\n"), true, true },
        { STR("1\n2\n3\n"), STR_NONE, true, true },
        { STR("2\n"), STR_NONE, false, false },
        { STR("1"), STR("9\n"), true, true },
        { STR("4"), STR("9\n"), false, false },
    };
    const struct agent_cut old = { STR("1\n2\n3\n44"), STR("66\n7\n8\n9\n"), true };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_buf why = BUF_INIT(1024);
        const struct agent_cut new = { rows[i].head, rows[i].tail, true };
        bool exact = true, same = agent_cut_is_same(&old, &new, "", &exact, &why);
        if (same != rows[i].same || (same && exact != rows[i].exact))
            check_failed(__FILE__, __LINE__, "row %zu: %d %d %s", i, same, exact, buf_str(&why).at);
    }
}

#define AT(what) "\x1eTAG" what "\x1e"

TEST(verify_cut_parts_of_a_proof_run)
{
    const struct agent_cut all = { STR(AT("begin 0") "a\n" AT("end 0") AT("begin 1") "b\n"),
                                   STR("d\n" AT("end 2") AT("begin 3") "e\n" AT("end 3") "t"),
                                   true };
    struct agent_cut part;
    CHECK(agent_script_cut(&all, "TAG", 0, &part) && !part.cut && str_is(part.head, "a\n"));
    CHECK(agent_script_cut(&all, "TAG", 1, &part) && part.cut && str_is(part.head, "b\n"));
    CHECK(!part.tail.at);
    CHECK(agent_script_cut(&all, "TAG", 2, &part) && part.cut && str_is(part.tail, "d\n"));
    CHECK(!part.head.at);
    CHECK(agent_script_cut(&all, "TAG", 3, &part) && !part.cut && str_is(part.head, "e\n"));
    CHECK(!agent_script_cut(&all, "TAG", 4, &part));
    uint64_t is = 0, should = 0, marks = 4 * (sizeof AT("begin 0") + sizeof AT("end 0") - 2);
    CHECK(agent_script_length(&all, "TAG", 4, marks + 504 + 1, 504, &is, &should));
    CHECK(is == should);
    CHECK(agent_script_length(&all, "TAG", 4, marks + 504 + 1, 503, &is, &should));
    CHECK(is == should + 1);
    CHECK(!agent_script_length(&all, "TAG", 2, 900, 503, &is, &should));
}
