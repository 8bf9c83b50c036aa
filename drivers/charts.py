# The data of a figure or a data frame, as JSON beside the picture or table. Runs as the occupant; show.py loads it when
# it shows one, the zygote before it forks.
#
# 1. A chart has the shape of E2B's: type, title, labels with their units, elements. Several axes are a superchart.
# 2. Points, rows and bytes have maxima; `more` counts those left out.
# 3. A failure here loses the data, never the picture.
import sys

driver = None   # the module; set by the loader of this file
AXES_MAX, SERIES_MAX, POINTS_MAX, TEXT_MAX = 16, 50, 1000, 500
ROWS_MAX, COLUMNS_MAX, BYTES_MAX = 500, 200, 512 << 10
LABELS_MAX = 100
COUNTED = "datetime", "categorical"   # scales whose values matplotlib keeps as numbers of its own


# ---- values ----
def words(text):
    """Text, or None without any."""
    text = str(text)[:TEXT_MAX] if text is not None else ""
    return text if text.strip() else None


def number(value):
    """A JSON number or text: numpy's numbers become plain ones, dates text."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)[:TEXT_MAX]


def unit(label):
    """The text in brackets at the end of a label: "weight (kg)"."""
    label = (label or "").rstrip()
    for start, end in ("()", "[]"):
        if label.endswith(end) and start in label:
            return label[label.rindex(start) + 1:-1] or None
    return None


def shown_label(artist):
    """matplotlib's own names begin with an underscore."""
    label = words(artist.get_label())
    return None if label and label.startswith("_") else label


# ---- axes ----
def scale_of(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else getattr(axis, "converter", None)
    kind = type(converter).__name__
    if "Date" in kind or "Datetime" in kind or "Period" in kind:
        return "datetime"
    return "categorical" if "Category" in kind else axis.get_scale()


def as_dates(values):
    """matplotlib counts days."""
    dates = sys.modules["matplotlib.dates"]
    return [dates.num2date(value).replace(tzinfo=None).isoformat() for value in values]


class Axis:
    """One of the two: its label, ticks and scale, and how its values are told."""

    def __init__(self, axes, letter):
        self.axis = getattr(axes, f"{letter}axis")
        self.letter, self.label = letter, words(getattr(axes, f"get_{letter}label")())
        self.scale = scale_of(self.axis)
        low, high = sorted(getattr(axes, f"get_{letter}lim")())
        self.ticks = [tick for tick in self.axis.get_ticklocs() if low <= tick <= high][:LABELS_MAX]
        self.names = None
        if self.scale == "categorical":
            mapping = getattr(self.axis.units, "_mapping", {})
            self.names = {place: str(name)[:TEXT_MAX] for name, place in mapping.items()}

    def values(self, values):
        values = values[:POINTS_MAX]
        values = values.tolist() if hasattr(values, "tolist") else list(values)
        if self.scale == "datetime":
            return as_dates(values)
        if self.names:
            return [self.names.get(value, number(value)) for value in values]
        return [number(value) for value in values]

    def title(self):
        return {f"{self.letter}_label": self.label, f"{self.letter}_unit": unit(self.label)}

    def tell(self):
        texts = [words(text) or "" for text in self.axis.get_major_formatter().format_ticks(self.ticks)]
        return {f"{self.letter}_ticks": self.values(self.ticks), f"{self.letter}_tick_labels": texts,
                f"{self.letter}_scale": self.scale}


def series(x, y, rows):
    """Lines or scattered points: [(label, xs, ys)]."""
    elements = [{"label": label, "points": [list(point) for point in zip(x.values(xs), y.values(ys))],
                 **({"more": len(xs) - POINTS_MAX} if len(xs) > POINTS_MAX else {})}
                for label, xs, ys in rows[:SERIES_MAX]]
    return {**x.title(), **y.title(), **x.tell(), **y.tell(), "elements": elements}


def line_chart(axes, x, y):
    rows = [(shown_label(line), line.get_xdata(x.scale not in COUNTED), line.get_ydata(y.scale not in COUNTED))
            for line in axes.get_lines() if len(line.get_xdata())
            and line.get_transform().contains_branch(axes.transData)]
    return rows and {"type": "line", **series(x, y, rows)}


def scatter_chart(axes, x, y):
    rows = [(shown_label(one), one.get_offsets()[:, 0], one.get_offsets()[:, 1]) for one in axes.collections
            if type(one).__name__ == "PathCollection" and len(one.get_offsets())]
    return rows and {"type": "scatter", **series(x, y, rows)}


def is_number(text):
    try:
        return text is None or float(text.replace("\u2212", "-")) is not None
    except ValueError:
        return False


def tick_names(axis):
    """The ticks if they have names, not numbers: {place: name}."""
    texts = axis.axis.get_major_formatter().format_ticks(axis.ticks)
    names = {float(place): words(text) for place, text in zip(axis.ticks, texts)}
    return {} if all([is_number(name) for name in names.values()]) else names


def nearest(names, place):
    """The name of the tick beside a place, or the number there."""
    return names[min(names, key=lambda tick: abs(tick - place))] if names else f"{number(place):g}"


def bar_chart(axes, x, y):
    """Each bar has the name of its tick and the group of its container."""
    groups = [one for one in axes.containers if type(one).__name__ == "BarContainer" and len(one)][:SERIES_MAX]
    if not groups:
        return None
    flat = getattr(groups[0], "orientation", "vertical") == "horizontal"
    names, size = tick_names(y if flat else x), "get_width" if flat else "get_height"
    bars = [(shown_label(group) or "", bar) for group in groups for bar in group]
    elements = [{"label": nearest(names, bar.get_y() + bar.get_height() / 2 if flat else
                                  bar.get_x() + bar.get_width() / 2),
                 "group": group, "value": number(getattr(bar, size)())} for group, bar in bars[:POINTS_MAX]]
    more = {"more": len(bars) - POINTS_MAX} if len(bars) > POINTS_MAX else {}
    return {"type": "bar", **x.title(), **y.title(), "elements": elements, **more}


def pie_chart(axes, x, y):
    wedges = [one for one in axes.patches if type(one).__name__ == "Wedge"][:LABELS_MAX]
    elements = [{"label": shown_label(one), "angle": number(abs(one.theta2 - one.theta1)),
                 "radius": number(one.r)} for one in wedges]
    return wedges and {"type": "pie", "elements": elements}


def box_chart(axes, x, y):
    """A box is five lines or a patch; its median and whiskers are lines beside it."""
    boxes = []
    for line in axes.get_lines():
        xs, ys = list(line.get_xdata()), list(line.get_ydata())
        if len(xs) == 5 and xs[0] == xs[4] and ys[0] == ys[4]:
            boxes.append((min(xs), max(xs), min(ys), max(ys)))
    for patch in axes.patches:
        points = patch.get_path().vertices
        if type(patch).__name__ == "PathPatch" and len(points) >= 5:
            boxes.append((points[:, 0].min(), points[:, 0].max(), points[:, 1].min(), points[:, 1].max()))
    medians = [line for line in axes.get_lines() if len(line.get_xdata()) == 2
               and line.get_ydata()[0] == line.get_ydata()[1]]
    if not boxes or not medians:
        return None
    names = tick_names(x)
    elements = [one_box(axes, box, names) for box in boxes[:SERIES_MAX]]
    return {"type": "box_and_whisker", **x.title(), **y.title(), "elements": elements}


def one_box(axes, box, names):
    left, right, first, third = [float(value) for value in box]
    found = {"median": None, "low": first, "high": third, "outliers": []}
    for line in axes.get_lines():
        xs, ys = [float(one) for one in line.get_xdata()], [float(one) for one in line.get_ydata()]
        if not xs or not left - 1e-9 <= min(xs) <= max(xs) <= right + 1e-9 or len(xs) == 5 and xs[0] == xs[4]:
            continue
        if len(xs) == 2 and xs[0] == xs[1]:   # a whisker
            found["low"], found["high"] = min(found["low"], *ys), max(found["high"], *ys)
        elif len(xs) == 2 and first <= ys[0] == ys[1] <= third:
            found["median"] = ys[0]
        elif line.get_marker() not in ("None", None, "", " "):
            found["outliers"] += ys[:POINTS_MAX]
    return {"label": nearest(names, (left + right) / 2), "min": found["low"], "first_quartile": first,
            "median": found["median"], "third_quartile": third, "max": found["high"], "outliers": found["outliers"]}


KINDS = (pie_chart, box_chart, bar_chart, scatter_chart, line_chart)


def chart_of(axes):
    x, y = Axis(axes, "x"), Axis(axes, "y")
    for kind in KINDS:
        try:
            found = kind(axes, x, y)
        except Exception:   # a chart of another make
            continue
        if found:
            return {"type": found.pop("type"), "title": words(axes.get_title()), **found}
    return {"type": "unknown", "title": words(axes.get_title()), "elements": []}


def chart(figure):
    """The JSON text of a figure's data, or None."""
    charts = [chart_of(axes) for axes in figure.get_axes()[:AXES_MAX] if axes.get_visible()
              and axes.get_label() != "<colorbar>"]
    if not charts:
        return None
    title = words(figure._suptitle.get_text()) if getattr(figure, "_suptitle", None) else None
    whole = charts[0] if len(charts) == 1 else {"type": "superchart", "title": title, "elements": charts}
    text = driver.to_json(whole)
    return text if len(text) <= BYTES_MAX else None


# ---- tables ----
def table(frame):
    """The rows of a data frame by Table Schema (dataresource), or None."""
    keys = [str(name) for name in (*frame.columns, *frame.index.names)]
    if len(keys) > COLUMNS_MAX or len({*keys}) < len(keys):   # equal keys are no JSON
        return None
    part = frame.head(ROWS_MAX)
    text = part.to_json(orient="table", date_format="iso", double_precision=15)
    if len(text) > BYTES_MAX:
        return None
    brackets = text.count("[") + text.count("{")
    if brackets > 5 + len(keys) + len(part) or has_long_number(text):
        text = driver.to_json(driver.scan(text, 0)[0])   # containers in cells, or numbers beyond 64 bits
    return text if len(frame) <= ROWS_MAX else f'{text[:-1]},"more":{len(frame) - ROWS_MAX}}}'


def has_long_number(text):
    return __import__("re").search(r"\d{19}", text) is not None
