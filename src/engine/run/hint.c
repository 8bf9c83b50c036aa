/* Hints about missing packages and their alternatives, for code that failed or is checked. Reads
 * the image's package directory, never the box's claims. Runs in the engine. */
#include "engine/engine_int.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/buf.h"
#include "base/json.h"
#include "image/packages.h"

/* Alternatives to packages that models ask for and the image lacks. */
static const struct {
    const char *asked, *instead, *distribution;
} alternatives[] = {
    { "polars", "pandas", "pandas" },       { "dask", "pandas", "pandas" },
    { "modin", "pandas", "pandas" },        { "duckdb", "sqlite3", NULL },
    { "seaborn", "matplotlib", "matplotlib" }, { "plotly", "matplotlib", "matplotlib" },
    { "bokeh", "matplotlib", "matplotlib" }, { "altair", "matplotlib", "matplotlib" },
    { "torch", "numpy", "numpy" },          { "tensorflow", "sklearn", "scikit_learn" },
    { "keras", "sklearn", "scikit_learn" }, { "xgboost", "sklearn", "scikit_learn" },
    { "lightgbm", "sklearn", "scikit_learn" }, { "statsmodels", "scipy", "scipy" },
    { "cv2", "PIL", "Pillow" },             { "skimage", "PIL", "Pillow" },
    { "xlrd", "openpyxl", "openpyxl" },     { "xlsxwriter", "openpyxl", "openpyxl" },
    { "html5lib", "lxml", "lxml" },         { "jax", "numpy", "numpy" },
    { "networkx", "scipy.sparse.csgraph", "scipy" },
};

static bool version_in(const char *folder, const char *distribution, char *out, size_t room)
{
    size_t len = strlen(distribution);
    bool found = false;
    own_dirp dir = opendir(folder);
    for (const struct dirent *entry; dir && !found && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        const char *end = strstr(name, ".egg-info");
        end = end ? end : strstr(name, ".dist-info");
        if (!end || strncasecmp(name, distribution, len) != 0 || name[len] != '-')
            continue;
        snprintf(out, room, "%.*s", (int)(end - name - (long)len - 1), name + len + 1);
        found = true;
    }
    return found;
}

static bool installed_version(const char *distribution, char *out, size_t room)
{
    char folders[IMAGE_PACKAGES_MAX][IMAGE_PACKAGES_ROOM];
    size_t count = image_packages(folders);
    bool found = false;
    for (size_t i = 0; i < count && !found; i++)
        found = version_in(folders[i], distribution, out, room);
    return found;
}

/* The module in "No module named 'a.b'" or "Cannot find module 'a'". */
static bool missing_module(const char *message, char *out, size_t room)
{
    static const char *const words[] = { "module named '", "find module '" };
    const char *from = NULL;
    for (size_t i = 0; message && !from && i < array_len(words); i++) {
        from = strstr(message, words[i]);
        from = from ? from + strlen(words[i]) : NULL;
    }
    size_t len = from ? strcspn(from, ".'/") : 0;
    if (len == 0 || len >= room)
        return false;
    snprintf(out, room, "%.*s", (int)len, from);
    return true;
}

static void import_hint(const char *image, const char *module, struct buf *out)
{
    char version[64];
    for (size_t i = 0; i < array_len(alternatives); i++) {
        if (strcmp(alternatives[i].asked, module) != 0)
            continue;
        if (!alternatives[i].distribution)
            buf_printf(out, "'%s' is not in image %s; %s is", module, image,
                       alternatives[i].instead);
        else if (installed_version(alternatives[i].distribution, version, sizeof version))
            buf_printf(out, "'%s' is not in image %s; %s %s is", module, image,
                       alternatives[i].instead, version);
    }
    if (out->len == 0)
        buf_printf(out,
                   "'%s' is not in image %s, and a box cannot install it: use what "
                   "'cupel languages' lists, or the standard library",
                   module, image);
}

static bool mentions(struct str code, const char *words)
{
    return memmem(code.at, code.len, words, strlen(words)) != NULL;
}

void hint_add(const struct request *request, struct result *result)
{
    struct result_error *error = &result->error;
    char module[128];
    own_buf text = BUF_INIT(1024);
    if (error->kind == RESULT_E_IMPORT && missing_module(error->message, module, sizeof module))
        import_hint(result->image, module, &text);
    else if (result->status == RESULT_ERROR &&
             (mentions(request->code, "pip") || mentions(request->code, "npm")) &&
             mentions(request->code, "install"))
        buf_printf(&text,
                   "a box has no network, so nothing can be installed in it; 'cupel "
                   "languages' lists what is there (numpy, pandas, scipy, matplotlib and more)");
    if (text.len == 0)
        return;
    free(error->hint);
    error->hint = buf_take(&text);
}

void hint_problems(const char *image, json_t *problems)
{
    json_t *one;
    size_t i;
    json_array_foreach (problems, i, one) {
        const char *kind = json_string_value(json_object_get(one, "kind"));
        const char *name = json_string_value(json_object_get(one, "name"));
        own_buf text = BUF_INIT(2048);
        if (kind && name && strcmp(kind, "module") == 0)
            import_hint(image, name, &text);
        if (text.len > 0)
            json_object_set_new(one, "hint", json_text(buf_str(&text)));
    }
}
