/* Figures as JSON, rounded to the digits that mean something. Pure. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

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

static json_t *summary_to_json(const struct bench_summary *summary)
{
    if (!summary->count)
        return json_null();
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "count", (json_int_t)summary->count, "p10",
                     rounded(summary->p10), "p50", rounded(summary->p50), "p90",
                     rounded(summary->p90), "p99", rounded(summary->p99), "noise",
                     rounded(summary->noise));
}

void bench_add(struct bench *bench, const struct bench_figure *figure)
{
    bool skipped = figure->skipped[0];
    json_t *row = json_pack(
        "{s:s, s:s, s:s?, s:s, s:o, s:o, s:o, s:b, s:o, s:o}", "name", figure->name, "what",
        figure->what, "baseline", figure->baseline, "unit", figure->unit, "bare",
        summary_to_json(&figure->bare), "cupel", summary_to_json(&figure->ours), "figure",
        skipped ? json_null() : rounded(figure->value), "at_most", figure->at_most, "gate",
        number_or_null(figure->gate), "stretch", number_or_null(figure->stretch));
    if (figure->each)
        json_object_set_new(row, "runs_each", json_integer((json_int_t)figure->each));
    if (figure->counts_warm)
        json_object_set_new(row, "warm", json_integer((json_int_t)figure->warm));
    if (skipped)
        json_object_set_new(row, "skipped", json_string(figure->skipped));
    json_array_append_new(bench->figures, row);
}
