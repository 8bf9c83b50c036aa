/* Hints for code that failed or is checked: missing packages and programs, their alternatives and
 * the command that adds them; other reasons are in hint_table.c. Asks the image's package folders
 * for what is there, never the box. Runs in the engine. */
#include "engine/engine_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/buf.h"
#include "base/json.h"
#include "image/contents.h"
#include "image/extras.h"

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

/* The package of a module of JavaScript: "a" of "a/b", "@s/a" of "@s/a/b"; nothing of a path. */
static size_t npm_len(const char *from)
{
    size_t len = strcspn(from, "'/");
    if (from[0] == '.' || from[0] == '/')
        return 0;
    return from[0] == '@' && from[len] == '/' ? len + 1 + strcspn(from + len + 1, "'/") : len;
}

/* The module in "No module named 'a.b'", "Cannot find module 'a'" or pandas' "Missing optional
 * dependency 'a'". */
static bool missing_module(const char *message, bool python, char *out, size_t room)
{
    static const char *const words[] = { "module named '", "find module '", "find package '",
                                         "optional dependency '" };
    const char *from = NULL;
    for (size_t i = 0; message && !from && i < array_len(words); i++) {
        from = strstr(message, words[i]);
        from = from ? from + strlen(words[i]) : NULL;
    }
    size_t len = !from ? 0 : python ? strcspn(from, ".'/") : npm_len(from);
    if (len == 0 || len >= room)
        return false;
    snprintf(out, room, "%.*s", (int)len, from);
    return true;
}

/* Names by which packages are installed elsewhere, and the names in code. */
static const struct {
    const char *asked, *module;
} aliases[] = {
    { "beautifulsoup4", "bs4" },   { "scikit_learn", "sklearn" }, { "scikit_image", "skimage" },
    { "Pillow", "PIL" },           { "pillow", "PIL" },           { "Image", "PIL" },
    { "opencv", "cv2" },           { "opencv_python", "cv2" },    { "pyyaml", "yaml" },
    { "PyYAML", "yaml" },          { "python_docx", "docx" },     { "Jinja2", "jinja2" },
    { "pytables", "tables" },      { "ipython", "IPython" },      { "PyPDF2", "pypdf" },
    { "odfpy", "odf" },            { "XlsxWriter", "xlsxwriter" },
};

/* "; matplotlib 3.6.3 is", if the image has an alternative. */
static bool add_alternative(const struct image *image, const char *module, struct buf *out)
{
    char version[IMAGE_VERSION_ROOM];
    for (size_t i = 0; i < array_len(alternatives); i++) {
        const char *distribution = alternatives[i].distribution;
        if (strcmp(alternatives[i].asked, module) != 0 ||
            (distribution && !image_has_distribution(image, str_of(distribution), version)))
            continue;
        buf_printf(out, "; %s %s%sis", alternatives[i].instead, distribution ? version : "",
                   distribution ? " " : "");
        return true;
    }
    return false;
}

/* "; 'sudo apt-get install python3-seaborn' on the host adds it", if Debian has it. */
static bool add_command(const char *kind, const char *name, struct buf *out)
{
    char package[IMAGE_EXTRAS_WORD];
    const struct image_extra *extra = image_extra_find(kind, name);
    if (!extra)
        return false;
    buf_printf(out, "; 'sudo apt-get install %s' on the host adds it",
               image_extra_package(extra, package));
    return true;
}

/* Names by which pip knows modules of another name. */
static const char *pip_name(const char *module)
{
    static const char *const names[][2] = {
        { "cv2", "opencv-python-headless" }, { "skimage", "scikit-image" },
        { "sklearn", "scikit-learn" },       { "PIL", "pillow" },
        { "bs4", "beautifulsoup4" },         { "yaml", "pyyaml" },
        { "docx", "python-docx" },           { "dateutil", "python-dateutil" },
        { "odf", "odfpy" },                  { "Crypto", "pycryptodome" },
    };
    for (size_t i = 0; i < array_len(names); i++) {
        if (strcmp(names[i][0], module) == 0)
            return names[i][1];
    }
    return module;
}

/* The command for a name that may be one of a package: it is the code's, so no other text is
 * shown as part of a command. */
static bool add_pip(const char *module, struct buf *out)
{
    struct request_package package;
    const char *name = pip_name(module);
    if (request_package_read(str_of(name), &package) < 0)
        return false;
    buf_printf(out, "; 'cupel images add NAME --pip %s' makes an image that has it", name);
    return true;
}

/* Names of npm have small letters, digits and few other characters. */
static bool add_npm(const char *package, struct buf *out)
{
    static const char others[] = "@/._-abcdefghijklmnopqrstuvwxyz0123456789";
    if (package[0] == '-' || package[strspn(package, others)])
        return false;
    buf_printf(out, "; 'cupel images add NAME --npm %s' makes an image that has it", package);
    return true;
}

static void import_hint(struct engine *engine, const struct image *image, const char *asked,
                        bool python, struct buf *out)
{
    const char *module = asked;
    for (size_t i = 0; python && i < array_len(aliases); i++)
        module = strcmp(aliases[i].asked, asked) == 0 ? aliases[i].module : module;
    bool there = python && image_can_import(image, module);
    if (there && module != asked)
        buf_printf(out, "'%s' is imported by the name %s, which is in image %s", asked, module,
                   image->name);
    else if (there)
        buf_printf(out,
                   "'%s' is in image %s, but not the part of it that the code imports: "
                   "dir(%s) lists the names",
                   module, image->name, module);
    if (there)
        return;
    buf_printf(out, "'%s' is not in image %s", asked, image->name);
    bool told = images_hint(engine, image, python ? IMAGES_PYTHON : IMAGES_NPM, module, out);
    told = (!told && python && add_alternative(image, module, out)) || told;
    bool host = python && image->on_host && add_command("python", module, out);
    told = host || (python ? add_pip(module, out) : add_npm(module, out)) || told;
    if (!told)
        buf_add_text(out, ", and a box cannot install it: use what 'cupel languages' lists, or the "
                          "standard library");
}

/* "foo: command not found" by bash, "foo: not found" by sh: the program's name. */
static bool missing_program(struct str text, char *out, size_t room)
{
    static const char *const words[] = { ": command not found", ": not found" };
    for (size_t i = 0; i < array_len(words); i++) {
        const char *end = memmem(text.at, text.len, words[i], strlen(words[i]));
        const char *from = end;
        while (from && from > text.at && !strchr(" :\n", from[-1]))
            from--;
        if (!end || end == from || (size_t)(end - from) >= room)
            continue;
        snprintf(out, room, "%.*s", (int)(end - from), from);
        return true;
    }
    return false;
}

/* "; 'cupel images add NAME --apt ripgrep' makes an image that has it". */
static void add_apt(const char *program, struct buf *out)
{
    char package[IMAGE_EXTRAS_WORD];
    const struct image_extra *extra = image_extra_find("program", program);
    if (extra)
        buf_printf(out, "; 'cupel images add NAME --apt %s' makes an image that has it",
                   image_extra_package(extra, package));
}

static void program_hint(struct engine *engine, const struct image *image, const char *name,
                         struct buf *out)
{
    own_buf more = BUF_INIT(1024);
    images_hint(engine, image, IMAGES_PROGRAM, name, &more);
    if (image->on_host)
        add_command("program", name, &more);
    if (image->on_host)
        add_apt(name, &more);
    if (more.len > 0)
        buf_printf(out, "'%s' is not in image %s%s", name, image->name, more.at);
}

/* A failed program of the code, by its last words. */
static void command_hint(struct engine *engine, const struct image *image,
                         const struct result *result, struct buf *out)
{
    char name[128];
    struct str said = hint_stderr_end(result);
    own_str text = buf_strdup(said);
    if (missing_program(said, name, sizeof name))
        program_hint(engine, image, name, out);
    else if (missing_module(text, /* python= */ true, name, sizeof name))
        import_hint(engine, image, name, /* python= */ true, out);
}

static void module_hint(struct engine *engine, const struct image *image,
                        const struct request *request, const char *module, struct buf *out)
{
    if (request->venv)
        buf_printf(out,
                   "'%s' is not in the virtual environment: '%.200s/bin/pip install %s' may add it",
                   module, request->venv->path, module);
    else
        import_hint(engine, image, module, request->language == REQUEST_PYTHON, out);
}

void hint_add(struct engine *engine, const struct image *image, const struct request *request,
              struct result *result)
{
    struct result_error *error = &result->error;
    bool failed = result->status == RESULT_ERROR;
    char module[128];
    own_buf text = BUF_INIT(1024);
    if (failed)
        hint_from_table(request, result, &text);
    if (text.len == 0 && error->kind == RESULT_E_IMPORT &&
        missing_module(error->message, request->language == REQUEST_PYTHON, module, sizeof module))
        module_hint(engine, image, request, module, &text);
    if (text.len == 0)
        hint_install(engine, request, result, &text);
    if (text.len == 0 && failed && hint_is_command(error))
        command_hint(engine, image, result, &text);
    if (text.len == 0)
        return;
    free(error->hint);
    error->hint = buf_take(&text);
}

void hint_problems(struct engine *engine, const struct image *image, json_t *problems)
{
    json_t *one;
    size_t i;
    json_array_foreach (problems, i, one) {
        const char *kind = json_string_value(json_object_get(one, "kind"));
        const char *name = json_string_value(json_object_get(one, "name"));
        own_buf text = BUF_INIT(2048);
        if (kind && name && strcmp(kind, "module") == 0)
            import_hint(engine, image, name, /* python= */ true, &text);
        if (text.len > 0)
            json_object_set_new(one, "hint", json_text(buf_str(&text)));
    }
}
