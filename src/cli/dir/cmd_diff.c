/* `cupel diff`: what a run changed in its view of a folder, beside what the folder has now. Runs in
 * the cli process, after the drop of rights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/cli.h"
#include "cli/dir/review.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"
#include "folder/linediff.h"

#define AT(member) offsetof(struct cli_dir_options, member)
#define OUT_MAX (64u << 20) /* bytes of one file's difference */

const struct opt cli_diff_options_table[] = {
    { "dir", 0, "DIR", OPT_TEXT, AT(dir), "the folder; . is the default" },
    { "stat", 0, NULL, OPT_FLAG, AT(stat), "only the names and the number of lines" },
    { "json", 0, NULL, OPT_FLAG, AT(json), "print the set as JSON and nothing else" },
    { "raw", 0, NULL, OPT_FLAG, AT(raw), "print control characters unchanged, for patch" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_diff_options_rows = array_len(cli_diff_options_table);

static void help(void)
{
    fputs("usage: cupel diff [OPTION]... [RUN | last] [PATH]...\n"
          "\n"
          "Show what a run with --dir changed in its view of the folder: the last one, or RUN.\n"
          "A PATH is one of the folder, and stands for all below it.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_diff_options_table, cli_diff_options_rows, stdout);
    fputs(
        "\nThe exit code is 0 without and with changes. cupel apply brings them into the folder.\n",
        stdout);
}

/* The texts of both sides; one that is too long, or no file, is left out: -1. */
static int read_now(struct review *review, const struct change *change, struct buf *out)
{
    struct err err = ERR_INIT;
    own_fd fd = -1;
    *out = BUF_INIT(LINEDIFF_BYTES_MAX);
    if (change->was.kind != CHANGE_FILE)
        return 0;
    if (clerk_read(&review->folder.clerk, change_path(change), &fd, &err) < 0)
        return -1;
    return buf_read(out, fd);
}

struct shown {
    bool binary;
    struct linediff_count count;
    struct buf text; /* hunks */
    uint64_t was_bytes;
};

static int compare(struct review *review, const struct change *change, struct shown *out,
                   struct err *err)
{
    own_buf was = { 0 }, is = { 0 };
    out->text = BUF_INIT(OUT_MAX);
    out->was_bytes = change->was.size;
    bool files = change->is.kind == CHANGE_FILE || change->was.kind == CHANGE_FILE;
    if (!files)
        return 0;
    out->binary = true;
    if (change->is.size > LINEDIFF_BYTES_MAX || change->was.size > LINEDIFF_BYTES_MAX)
        return 0;
    if (change->is.kind == CHANGE_FILE && sets_read(review->set_dir, change, &is, err) < 0)
        return -1;
    if (read_now(review, change, &was) < 0)
        return 0;
    out->binary = !linediff_is_text(buf_str(&was)) || !linediff_is_text(buf_str(&is));
    if (out->binary)
        return 0;
    if (linediff_write(buf_str(&was), buf_str(&is), &out->text, &out->count) < 0)
        out->binary = true;
    return 0;
}

/* --- for a person --- */

static void add_side(struct buf *out, const char *mark, const char *prefix, struct str path,
                     const struct change_entry *entry)
{
    own_buf name = BUF_INIT(8 * CHANGES_PATH_MAX);
    buf_add_text(&name, prefix);
    buf_add_str(&name, path);
    buf_add_text(out, mark);
    if (entry->kind == CHANGE_NOTHING)
        buf_add_text(out, "/dev/null");
    else
        review_add_name(buf_str(&name), out);
    buf_add_text(out, "\n");
}

static void add_entry_line(struct buf *out, const char *verb, const struct change_entry *entry)
{
    if (entry->kind == CHANGE_FILE)
        buf_printf(out, "%s file mode %o\n", verb, 0100000 | entry->mode);
    else if (entry->kind == CHANGE_FOLDER)
        buf_printf(out, "%s folder mode %o\n", verb, entry->mode);
    else if (entry->kind == CHANGE_LINK) {
        buf_printf(out, "%s link to ", verb);
        review_add_name(str_of(entry->target), out);
        buf_add_text(out, "\n");
    } else if (entry->kind == CHANGE_OTHER) {
        buf_printf(out, "%s special file\n", verb);
    }
}

/* The lines of a change before its hunks. */
static void add_head(struct buf *out, const struct change *change, const struct shown *shown)
{
    own_buf a = BUF_INIT(2 * CHANGES_PATH_MAX), b = BUF_INIT(2 * CHANGES_PATH_MAX);
    struct str path = change_path(change);
    bool files = change->was.kind == CHANGE_FILE && change->is.kind == CHANGE_FILE;
    buf_add_text(&a, "a/");
    buf_add_str(&a, path);
    buf_add_text(&b, "b/");
    buf_add_str(&b, path);
    buf_add_text(out, "diff --git ");
    review_add_name(buf_str(&a), out);
    buf_add_text(out, " ");
    review_add_name(buf_str(&b), out);
    buf_add_text(out, "\n");
    if (files && change->was.mode != change->is.mode)
        buf_printf(out, "old mode %o\nnew mode %o\n", 0100000 | change->was.mode,
                   0100000 | change->is.mode);
    if (!files) {
        add_entry_line(out, "deleted", &change->was);
        add_entry_line(out, "new", &change->is);
    }
    if (shown->binary)
        buf_printf(out, "Binary files differ: %llu bytes before, %llu after\n",
                   (unsigned long long)change->was.size, (unsigned long long)change->is.size);
    if (shown->text.len > 0) {
        add_side(out, "--- ", "a/", path, &change->was);
        add_side(out, "+++ ", "b/", path, &change->is);
    }
}

static void print_visible(struct str text, bool raw)
{
    own_buf out = BUF_INIT(SIZE_MAX / 4);
    if (raw) {
        cli_term_write(STDOUT_FILENO, text);
        return;
    }
    cli_visible_text(text, &out);
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}

static void print_stat(const struct change *change, const struct shown *shown)
{
    static const char *const words[] = { [CHANGE_NOTHING] = "deleted", [CHANGE_LINK] = "link",
                                         [CHANGE_FOLDER] = "folder" };
    own_buf out = BUF_INIT(16 * CHANGES_PATH_MAX);
    review_add_name(change_path(change), &out);
    if (shown->binary)
        buf_printf(&out, " | %llu -> %llu bytes", (unsigned long long)change->was.size,
                   (unsigned long long)change->is.size);
    else if (change->is.kind == CHANGE_FILE || change->was.kind == CHANGE_FILE)
        buf_printf(&out, " | +%zu -%zu", shown->count.added, shown->count.removed);
    if (change->is.kind != CHANGE_FILE)
        buf_printf(&out, " | %s", words[change->is.kind]);
    else if (change->was.kind == CHANGE_NOTHING)
        buf_add_text(&out, " | new");
    buf_add_text(&out, "\n");
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}

static int show_one(struct review *review, const struct change *change,
                    const struct cli_dir_options *o, json_t *list, struct err *err)
{
    struct shown shown = { .binary = false };
    if (compare(review, change, &shown, err) < 0)
        return -1;
    if (list) {
        json_t *row = json_array_get(list, (size_t)(change - review->set.at));
        json_object_set_new(row, "binary", json_boolean(shown.binary));
        json_object_set_new(row, "added", json_integer((json_int_t)shown.count.added));
        json_object_set_new(row, "removed", json_integer((json_int_t)shown.count.removed));
        json_object_set_new(row, "diff", json_text(buf_str(&shown.text)));
    } else if (o->stat) {
        print_stat(change, &shown);
    } else {
        own_buf head = BUF_INIT(64 * CHANGES_PATH_MAX);
        add_head(&head, change, &shown);
        cli_term_write(STDOUT_FILENO, buf_str(&head));
        print_visible(buf_str(&shown.text), o->raw);
    }
    buf_done(&shown.text);
    return 0;
}

/* The rows that were not picked go last, so that the indexes above hold. */
static void drop_rows(const struct review *review, json_t *list)
{
    for (size_t i = review->set.count; i-- > 0;)
        if (!review->picked[i])
            json_array_remove(list, i);
}

static void tell_rest(const struct review *review)
{
    for (size_t i = 0; i < review->set.skipped_count; i++) {
        own_buf name = BUF_INIT(16 * CHANGES_PATH_MAX);
        const struct changes_skipped *skipped = &review->set.skipped[i];
        review_add_name((struct str){ skipped->path, skipped->len }, &name);
        cli_term_note("left out: %s%s%s", buf_str(&name).at, name.len ? ": " : "", skipped->why);
    }
    size_t moved = 0;
    for (size_t i = 0; i < review->set.count; i++)
        moved += review->picked[i] && review->set.at[i].moved;
    if (moved > 0)
        cli_term_note("changed in the folder while the code ran: %zu of these", moved);
}

static int show(struct review *review, const struct cli_dir_options *options, struct err *err)
{
    own_json root = options->json ? changes_to_json(&review->set) : NULL;
    json_t *list = json_object_get(root, "changes");
    for (size_t i = 0; i < review->set.count; i++) {
        if (review->picked[i] && show_one(review, &review->set.at[i], options, list, err) < 0)
            return -1;
    }
    if (!root) {
        tell_rest(review);
        return 0;
    }
    drop_rows(review, list);
    return cli_term_json(root);
}

int cli_cmd_diff(int argc, char **argv)
{
    struct cli_dir_options options = { 0 };
    struct review review = REVIEW_INIT;
    struct err err = ERR_INIT;
    int rc = opt_parse(cli_diff_options_table, cli_diff_options_rows, argc, argv, &options,
                       &options.paths, &err);
    cli_term_set_quiet(options.quiet);
    if (rc == 0 && options.help) {
        help();
        return 0;
    }
    if (rc == 0)
        rc = review_open(&options, /* changes= */ false, &review, &err);
    if (rc == 0)
        rc = show(&review, &options, &err);
    review_done(&review);
    return rc < 0 ? cli_term_refuse(&err, options.json) : rc;
}
