/* The languages and packages of image host, for the descriptions of tools. Runs in the process of a
 * door, as the caller, once: a look at folders, no start of an interpreter. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "image/packages.h"
#include "mcp/mcp.h"

/* A package's folder, and its name where that differs. */
static const struct {
    const char *folder, *name;
} packages[] = {
    { "numpy", NULL },        { "pandas", NULL },   { "matplotlib", NULL },
    { "scipy", NULL },        { "sympy", NULL },    { "sklearn", "scikit-learn" },
    { "statsmodels", NULL },  { "seaborn", NULL },  { "networkx", NULL },
    { "PIL", "Pillow" },      { "openpyxl", NULL }, { "docx", "python-docx" },
    { "bs4", "beautifulsoup4" }, { "lxml", NULL },  { "requests", NULL },
};

static const struct {
    const char *program, *name;
} languages[] = {
    { "node", "JavaScript and TypeScript (node)" },
    { "bash", "Bash" },
    { "Rscript", "R (no session)" },
    { "javac", "Java (no session)" },
};

static void add_packages(struct buf *out)
{
    char folders[IMAGE_PACKAGES_MAX][IMAGE_PACKAGES_ROOM];
    const size_t count = image_packages(folders);
    size_t found = 0;
    for (size_t i = 0; i < array_len(packages); i++) {
        for (size_t j = 0; j < count; j++) {
            char path[IMAGE_PACKAGES_ROOM + 32];
            snprintf(path, sizeof path, "%s/%s", folders[j], packages[i].folder);
            if (access(path, F_OK) != 0)
                continue;
            buf_printf(out, "%s%s", found++ ? ", " : " with ",
                       packages[i].name ? packages[i].name : packages[i].folder);
            break;
        }
    }
}

char *mcp_host_languages(void)
{
    struct buf out = BUF_INIT(480);
    buf_add_text(&out, "Languages: Python");
    add_packages(&out);
    for (size_t i = 0; i < array_len(languages); i++) {
        char path[64];
        snprintf(path, sizeof path, "/usr/bin/%s", languages[i].program);
        if (access(path, X_OK) == 0)
            buf_printf(&out, "; %s", languages[i].name);
    }
    buf_add_text(&out, ".");
    return buf_take(&out);
}
