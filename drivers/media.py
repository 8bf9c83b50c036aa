# The values of IPython.display that show themselves: HTML, Image, Audio, ... ipython.py loads it where IPython is not
# installed. Runs as the occupant.
#
# 1. Names, arguments and forms are those of IPython.
# 2. A file or answer that is read has a maximum. An address is left to the client, where HTML can name it.
import posix

driver = None   # the module; set by the loader of this file
FILE_MAX = 8 << 20


def escape(text):
    return __import__("html").escape(str(text))


def encoded(data):
    return __import__("binascii").b2a_base64(data, newline=False).decode()


class DisplayObject:
    """Data, or a file or address that holds it."""
    binary = False

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if hasattr(data, "__fspath__"):
            data = data.__fspath__()
        if isinstance(data, str) and url is None and data.startswith(("http:", "https:")):
            data, url = None, data
        elif isinstance(data, str) and filename is None and self.is_file(data):
            data, filename = None, data
        self.data, self.url, self.metadata = data, url, metadata or {}
        self.filename = None if filename is None else str(filename)
        self.reload()

    @staticmethod
    def is_file(text):
        try:
            return len(text) < 4096 and posix.access(text, posix.F_OK)
        except (OSError, ValueError):
            return False

    def reload(self):
        if self.filename is not None:
            with open(self.filename, "rb") as file:
                data = file.read(FILE_MAX + 1)
            if len(data) > FILE_MAX:
                raise ValueError(f"{self.filename} has more than {FILE_MAX} bytes")
            self.data = data if self.binary else data.decode("utf-8")
        elif self.url is not None and self.data is None:
            with __import__("urllib.request").request.urlopen(self.url) as answer:
                data = answer.read(FILE_MAX)
            self.data = data if self.binary else data.decode("utf-8", "replace")

    def __repr__(self):
        return f"<{type(self).__module__}.{type(self).__name__} object>"


class TextDisplayObject(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if data is not None and not isinstance(data, str) and not hasattr(data, "__fspath__"):
            raise TypeError(f"{type(self).__name__} expects text, not {data!r}")
        super().__init__(data, url, filename, metadata)

    def told(self):
        return (self.data, self.metadata) if self.metadata else self.data


class Pretty(TextDisplayObject):
    def _repr_pretty_(self, p, cycle):
        p.text(self.data)


class HTML(TextDisplayObject):
    def _repr_html_(self):
        return self.told()

    def __html__(self):
        return self.data


class Markdown(TextDisplayObject):
    def _repr_markdown_(self):
        return self.told()


class Latex(TextDisplayObject):
    def _repr_latex_(self):
        return self.told()


class Math(TextDisplayObject):
    def _repr_latex_(self):
        text = "$\\displaystyle " + self.data.strip("$") + "$"
        return (text, self.metadata) if self.metadata else text


class SVG(DisplayObject):
    def reload(self):
        super().reload()
        text = self.data.decode("utf-8") if isinstance(self.data, bytes) else self.data
        self.data = text[text.find("<svg"):] if text and "<svg" in text else text

    def _repr_svg_(self):
        return (self.data, self.metadata) if self.metadata else self.data


class Javascript(TextDisplayObject):
    def __init__(self, data=None, url=None, filename=None, lib=None, css=None):
        self.lib, self.css = ([one] if isinstance(one, str) else one or [] for one in (lib, css))
        super().__init__(data, url, filename)

    def _repr_javascript_(self):
        styles = [f'var link = document.createElement("link"); link.rel = "stylesheet"; link.href = "{one}"; '
                  "document.head.appendChild(link);\n" for one in self.css]
        loads = "".join([f"await import({one!r});\n" for one in self.lib])
        return "".join(styles) + loads + self.data


class JSON(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **more):
        super().__init__(data, url, filename, {"expanded": expanded, "root": root, **(metadata or {}), **more})
        if isinstance(self.data, str):
            self.data = __import__("json").loads(self.data)

    def _repr_json_(self):
        return self.data, self.metadata


class GeoJSON(JSON):
    def __init__(self, *args, layer_options=None, url_template=None, **more):
        super().__init__(*args, **more)
        self.metadata.update({"layer_options": layer_options or {}, "url_template": url_template})

    _repr_json_ = None

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/geo+json": self.data}, {"application/geo+json": self.metadata}


class Code(TextDisplayObject):
    def __init__(self, data=None, url=None, filename=None, language=None):
        self.language = language
        super().__init__(data, url, filename)

    def _repr_html_(self):
        return f"<pre><code>{escape(self.data)}</code></pre>"

    def __repr__(self):
        return self.data


class Image(DisplayObject):
    """A picture: its bytes, a file, or an address that the client loads."""
    binary = True
    STARTS = {"png": b"\x89PNG", "jpeg": b"\xff\xd8", "gif": b"GIF8", "webp": b"RIFF"}

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None,
                 retina=False, unconfined=False, metadata=None, alt=None):
        self.format, self.width, self.height, self.alt = format, width, height, alt
        super().__init__(data, url, filename, metadata)
        if self.data is None and self.url is None:
            raise ValueError("No image data found. Expecting filename, url, or data.")
        if isinstance(self.data, str):
            raise TypeError("an image is bytes, the name of a file, or an address")
        found = [name for name, start in self.STARTS.items() if (self.data or b"").startswith(start)]
        self.format = (format or (found or ["png"])[0]).lower().replace("jpg", "jpeg")

    def reload(self):
        if self.url is None:
            super().reload()

    def _repr_html_(self):
        if self.url is None:
            return None
        size = "".join([f' {name}="{escape(value)}"' for name, value in
                        (("width", self.width), ("height", self.height), ("alt", self.alt)) if value])
        return f'<img src="{escape(self.url)}"{size}/>'

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.url is not None:
            return {}
        size = {name: value for name, value in (("width", self.width), ("height", self.height), ("alt", self.alt))
                if value}
        mime = f"image/{self.format}"
        return {mime: bytes(self.data)}, {mime: size} if size else {}


def as_wav(data, rate):
    """Samples between -1 and 1, one row for each channel, as a WAV file."""
    numpy, wave, io = __import__("numpy"), __import__("wave"), __import__("io")
    samples = numpy.atleast_2d(numpy.asarray(data, dtype=float))
    loudest = numpy.abs(samples).max() or 1.0
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((len(samples), 2, int(rate), 0, "NONE", "NONE"))
        out.writeframes((samples.T / loudest * 32767).astype("<i2").tobytes())
    return file.getvalue()


class Audio(DisplayObject):
    binary = True

    def __init__(self, data=None, filename=None, url=None, embed=None, rate=None, autoplay=False, normalize=True, *,
                 element_id=None):
        self.autoplay, self.element_id = autoplay, element_id
        if data is not None and not isinstance(data, (bytes, str)) and not hasattr(data, "__fspath__"):
            if rate is None:
                raise ValueError("rate must be specified when data is a numpy array or list of audio samples.")
            data = as_wav(data, rate)
        super().__init__(data, url, filename)

    def reload(self):
        if self.url is None:
            super().reload()

    def _repr_html_(self):
        source = self.url or f"data:audio/wav;base64,{encoded(self.data)}"
        play = ' autoplay="autoplay"' if self.autoplay else ""
        name = f' id="{escape(self.element_id)}"' if self.element_id else ""
        return f'<audio{name} controls="controls"{play}><source src="{escape(source)}" type="audio/wav" /></audio>'


class Video(DisplayObject):
    binary = True

    def __init__(self, data=None, url=None, filename=None, embed=False, mimetype="video/mp4", width=None, height=None,
                 html_attributes="controls"):
        self.mimetype, self.width, self.height, self.html_attributes = mimetype, width, height, html_attributes
        super().__init__(data, url, filename)

    reload = Audio.reload

    def _repr_html_(self):
        size = "".join([f' {name}="{escape(value)}"' for name, value in (("width", self.width), ("height", self.height))
                        if value])
        source = self.url or f"data:{self.mimetype};base64,{encoded(self.data)}"
        return f'<video src="{escape(source)}" {self.html_attributes}{size}></video>'


class IFrame:
    def __init__(self, src, width, height, extras=None, **params):
        self.src, self.width, self.height, self.params = src, width, height, params

    def _repr_html_(self):
        query = "?" + __import__("urllib.parse").parse.urlencode(self.params) if self.params else ""
        return (f'<iframe width="{escape(self.width)}" height="{escape(self.height)}" src="{escape(self.src + query)}" '
                'frameborder="0" allowfullscreen></iframe>')


class YouTubeVideo(IFrame):
    def __init__(self, id, width=400, height=300, **params):
        super().__init__(f"https://www.youtube.com/embed/{id}", width, height, **params)


class FileLink:
    """A link to a file. The client gets the file as an artifact."""

    def __init__(self, path, url_prefix="", result_html_prefix="", result_html_suffix="<br>"):
        self.path, self.url_prefix = str(path), url_prefix
        self.before, self.after = result_html_prefix, result_html_suffix

    def _repr_html_(self):
        if not posix.access(self.path, posix.F_OK):
            return f"Path (<tt>{escape(self.path)}</tt>) doesn't exist. It may still be in the process of being " \
                   "generated, or you may have the incorrect path."
        path = escape(self.path)
        return f"{self.before}<a href='{escape(self.url_prefix)}{path}' target='_blank'>{path}</a>{self.after}"

    def __repr__(self):
        return __import__("os").path.abspath(self.path)


class ProgressBar:
    """A bar that grows in its place."""

    def __init__(self, total):
        self.total, self.done, self.id = total, 0, posix.urandom(16).hex()

    def __repr__(self):
        part = self.done / self.total if self.total else 0
        return f"[{'=' * int(part * 60):<60}] {self.done}/{self.total}"

    def _repr_html_(self):
        return f"<progress style='width:60ex' max='{self.total}' value='{self.done}'></progress>"

    def display(self):
        driver.load("show").display(self, display_id=self.id)

    def update(self):
        driver.load("show").update_display(self, display_id=self.id)

    @property
    def progress(self):
        return self.done

    @progress.setter
    def progress(self, value):
        self.done = value
        self.update()

    def __iter__(self):
        self.display()
        for self.done in range(self.total):
            self.update()
            yield self.done
        self.progress = self.total


def set_matplotlib_formats(*formats, **kwargs):
    """Figures are PNG here, whatever the formats."""


CORE = (DisplayObject, TextDisplayObject, Pretty, HTML, Markdown, Math, Latex, SVG, ProgressBar, JSON, GeoJSON,
        Javascript, Image, Video, set_matplotlib_formats)
LIB = Audio, IFrame, YouTubeVideo, FileLink, Code
for one in CORE:
    one.__module__ = "IPython.core.display"
for one in LIB:
    one.__module__ = "IPython.lib.display"
