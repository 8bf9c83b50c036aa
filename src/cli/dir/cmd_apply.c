/* `cupel apply`: brings the changes of a run into the folder, file by file, after it has checked
 * that nothing of the folder changed meanwhile. Runs in the cli process after the drop of rights;
 * the clerk writes, as the folder's owner. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/dir/review.h"
#include "cli/term/term.h"

#define AT(member) offsetof(struct cli_dir_options, member)
#define CONFLICTS_SHOWN 20

const struct opt cli_apply_options_table[] = {
    { "dir", 0, "DIR", OPT_TEXT, AT(dir), "the folder; . is the default" },
    { "dry-run", 'n', NULL, OPT_FLAG, AT(dry_run), "only say what would be done" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_apply_options_rows = array_len(cli_apply_options_table);

static void help(void)
{
    fputs("usage: cupel apply [OPTION]... [RUN | last] [PATH]...\n"
          "\n"
          "Bring what a run with --dir changed into the folder: of the last run, or of RUN; all\n"
          "of it, or what is at and below each PATH. Nothing is changed if one of these files\n"
          "has changed in the folder since.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_apply_options_table, cli_apply_options_rows, stdout);
    fputs("\nThe exit code is 0 if all was brought, 2 if something stood against it.\n", stdout);
}

enum plan { PLAN_LEAVE, PLAN_DO, PLAN_DONE };

struct apply {
    struct review *review;
    const struct cli_dir_options *options;
    struct ignore ignore;
    enum plan *plan; /* for each change */
    size_t conflicts, left;
};

static struct change *change_at(const struct apply *apply, size_t i)
{
    return &apply->review->set.at[i];
}

/* --- what may not be brought --- */

static int read_rules(struct apply *apply, struct err *err)
{
    struct err why = ERR_INIT;
    own_fd fd = -1;
    own_buf text = BUF_INIT(IGNORE_TEXT_MAX);
    ignore_init(&apply->ignore);
    if (clerk_read(&apply->review->folder.clerk, STR(IGNORE_FILE), &fd, &why) < 0) {
        if (why.sys == ENOENT)
            return 0;
        *err = why;
        return -1;
    }
    if (buf_read(&text, fd) < 0)
        return err_sys(err, "read '" IGNORE_FILE "'");
    return ignore_add(&apply->ignore, buf_str(&text), err);
}

static const char *why_not(const struct apply *apply, const struct change *change)
{
    struct str path = change_path(change);
    bool dir = change->is.kind == CHANGE_FOLDER || change->was.kind == CHANGE_FOLDER;
    if (ignore_is_kept_within(path))
        return "read-only: programs outside the box trust it";
    if (ignore_hides_within(&apply->ignore, path, dir))
        return "hidden: such names hold secrets";
    if (change->is.kind == CHANGE_LINK && changes_leads_out(path, str_of(change->is.target)))
        return "a link that leads out of the folder";
    return NULL;
}

static void tell(const char *mark, struct str path, const char *why)
{
    own_buf name = BUF_INIT(16 * CHANGES_PATH_MAX);
    review_add_name(path, &name);
    if (why)
        cli_term_note("%s %s: %s", mark, buf_str(&name).at, why);
    else
        printf("%s %s\n", mark, buf_str(&name).at);
}

/* --- conflicts --- */

static int sum_now(struct apply *apply, struct str path, char out[HASH_HEX_ROOM], struct err *err)
{
    static char part[1 << 16];
    struct hash hash;
    own_fd fd = -1;
    hash_start(&hash);
    if (clerk_read(&apply->review->folder.clerk, path, &fd, err) < 0)
        return -1;
    for (ssize_t n; (n = read(fd, part, sizeof part)) != 0;) {
        if (n < 0)
            return err_sys(err, "read a file of the folder");
        hash_add(&hash, part, (size_t)n);
    }
    hash_end_hex(&hash, out);
    return 0;
}

static bool is_untouched(const struct change_entry *was, const struct change_entry *now)
{
    return was->kind == now->kind && was->size == now->size && was->mtime_ns == now->mtime_ns &&
           was->ctime_ns == now->ctime_ns;
}

/* The entry there now: as the code saw it, already as it left it, or neither. */
static enum plan judge(struct apply *apply, const struct change *change, struct err *err)
{
    struct change_entry now = { 0 };
    enum plan plan = PLAN_LEAVE;
    if (clerk_look(&apply->review->folder.clerk, change_path(change), &now, err) < 0)
        return PLAN_LEAVE;
    now.mode &= 0777;
    if (now.kind == CHANGE_FILE && !(is_untouched(&change->was, &now) && !change->moved) &&
        sum_now(apply, change_path(change), now.sum, err) < 0) {
        free(now.target);
        return PLAN_LEAVE;
    }
    if (change_entry_same(&now, &change->is))
        plan = PLAN_DONE;
    else if (change->moved)
        plan = PLAN_LEAVE;
    else if (now.kind == CHANGE_FILE && change->was.kind == CHANGE_FILE)
        plan = is_untouched(&change->was, &now) || change_entry_same(&now, &change->was)
                   ? PLAN_DO
                   : PLAN_LEAVE;
    else if (now.kind == CHANGE_FOLDER && change->was.kind == CHANGE_FOLDER)
        plan = PLAN_DO;
    else
        plan = now.kind != CHANGE_OTHER && change_entry_same(&now, &change->was) ? PLAN_DO
                                                                                 : PLAN_LEAVE;
    free(now.target);
    return plan;
}

static int make_plan(struct apply *apply, struct err *err)
{
    const struct changes *set = &apply->review->set;
    apply->plan = buf_alloc_zero(set->count + 1, sizeof *apply->plan);
    for (size_t i = 0; i < set->count; i++) {
        const struct change *change = change_at(apply, i);
        struct err why = ERR_INIT;
        if (!apply->review->picked[i])
            continue;
        const char *not = why_not(apply, change);
        if (not) {
            apply->left++;
            tell("left out", change_path(change), not);
            continue;
        }
        apply->plan[i] = judge(apply, change, &why);
        if (why.kind == ERR_BUG) {
            *err = why;
            return -1;
        }
        if (apply->plan[i] == PLAN_LEAVE && apply->conflicts++ < CONFLICTS_SHOWN)
            tell("conflict", change_path(change), "it changed in the folder since the run");
    }
    return 0;
}

/* A new file needs the new folders above it. */
static void add_parents(struct review *review)
{
    for (size_t i = review->set.count; i-- > 0;) {
        struct str path = change_path(&review->set.at[i]);
        if (!review->picked[i] || review->set.at[i].is.kind == CHANGE_NOTHING)
            continue;
        for (size_t n = path.len; n-- > 0;) {
            struct change *above = path.at[n] == '/'
                                       ? changes_find(&review->set, (struct str){ path.at, n })
                                       : NULL;
            if (above && above->is.kind == CHANGE_FOLDER)
                review->picked[above - review->set.at] = true;
        }
    }
}

/* --- doing --- */

/* Must what is there go first? Files and links take each other's place by a rename. */
static bool removes(const struct change *change)
{
    bool was = change->was.kind == CHANGE_FOLDER, is = change->is.kind == CHANGE_FOLDER;
    return change->was.kind != CHANGE_NOTHING && (change->is.kind == CHANGE_NOTHING || was != is);
}

static int bring(struct apply *apply, const struct change *change, struct err *err)
{
    struct clerk *clerk = &apply->review->folder.clerk;
    struct str path = change_path(change);
    own_buf content = { 0 };
    if (change->is.kind == CHANGE_LINK)
        return clerk_make_link(clerk, path, change->is.target, err);
    if (change->is.kind == CHANGE_FOLDER)
        return clerk_make_folder(clerk, path, change->is.mode | 0700, err);
    if (sets_read(apply->review->set_dir, change, &content, err) < 0)
        return -1;
    own_fd memory = io_sealed_memfd("change", buf_str(&content).at, content.len, 0);
    if (memory < 0)
        return err_sys(err, "hold a change in memory");
    return clerk_write(clerk, path, change->is.mode, memory, content.len, err);
}

static int remove_all(struct apply *apply, struct err *err)
{
    for (size_t i = apply->review->set.count; i-- > 0;) {
        const struct change *change = change_at(apply, i);
        if (apply->plan[i] != PLAN_DO || !removes(change))
            continue;
        if (!apply->options->dry_run &&
            clerk_remove(&apply->review->folder.clerk, change_path(change), err) < 0) {
            bool stays = err->sys == ENOTEMPTY && change->is.kind == CHANGE_NOTHING;
            if (!stays)
                return -1;
            *err = ERR_INIT;
            tell("left out", change_path(change), "the folder still has files of yours");
            continue;
        }
        if (change->is.kind == CHANGE_NOTHING)
            tell("D", change_path(change), NULL);
    }
    return 0;
}

static int bring_all(struct apply *apply, struct err *err)
{
    for (size_t i = 0; i < apply->review->set.count; i++) {
        const struct change *change = change_at(apply, i);
        if (apply->plan[i] != PLAN_DO || change->is.kind == CHANGE_NOTHING)
            continue;
        if (!apply->options->dry_run && bring(apply, change, err) < 0)
            return -1;
        tell(change->was.kind == CHANGE_NOTHING ? "A" : "M", change_path(change), NULL);
    }
    return 0;
}

/* All contents are there and whole, before the first is brought. */
static int check_contents(struct apply *apply, struct err *err)
{
    for (size_t i = 0; i < apply->review->set.count; i++) {
        own_buf content = { 0 };
        const struct change *change = change_at(apply, i);
        if (apply->plan[i] == PLAN_DO && change->is.kind == CHANGE_FILE &&
            sets_read(apply->review->set_dir, change, &content, err) < 0)
            return -1;
    }
    return 0;
}

static int run(struct apply *apply, struct err *err)
{
    bool named = apply->options->paths.count > 0;
    if (apply->review->set.cut && !named) {
        err_set(err, ERR_CONFLICT, "not all changes of run '%s' were kept", apply->review->set.run);
        err_hint(err, "'cupel diff' says what is missing; name the paths that you want");
        return -1;
    }
    if (read_rules(apply, err) < 0)
        return -1;
    add_parents(apply->review);
    if (make_plan(apply, err) < 0)
        return -1;
    if (apply->conflicts > 0) {
        err_set(err, ERR_CONFLICT, "nothing was changed: %zu of the files changed in the folder",
                apply->conflicts);
        err_hint(err, "name the paths to bring without them, or run the code again");
        return -1;
    }
    if (check_contents(apply, err) < 0)
        return -1;
    if (remove_all(apply, err) < 0 || bring_all(apply, err) < 0)
        return err_wrap(err, "not everything was brought");
    if (named && apply->left > 0)
        return err_set(err, ERR_FORBIDDEN, "%zu of the named paths cannot be brought", apply->left);
    return 0;
}

int cli_cmd_apply(int argc, char **argv)
{
    struct cli_dir_options options = { 0 };
    struct review review = REVIEW_INIT;
    struct err err = ERR_INIT;
    int rc = opt_parse(cli_apply_options_table, cli_apply_options_rows, argc, argv, &options,
                       &options.paths, &err);
    cli_term_set_quiet(options.quiet);
    if (rc == 0 && options.help) {
        help();
        return 0;
    }
    struct apply apply = { .review = &review, .options = &options, .ignore = IGNORE_INIT };
    if (rc == 0)
        rc = review_open(&options, /* changes= */ true, &review, &err);
    if (rc == 0)
        rc = run(&apply, &err);
    ignore_done(&apply.ignore);
    free(apply.plan);
    review_done(&review);
    return rc < 0 ? cli_term_refuse(&err, /* json= */ false) : 0;
}
