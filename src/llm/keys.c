/* Keys of models: from the environment, or from a file that only its owner can read. They live in
 * the model's memory and in its request headers, nowhere else. Runs in the task's process. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "llm/file.h"
#include "llm/llm_int.h"
#include "llm/target.h"

#define FILE_MAX ((size_t)1 << 20)
#define KEY_MAX 4096

bool llm_is_key_variable(const char *entry)
{
    static const char *const names[] = {
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENROUTER_API_KEY",
        "AZURE_OPENAI_API_KEY", "CUPEL_API_KEY", "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY",
        "GEMINI_API_KEY", "GOOGLE_API_KEY", "GROQ_API_KEY", "HF_TOKEN", "LLAMA_API_KEY",
        "LLAMACPP_API_KEY", "MISTRAL_API_KEY", "OLLAMA_API_KEY", "TOGETHER_API_KEY",
        "VLLM_API_KEY", "XAI_API_KEY",
    };
    for (size_t i = 0; i < array_len(names); i++) {
        size_t len = strlen(names[i]);
        if (strncmp(entry, names[i], len) == 0 && entry[len] == '=')
            return true;
    }
    return false;
}

char *llm_config_path(const char *file)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    own_buf path = BUF_INIT(4096);
    bool named = config && config[0] == '/';
    if (!named && (!home || home[0] != '/'))
        return NULL;
    if (buf_printf(&path, "%s%s/cupel/%s", named ? config : home, named ? "" : "/.config", file) <
        0)
        return NULL;
    return buf_take(&path);
}

static int check_secret(int fd, const char *path, struct err *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return err_sys(err, "look at '%.200s'", path);
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        err_set(err, ERR_INPUT, "'%.200s' belongs to another user", path);
        err_hint(err, "a file with keys must be your own: chown %ld '%.200s'", (long)geteuid(),
                 path);
        return -1;
    }
    if (info.st_mode & 077) {
        err_set(err, ERR_INPUT, "'%.200s' is open to others (mode %03o)", path,
                (unsigned)info.st_mode & 0777);
        err_hint(err, "close it: chmod 600 '%.200s'", path);
        return -1;
    }
    return 0;
}

static int read_whole(int fd, const char *path, struct buf *out, struct err *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return err_set(err, ERR_INPUT, "'%.200s' is not a file", path);
    return llm_file_read(fd, path, out, err);
}

/* Files that were read and remembered; both configuration files fit. */
static struct {
    bool on;
    struct {
        char file[24];
        json_t *value; /* NULL: there is none */
    } kept[2];
    size_t count;
} memory;

void llm_remember_configuration(void)
{
    memory.on = true;
}

static int read_config(const char *file, bool secret, json_t **out, struct err *err)
{
    own_str path = llm_config_path(file);
    own_buf text = BUF_INIT(FILE_MAX);
    own_fd fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    *out = NULL;
    if (fd < 0)
        return !path || errno == ENOENT || errno == ENOTDIR || errno == EACCES
                   ? 0
                   : err_sys(err, "open '%.200s'", path);
    if ((secret && check_secret(fd, path, err) < 0) || read_whole(fd, path, &text, err) < 0)
        return -1;
    own_json value = json_read(buf_str(&text), FILE_MAX, err);
    if (!json_is_object(value)) {
        if (value || secret) /* the parser's message might repeat a key */
            err_set(err, ERR_INPUT, "it does not hold a JSON object");
        return err_wrap(err, "read '%.200s'", path);
    }
    *out = take_ptr(value);
    return 0;
}

int llm_config_read(const char *file, bool secret, json_t **out, struct err *err)
{
    for (size_t i = 0; i < memory.count; i++) {
        if (strcmp(memory.kept[i].file, file) == 0) {
            *out = json_incref(memory.kept[i].value);
            return 0;
        }
    }
    int rc = read_config(file, secret, out, err);
    if (rc == 0 && memory.on && memory.count < array_len(memory.kept)) {
        str_plain(memory.kept[memory.count].file, sizeof memory.kept[0].file, str_of(file));
        memory.kept[memory.count++].value = json_incref(*out);
    }
    return rc;
}

void llm_forget_keys(void)
{
    for (size_t i = 0; environ[i];) {
        char *equals = strchr(environ[i], '=');
        if (!equals || !llm_is_key_variable(environ[i])) {
            i++;
            continue;
        }
        own_str name = buf_strdup((struct str){ environ[i], (size_t)(equals - environ[i]) });
        explicit_bzero(equals + 1, strlen(equals + 1)); /* /proc/PID/environ shows this memory */
        unsetenv(name); /* moves the next one to this place */
    }
}

/* A key goes into a header line: one word of plain characters. */
static int take_key(struct str text, const char *from, char **out, struct err *err)
{
    while (text.len > 0 && strchr(" \t\r\n", text.at[text.len - 1]))
        text.len--;
    while (text.len > 0 && strchr(" \t\r\n", text.at[0]))
        text = (struct str){ text.at + 1, text.len - 1 };
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] <= ' ' || text.at[i] > '~' || text.len > KEY_MAX)
            return err_set(err, ERR_INPUT, "the key in '%s' is not one plain word", from);
    *out = text.len > 0 ? buf_strdup(text) : NULL;
    return 0;
}

int llm_key_find(const char *variable, const char *name, char **out, enum llm_key_from *out_from,
                 struct err *err)
{
    const char *set = variable ? getenv(variable) : NULL;
    own_json file = NULL;
    *out = NULL;
    *out_from = LLM_KEY_MISSING;
    if (set && *set && take_key(str_of(set), variable, out, err) < 0)
        return -1;
    if (*out) {
        *out_from = LLM_KEY_ENVIRONMENT;
        return 0;
    }
    if (llm_config_read("keys.json", /* secret= */ true, &file, err) < 0)
        return -1;
    struct str text = json_str(json_object_get(file, name));
    if (text.len > 0 && take_key(text, "keys.json", out, err) < 0)
        return -1;
    if (*out)
        *out_from = LLM_KEY_FILE;
    return 0;
}
