/* `cupel doctor`: one line for each property of this host that matters, with the exact fix. Runs in
 * the cli process, as the caller. */
#include <stdio.h>

#include "base/attr.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/doctor/doctor.h"
#include "cli/list/list_options.h"
#include "cli/term/term.h"

static const struct {
    const char *name;
    enum cli_term_style style;
} verdicts[] = {
    [CLI_DOCTOR_OK] = { "ok", CLI_GREEN },
    [CLI_DOCTOR_WEAK] = { "weak", CLI_YELLOW },
    [CLI_DOCTOR_MISSING] = { "missing", CLI_RED },
};

static void print_line(const struct cli_doctor_check *check, const struct cli_doctor_report *report)
{
    printf("%s%-7s%s  %-15s  %s\n", cli_term_style(1, verdicts[report->verdict].style),
           verdicts[report->verdict].name, cli_term_style(1, CLI_PLAIN), check->name,
           report->detail);
    if (report->fix[0])
        printf("         fix: %s\n", report->fix);
    fflush(stdout);
}

/* A line for a person, or a row of the JSON. */
static void tell(void *user, const struct cli_doctor_check *check,
                 const struct cli_doctor_report *report)
{
    json_t *rows = user;
    if (!rows) {
        print_line(check, report);
        return;
    }
    own_json detail = json_text(str_of(report->detail));
    own_json fix = report->fix[0] ? json_text(str_of(report->fix)) : json_null();
    json_array_append_new(rows, json_pack("{s:s,s:s,s:b,s:O,s:O}", "name", check->name, "verdict",
                                          verdicts[report->verdict].name, "required",
                                          check->required, "detail", detail, "fix", fix));
}

/* Runs a table of checks; returns whether the default profile can still run. */
static bool look(const struct cli_doctor_check *checks, size_t count, json_t *rows)
{
    bool fine = true;
    for (size_t i = 0; i < count; i++) {
        struct cli_doctor_report report = { .verdict = CLI_DOCTOR_MISSING };
        checks[i].look(&report);
        fine = fine && !(checks[i].required && report.verdict == CLI_DOCTOR_MISSING);
        tell(rows, &checks[i], &report);
    }
    return fine;
}

int cli_cmd_doctor(int argc, char **argv)
{
    struct cli_list_options options = { 0 };
    struct err err = ERR_INIT;
    if (cli_list_options_parse(argc, argv, "cupel doctor",
                               "Check this host, and show the fix of each fault. Exit code 1\n"
                               "means that profile baseline cannot run.",
                               &options, &err) < 0)
        return cli_term_refuse(&err, options.json);
    if (options.help)
        return 0;
    own_json rows = options.json ? json_array() : NULL;
    bool fine = look(cli_doctor_kernel, cli_doctor_kernel_count, rows);
    fine = look(cli_doctor_host, cli_doctor_host_count, rows) && fine;
    fine = cli_doctor_run(tell, rows) && fine;
    if (options.json) {
        own_json out = json_pack("{s:b,s:O}", "ok", fine, "checks", rows);
        cli_term_json(out);
    }
    return fine ? 0 : 1;
}
