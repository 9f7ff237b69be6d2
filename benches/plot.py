"""Draws a record of `tidelock bench`: ours, the peers and the limit of each workload and batch size, as SVG.

    python3 benches/plot.py benches/records/FILE.json > benches/plot.svg
"""

import json
import math
import sys
from html import escape

WIDTH, ROW, LEFT, RIGHT = 900, 16, 210, 40
LEAST, MOST = 0.1, 10_000  # microseconds
MARKS = {"limit": ("#888", "|"), "tidelock": ("#0a7d4f", "●"), "torch": ("#d9480f", "◆"), "triton": ("#7048e8", "▲"),
         "flashinfer": ("#1971c2", "■"), "read": ("#888", "○")}  # yapf: disable


def place(micros):
    share = math.log(micros / LEAST) / math.log(MOST / LEAST)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def mark(name, micros, y):
    colour, shape = MARKS[name]
    return (f'<text x="{place(micros):.1f}" y="{y + 4}" fill="{colour}" text-anchor="middle" font-size="12">{shape}'
            f'<title>{escape(name)}: {micros:g} us</title></text>')


def main():
    record = json.load(open(sys.argv[1]))
    lines, y = [], 60
    for tick in (0.1, 1, 10, 100, 1000, 10_000):
        x = place(tick)
        height = 60 + ROW * len(record["results"])
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="44" y2="{height}" stroke="#ddd"/>')
        lines.append(f'<text x="{x:.1f}" y="38" text-anchor="middle" fill="#666">{tick:g}</text>')
    for result in record["results"]:
        name = f'{result["workload"]}, B = {result["batch"]}'
        lines.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>')
        lines.append(mark("limit", max(result["limit_us"], LEAST), y))
        for peer in result["peers"]:
            lines.append(mark(peer["peer"], peer["median_us"], y))
        lines.append(mark("tidelock", result["median_us"], y))
        y += ROW
    legend, x = [], LEFT
    for name, (colour, shape) in MARKS.items():
        legend.append(f'<text x="{x}" y="18" fill="{colour}">{shape} {name}</text>')
        x += 100
    title = f'{record["card"]}, driver {record["driver"]}, {record["date"]}: microseconds of a step'
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 10}" font-family="sans-serif" font-size="11">')
    print(f"<title>{escape(title)}</title>")
    print(f'<rect width="{WIDTH}" height="{y + 10}" fill="#fff"/>')
    print("\n".join(legend + lines))
    print("</svg>")


if __name__ == "__main__":
    main()
