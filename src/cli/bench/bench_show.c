/* Figures for people and for programs: the table of `cupel bench` and its JSON. Pure
 * but for stdout. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/bench/bench.h"
#include "cli/term/term.h"

static const char method[] =
    "request to result on the engine's socket, all walls up, against a bare interpreter from "
    "spawn to reaped, or an ipykernel, in the same interleaved rounds; ratios are of medians; "
    "back to back is in bursts of what waits, and pools are full again before the next; noise is "
    "between the medians of the bare runs' halves; CPU is the whole machine's, less the background "
    "before and after";

enum verdict { NOT_JUDGED, SKIPPED, MISSED, HELD, STRETCH };
static const struct {
    const char *word;
    enum cli_term_style style;
} verdicts[] = {
    [NOT_JUDGED] = { "-", CLI_PLAIN },  [SKIPPED] = { "skipped", CLI_YELLOW },
    [MISSED] = { "missed", CLI_RED },   [HELD] = { "held", CLI_GREEN },
    [STRETCH] = { "stretch", CLI_GREEN },
};

static bool reaches(const struct cli_bench_figure *figure, double mark)
{
    return figure->at_most ? figure->value <= mark : figure->value >= mark;
}

static enum verdict judge(const struct cli_bench_figure *figure)
{
    if (figure->skipped[0])
        return SKIPPED;
    if (figure->gate == 0)
        return NOT_JUDGED;
    if (!reaches(figure, figure->gate))
        return MISSED;
    return figure->stretch != 0 && reaches(figure, figure->stretch) ? STRETCH : HELD;
}

bool cli_bench_is_missed(const struct cli_bench_figure *figure)
{
    return judge(figure) == MISSED;
}

/* --- for people --- */

struct shown {
    char text[40];
};

static struct shown show_number(double value, const char *after)
{
    struct shown out;
    int digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
    snprintf(out.text, sizeof out.text, "%.*f%s", digits, value, after);
    return out;
}

static struct shown show_mark(const struct cli_bench_figure *figure, double mark)
{
    struct shown out = { "-" };
    if (mark != 0)
        snprintf(out.text, sizeof out.text, "%s %g", figure->at_most ? "<=" : ">=", mark);
    return out;
}

static struct shown show_middle(const struct cli_bench_summary *summary)
{
    return summary->count ? show_number(summary->p50, "") : (struct shown){ "-" };
}

#define COLUMNS "%-17s %-42s %9s %9s %9s %8s %8s  %s%s%s\n"

void cli_bench_show_head(const struct cli_bench *bench)
{
    const struct cli_bench_machine *machine = &bench->machine;
    printf("cupel " CUPEL_VERSION " on %u x %s, %s, load %.2f, %.0f %% in use\n", machine->cores,
           machine->model, machine->kernel, machine->load, machine->busy * 100);
    printf("%zu rounds: %s\n", bench->rounds, method);
    if (!machine->quiet)
        printf("%sWARNING: the machine is not quiet: these figures are not to be trusted%s\n",
               cli_term_style(1, CLI_YELLOW), cli_term_style(1, CLI_PLAIN));
    printf("\n%s" COLUMNS "%s", cli_term_style(1, CLI_BOLD), "row", "what", "bare", "cupel",
           "figure", "gate", "stretch", "verdict", "", "", cli_term_style(1, CLI_PLAIN));
    fflush(stdout);
}

static void show_summary(const char *who, const struct cli_bench_summary *summary,
                         const char *unit)
{
    printf("%s p10 %s, p50 %s, p90 %s, p99 %s %s (%zu)", who, show_number(summary->p10, "").text,
           show_number(summary->p50, "").text, show_number(summary->p90, "").text,
           show_number(summary->p99, "").text, unit, summary->count);
}

static void show_details(const struct cli_bench_figure *figure)
{
    printf("%18s%s", "", cli_term_style(1, CLI_DIM));
    show_summary("cupel", &figure->ours, figure->unit);
    if (figure->each)
        printf(", of %zu runs each", figure->each);
    if (figure->counts_warm)
        printf(", %zu warm", figure->warm);
    if (figure->bare.count) {
        printf("\n%18s", "");
        show_summary("bare ", &figure->bare, figure->unit);
        printf(", noise %.1f %%: %s", figure->bare.noise * 100, figure->baseline);
    }
    printf("%s\n", cli_term_style(1, CLI_PLAIN));
}

void cli_bench_show(const struct cli_bench_figure *figure)
{
    enum verdict verdict = judge(figure);
    bool tail = !figure->baseline && !figure->bare.count && figure->sign[0] == 0;
    struct shown none = { "-" };
    struct shown value = verdict == SKIPPED ? none : show_number(figure->value, figure->sign);
    printf(COLUMNS, figure->name, figure->what, show_middle(&figure->bare).text,
           (tail ? none : show_middle(&figure->ours)).text, value.text,
           show_mark(figure, figure->gate).text, show_mark(figure, figure->stretch).text,
           cli_term_style(1, verdicts[verdict].style), verdicts[verdict].word,
           cli_term_style(1, CLI_PLAIN));
    if (verdict == SKIPPED)
        printf("%18s%s\n", "", figure->skipped);
    else if (!tail)
        show_details(figure);
    fflush(stdout);
}

/* --- for programs --- */

/* As many digits as mean something. */
static json_t *rounded(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.5g", value);
    return json_real(strtod(text, NULL));
}

static json_t *number_or_null(double value)
{
    return value != 0 ? rounded(value) : json_null();
}

static json_t *summary_to_json(const struct cli_bench_summary *summary)
{
    if (!summary->count)
        return json_null();
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "count", (json_int_t)summary->count, "p10",
                     rounded(summary->p10), "p50", rounded(summary->p50), "p90",
                     rounded(summary->p90), "p99", rounded(summary->p99), "noise",
                     rounded(summary->noise));
}

static json_t *figure_to_json(const struct cli_bench_figure *figure)
{
    enum verdict verdict = judge(figure);
    json_t *row = json_pack(
        "{s:s, s:s, s:s?, s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:s}", "name", figure->name, "what",
        figure->what, "baseline", figure->baseline, "unit", figure->unit, "bare",
        summary_to_json(&figure->bare), "cupel", summary_to_json(&figure->ours), "figure",
        verdict == SKIPPED ? json_null() : rounded(figure->value), "at_most", figure->at_most,
        "gate", number_or_null(figure->gate), "stretch", number_or_null(figure->stretch),
        "verdict", verdict == NOT_JUDGED ? "none" : verdicts[verdict].word);
    if (figure->each)
        json_object_set_new(row, "runs_each", json_integer((json_int_t)figure->each));
    if (figure->counts_warm)
        json_object_set_new(row, "warm", json_integer((json_int_t)figure->warm));
    if (verdict == SKIPPED)
        json_object_set_new(row, "why", json_string(figure->skipped));
    return row;
}

json_t *cli_bench_to_json(const struct cli_bench *bench)
{
    const struct cli_bench_machine *machine = &bench->machine;
    json_t *rows = json_array();
    for (size_t i = 0; i < bench->count; i++)
        json_array_append_new(rows, figure_to_json(&bench->figures[i]));
    return json_pack("{s:s, s:{s:i, s:s, s:s, s:o, s:o, s:b}, s:s, s:I, s:o}", "cupel",
                     CUPEL_VERSION, "machine", "cores", (int)machine->cores, "model",
                     machine->model, "kernel", machine->kernel, "load", rounded(machine->load),
                     "busy", rounded(machine->busy), "quiet", machine->quiet, "method", method,
                     "rounds", (json_int_t)bench->rounds, "rows", rows);
}
