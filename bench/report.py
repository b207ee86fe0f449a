"""The figures of a run, and the table that shows them."""


class Figures(dict):
    """What was measured -> {"heap": number, "cass": number}. Times are seconds, sizes bytes, rates per second."""

    def __missing__(self, name: str) -> dict:
        self[name] = {}
        return self[name]


def unit(name: str) -> str:
    """The unit that a measure's name implies: B, /s, pages or s."""
    if "bytes" in name:
        return "B"
    if "upserts" in name or "calls" in name:
        return "/s"
    if "buffers" in name or "page" in name:
        return "pages"
    return "s"


def shown(value, kind: str) -> str:
    """A number in a unit that a person reads without counting zeros."""
    if value is None:
        return "-"
    if kind == "B":
        return f"{value / 1e6:,.1f} MB"
    if kind == "/s":
        return f"{value:,.0f} /s"
    if kind == "pages":
        return f"{value:,.0f}"
    if value < 0.001:
        return f"{value * 1e6:,.0f} us"
    return f"{value * 1e3:,.2f} ms" if value < 1 else f"{value:,.2f} s"


def gain(values: dict, kind: str):
    """How many times better cass is than heap, or None where it cannot be said."""
    heap, cass = values.get("heap"), values.get("cass")
    if not heap or not cass:
        return None
    return cass / heap if kind == "/s" else heap / cass


def table(figures: dict, title: str) -> str:
    rows = [("", "heap", "cass", "cass better by")]
    for name, values in figures.items():
        kind = unit(name)
        ratio = gain(values, kind)
        rows.append(
            (
                name,
                shown(values.get("heap"), kind),
                shown(values.get("cass"), kind),
                "" if ratio is None else f"x {ratio:.2f}",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        "  ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]).rstrip()
        for row in rows
    ]
    lines.insert(1, "-" * (sum(widths) + 6))
    slower = [n for n, v in figures.items() if n.endswith((", warm", ", cold")) and (gain(v, "s") or 1) < 1]
    smaller = (gain(figures.get("bytes on disk", {}), "B") or 0) > 1
    lines += [
        "",
        "reads on which cass is slower: " + (", ".join(slower) or "none"),
        "smaller on disk: " + ("cass" if smaller else "heap"),
    ]
    return "\n".join([title, ""] + lines)
