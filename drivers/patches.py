# Modules that need help, but only if code imports them. driver.py loads this file then (class Hooks), the zygote before
# it forks. Runs as the occupant.
import sys

driver = None   # the module; set by the loader of this file
FALLBACK_FONTS = ("DejaVu Sans", "Droid Sans Fallback", "Amiri")


def after_font_manager(module):
    """These fonts provide the glyphs that any other family lacks."""
    find = getattr(module.FontManager, "_find_fonts_by_props", None)   # since 3.6

    def find_with_fallback(self, *args, **kwargs):
        there = {font.name for font in self.ttflist}
        more = [self.findfont(family) for family in FALLBACK_FONTS if family in there]
        return [*dict.fromkeys([*find(self, *args, **kwargs), *more])]
    if find:
        module.FontManager._find_fonts_by_props = find_with_fallback


def after_spawn(module):
    """A spawned process imports the program by its path: provide one, outside the work folder."""
    prepare, paths = module.get_preparation_data, []

    def prepare_with_main(name):
        if not paths:
            paths.append(f"{__import__('tempfile').mkdtemp(prefix='cupel-')}/{driver.FILE}")
        with open(paths[0], "w", encoding="utf-8") as file:
            file.write(driver.source)
        return {**prepare(name), "init_main_from_path": paths[0]}
    module.get_preparation_data = prepare_with_main


def after_pandas(module):
    """It asks a terminal how many columns fit; there is none. As in a notebook: 20, wrapped at the client's width."""
    width = str(driver.columns or sys.modules["os"].environ.get("COLUMNS"))
    known = module._config.config._registered_options
    for name, value in (("display.max_columns", 20), ("display.width", int(width) if width.isdigit() else 80)):
        if module.get_option(name) == known[name].defval:   # else the code has set it
            known[name] = known[name]._replace(defval=value)
            module.set_option(name, value)


def after_pillow(module):
    module.Image.show = lambda self, *_, **__: driver.display(self)   # there is no viewer to start


def after_figure(module):
    module.Figure.show = lambda self, *_, **__: driver.display(self)


def after_ipython(module):
    driver.load("ipython").after_import(module)


PATCHES = {
    "matplotlib.font_manager": after_font_manager, "matplotlib.figure": after_figure,
    "matplotlib.pyplot": lambda module: setattr(module, "show", driver.show_figures),
    "multiprocessing.spawn": after_spawn, "pandas": after_pandas, "PIL.Image": after_pillow,
    "IPython.core.getipython": after_ipython, "IPython.core.display_functions": after_ipython,
    "IPython.core.display": after_ipython}
