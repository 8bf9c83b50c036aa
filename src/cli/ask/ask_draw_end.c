/* Draws the end of a task: checks, budgets, the answer, and its proof. Runs in the cli process. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "cli/ask/ask_draw.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"

#define ANSWER_MAX (64u << 20)

void cli_ask_draw_check(struct cli_ask_draw *draw, const json_t *data)
{
    static const struct {
        const char *outcome, *mark, *after;
        enum cli_term_style style;
    } outcomes[] = { { "pass", "✓", "", CLI_GREEN },
                     { "fail", "✗", "", CLI_RED },
                     { "skip", "-", ", not made", CLI_DIM },
                     { "no_verdict", "?", ", no verdict", CLI_YELLOW } };
    struct str outcome = json_get_str(data, "outcome");
    struct str detail = json_get_str(data, "detail");
    size_t i = 0;
    while (i + 1 < array_len(outcomes) && !str_is(outcome, outcomes[i].outcome))
        i++;
    if (draw->brief && i == 0) /* the status says it */
        return;
    if (!draw->checking)
        cli_ask_draw_line(draw, CLI_BOLD, "checks", STR(""));
    draw->checking = true;
    cli_ask_draw_style(draw, outcomes[i].style);
    buf_printf(&draw->out, "  %s ", outcomes[i].mark);
    cli_ask_draw_style(draw, CLI_PLAIN);
    cli_visible_line(json_get_str(data, "check"), 100, &draw->out);
    buf_add_text(&draw->out, outcomes[i].after);
    if (detail.len > 0) {
        cli_ask_draw_style(draw, CLI_DIM);
        buf_add_text(&draw->out, ": ");
        cli_visible_line(detail, CLI_ASK_DRAW_WIDTH, &draw->out);
        cli_ask_draw_style(draw, CLI_PLAIN);
    }
    buf_add_text(&draw->out, "\n");
}

static void add_seconds(struct buf *out, double value)
{
    buf_printf(out, "%.0f s", value);
}

static void add_execution(struct buf *out, double value)
{
    buf_printf(out, "%.0f s of execution", value);
}

static void add_steps(struct buf *out, double value)
{
    buf_printf(out, "%.0f step%s", value, value == 1 ? "" : "s");
}

static void add_tokens(struct buf *out, double value)
{
    buf_printf(out, "%.0f tokens", value);
}

static void add_money(struct buf *out, double value)
{
    buf_printf(out, value > 0 && value < 0.1 ? "$%.4f" : "$%.2f", value);
}

static void add_files_size(struct buf *out, double value)
{
    cli_term_add_size(out, value);
    buf_add_text(out, " of files");
}

/* Draws the whole budget, or its rest: names end in "_left" then. A budget without a limit is null
 * or negative. */
void cli_ask_draw_budget(struct cli_ask_draw *draw, const json_t *data)
{
    static const struct {
        const char *name;
        void (*add)(struct buf *out, double value);
        bool once; /* shown only at the beginning */
    } rows[] = { { "steps", add_steps, false },     { "wall_s", add_seconds, false },
                 { "execution_s", add_execution, true }, { "tokens", add_tokens, false },
                 { "money_usd", add_money, false }, { "artifact_bytes", add_files_size, true } };
    bool left = json_object_get(data, "steps_left") != NULL;
    const char *between = left ? "left   " : "budget ";
    cli_ask_draw_style(draw, CLI_DIM);
    for (size_t i = 0; i < array_len(rows); i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", rows[i].name, left ? "_left" : "");
        const json_t *value = json_object_get(data, name);
        if ((left && rows[i].once) || !json_is_number(value) || json_number_value(value) < 0)
            continue;
        buf_add_text(&draw->out, between);
        rows[i].add(&draw->out, json_number_value(value));
        between = ", ";
    }
    cli_ask_draw_style(draw, CLI_PLAIN);
    buf_add_text(&draw->out, between[0] == ',' ? "\n" : "");
}

static const struct {
    const char *name, *meaning;
    enum cli_term_style style;
} statuses[] = {
    { "verified", "every value is computed, and a second look agrees", CLI_GREEN },
    { "computed", "every value is computed, and the cells gave the same again", CLI_GREEN },
    { "unanswerable", "the data does not hold the answer, says the model", CLI_YELLOW },
    { "unverified", "an answer that is typed or not proven", CLI_YELLOW },
    { "stuck", "repairs did not help, a person must take over", CLI_RED },
    { "budget_exhausted", "the budget ended before the task", CLI_RED },
    { "denied", "the model or a rule declined", CLI_RED },
    { "failed", "it could not be carried out", CLI_RED },
};

/* `computed` is not the whole proof. */
static void draw_unproven(struct cli_ask_draw *draw, const json_t *report)
{
    size_t i;
    json_t *check;
    bool judged = false;
    json_array_foreach (json_object_get(report, "checks"), i, check)
        judged = judged || str_is(json_get_str(check, "check"), "judge");
    cli_ask_draw_line(draw, CLI_PLAIN, "  not proven: that it is what the question asks; ",
                      judged ? STR("the judge gave no verdict") : STR("nobody judged it"));
}

static void draw_status(struct cli_ask_draw *draw, const json_t *report)
{
    struct str status = json_get_str(report, "status");
    struct str reason = json_get_str(report, "reason");
    size_t i = 0;
    while (i + 1 < array_len(statuses) && !str_is(status, statuses[i].name))
        i++;
    cli_ask_draw_style(draw, statuses[i].style);
    cli_visible_line(status, 40, &draw->out);
    cli_ask_draw_style(draw, CLI_PLAIN);
    buf_printf(&draw->out, ": %s\n", statuses[i].meaning);
    if (reason.len > 0 && i > 1) /* the first two say it already */
        cli_ask_draw_line(draw, CLI_PLAIN, "  reason: ", reason);
    if (str_is(status, "computed"))
        draw_unproven(draw, report);
    if (json_get_str(report, "hint").len > 0)
        cli_ask_draw_line(draw, CLI_PLAIN, "  hint: ", json_get_str(report, "hint"));
}

static void draw_evidence(struct cli_ask_draw *draw, const json_t *report)
{
    size_t i;
    json_t *entry;
    const char *between = "evidence ";
    json_array_foreach (json_object_get(report, "evidence"), i, entry) {
        struct str run = json_get_str(entry, "run");
        if (run.len == 0)
            continue;
        buf_add_text(&draw->out, between);
        cli_visible_line(run, 40, &draw->out);
        between = " ";
    }
    if (between[0] == ' ')
        buf_add_text(&draw->out, "\n");
    json_array_foreach (json_object_get(report, "artifacts"), i, entry) {
        buf_add_text(&draw->out, "made     ");
        cli_visible_line(json_get_str(entry, "path"), CLI_ASK_DRAW_WIDTH, &draw->out);
        buf_add_text(&draw->out, " (");
        cli_term_add_size(&draw->out, json_number_value(json_object_get(entry, "size_bytes")));
        buf_add_text(&draw->out, ")\n");
    }
}

static void draw_cost(struct cli_ask_draw *draw, const json_t *cost)
{
    const json_t *usd = json_object_get(cost, "usd");
    static const struct {
        const char *name, *before;
        int digits;
        const char *after;
        bool unless_none;
    } rows[] = { { "requests", "; ", 0, " requests", false },
                 { "input_tokens", ", ", 0, " tokens in", false },
                 { "cached_tokens", " (", 0, " cached)", true },
                 { "output_tokens", ", ", 0, " out", false },
                 { "wall_s", "; ", 1, " s", false },
                 { "model_s", ", model ", 1, " s", false },
                 { "execution_s", ", execution ", 1, " s", false } };
    if (!json_is_object(cost))
        return;
    buf_add_text(&draw->out, "cost     ");
    if (json_is_number(usd))
        add_money(&draw->out, json_number_value(usd));
    else
        buf_add_text(&draw->out, "not known");
    for (size_t i = 0; i < array_len(rows); i++) {
        const json_t *value = json_object_get(cost, rows[i].name);
        double number = json_number_value(value);
        if (json_is_number(value) && (number > 0 || (number == 0 && !rows[i].unless_none)))
            buf_printf(&draw->out, "%s%.*f%s", rows[i].before, rows[i].digits, number,
                       rows[i].after);
    }
    buf_add_text(&draw->out, "\n");
}

static void write_answer(struct cli_ask_draw *draw, struct str answer)
{
    own_buf text = BUF_INIT(ANSWER_MAX);
    cli_visible_text(answer, &text);
    if (text.len == 0 || text.at[text.len - 1] != '\n')
        buf_add_text(&text, "\n");
    cli_term_write(draw->answer_fd, buf_str(&text));
}

void cli_ask_draw_end(struct cli_ask_draw *draw, const json_t *report)
{
    const json_t *answer = json_object_get(report, "answer");
    if (json_is_string(answer) && draw->answer_fd >= 0) {
        buf_add_text(&draw->out, "\n");
        cli_ask_draw_flush(draw);
        write_answer(draw, json_str(answer));
    }
    buf_add_text(&draw->out, "\n");
    draw_status(draw, report);
    if (draw->quiet && !json_is_string(answer)) /* the reason for a missing answer */
        cli_term_write(draw->fd, (struct str){ draw->out.at + 1, draw->out.len - 1 });
    if (draw->quiet && draw->why)
        cli_ask_draw_why(draw, report);
    else
        cli_ask_draw_values(draw, report, draw->why);
    if (draw->brief)
        return;
    draw_evidence(draw, report);
    draw_cost(draw, json_object_get(report, "cost"));
}
