/* Opens a set of changes for a person. Runs in the cli process: first as the caller, who names the
 * folder; the set itself names none that would be trusted. */
#include "cli/dir/review.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "box/host/box.h"
#include "cli/link/state_files.h"

static int open_sets(struct cli_folder *folder, struct err *err)
{
    folder->shelf = cli_state_open_folder("changes");
    if (folder->shelf >= 0)
        return 0;
    err_set(err, ERR_ABSENT, "there is no state folder, so no changes were kept");
    err_hint(err, "'cupel run --dir . ...' keeps them; CUPEL_STATE names the state folder");
    return -1;
}

/* Is the change at this path, or below it? */
static bool is_within(struct str path, struct str above)
{
    return path.len >= above.len && memcmp(path.at, above.at, above.len) == 0 &&
           (path.len == above.len || path.at[above.len] == '/');
}

static struct str plain(const char *text)
{
    struct str path = str_of(text);
    while (path.len > 2 && path.at[0] == '.' && path.at[1] == '/')
        path = (struct str){ path.at + 2, path.len - 2 };
    while (path.len > 1 && path.at[path.len - 1] == '/')
        path.len--;
    return path;
}

static int pick(const struct cli_dir_options *options, struct review *out, struct err *err)
{
    out->picked = buf_alloc_zero(out->set.count + 1, sizeof *out->picked);
    for (size_t i = 0; i < out->set.count; i++)
        out->picked[i] = options->paths.count == 0;
    for (size_t p = 0; p < options->paths.count; p++) {
        struct str path = plain(options->paths.at[p]);
        bool found = false;
        for (size_t i = 0; i < out->set.count; i++) {
            if (str_is(path, ".") || is_within(change_path(&out->set.at[i]), path))
                found = out->picked[i] = true;
        }
        if (found)
            continue;
        err_set(err, ERR_ABSENT, "run '%s' changed nothing at '%.200s'", out->set.run,
                options->paths.at[p]);
        err_hint(err, "paths are those of the folder's top; 'cupel diff --stat' lists them");
        return -1;
    }
    return 0;
}

int review_open(struct cli_dir_options *options, bool changes, struct review *out, struct err *err)
{
    const char *run = NULL;
    *out = REVIEW_INIT;
    if (options->paths.count > 0 && sets_is_name(options->paths.at[0])) {
        run = strcmp(options->paths.at[0], "last") == 0 ? NULL : options->paths.at[0];
        options->paths.at++;
        options->paths.count--;
    }
    if (cli_folder_open(options->dir ? options->dir : ".", /* writes= */ false, changes,
                        &out->folder, err) < 0 ||
        open_sets(&out->folder, err) < 0 || box_drop_door(err) < 0)
        return -1;
    if (sets_open(out->folder.shelf, run, out->folder.device, out->folder.inode, &out->set,
                  &out->set_dir, err) < 0)
        return -1;
    return pick(options, out, err);
}

void review_done(struct review *review)
{
    cli_folder_done(&review->folder);
    changes_done(&review->set);
    own_close_fd(&review->set_dir);
    free(review->picked);
    *review = REVIEW_INIT;
}

void review_add_name(struct str path, struct buf *out)
{
    bool odd = !str_is_utf8(path);
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.at[i];
        odd = odd || c < 0x20 || c == 0x7f || c == '"' || c == '\\' || c >= 0x80;
    }
    if (!odd) {
        buf_add_str(out, path);
        return;
    }
    buf_add_text(out, "\"");
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.at[i];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            buf_printf(out, "\\%03o", c);
        else
            buf_printf(out, "%c", c);
    }
    buf_add_text(out, "\"");
}
