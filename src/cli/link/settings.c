/* Reads the layers of the configuration. Runs in the cli and serve processes, as the caller, before
 * any right is dropped. A file that exists and cannot be read is an error: what it forbids would be
 * allowed otherwise. */
#include "cli/link/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

char *cli_settings_user_file(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    own_buf path = BUF_INIT(4096);
    bool named = config && config[0] == '/';
    if (!named && (!home || home[0] != '/'))
        return NULL;
    if (buf_printf(&path, "%s%s/cupel/config.json", named ? config : home,
                   named ? "" : "/.config") < 0)
        return NULL;
    return buf_take(&path);
}

int cli_settings_take_fd(struct config *config, int fd, const char *path, struct err *err)
{
    struct stat st;
    own_buf text = BUF_INIT(CONFIG_FILE_MAX);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_input(err, "", NULL, NULL, "'%.200s' is not a file", path);
    if (buf_read(&text, fd) == 0)
        return config_take_file(config, buf_str(&text), path, err);
    return errno == EFBIG ? err_input(err, "", NULL, NULL,
                                      "the configuration '%.200s' is larger than %zu bytes", path,
                                      CONFIG_FILE_MAX)
                          : err_sys(err, "read the configuration '%.200s'", path);
}

int cli_settings_take_file(struct config *config, const char *path, bool named, struct err *err)
{
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0)
        return cli_settings_take_fd(config, fd, path, err);
    if (!named && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    err_sys(err, "open the configuration '%.200s'", path);
    if (err->sys == EACCES)
        err_hint(err, "it holds no secret: let its readers in, or move it away");
    err->kind = ERR_INPUT;
    return -1;
}

int cli_settings_take_environment(struct config *config, struct err *err)
{
    for (enum config_key key = 0; key < CONFIG_COUNT; key++) {
        const char *variable = config_row(key)->variable;
        const char *value = variable ? getenv(variable) : NULL;
        char from[80];
        if (!value || !*value)
            continue;
        snprintf(from, sizeof from, "environment %s", variable);
        if (config_take(config, key, json_text(str_of(value)), from, err) < 0)
            return -1;
    }
    return 0;
}

int cli_settings_read(const char *file, struct config *config, struct err *err)
{
    own_str user = file ? NULL : cli_settings_user_file();
    if (file ? cli_settings_take_file(config, file, /* named= */ true, err) < 0
             : cli_settings_take_file(config, CONFIG_SYSTEM_FILE, /* named= */ false, err) < 0 ||
                   (user && cli_settings_take_file(config, user, /* named= */ false, err) < 0))
        return -1;
    return cli_settings_take_environment(config, err) < 0 ? -1 : config_check(config, err);
}

int cli_settings_use_image(struct err *err)
{
    own_config config;
    config_init(&config);
    if (cli_settings_read(NULL, &config, err) < 0)
        return -1;
    const char *image = config_text(&config, CONFIG_IMAGE);
    bool is_default = strcmp(config.at[CONFIG_IMAGE].from, "default") == 0;
    if (!is_default && setenv("CUPEL_IMAGE", image, 1) < 0)
        return err_sys(err, "set CUPEL_IMAGE");
    return 0;
}

int cli_settings_use_model(struct err *err)
{
    own_config config;
    config_init(&config);
    if (cli_settings_read(NULL, &config, err) < 0)
        return -1;
    const char *model = config_text(&config, CONFIG_MODEL);
    if (model && setenv("CUPEL_MODEL", model, 1) < 0)
        return err_sys(err, "set CUPEL_MODEL");
    return 0;
}
