"""How the times of a record of `tidelock bench` grow with batch and vocabulary: a line through those with 8 million tokens or more.

    python3 benches/linear.py benches/records/FILE.json
"""

import json
import sys

FULL = 8_000_000  # tokens of logits; with these the card is busy


def line(points):
    """The constant and the slope of least squares."""
    x, y = (sum(values) / len(points) for values in zip(*points))
    slope = sum((a - x) * (b - y) for a, b in points) / sum((a - x)**2 for a, _ in points)
    return y - slope * x, slope


def main():
    steps = {}
    for result in json.load(open(sys.argv[1]))["results"]:
        steps.setdefault(result["workload"], []).append((result["rows"] * result["vocab_size"], result["median_us"], result))
    sizes = sorted({its["vocab_size"] for points in steps.values() for _, _, its in points})
    print(f"| step | batch | {' | '.join(f'{size} tokens' for size in sizes)} | line |")
    print(f"| --- | --- |{' --- |' * (len(sizes) + 1)}")
    for name, points in steps.items():
        full = [(x, y) for x, y, _ in points if x >= FULL]
        constant, slope = line(full)
        off = [y / (constant + slope * x) - 1 for x, y in full]
        fit = f"{constant:.0f} us and {slope * 1e6:.2f} us for a million tokens, within {min(off):+.0%} and {max(off):+.0%}"
        for batch in sorted({its["batch"] for _, _, its in points}):
            times = [next(y for _, y, its in points if (its["batch"], its["vocab_size"]) == (batch, size)) for size in sizes]
            print(f"| {name} | {batch} | {' | '.join(f'{time:.1f}' for time in times)} | {fit} |")
            name = fit = ""


if __name__ == "__main__":
    main()
