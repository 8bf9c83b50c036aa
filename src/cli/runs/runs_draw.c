/* Small plots of text. Runs in the cli process. */
#include "cli/runs/runs_draw.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"

bool cli_runs_draw_is_ascii(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *term = getenv("TERM");
    if (term && strcmp(term, "dumb") == 0)
        return true;
    for (size_t i = 0; i < array_len(names); i++) {
        const char *value = getenv(names[i]);
        if (value && value[0])
            return !strcasestr(value, "UTF-8") && !strcasestr(value, "utf8");
    }
    return true;
}

void cli_runs_draw_bar(struct buf *out, double part, size_t width)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    bool ascii = cli_runs_draw_is_ascii();
    size_t steps = ascii ? 1 : 8;
    part = part > 1 ? 1 : part > 0 ? part : 0;
    size_t filled = (size_t)(part * (double)(width * steps) + 0.5);
    if (filled == 0 && part > 0)
        filled = 1;
    size_t drawn = filled / steps;
    for (size_t i = 0; i < drawn; i++)
        buf_add_text(out, ascii ? "#" : "█");
    if (filled % steps) {
        buf_add_text(out, eighths[filled % steps]);
        drawn++;
    }
    for (; drawn < width; drawn++)
        buf_add_text(out, ascii ? "." : "░");
}

void cli_runs_draw_line(struct buf *out, const double *values, size_t count)
{
    static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char *const letters[] = { "_", ".", ":", "-", "=", "+", "*", "#" };
    const char *const *marks = cli_runs_draw_is_ascii() ? letters : blocks;
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    for (size_t i = 0; i < count; i++) {
        size_t level = most > 0 && values[i] > 0 ? (size_t)(values[i] / most * 7 + 0.5) : 0;
        buf_add_text(out, !(values[i] > 0) ? " " : marks[level < 8 ? level : 7]);
    }
}
